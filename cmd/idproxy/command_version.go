package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/app"
)

func versionCommand(std streams) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  idproxy version --json",
		Args:    usageOf(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return show(std.out, asJSON, app.Built(), func(w io.Writer, b app.Build) error {
				_, err := fmt.Fprintf(w, "idproxy %s\n", b)
				return err
			})
		},
	}
	jsonFlag(c.Flags(), &asJSON)
	return c
}
