package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/explain"
)

// maxExplained bounds a statement read from standard input, in bytes.
const maxExplained = 64 << 20

func explainCommand(at *configFile, std streams) *cobra.Command {
	var o explain.Options
	asJSON := false
	c := &cobra.Command{
		Use:   "explain STATEMENT | -",
		Short: "Show what becomes of a statement, or why not",
		Long: `Show what becomes of a statement, by the rules of the first listener. With - the statement is read from standard input.
The exit status is 1 when one is refused, or cannot be explained without --online.`,
		Example: "  idproxy explain --schema shop \"INSERT INTO orders (item) VALUES ('tea')\"\n  idproxy explain --online - < statements.sql\n" +
			"  idproxy explain --json - < statements.sql | jq '.statements[] | select(.becomes == \"refused\")'",
		Args: usageOf(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := at.load()
			if err != nil {
				return err
			}
			text, err := until(cmd.Context(), func() ([]byte, error) { return statementsOf(args[0], std.in) })
			if err != nil {
				return err
			}
			o.Verbose = o.Verbose || asJSON // what is sent is all of it
			all, err := explain.Text(cmd.Context(), cfg, text, o)
			if err != nil && asJSON {
				return err
			}
			refused := slices.ContainsFunc(all, func(o *explain.Outcome) bool { return o.Becomes == explain.Refused || o.Becomes == explain.Unknown })
			return cmp.Or(errors.Join(show(std.out, asJSON, outcomes{all}, printOutcomes), err), findingIf(refused))
		},
	}
	c.Flags().StringVar(&o.Schema, "schema", "", "the session's default `schema`")
	c.Flags().BoolVar(&o.Online, "online", false, "ask the first listener's server for the columns of tables, with its account")
	c.Flags().BoolVar(&o.Verbose, "verbose", false, "show the SQL that numbers the rows of INSERT ... SELECT")
	jsonFlag(c.Flags(), &asJSON)
	return c
}

// statementsOf returns the statements of an argument; - stands for standard input.
func statementsOf(argument string, in io.Reader) ([]byte, error) {
	if argument != "-" {
		return []byte(argument), nil
	}
	text, err := io.ReadAll(io.LimitReader(in, maxExplained+1))
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	if len(text) > maxExplained {
		return nil, fmt.Errorf("standard input is larger than the %d bytes that explain reads", maxExplained)
	}
	return text, nil
}

// outcomes is what explain says.
type outcomes struct {
	Statements []*explain.Outcome `json:"statements"`
}

func printOutcomes(w io.Writer, all outcomes) error {
	for _, one := range all.Statements {
		fmt.Fprint(w, one)
	}
	return nil
}
