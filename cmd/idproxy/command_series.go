package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"idproxy/cmd/idproxy/admin"
)

// placeFlags say which series of a source is meant, or that a key of a store is.
func placeFlags(flags *pflag.FlagSet, p *admin.Place) {
	flags.StringVar(&p.Key, "key", "", "the `key` of a source with {schema} or {table} in its key")
	flags.StringVar(&p.Store, "store", "", "what is named is a key of this `store`, maybe of no source")
}

// changeFlags are how a series is tuned.
type changeFlags struct {
	flags           *pflag.FlagSet
	step, maxStep   uint64
	policy, comment string
}

func (c *changeFlags) on(flags *pflag.FlagSet) {
	c.flags = flags
	flags.Uint64Var(&c.step, "step", 0, "`ids` that a process takes at once, to begin with; 0: as configured")
	flags.Uint64Var(&c.maxStep, "max-step", 0, "the step grows up to as many `ids`; 0: as configured")
	flags.StringVar(&c.policy, "policy", "", "leaf, rate or fixed; empty: as configured")
	flags.StringVar(&c.comment, "description", "", "`text` for people")
}

// change is what the flags that were given say.
func (c *changeFlags) change() (to admin.Change) {
	given(c.flags, "step", &c.step, &to.Step)
	given(c.flags, "max-step", &c.maxStep, &to.MaxStep)
	given(c.flags, "policy", &c.policy, &to.Policy)
	given(c.flags, "description", &c.comment, &to.Description)
	return to
}

func given[T any](flags *pflag.FlagSet, name string, value *T, to **T) {
	if flags.Changed(name) {
		*to = value
	}
}

// nextArg reads the argument NEXT, if there is one.
func nextArg(args []string) (uint64, error) {
	if len(args) < 2 {
		return 0, nil
	}
	next, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil || next == 0 || next == math.MaxUint64 {
		return 0, fmt.Errorf("%w: %q is not a number from 1 to 2^64-2", errUsage, args[1])
	}
	return next, nil
}

func (f *sourceFlags) set() *cobra.Command {
	var m admin.Move
	var tuning changeFlags
	c := &cobra.Command{
		Use: "set SOURCE [NEXT]", Short: "Have NEXT be the lowest id not given yet, and tune the series",
		Long: `Have NEXT be the lowest id not given yet, and change how the series is tuned. Every process that draws from it
obeys with the first range that it takes half a minute later or more, and before its configuration. A file store
can be tuned while a process uses it; NEXT takes that one to be stopped.`,
		Example: "  idproxy source set order_id 200001\n  idproxy source set order_id --step 50000 --policy fixed",
		Args:    usageOf(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			m.Source, m.Tune = args[0], tuning.change()
			if m.Next, err = nextArg(args); err != nil {
				return err
			}
			if m.Next == 0 && m.Tune == (admin.Change{}) {
				return fmt.Errorf("%w: say NEXT, or how the series is tuned", errUsage)
			}
			cfg, err := f.at.load()
			if err != nil {
				return err
			}
			moved, err := admin.Set(cmd.Context(), cfg, m)
			if err != nil {
				return err
			}
			return show(f.out, f.json, moved, func(w io.Writer, d *admin.Moved) error {
				if m.Next > 0 {
					fmt.Fprintf(w, "%s: key %s moved from %d to %d\n", args[0], d.Key, d.From, d.Next)
				}
				if m.Tune != (admin.Change{}) {
					fmt.Fprintf(w, "%s: key %s is tuned to %s\n", args[0], d.Key, tunedText(d))
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&m.Force, "force", false, "also move it back: only when no id from there on is in use")
	placeFlags(c.Flags(), &m.Place)
	tuning.on(c.Flags())
	return c
}

// tunedText says how the store has a series tuned.
func tunedText(d *admin.Moved) string {
	var words []string
	if d.Step > 0 {
		words = append(words, fmt.Sprintf("step %d", d.Step))
	}
	if d.MaxStep > 0 {
		words = append(words, fmt.Sprintf("max_step %d", d.MaxStep))
	}
	if d.StepPolicy != "" {
		words = append(words, "step_policy "+d.StepPolicy)
	}
	if d.Description != "" {
		words = append(words, strconv.Quote(d.Description))
	}
	if words == nil {
		return "what the configuration says"
	}
	return strings.Join(words, ", ")
}

func (f *sourceFlags) create() *cobra.Command {
	var m admin.Move
	var tuning changeFlags
	var all bool
	c := &cobra.Command{
		Use: "create SOURCE [NEXT]", Short: "Make the series of a source, or a key of a store",
		Long: `Make a series before its first id: of a source, or with --store a key that programs ask for by its name. It begins at NEXT.
Without NEXT a source's series begins above the greatest id of its tables, as always, and a key at 1.
Nothing else makes a key in a store that the configuration names: a store that was emptied, or is another one, gives no ids. With --all the series of all sources are made that the stores do not have, and each is said to be safe, or why it is not.
--force makes those, too, of which that cannot be known.`,
		Example: "  idproxy source create --all\n  idproxy source create refunds --store main --step 100 --description 'refunds of the shop'",
		Args: usageOf(func(cmd *cobra.Command, args []string) error {
			if all {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.RangeArgs(1, 2)(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if all {
				return f.createAll(cmd, m.Force)
			}
			m.Source, m.Tune = args[0], tuning.change()
			if m.Next, err = nextArg(args); err != nil {
				return err
			}
			cfg, err := f.at.load()
			if err != nil {
				return err
			}
			made, err := admin.Create(cmd.Context(), cfg, m)
			if err != nil {
				return err
			}
			return show(f.out, f.json, made, func(w io.Writer, d *admin.Moved) error {
				begins := fmt.Sprintf("begins at %d", d.Next)
				if d.Next == 0 {
					begins = "begins above the greatest id of its tables"
				}
				_, err := fmt.Fprintf(w, "%s: key %s was made, %s\n", args[0], d.Key, begins)
				return err
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "make the series of all sources that their stores do not have")
	c.Flags().BoolVar(&m.Force, "force", false, "with --all: also those of which it is not known that no id was given")
	placeFlags(c.Flags(), &m.Place)
	tuning.on(c.Flags())
	return c
}

// seriesOpened is what source create --all has to say.
type seriesOpened struct {
	Series []admin.Opened `json:"series"`
}

// createAll makes what the stores do not have.
func (f *sourceFlags) createAll(cmd *cobra.Command, force bool) error {
	cfg, err := f.at.load()
	if err != nil {
		return err
	}
	list, ok := admin.OpenAll(cmd.Context(), cfg, force)
	return errors.Join(show(f.out, f.json, seriesOpened{list}, func(w io.Writer, all seriesOpened) error {
		for _, one := range all.Series {
			text := one.Result
			if one.Error != "" {
				text += ": " + one.Error
			}
			if _, err := fmt.Fprintf(w, "%s: key %s of store %s %s\n", one.Source, one.Key, one.Store, text); err != nil {
				return err
			}
		}
		return nil
	}), findingIf(!ok))
}

func (f *sourceFlags) describe() *cobra.Command {
	var p admin.Place
	c := &cobra.Command{
		Use: "describe SOURCE", Short: "Show where a series stands and how it is tuned", Example: "  idproxy source describe order_id",
		Args: usageOf(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Source = args[0]
			cfg, err := f.at.load()
			if err != nil {
				return err
			}
			d, err := admin.Describe(cmd.Context(), cfg, p)
			if err != nil {
				return err
			}
			return show(f.out, f.json, d, printDescribed)
		},
	}
	placeFlags(c.Flags(), &p)
	return c
}

func printDescribed(w io.Writer, d *admin.Described) error {
	from := map[string]string{"step": "configured", "max_step": "configured", "step_policy": "configured"}
	for _, name := range d.Stored {
		from[name] = "in the store"
	}
	state := "never used"
	switch {
	case d.Sealed:
		state = "sealed: no process takes ids of it until idproxy source set opens it, above every id in use"
	case d.Used:
		state = "used"
	}
	fmt.Fprintf(w, "key          %s of store %s\nnext         %d, %s\n", d.Key, d.Store, d.Next, state)
	fmt.Fprintf(w, "step         %d, %s\nmax_step     %d, %s\nstep_policy  %s, %s\n", d.Step, from["step"], d.MaxStep, from["max_step"], d.StepPolicy, from["step_policy"])
	if d.Every > 1 {
		fmt.Fprintf(w, "ids          every %dth: id %% %[1]d = %d\n", d.Every, d.Remainder)
	}
	if d.Description != "" {
		fmt.Fprintf(w, "description  %s\n", d.Description)
	}
	return nil
}

func (f *sourceFlags) history() *cobra.Command {
	var p admin.Past
	var id uint64
	c := &cobra.Command{
		Use: "history SOURCE", Short: "Show who took which range of a series, and who moved it",
		Long: `Show who took which range of a series and when, those with the greatest ids first, and who moved it last to another
store or key. A MySQL store keeps the last 10,000 ranges of a key for 30 days, an etcd store the last 1,000, a file store none.`,
		Example: "  idproxy source history order_id --id 12345",
		Args:    usageOf(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Source = args[0]
			given(cmd.Flags(), "id", &id, &p.ID)
			if p.Most < 1 || p.Most > 100_000 {
				return fmt.Errorf("%w: --limit is from 1 to 100000", errUsage)
			}
			cfg, err := f.at.load()
			if err != nil {
				return err
			}
			h, err := admin.ReadHistory(cmd.Context(), cfg, p)
			if err != nil {
				return err
			}
			return show(f.out, f.json, h, printHistory)
		},
	}
	placeFlags(c.Flags(), &p.Place)
	c.Flags().Uint64Var(&id, "id", 0, "only the range that this `id` is of")
	c.Flags().IntVar(&p.Most, "limit", 20, "at most so many `ranges`")
	return c
}

func printHistory(out io.Writer, h *admin.History) error {
	printMoves(out, h.Moves)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FIRST\tLAST\tTAKEN\tBY")
	for _, r := range h.Ranges {
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\n", r.First, r.Last, r.At.UTC().Format(time.RFC3339), r.By)
	}
	return w.Flush()
}
