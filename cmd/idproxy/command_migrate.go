package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/initial"
	"idproxy/cmd/idproxy/migrate"
	"idproxy/config"
	"idproxy/monitor"
	"idproxy/plural"
)

// migrateFlags are what migrate takes.
type migrateFlags struct {
	migrate.Options
	login  loginFlags
	run    string
	back   bool
	asJSON bool
}

func migrateCommand(at *configFile, std streams) *cobra.Command {
	f := &migrateFlags{}
	c := &cobra.Command{
		Use:   "migrate --plan FILE",
		Short: "Walk tables from AUTO_INCREMENT on several shards to ids of idproxy, and back",
		Long: `Walk tables whose rules have mode: {switch: NAME} from AUTO_INCREMENT to ids of idproxy, and back, by a plan in a file: observe, lift the
shards' own counters above the ids of idproxy, enforce on all proxies at once, watch, drop AUTO_INCREMENT. Where there is no file it
makes the plan. Without --run it says where the plan stands and what each step does, and changes nothing but that file.
docs/migrating.md walks through it.
The exit status is 1 when a step is not done, or something is in the way. It asks proxies as idproxy status --admin does: ` + adminToken + `
in the environment is their token.`,
		Example: "  idproxy migrate --plan plan.json --proxy 10.0.0.1:9307 --proxy 10.0.0.2:9307\n  idproxy migrate --plan plan.json --run observe\n  idproxy migrate --plan plan.json --run enforce --back",
		Args:    usageOf(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := at.load()
			if err != nil {
				return err
			}
			f.Dial = func(address string) (*monitor.Client, error) { return adminClient(at, address) }
			return f.migrate(cmd, cfg, std)
		},
	}
	c.Flags().StringVar(&f.Path, "plan", "", "`file` of the plan; it is made where there is none")
	c.Flags().StringVar(&f.run, "run", "", "`step` to run: observe, lift, enforce, watch, drop, or its number")
	c.Flags().BoolVar(&f.back, "back", false, "take the step of --run back")
	c.Flags().StringArrayVar(&f.Proxies, "proxy", nil, "admin `address` of a proxy, for a new plan, once for each: host:port, https://host:port or unix:/path; default: the configuration's")
	c.Flags().BoolVar(&f.Force, "force", false, "run the step in spite of what it says is refused without --force")
	f.login.add(c.Flags(), "the `user` that asks the shards and alters tables; default: the account of each listener", "`file` with his password")
	jsonFlag(c.Flags(), &f.asJSON)
	c.MarkFlagsMutuallyExclusive("password-file", "password-env")
	return c
}

// reportTime is how long it may take to find out where a plan stands behind a step.
const reportTime = 10 * time.Second

func (f *migrateFlags) migrate(cmd *cobra.Command, cfg *config.Config, std streams) error {
	switch {
	case f.Path == "":
		return fmt.Errorf("%w: no plan is named: --plan FILE", errUsage)
	case f.back && f.run == "":
		return fmt.Errorf("%w: --back takes one step back, and --run names it", errUsage)
	case f.run != "":
		name, err := migrate.StepName(f.run)
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		f.run = name
	}
	if f.login.user != "" {
		login, err := f.login.read()
		if err != nil {
			return err
		}
		for i := range cfg.Listeners {
			cfg.Listeners[i].Account = &config.Account{User: login.User, Password: login.Password}
		}
	}
	f.Runs, f.Back = f.run != "", f.back
	m, err := migrate.Open(cmd.Context(), cfg, f.Options)
	if err != nil {
		return err
	}
	defer m.Close()
	if f.run == "" {
		report, err := m.Report(cmd.Context())
		if err != nil {
			return err
		}
		return show(std.out, f.asJSON, report, printMigration)
	}
	found, failed, err := m.Run(cmd.Context(), f.run, f.back)
	if err != nil {
		found = append(found, migrate.Finding{Level: migrate.LevelError, Message: err.Error()})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), reportTime) // what was done is done, also where it was stopped
	defer cancel()
	report, err := m.Report(ctx)
	if err != nil {
		found = append(found, migrate.Finding{Level: migrate.LevelWarning, Message: "where the switch stands is not known: " + err.Error()})
	}
	report.Findings, report.Failed = append(report.Findings, found...), failed
	return errors.Join(show(std.out, f.asJSON, report, f.printRun), findingIf(failed))
}

// printRun says what came of a step.
func (f *migrateFlags) printRun(w io.Writer, r *migrate.Report) error {
	for _, one := range r.Findings {
		fmt.Fprintln(w, one)
	}
	word := "done"
	switch {
	case r.Failed:
		word = "NOT done"
	case f.back:
		word = "taken back"
	}
	fmt.Fprintf(w, "step %s: %s\n", f.run, word)
	if r.Failed && !r.Has(migrate.LevelError) && r.Has(migrate.LevelForce) {
		fmt.Fprintln(w, "Only what is refused above stands against it: with --force the step is run all the same.")
	}
	return nil
}

// someSQL is how many statements of a step are shown.
const someSQL = 6

// printMigration says where a plan stands, and what its steps do.
func printMigration(w io.Writer, r *migrate.Report) error {
	if r.Made {
		fmt.Fprintf(w, "%s is written.\n", r.Plan)
	}
	fmt.Fprintf(w, "%s on %s; switch %s in store %s is at %s, version %d.\n", plural.Of(r.Tables, "table"), strings.Join(r.Shards, ", "), r.Switch, r.Store, r.State, r.Version)
	for _, one := range r.Findings {
		fmt.Fprintln(w, one)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row(table)
	row(table, "PROXY", "SWITCH", "VERSION", "PROBLEM")
	for _, p := range r.Proxies {
		row(table, p.Address, p.State, p.Version, p.Problem)
	}
	row(table)
	row(table, "STEP", "STATE", "AT", "BY")
	for _, s := range r.Steps {
		when := ""
		if !s.At.IsZero() {
			when = s.At.Format(time.RFC3339)
		}
		row(table, fmt.Sprintf("%d %s", s.Number, s.Name), s.State, when, s.By)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if next := slices.IndexFunc(r.Steps, func(s migrate.Step) bool { return s.State != migrate.Done }); next >= 0 {
		fmt.Fprintf(w, "\nNext: idproxy migrate --plan %s --run %s\n", r.Plan, r.Steps[next].Name)
	}
	for _, s := range r.Steps {
		fmt.Fprintf(w, "\n%d %s\n  does:  %s\n  check: %s\n", s.Number, s.Name, s.Does, s.Check)
		printSQL(w, s.SQL)
		fmt.Fprintf(w, "  back:  %s\n", s.Back)
		printSQL(w, s.BackSQL)
	}
	return nil
}

func printSQL(w io.Writer, all []migrate.Statement) {
	for i, s := range all {
		if i == someSQL {
			fmt.Fprintf(w, "    and %d more, which --json has\n", len(all)-someSQL)
			return
		}
		fmt.Fprintf(w, "    %s: %s;\n", s.Shard, s.SQL)
	}
}

// loginFlags are an account that a command logs in with.
type loginFlags struct{ user, passwordFile, passwordEnv string }

// add adds the flags.
func (l *loginFlags) add(flags interface {
	StringVar(p *string, name, value, usage string)
}, user, file string,
) {
	flags.StringVar(&l.user, "account", "", user)
	flags.StringVar(&l.passwordFile, "password-file", "", file)
	flags.StringVar(&l.passwordEnv, "password-env", "", "environment `variable` with his password")
}

// read returns the account with its password.
func (l *loginFlags) read() (initial.Login, error) {
	f := initFlags{user: l.user, passwordFile: l.passwordFile, passwordEnv: l.passwordEnv}
	return f.login(context.Background(), questions{})
}
