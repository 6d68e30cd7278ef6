package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/check"
)

func checkCommand(at *configFile, std streams) *cobra.Command {
	online, asJSON := false, false
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
			report, err := check.File(cmd.Context(), path, online)
			if err != nil {
				return err
			}
			return errors.Join(show(std.out, asJSON, report, printReport), findingIf(report.Failed()))
		},
	}
	c.Flags().BoolVar(&online, "online", false, "check servers, tables, columns and stores too")
	jsonFlag(c.Flags(), &asJSON)
	return c
}

func printReport(w io.Writer, report *check.Report) error {
	for _, f := range report.Findings {
		fmt.Fprintf(w, "%s: %s: %s\n", f.Position, f.Level, f.Message)
	}
	if !report.Failed() {
		fmt.Fprintln(w, report.Fine)
	}
	return nil
}
