package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/admin"
)

func decodeCommand(at *configFile, std streams) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "decode SOURCE ID",
		Short: "Take an id apart",
		Long: `Show what an id of a source tells: its time and worker number, or where its series stands, and its genes.
The exit status is 1 when the store does not say where the series stands.`,
		Example: "  idproxy decode event_id 7264318466326528001",
		Args:    usageOf(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := at.load()
			if err != nil {
				return err
			}
			d, err := admin.Decode(cmd.Context(), cfg, args[0], args[1])
			if err != nil {
				return err
			}
			if err := show(std.out, asJSON, d, printDecoded); err != nil {
				return err
			}
			return findingIf(d.Error != "")
		},
	}
	jsonFlag(c.Flags(), &asJSON)
	return c
}

// printDecoded prints what an id tells.
func printDecoded(w io.Writer, d *admin.Decoded) error {
	fmt.Fprintf(w, "%v is of source %s, a %s\n", d.ID, d.Source, d.Kind)
	if d.Time != nil {
		fmt.Fprintf(w, "time        %s\n", d.Time.Format("2006-01-02T15:04:05.000Z07:00"))
	}
	if d.Datacenter != nil {
		fmt.Fprintf(w, "datacenter  %d\n", *d.Datacenter)
	}
	if d.Worker != nil {
		fmt.Fprintf(w, "worker      %d\nsequence    %d\n", *d.Worker, *d.Sequence)
	}
	if d.Number != nil {
		fmt.Fprintf(w, "number      %d\n", *d.Number)
	}
	for _, g := range d.Genes {
		fmt.Fprintf(w, "gene        %d, of rule %s: %s; above it %d\n", g.Gene, g.Rule, g.Formula, g.Body)
	}
	if d.Server != nil {
		fmt.Fprintf(w, "server      number %d of dsns\n", *d.Server)
	}
	if d.Process != "" {
		fmt.Fprintf(w, "process     %s\n", d.Process)
	}
	if d.Counter != nil {
		fmt.Fprintf(w, "counter     %d\n", *d.Counter)
	}
	if d.Random != "" {
		fmt.Fprintf(w, "random      %s\n", d.Random)
	}
	switch {
	case d.Error != "":
		fmt.Fprintf(w, "key         %s, where it stands is not known: %s\n", d.Key, d.Error)
	case d.Reserved == nil && d.Key != "":
		fmt.Fprintf(w, "key         %s: each table has a series of its own, and the id tells of none\n", d.Key)
	case d.Reserved != nil && *d.Reserved:
		fmt.Fprintf(w, "key         %s, which stands at %d: the id was reserved\n", d.Key, *d.Next)
	case d.Reserved != nil:
		fmt.Fprintf(w, "key         %s, which stands at %d: the id was not reserved yet\n", d.Key, *d.Next)
	}
	if d.TakenAt != nil {
		fmt.Fprintf(w, "taken by    %s at %s\n", d.TakenBy, d.TakenAt.Format("2006-01-02T15:04:05.000Z07:00"))
	}
	return nil
}
