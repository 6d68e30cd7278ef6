package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"idproxy/cmd/idproxy/app"
	"idproxy/monitor"
	"idproxy/plural"
)

// adminToken names the variable of the environment with the token for --admin.
const adminToken = "IDPROXY_ADMIN_TOKEN"

func statusCommand(at *configFile, std streams) *cobra.Command {
	var address string
	asJSON, watching := false, false
	c := &cobra.Command{
		Use: "status", Short: "Show what a running idproxy does", Example: "  idproxy status --watch\n  idproxy status --admin unix:/run/idproxy/admin.sock",
		Long: `Show what a running idproxy does: listeners, sources, rules and stores. It asks the admin listener of the configuration, over its unix
socket if it has one, or the one that --admin names; ` + adminToken + ` in the environment is the token for that. The exit status is 1 when a listener is not ready.`,
		Args: usageOf(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := adminClient(at, address)
			if err != nil {
				return err
			}
			for {
				s, err := client.State(cmd.Context())
				if err != nil {
					return err
				}
				if watching && !asJSON {
					fmt.Fprint(std.out, "\x1b[H\x1b[2J") // as clear(1)
				}
				if err := show(std.out, asJSON, &s, printState); err != nil {
					return err
				}
				if !watching {
					ready, err := s.Ready("")
					return errors.Join(err, findingIf(!ready.Ready))
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(watchPeriod):
				}
			}
		},
	}
	adminFlag(c.Flags(), &address)
	c.Flags().BoolVar(&watching, "watch", false, "show it again every two seconds, until Ctrl-C")
	jsonFlag(c.Flags(), &asJSON)
	return c
}

const watchPeriod = 2 * time.Second

// adminClient returns a client of an address, or of the configuration's admin listener.
func adminClient(at *configFile, address string) (*monitor.Client, error) {
	if path, unix := strings.CutPrefix(address, "unix:"); unix {
		return monitor.NewClient("unix", path, "", nil), nil
	} else if address != "" {
		return clientOf(address)
	}
	cfg, err := at.load()
	if err != nil {
		return nil, err
	}
	if cfg.Admin == nil {
		return nil, fmt.Errorf("%s has no admin section: add one, or name an address with --admin", cfg.Path)
	}
	return app.AdminClient(cfg.Admin)
}

// clientOf returns a client of host:port, which a scheme may stand before: with https:// it speaks
// TLS, and the listener's certificate must be of that host and by a CA that this one trusts.
func clientOf(address string) (*monitor.Client, error) {
	scheme, at, ok := strings.Cut(address, "://")
	if !ok {
		scheme, at = "http", address
	}
	at = strings.TrimSuffix(at, "/")
	host, port, err := net.SplitHostPort(at)
	if err != nil || host == "" || port == "" || scheme != "http" && scheme != "https" || strings.ContainsAny(at, "/@?#") {
		return nil, fmt.Errorf("%w: --admin %s: an address is host:port, https://host:port or unix:/path", errUsage, address)
	}
	var secure *tls.Config
	if scheme == "https" {
		secure = &tls.Config{}
	}
	return monitor.NewClient("tcp", at, os.Getenv(adminToken), secure), nil
}

// adminFlag adds --admin.
func adminFlag(flags *pflag.FlagSet, address *string) {
	flags.StringVar(address, "admin", "", "`address` of the admin listener: host:port, https://host:port or unix:/path; default: the configuration's")
}

// printState prints tables.
func printState(out io.Writer, s *monitor.State) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	ready, err := s.Ready("")
	if err != nil {
		return err
	}
	row(w, fmt.Sprintf("idproxy %s as %s, up %v, %s", s.Version, s.Instance, s.Time.Sub(s.Started).Round(time.Second), s.Config.File))
	if s.Draining {
		row(w, "it drains: "+s.Phase)
	}
	if s.Config.Problem != "" {
		row(w, "configuration not reloaded: "+s.Config.Problem)
	}
	row(w)
	row(w, "LISTENER", "ADDRESS", "SERVER", "SESSIONS", "FORWARDED", "FILLED", "REFUSED", "STATE")
	for i := range s.Listeners {
		l := &s.Listeners[i]
		kinds := map[string]uint64{}
		for _, n := range l.Statements {
			kinds[n.Kind] += n.Count
		}
		state := "ready"
		if !ready.Listeners[i].Ready {
			state = strings.Join(ready.Listeners[i].Problems, "; ")
		}
		row(w, l.Name, l.Listen, l.Upstream, l.Sessions, kinds["forwarded"], kinds[monitor.KindFilled], kinds["refused"], state)
	}
	first := true
	for _, l := range ready.Listeners {
		for _, finding := range l.Findings {
			if first {
				row(w)
				row(w, "LISTENER", "FINDING")
			}
			first = false
			row(w, l.Name, finding)
		}
	}
	row(w)
	row(w, "SOURCE", "KIND", "ISSUED", "LEFT", "STATE")
	for i := range s.Sources {
		o := &s.Sources[i]
		row(w, o.Name, o.Kind, o.Issued, leftOf(o), sourceState(o))
	}
	row(w)
	row(w, "RULE", "SOURCE", "MODE", "IDS", "OBSERVED", "REFUSED")
	for i := range s.Rules {
		r := &s.Rules[i]
		var refused []string
		for _, n := range r.Refused {
			refused = append(refused, fmt.Sprintf("%d %s", n.Count, n.Reason))
		}
		row(w, r.Name(), r.Source, r.Mode, r.IDs, r.Observed, cmp.Or(strings.Join(refused, ", "), "0"))
	}
	if len(s.Stores) > 0 {
		row(w)
		row(w, "STORE", "KIND", "ANSWERED IN", "STATE")
	}
	for i := range s.Stores {
		st := &s.Stores[i]
		state := "answers"
		if !st.Up {
			state = st.Problem
		}
		row(w, st.Name, st.Kind, time.Duration(st.Took).Round(time.Microsecond), state)
	}
	if len(s.Switches) > 0 {
		row(w)
		row(w, "SWITCH", "STORE", "STATE", "VERSION", "PROBLEM")
	}
	for i := range s.Switches {
		one := &s.Switches[i]
		row(w, one.Name, one.Store, one.State, one.Version, one.Problem)
	}
	return w.Flush()
}

// row prints a line of a table. What is no printable character, such as an escape of terminals in
// the error of a server, is printed as Go writes it: \x1b.
func row(w io.Writer, cells ...any) {
	texts := make([]string, 0, len(cells))
	for _, c := range cells {
		text := strconv.QuoteToGraphic(fmt.Sprint(c))
		texts = append(texts, strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text[1:len(text)-1]))
	}
	fmt.Fprintln(w, strings.Join(texts, "\t"))
}

// leftOf says how long a source lasts without its store.
func leftOf(o *monitor.Source) string {
	switch {
	case o.Segment != nil && o.Segment.Lasts != nil:
		return fmt.Sprintf("%s, %v", plural.Of(o.Segment.Left, "id"), time.Duration(*o.Segment.Lasts).Round(time.Second))
	case o.Segment != nil:
		return plural.Of(o.Segment.Left, "id")
	case o.Snowflake != nil && o.Snowflake.Worker != nil:
		return fmt.Sprintf("worker %d, fence in %v", *o.Snowflake.Worker, time.Duration(o.Snowflake.Fence).Round(time.Second))
	}
	return "-"
}

func sourceState(o *monitor.Source) string {
	switch {
	case o.Problem != "":
		return o.Problem
	case o.Failing != "":
		return "store fails: " + o.Failing
	}
	return "ready"
}
