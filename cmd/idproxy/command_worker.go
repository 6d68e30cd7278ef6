package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/admin"
)

// workerFlags are what all worker commands take.
type workerFlags struct {
	at     *configFile
	source string
	json   bool
	out    io.Writer
}

func workerCommand(at *configFile, std streams) *cobra.Command {
	f := &workerFlags{at: at, out: std.out}
	c := group(&cobra.Command{
		Use:   "worker",
		Short: "Show and fill pools of worker numbers",
		Long:  "Show the worker numbers of a source that leases them, fill its pool, and take free ones out.",
	})
	c.PersistentFlags().StringVar(&f.source, "source", "", "the `source` whose worker numbers are meant; needed when several lease theirs")
	jsonFlag(c.PersistentFlags(), &f.json)
	c.AddCommand(f.list(), f.add(), f.drop())
	return c
}

// run opens the pool for a command that takes numbers.
func (f *workerFlags) run(do func(ctx context.Context, w *admin.Workers, numbers []uint64) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		numbers, err := workerNumbers(args)
		if err != nil {
			return err
		}
		cfg, err := f.at.load()
		if err != nil {
			return err
		}
		w, err := admin.OpenWorkers(cfg, f.source)
		if err != nil {
			return err
		}
		return errors.Join(do(cmd.Context(), w, numbers), w.Close())
	}
}

func (f *workerFlags) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show the numbers, who holds them, and until when", Example: "  idproxy worker list --source event_id", Args: usageOf(cobra.NoArgs),
		RunE: f.run(func(ctx context.Context, w *admin.Workers, _ []uint64) error {
			p, err := w.List(ctx)
			if err != nil {
				return err
			}
			return show(f.out, f.json, p, printPool)
		}),
	}
}

func (f *workerFlags) add() *cobra.Command {
	fresh, force := false, false
	c := &cobra.Command{
		Use: "add N", Short: "Fill the pool up to N numbers", Example: "  idproxy worker add 16 --new-pool", Args: usageOf(cobra.ExactArgs(1)),
		RunE: f.run(func(ctx context.Context, w *admin.Workers, numbers []uint64) error {
			added, err := w.Add(ctx, numbers[0], fresh, force)
			if err != nil {
				return err
			}
			return show(f.out, f.json, added, printAdded)
		}),
	}
	c.Flags().BoolVar(&force, "force", false, "make the pool beside another one that is in use and makes the same ids")
	c.Flags().BoolVar(&fresh, "new-pool", false, "no id of this source was ever issued; a new pool gives out numbers at once")
	return c
}

func (f *workerFlags) drop() *cobra.Command {
	return &cobra.Command{
		Use: "drop N ...", Short: "Take free numbers out of the pool", Example: "  idproxy worker drop 14 15", Args: usageOf(cobra.MinimumNArgs(1)),
		Long: "Take free numbers out of the pool. The exit status is 1 when one is not free, and stays.",
		RunE: f.run(func(ctx context.Context, w *admin.Workers, numbers []uint64) error {
			removed, err := w.Drop(ctx, numbers)
			if err != nil {
				return err
			}
			if err := show(f.out, f.json, removed, printRemoved); err != nil {
				return err
			}
			return findingIf(len(removed.Kept) > 0)
		}),
	}
}

// workerNumbers reads worker numbers of the command line.
func workerNumbers(words []string) (numbers []uint64, err error) {
	for _, word := range words {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%w: %q is no worker number", errUsage, word)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

func printAdded(w io.Writer, a *admin.Added) error {
	if a.Once != nil {
		fmt.Fprintf(w, "pool %s: %d of %d numbers are taken for used\n", a.Pool, a.Once.Used, a.Once.Size)
	} else {
		fmt.Fprintf(w, "pool %s: %d added\n", a.Pool, a.Added)
	}
	if a.Rests > 0 {
		fmt.Fprintf(w, "its first number is given out in %v: ids of a pool that was there before may run that far ahead (--new-pool: there was none)\n", duration(a.Rests))
	}
	return nil
}

func printRemoved(w io.Writer, r *admin.Removed) error {
	fmt.Fprintf(w, "pool %s: %d dropped\n", r.Pool, len(r.Dropped))
	if len(r.Kept) > 0 {
		fmt.Fprintf(w, "not free, and kept: %d\n", r.Kept)
	}
	return nil
}

func printPool(out io.Writer, p *admin.Pool) error {
	if p.Once != nil {
		fmt.Fprintf(out, "pool %s, ids of %s; %d of %d numbers were used\n", p.Pool, p.Shape, p.Once.Used, p.Once.Size)
	} else {
		fmt.Fprintf(out, "pool %s, ids of %s; holders survive an outage of the store of %v\n", p.Pool, p.Shape, duration(p.Survives))
	}
	if p.Rests > 0 {
		fmt.Fprintf(out, "no number is given out for another %v\n", duration(p.Rests))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NUMBER\tSTATE\tSECONDS\tIDS BELOW\tOWNER")
	for _, s := range p.Workers {
		fence := "never used"
		if !s.Fence.IsZero() {
			fence = s.Fence.Format("2006-01-02 15:04:05.000")
		}
		fmt.Fprintf(w, "%d\t%s\t%.1f\t%s\t%s\n", s.Number, s.State, s.Since/1000, fence, s.Owner)
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(out, workerColumns)
	return err
}

// workerColumns explains the columns of worker list.
const workerColumns = `STATE      held: a process issues ids with it; free: the next process may take it; dropped: nobody gets it
SECONDS    since its holder was last heard of, or since it became free
IDS BELOW  the times of all ids that it was used for lie below; its next holder begins there
`

// duration is a number of milliseconds as people read it.
func duration(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
