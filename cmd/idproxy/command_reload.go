package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func reloadCommand(at *configFile, std streams) *cobra.Command {
	var address string
	var dryRun bool
	c := &cobra.Command{
		Use: "reload", Short: "Have a running idproxy put its configuration in force as the file is now", Example: "  idproxy reload",
		Long: `Have a running idproxy read its configuration again, as SIGHUP does, and say what changed. Status 1 says that nothing did, and why.
--dry-run says what would change, and which series would be moved, sealed and opened, and changes nothing.
It asks the admin listener as idproxy drain does.`,
		Args: usageOf(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := adminClient(at, address)
			if err != nil {
				return err
			}
			reload := client.Reload
			if dryRun {
				reload = client.Preview
			}
			changes, err := reload(cmd.Context())
			if err != nil {
				return err
			}
			if len(changes) == 0 {
				changes = []string{"nothing has changed"}
			}
			for _, one := range changes {
				fmt.Fprintln(std.out, one)
			}
			return nil
		},
	}
	adminFlag(c.Flags(), &address)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "say what would change, and change nothing")
	return c
}
