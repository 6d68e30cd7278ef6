package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
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
		Version:       built().String(),
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

func versionCommand(std streams) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  idproxy version --json",
		Args:    usageOf(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return show(std.out, asJSON, built(), func(w io.Writer, b build) error {
				_, err := fmt.Fprintf(w, "idproxy %s\n", b)
				return err
			})
		},
	}
	jsonFlag(c.Flags(), &asJSON)
	return c
}

// build is the version of the program, its commit and Go's.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go,omitempty"`
}

func (b build) String() string {
	return strings.Join(slices.DeleteFunc([]string{b.Version, b.Revision, b.Go}, func(part string) bool { return part == "" }), " ")
}

// built is what this program was built as.
func built() build {
	b := build{Version: "(devel)"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version, b.Go = cmp.Or(info.Main.Version, b.Version), info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}
