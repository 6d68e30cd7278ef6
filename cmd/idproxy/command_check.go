package main

import (
	"cmp"
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

// somePlaces is how many places of a group are named.
const somePlaces = 8

// printReport prints findings with the same text once, with what they are about.
func printReport(w io.Writer, report *check.Report) error {
	for _, g := range report.Groups {
		if len(g.Of) == 1 {
			fmt.Fprintf(w, "%s: %s: %s\n", g.Of[0].Position, g.Level, joined(g.Of[0].About, g.Text))
			continue
		}
		fmt.Fprintf(w, "%s: %s: %s\n", g.Of[0].Position, g.Level, g.Text)
		fmt.Fprintf(w, "    %d times: ", len(g.Of))
		for i, of := range g.Of[:min(len(g.Of), somePlaces)] {
			if i > 0 {
				fmt.Fprint(w, "; ")
			}
			fmt.Fprint(w, cmp.Or(of.About, of.Position))
		}
		if more := len(g.Of) - somePlaces; more > 0 {
			fmt.Fprintf(w, "; and %d more, which --json has", more)
		}
		fmt.Fprintln(w)
	}
	if report.Counts != "" {
		fmt.Fprintln(w, report.Counts)
	}
	if !report.Failed() {
		fmt.Fprintln(w, report.Fine)
	}
	return nil
}

// joined is a text with what it is about in front.
func joined(about, text string) string {
	if about == "" {
		return text
	}
	return about + ": " + text
}
