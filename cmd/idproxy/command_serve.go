package main

import (
	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/app"
)

func serveCommand(at *configFile, std streams) *cobra.Command {
	return &cobra.Command{
		Use:     "serve",
		Short:   "Run the proxy",
		Long:    "Run the proxy until SIGTERM or SIGINT. Its log goes to standard error. SIGHUP puts the configuration in force as the file is now.",
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
