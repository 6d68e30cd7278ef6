package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/app"
	"idproxy/config"
)

// commandLine is the tree of commands, with their flags.
func commandLine(std streams) *cobra.Command {
	at := &configFile{}
	root := &cobra.Command{
		Use:   "idproxy",
		Short: "Fills the id columns of INSERTs on their way to MySQL or MariaDB",
		Long: `idproxy fills the id columns of INSERTs on their way to MySQL or MariaDB.

Every command but version reads a configuration: ./idproxy.yaml, then /etc/idproxy/idproxy.yaml, unless --config names it.
Exit status: 0 when all is well, 1 when something is wrong or was found, 2 when the command line is.`,
		Version:       release(),
		Args:          usageOf(cobra.NoArgs),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fmt.Errorf("%w: no command was given\n%s", errUsage, cmd.UsageString())
		},
	}
	root.SetVersionTemplate("idproxy {{.Version}}\n")
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	root.PersistentFlags().StringVar(&at.path, "config", "", "configuration `file`")
	root.AddCommand(serveCommand(at, std), checkCommand(at, std), explainCommand(at, std), sourceCommand(at, std), workerCommand(at, std),
		decodeCommand(at, std), versionCommand(std))
	return root
}

// configFile is the configuration that a command reads.
type configFile struct{ path string }

// load reads it.
func (f *configFile) load() (*config.Config, error) {
	path, err := configPath(f.path)
	if err != nil {
		return nil, err
	}
	return config.Load(path)
}

// usageOf has wrong arguments count as an error of the command line.
func usageOf(valid cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := valid(cmd, args); err != nil {
			return fmt.Errorf("%w: %w\n%s", errUsage, err, cmd.UsageString())
		}
		return nil
	}
}

// group is a command that only has others below it.
func group(c *cobra.Command) *cobra.Command {
	c.Args = usageOf(cobra.NoArgs)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		return fmt.Errorf("%w: which of its commands is missing\n%s", errUsage, cmd.UsageString())
	}
	return c
}

func serveCommand(at *configFile, std streams) *cobra.Command {
	return &cobra.Command{
		Use:     "serve",
		Short:   "Run the proxy",
		Long:    "Run the proxy until SIGTERM or SIGINT. Its log goes to standard error. SIGHUP reads the configuration again.",
		Example: "  idproxy serve --config /etc/idproxy/idproxy.yaml",
		Args:    usageOf(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := configPath(at.path)
			if err != nil {
				return err
			}
			return app.Serve(cmd.Context(), path, std.err)
		},
	}
}

func checkCommand(at *configFile, std streams) *cobra.Command {
	o := checkOptions{out: std.out}
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration, and with --online what it names",
		Long: `Check the configuration file. With --online, ask servers, tables, columns and stores too, over the listeners' accounts.
The exit status is 1 when something is wrong, or could not be asked.`,
		Example: "  idproxy check --online\n  idproxy check --json | jq '.findings[] | select(.level == \"error\")'",
		Args:    usageOf(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := configPath(at.path)
			if err != nil {
				return err
			}
			return check(cmd.Context(), path, o)
		},
	}
	c.Flags().BoolVar(&o.online, "online", false, "check servers, tables, columns and stores too")
	c.Flags().BoolVar(&o.json, "json", false, "print findings as JSON")
	return c
}

func decodeCommand(at *configFile, std streams) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:     "decode SOURCE ID",
		Short:   "Take an id apart",
		Long:    "Show what an id of a source tells: its time and worker number, or where its series stands, and its genes.",
		Example: "  idproxy decode event_id 7264318466326528001",
		Args:    usageOf(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := at.load()
			if err != nil {
				return err
			}
			return decode(cmd.Context(), cfg, decodeOptions{source: args[0], id: args[1], json: asJSON, out: std.out})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func versionCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  idproxy version",
		Args:    usageOf(cobra.NoArgs),
		Run:     func(*cobra.Command, []string) { fmt.Fprintf(std.out, "idproxy %s\n", release()) },
	}
}

// release is the version of the program, its commit and Go's.
func release() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	parts := []string{"(devel)"}
	if info.Main.Version != "" {
		parts[0] = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			parts = append(parts, s.Value)
		}
	}
	return strings.Join(append(parts, info.GoVersion), " ")
}

func workerCommand(at *configFile, std streams) *cobra.Command {
	source, asJSON, fresh := "", false, false
	c := group(&cobra.Command{
		Use:   "worker",
		Short: "Show and fill pools of worker numbers",
		Long:  "Show the worker numbers of a source that leases them, fill its pool, and take free ones out.",
	})
	c.PersistentFlags().StringVar(&source, "source", "", "the `source` whose worker numbers are meant; needed when several lease theirs")
	c.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	run := func(do func(ctx context.Context, p *workerPool, numbers []uint64) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			numbers, err := workerNumbers(args)
			if err != nil {
				return err
			}
			cfg, err := at.load()
			if err != nil {
				return err
			}
			return withPool(cmd.Context(), cfg, source, func(ctx context.Context, p *workerPool) error {
				p.std, p.json = std, asJSON
				return do(ctx, p, numbers)
			})
		}
	}
	list := &cobra.Command{
		Use: "list", Short: "Show the numbers, who holds them, and until when", Example: "  idproxy worker list --source event_id", Args: usageOf(cobra.NoArgs),
		RunE: run(func(ctx context.Context, p *workerPool, _ []uint64) error { return p.list(ctx) }),
	}
	add := &cobra.Command{
		Use: "add N", Short: "Fill the pool up to N numbers", Example: "  idproxy worker add 16 --new-pool", Args: usageOf(cobra.ExactArgs(1)),
		RunE: run(func(ctx context.Context, p *workerPool, numbers []uint64) error { return p.add(ctx, numbers[0], fresh) }),
	}
	add.Flags().BoolVar(&fresh, "new-pool", false, "no id of this source was ever issued; a new pool gives out numbers at once")
	drop := &cobra.Command{
		Use: "drop N ...", Short: "Take free numbers out of the pool", Example: "  idproxy worker drop 14 15", Args: usageOf(cobra.MinimumNArgs(1)),
		RunE: run(func(ctx context.Context, p *workerPool, numbers []uint64) error { return p.drop(ctx, numbers) }),
	}
	c.AddCommand(list, add, drop)
	return c
}

// workerNumbers reads worker numbers of the command line.
func workerNumbers(words []string) (numbers []uint64, err error) {
	for _, word := range words {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%w: %q is no worker number", errUsage, word)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

func sourceCommand(at *configFile, std streams) *cobra.Command {
	a := &sourceArgs{out: std.out}
	c := group(&cobra.Command{
		Use:   "source",
		Short: "Show where the sources stand, and move them",
	})
	c.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	run := func(do func(context.Context, *sourceArgs) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) (err error) {
			if a.cfg, err = at.load(); err != nil {
				return err
			}
			a.args = args
			return do(cmd.Context(), a)
		}
	}
	set := &cobra.Command{
		Use: "set SOURCE NEXT", Short: "Have NEXT be the lowest id not given yet", Example: "  idproxy source set order_id 200001",
		Args: usageOf(cobra.ExactArgs(2)), RunE: run(sourceSet),
	}
	set.Flags().BoolVar(&a.force, "force", false, "also move it back: only when no id from there on is in use")
	set.Flags().StringVar(&a.key, "key", "", "the `key` of a source with {schema} or {table} in its key")
	imports := &cobra.Command{
		Use: "import [TAG=SOURCE ...]", Short: "Move sources to where another system's tables stand",
		Long:    "Move sources to where the tables of Leaf, tinyid or tickets64 stand. TAG=SOURCE says which source a tag is; without any, tags are keys of sources.",
		Example: "  idproxy source import --format leaf --from 'leaf:secret@tcp(10.0.0.7:3306)/leaf' --dry-run",
		Args:    usageOf(cobra.ArbitraryArgs), RunE: run(sourceImport),
	}
	f := imports.Flags()
	f.StringArrayVar(&a.from, "from", nil, "`DSN` of the other system's database, user:password@tcp(host:port)/database; once per server")
	f.StringVar(&a.format, "format", "", "leaf, tinyid or tickets64")
	f.StringVar(&a.table, "table", "", "`name` of its table (default leaf_alloc, tiny_id_info, Tickets64)")
	f.StringVar(&a.store, "store", "", "take all tags over as keys of this `store`")
	f.Uint64Var(&a.margin, "margin", 0, "leave out this many ids, for a system that still runs")
	f.BoolVar(&a.dry, "dry-run", false, "only say what would be done")
	c.AddCommand(
		&cobra.Command{
			Use: "list", Short: "Show where all sources stand", Example: "  idproxy source list", Args: usageOf(cobra.NoArgs), RunE: run(sourceList),
		},
		&cobra.Command{
			Use: "show SOURCE", Short: "Show one source, with the parts of its store", Example: "  idproxy source show order_id --json",
			Args: usageOf(cobra.ExactArgs(1)), RunE: run(sourceShow),
		},
		set, imports,
		&cobra.Command{
			Use: "adopt STORE", Short: "Of several servers, use those again that were emptied, replaced or restored",
			Example: "  idproxy source adopt ids", Args: usageOf(cobra.ExactArgs(1)), RunE: run(sourceAdopt),
		},
	)
	return c
}
