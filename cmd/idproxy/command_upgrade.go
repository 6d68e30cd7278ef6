package main

import "github.com/spf13/cobra"

func upgradeCommand(at *configFile) *cobra.Command {
	var address string
	c := &cobra.Command{
		Use: "upgrade", Short: "Have a running idproxy replaced by the program that is installed now", Example: "  idproxy upgrade",
		Long: `Have a running idproxy replaced by the program and the configuration that are installed now, as SIGUSR2 does. It starts its successor, which
takes its listening sockets over, and drains when that serves. Status 1 says that none came up, and why: the running one goes on then.
It asks the admin listener as idproxy drain does.`,
		Args: usageOf(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := adminClient(at, address)
			if err != nil {
				return err
			}
			return client.Upgrade(cmd.Context())
		},
	}
	adminFlag(c.Flags(), &address)
	return c
}
