package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"idproxy/cmd/idproxy/admin"
	"idproxy/cmd/idproxy/initial"
	"idproxy/config"
	"idproxy/plural"
)

// switchName is what a switch may be called.
var switchName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// initFlags are what init takes.
type initFlags struct {
	servers      []string
	user         string
	passwordFile string
	passwordEnv  string
	force        bool
	said         bool // how many proxies there will be
	initial.Options
	std streams
}

func initCommand(std streams) *cobra.Command {
	f := &initFlags{std: std}
	c := &cobra.Command{
		Use:   "init [FILE | -]",
		Short: "Write a configuration for servers that are there, from their tables",
		Long: `Read the tables of all servers, and write a configuration for them: a rule for each table whose ids can come from idproxy,
and where they begin. It names what it leaves out and why, and changes nothing in the servers. FILE is ./idproxy.yaml unless
it is named, - is the standard output. On a terminal it asks for what the flags do not say.
The exit status is 1 when something could not be read, or nothing was written.`,
		Example: `  idproxy init --server shard0=10.0.0.5:3306 --server shard1=10.0.0.6:3306 --account idproxy --password-file /etc/idproxy/password
  idproxy init --server db:3306 --account idproxy --password-env IDPROXY_PASSWORD --proxies 3 --etcd etcd1:2379,etcd2:2379,etcd3:2379 -`,
		Args: usageOf(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, append(args, "idproxy.yaml")[0]) },
	}
	c.Flags().StringArrayVar(&f.servers, "server", nil, "a `shard0=host:port`, once for each shard")
	c.Flags().StringVar(&f.user, "account", "", "the `user` that reads all servers, and asks for idproxy later")
	c.Flags().StringVar(&f.passwordFile, "password-file", "", "`file` with his password; the configuration names the file")
	c.Flags().StringVar(&f.passwordEnv, "password-env", "", "environment `variable` with his password; the configuration names it")
	c.Flags().IntVar(&f.Proxies, "proxies", 1, "how many processes of idproxy will run")
	c.Flags().StringSliceVar(&f.Etcd, "etcd", nil, "`endpoints` of an etcd cluster that keeps the state")
	c.Flags().StringSliceVar(&f.Schemas, "schema", nil, "`schemas` that are read; default: all")
	c.Flags().StringVar(&f.CA, "ca", "", "`file` of the CA that signed the servers' certificates; default: they are not verified")
	c.Flags().StringVar(&f.Listen, "listen", "127.0.0.1:3307", "`host:port` of the first listener; the others have the next ports")
	c.Flags().StringVar(&f.Cert, "cert", "", "`file` of the certificate that clients are shown, and --key its key; default: listeners offer no TLS")
	c.Flags().StringVar(&f.Key, "key", "", "`file` of the key of --cert")
	c.Flags().BoolVar(&f.IntegerKeys, "integer-keys", false, "rules also for integer keys that are no AUTO_INCREMENT")
	c.Flags().StringVar(&f.Switch, "switch", "", "`name` of a switch that turns the modes of all rules, for idproxy migrate; default: they enforce")
	c.Flags().BoolVar(&f.force, "force", false, "replace a file that is there, which is kept as FILE.old; its admin section and others stay")
	c.MarkFlagsRequiredTogether("cert", "key")
	c.MarkFlagsMutuallyExclusive("password-file", "password-env")
	return c
}

func (f *initFlags) run(cmd *cobra.Command, path string) error {
	if f.Proxies < 1 {
		return fmt.Errorf("%w: --proxies is %d: name one or more", errUsage, f.Proxies)
	}
	if f.Switch != "" && !switchName.MatchString(f.Switch) {
		return fmt.Errorf("%w: --switch %q: use up to 64 letters, digits, _, - and ., starting with a letter or digit", errUsage, f.Switch)
	}
	if path != "-" {
		if err := initial.Free(path, f.force); err != nil {
			return err
		}
	}
	f.said = cmd.Flags().Changed("proxies")
	if err := f.files(); err != nil {
		return err
	}
	if err := f.Check(nil); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	f.Filled = initial.FilledBy(path)
	survey, login, err := f.read(cmd.Context(), f.questions())
	if err != nil {
		return err
	}
	if f.force && path != "-" {
		if f.Kept, err = initial.Keep(path); err != nil {
			fmt.Fprintf(f.std.err, "idproxy: of %s nothing is kept: %v\n", path, err)
		}
	}
	f.Socket, f.Schema = initial.SocketFor(path), initial.SchemaFile()
	f.State = initial.StateFor(path)
	plan := survey.Plan(f.Options)
	text, err := plan.YAML()
	if err != nil {
		return err
	}
	report := f.std.out
	if path == "-" {
		report = f.std.err
		_, err = f.std.out.Write(text)
	} else if err = initial.Write(path, text, f.force); err == nil {
		fmt.Fprintf(report, "%s is written.\n", path)
		if _, old := os.Lstat(initial.Old(path)); f.force && old == nil {
			fmt.Fprintf(report, "What was there is %s now.\n", initial.Old(path))
		}
		if len(f.Kept.LeftOut) > 0 {
			fmt.Fprintf(report, "left out of what was there: %s: what they name may not be in the new file\n", strings.Join(f.Kept.LeftOut, ", "))
		}
	}
	if err != nil {
		return err
	}
	if path != "-" {
		openSeries(cmd.Context(), report, path)
	}
	printPlan(report, plan, next(path, login))
	return findingIf(plan.Partial())
}

// openSeries opens the series that a new configuration names, above what all servers said, or says what is left to do.
func openSeries(ctx context.Context, report io.Writer, path string) {
	cfg, err := config.Load(path)
	if err != nil {
		fmt.Fprintf(report, "Its series are not open yet: %v. Mend that, then: idproxy source create --all --config %s\n", err, path)
		return
	}
	list, ok := admin.OpenAll(ctx, cfg, false)
	if ok {
		return
	}
	closed := map[string][]string{}
	for _, one := range list {
		if one.Error != "" {
			closed[one.Error] = append(closed[one.Error], one.Source)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(closed)) {
		fmt.Fprintf(report, "Series not open yet, of %s: %s\n", strings.Join(closed[why], ", "), why)
	}
	fmt.Fprintf(report, "Mend that, or run the statements below, then: idproxy source create --all --config %s\n", path)
}

// files makes the paths of certificates whole, for the configuration names them, and looks at them.
func (f *initFlags) files() (err error) {
	for _, path := range []*string{&f.CA, &f.Cert, &f.Key} {
		if *path != "" {
			if *path, err = filepath.Abs(*path); err != nil {
				return err
			}
		}
	}
	if f.Cert != "" {
		_, err = tls.LoadX509KeyPair(f.Cert, f.Key)
	}
	return err
}

// read asks for what the flags do not say, and reads the servers. On a terminal it asks again where
// an answer leads nowhere.
func (f *initFlags) read(ctx context.Context, q questions) (*initial.Survey, initial.Login, error) {
	typed := *f // what is there now was no answer
	if err := q.ask(ctx, f); err != nil {
		return nil, initial.Login{}, err
	}
	for {
		shards, err := initial.ParseShards(f.servers)
		if err == nil {
			err = f.Check(shards)
		}
		if err != nil {
			return nil, initial.Login{}, fmt.Errorf("%w: %w", errUsage, err)
		}
		login, err := f.login(ctx, q)
		if err != nil {
			return nil, login, err
		}
		if path, named := strings.CutPrefix(login.Written, "${file:"); named && strings.ContainsAny(strings.TrimSuffix(path, "}"), "$}") {
			return nil, login, fmt.Errorf("--password-file %s: the configuration cannot name a path with $ or }: move the file, or use --password-env", f.passwordFile)
		}
		survey, err := initial.Read(ctx, shards, login, f.Options)
		denied, wrong := errors.AsType[*mysql.MySQLError](err)
		switch {
		case err == nil || q.hidden == nil || ctx.Err() != nil:
			return survey, login, err
		case wrong && denied.Number == accessDenied && (typed.user == "" || login.Written == "${"+promptedPassword+"}"):
			f.user = typed.user
		case !wrong && typed.servers == nil:
			f.servers = nil
		default:
			return nil, login, err
		}
		fmt.Fprintf(q.out, "idproxy: %v\n", err)
		if err := q.ask(ctx, f); err != nil {
			return nil, login, err
		}
	}
}

// accessDenied is the number of a server's error for an account that it does not know, or a
// password.
const accessDenied = 1045

// login is the account with its password, and how the configuration names that.
func (f *initFlags) login(ctx context.Context, q questions) (l initial.Login, err error) {
	l.User = f.user
	switch {
	case f.user == "":
		return l, fmt.Errorf("%w: no account is named: --account USER, and his password by --password-file or --password-env", errUsage)
	case f.passwordEnv != "":
		text, set := os.LookupEnv(f.passwordEnv)
		if !set {
			return l, fmt.Errorf("environment variable %s is not set: it has the password of account %s", f.passwordEnv, f.user)
		}
		l.Password, l.Written = config.Secret(text), "${"+f.passwordEnv+"}"
	case f.passwordFile != "":
		path, err := filepath.Abs(f.passwordFile)
		if err != nil {
			return l, err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return l, err
		}
		l.Password, l.Written = config.Secret(strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")), "${file:"+path+"}"
	case q.hidden != nil:
		text, err := q.password(ctx, "Password of account "+f.user+": ")
		if err != nil {
			return l, err
		}
		l.Password, l.Written = config.Secret(text), "${"+promptedPassword+"}"
	default:
		return l, fmt.Errorf("%w: the password of account %s is missing: --password-file FILE or --password-env NAME", errUsage, f.user)
	}
	if l.Password == "" {
		l.Written = ""
	}
	return l, nil
}

// promptedPassword is the environment variable that the configuration names where somebody typed the
// password.
const promptedPassword = "IDPROXY_PASSWORD"

// questions asks whoever sits at a terminal.
type questions struct {
	in     *bufio.Reader
	out    io.Writer
	hidden func(context.Context) (string, error) // reads what is not to be seen; nil: nobody is there
}

// questions are for a terminal only: from a file nothing is asked.
func (f *initFlags) questions() questions {
	in, ok := f.std.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return questions{}
	}
	terminal := int(in.Fd())
	return questions{bufio.NewReader(in), f.std.err, func(ctx context.Context) (text string, err error) {
		shown, err := term.MakeRaw(terminal)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, term.Restore(terminal, shown)) }()
		unseen := struct {
			io.Reader
			io.Writer
		}{in, io.Discard}
		return until(ctx, func() (string, error) { return term.NewTerminal(unseen, "").ReadPassword("") })
	}}
}

// ask asks for what the flags do not say.
func (q questions) ask(ctx context.Context, f *initFlags) (err error) {
	if q.hidden == nil {
		return nil
	}
	all := f.servers == nil && !f.said
	for f.servers == nil {
		if err := q.askServers(ctx, f); err != nil {
			return err
		}
	}
	for f.user == "" {
		if f.user, err = q.line(ctx, "Account that reads them: "); err != nil {
			return err
		}
	}
	f.said = f.said || all
	for all {
		text, err := q.line(ctx, fmt.Sprintf("How many processes of idproxy will run (%d): ", f.Proxies))
		if err != nil || text == "" {
			return err
		}
		n, err := strconv.Atoi(text)
		if err == nil && n > 0 {
			f.Proxies = n
			return nil
		}
		fmt.Fprintf(q.out, "%q is no number of processes: name one or more\n", text)
	}
	return nil
}

// askServers asks for servers until one answer is nothing. What is no server is asked for again.
func (q questions) askServers(ctx context.Context, f *initFlags) error {
	for {
		text, err := q.line(ctx, fmt.Sprintf("Server of shard%d, host:port (nothing when that is all): ", len(f.servers)))
		if err != nil || text == "" {
			return err
		}
		all := append(slices.Clone(f.servers), text)
		shards, err := initial.ParseShards(all)
		if err == nil {
			err = f.Check(shards)
		}
		if err != nil {
			fmt.Fprintln(q.out, err)
			continue
		}
		f.servers = all
	}
}

func (q questions) line(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(q.out, prompt)
	text, err := until(ctx, func() (string, error) { return q.in.ReadString('\n') })
	return strings.TrimSpace(text), ended(err)
}

// ended words the end of an input.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the input ended before all was said")
	}
	return err
}

func (q questions) password(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(q.out, prompt)
	text, err := q.hidden(ctx)
	fmt.Fprintln(q.out)
	return text, ended(err)
}

// next is the command that looks at the file.
func next(path string, login initial.Login) string {
	command := "idproxy check --online"
	if path != "idproxy.yaml" && path != "-" {
		command += " --config " + path
	}
	if login.Written == "${"+promptedPassword+"}" {
		command += ", with the password in the environment variable " + promptedPassword
	}
	return command
}

func printPlan(w io.Writer, p *initial.Plan, next string) {
	fmt.Fprintf(w, "Tables that get ids: %d, by %s from %s; left out: %d.\n", p.Tables(), plural.Of(len(p.Rules), "rule"), plural.Of(len(p.Sources), "source"), len(p.LeftOut))
	for _, l := range p.LeftOut {
		fmt.Fprintf(w, "left out: %s: %s\n", l.Table, l.Why)
	}
	for _, text := range p.Warnings {
		fmt.Fprintf(w, "note: %s\n", text)
	}
	fmt.Fprintln(w, "Statements for the accounts, as far as these have not the rights yet:")
	for _, text := range p.Grants() {
		fmt.Fprintf(w, "    %s\n", text)
	}
	fmt.Fprintln(w, "Next: read the file, then "+next)
}
