package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/admin"
	"idproxy/cmd/idproxy/sources"
	"idproxy/config"
)

// sourceFlags are what all source commands take.
type sourceFlags struct {
	at   *configFile
	json bool
	out  io.Writer
}

func sourceCommand(at *configFile, std streams) *cobra.Command {
	f := &sourceFlags{at: at, out: std.out}
	c := group(&cobra.Command{
		Use:   "source",
		Short: "Show where the sources stand, and move them",
	})
	jsonFlag(c.PersistentFlags(), &f.json)
	c.AddCommand(f.list(), f.show(), f.set(), f.create(), f.describe(), f.history(), f.imports(), f.adopt())
	return c
}

func (f *sourceFlags) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show where all sources stand", Example: "  idproxy source list", Args: usageOf(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.at.load()
			if err != nil {
				return err
			}
			return show(f.out, f.json, sourceList{admin.List(cmd.Context(), cfg)}, printSources)
		},
	}
}

func (f *sourceFlags) show() *cobra.Command {
	return &cobra.Command{
		Use: "show SOURCE", Short: "Show one source, with the parts of its store", Example: "  idproxy source show order_id --json",
		Long: "Show one source, with the parts of its store. The exit status is 1 when the store does not answer, or one of its servers is not used.",
		Args: usageOf(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := f.at.load()
			if err != nil {
				return err
			}
			s, err := admin.Show(cmd.Context(), cfg, args[0])
			if err != nil {
				return err
			}
			return errors.Join(show(f.out, f.json, s, printSource), findingIf(s.Failed()))
		},
	}
}

func (f *sourceFlags) imports() *cobra.Command {
	var m admin.Import
	c := &cobra.Command{
		Use: "import [TAG=SOURCE ...]", Short: "Move sources to where another system's tables stand",
		Long: "Move sources to where the tables of Leaf, tinyid or tickets64 stand. TAG=SOURCE says which source a tag is; without any, tags are keys of sources.\n" +
			"With --format idproxy, --from is a configuration of before: its series go on, and are sealed where they were. Stop the processes that have them, or have them read the new configuration (idproxy reload), which does the same.",
		Example: "  idproxy source import --format leaf --from 'leaf:secret@tcp(10.0.0.7:3306)/leaf' --dry-run\n  idproxy source import --format idproxy --from idproxy.yaml.old",
		Args:    usageOf(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := f.at.load()
			if err != nil {
				return err
			}
			if m.Format == "idproxy" {
				return f.importSeries(cmd, cfg, m.From)
			}
			m.To = args
			tags, ok, err := m.Run(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return errors.Join(show(f.out, f.json, importList{tags}, printImported), findingIf(!ok))
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&m.From, "from", nil, "`DSN` of the other system's database, user:password@tcp(host:port)/database; once per server; or a file")
	flags.StringVar(&m.Format, "format", "", "leaf, tinyid, tickets64, or idproxy for a configuration of before")
	flags.StringVar(&m.Table, "table", "", "`name` of its table (default leaf_alloc, tiny_id_info, Tickets64)")
	flags.StringVar(&m.Store, "store", "", "take all tags over as keys of this `store`")
	flags.Uint64Var(&m.Margin, "margin", 0, "leave out this many ids, for a system that still runs")
	flags.BoolVar(&m.Dry, "dry-run", false, "only say what would be done")
	return c
}

// seriesMoved is what source import --format idproxy has to say.
type seriesMoved struct {
	Series []sources.Moved `json:"series"`
}

// importSeries has the series of a configuration of before go on.
func (f *sourceFlags) importSeries(cmd *cobra.Command, cfg *config.Config, from []string) error {
	if len(from) != 1 {
		return fmt.Errorf("%w: --from names the configuration of before, once", admin.ErrUsage)
	}
	before, err := config.Load(from[0])
	if err != nil {
		return err
	}
	moved, err := sources.Import(cmd.Context(), before, cfg, sources.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return show(f.out, f.json, seriesMoved{moved}, func(w io.Writer, all seriesMoved) error {
		for _, m := range all.Series {
			if _, err := fmt.Fprintf(w, "%s: key %s of %s goes on as key %s of %s, at %d\n", m.Source, m.Key, m.Store, m.ToKey, m.ToStore, m.Next); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *sourceFlags) adopt() *cobra.Command {
	return &cobra.Command{
		Use: "adopt STORE", Short: "Of several servers, use those again that were emptied, replaced or restored",
		Example: "  idproxy source adopt ids", Args: usageOf(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := f.at.load()
			if err != nil {
				return err
			}
			adopted, err := admin.Adopt(cmd.Context(), cfg, args[0])
			if err != nil {
				return err
			}
			return show(f.out, f.json, adopted, func(w io.Writer, a *admin.Adopted) error {
				_, err := fmt.Fprintf(w, "store %s: all %d servers are used, each above all that is known of any\n", a.Store, a.Servers)
				return err
			})
		},
	}
}
