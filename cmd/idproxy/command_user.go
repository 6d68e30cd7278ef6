package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"idproxy/cmd/idproxy/admin"
)

// userFlags are what all user commands take.
type userFlags struct {
	at   *configFile
	json bool
	out  io.Writer
}

func userCommand(at *configFile, std streams) *cobra.Command {
	f := &userFlags{at: at, out: std.out}
	c := group(&cobra.Command{
		Use:   "user",
		Short: "Say who may ask for ids over Redis and HTTP",
		Long:  "Say who may ask for ids over the Redis protocol and over HTTP: users in the store that ids.users_in names. All proxies of that store know them within two seconds.",
	})
	jsonFlag(c.PersistentFlags(), &f.json)
	c.AddCommand(f.list(), f.add(), f.remove())
	return c
}

// run opens the store for a command.
func (f *userFlags) run(do func(ctx context.Context, u *admin.Users, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := f.at.load()
		if err != nil {
			return err
		}
		u, err := admin.OpenUsers(cfg)
		if err != nil {
			return err
		}
		defer u.Close()
		return do(cmd.Context(), u, args)
	}
}

func (f *userFlags) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show the users of the store", Example: "  idproxy user list", Args: usageOf(cobra.NoArgs),
		RunE: f.run(func(ctx context.Context, u *admin.Users, _ []string) error {
			list, err := u.List(ctx)
			if list == nil {
				return err
			}
			if shown := show(f.out, f.json, list, printUsers); shown != nil {
				return shown
			}
			return err
		}),
	}
}

func printUsers(out io.Writer, list *admin.UserList) error {
	number := func(n uint64) string {
		if n == 0 {
			return "-"
		}
		return strconv.FormatUint(n, 10)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tMOST\tRATE\tCREATE\tSET\tSOURCES")
	for _, u := range list.Users {
		fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%t\t%s\n", u.Name, number(u.Most), number(u.Rate), u.Create, u.Set, cmp.Or(strings.Join(u.Sources, ", "), "all"))
	}
	return w.Flush()
}

func (f *userFlags) add() *cobra.Command {
	var user admin.User
	replace := false
	var c *cobra.Command
	c = &cobra.Command{
		Use: "add NAME", Short: "Add a user, and print his password, which is his token, too",
		Long:    "Add a user, and print his password, which is his token, too. With --replace he has the rights that are named, and no others that he had.",
		Example: `  idproxy user add billing --sources "order_id,app:*" --rate 10000`, Args: usageOf(cobra.ExactArgs(1)),
		RunE: f.run(func(ctx context.Context, u *admin.Users, args []string) error {
			user.Name = args[0]
			for _, name := range []string{"sources", "most", "rate"} { // what was meant to bound him would not
				if flag := c.Flags().Lookup(name); flag.Changed && (flag.Value.String() == "[]" || flag.Value.String() == "0") {
					return fmt.Errorf("%w: --%s is empty: leave it out to have no bound", errUsage, name)
				}
			}
			added, err := u.Add(ctx, user, replace)
			if err != nil {
				return err
			}
			return show(f.out, f.json, added, func(w io.Writer, a *admin.NewUser) error {
				_, err := fmt.Fprintf(w, "%s\nThis is the password and the token of %s. It is kept nowhere: pass it on now.\n", a.Secret, a.User.Name)
				return err
			})
		}),
	}
	c.Flags().StringSliceVar(&user.Sources, "sources", nil, "the `keys` that he may ask for, with * and ?, separated by commas (default all)")
	c.Flags().Uint64Var(&user.Most, "most", 0, "ids at once (default as many as a server gives)")
	c.Flags().Uint64Var(&user.Rate, "rate", 0, "ids a second from each process (default as many as there are)")
	c.Flags().BoolVar(&user.Create, "create", false, "he may create keys that he may ask for")
	c.Flags().BoolVar(&user.Set, "set", false, "he may move keys up that he may ask for")
	c.Flags().BoolVar(&replace, "replace", false, "give a user who is there other rights and another password")
	return c
}

func (f *userFlags) remove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Take a user away; his connections are asked for a password at their next command", Example: "  idproxy user remove billing", Args: usageOf(cobra.ExactArgs(1)),
		RunE: f.run(func(ctx context.Context, u *admin.Users, args []string) error {
			removed, err := u.Remove(ctx, args[0])
			if err != nil {
				return err
			}
			return show(f.out, f.json, removed, func(w io.Writer, r *admin.RemovedUser) error {
				_, err := fmt.Fprintf(w, "user %s is removed\n", r.Name)
				return err
			})
		}),
	}
}
