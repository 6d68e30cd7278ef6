package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"idproxy/cmd/idproxy/top"
)

// fastest is how often a running idproxy may be asked.
const fastest = 200 * time.Millisecond

func topCommand(at *configFile, std streams) *cobra.Command {
	var address string
	var period time.Duration
	c := &cobra.Command{
		Use: "top", Short: "Watch a running idproxy live in a terminal", Example: "  idproxy top\n  idproxy top --admin unix:/run/idproxy/admin.sock --interval 5s",
		Long: `Watch a running idproxy live in a terminal: listeners, sources, rules, sessions, refusals and events, with what each does a second. F1 shows
the keys. It asks the admin listener of the configuration, over its unix socket if it has one, or the one that --admin names; ` + adminToken + ` in the
environment is the token for that. A session can be closed with the token or over the socket.`,
		Args: usageOf(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if period < fastest {
				return fmt.Errorf("%w: --interval %v is too often, at least %v", errUsage, period, fastest)
			}
			if out, ok := std.out.(*os.File); !ok || !term.IsTerminal(int(out.Fd())) {
				return fmt.Errorf("%w: top needs a terminal; `idproxy status` prints the same once, with --json for programs", errUsage)
			}
			client, err := adminClient(at, address)
			if err != nil {
				return err
			}
			return top.Run(cmd.Context(), client, period, nil)
		},
	}
	adminFlag(c.Flags(), &address)
	c.Flags().DurationVar(&period, "interval", time.Second, "how often it asks")
	return c
}
