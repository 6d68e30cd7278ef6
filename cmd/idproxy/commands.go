package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/app"
)

// commandLine is the tree of commands, with their flags.
func commandLine(std streams) *cobra.Command {
	at := &configFile{}
	root := &cobra.Command{
		Use:   "idproxy",
		Short: "Fills the id columns of INSERTs on their way to MySQL or MariaDB",
		Long: `idproxy fills the id columns of INSERTs on their way to MySQL or MariaDB.

Every command but init, man and version reads a configuration: ./idproxy.yaml, then /etc/idproxy/idproxy.yaml, unless --config names it.
Exit status: 0 when all is well, 1 when something is wrong or was found, 2 when the command line is wrong.`,
		Version:       app.Built().String(),
		Args:          usageOf(noCommand),
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
	root.AddCommand(initCommand(std), migrateCommand(at, std), serveCommand(at, std), checkCommand(at, std), explainCommand(at, std), sourceCommand(at, std), workerCommand(at, std), userCommand(at, std),
		decodeCommand(at, std), statusCommand(at, std), topCommand(at, std), drainCommand(at), resumeCommand(at), reloadCommand(at, std), upgradeCommand(at), manCommand(), versionCommand(std))
	return root
}
