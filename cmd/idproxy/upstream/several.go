package upstream

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"idproxy/config"
	"idproxy/proxy/catalog"
	"idproxy/proxy/choice"
	"idproxy/proxy/dial"
)

// Ping asks whether the server answers.
func (u *Server) Ping(ctx context.Context) error { return u.watch.PingContext(ctx) }

// ReadOnly asks whether the server takes no writes.
func (u *Server) ReadOnly(ctx context.Context) (bool, error) { return readOnly(ctx, u.watch) }

// ReadOnly asks whether the server takes no writes.
func (t Tables) ReadOnly(ctx context.Context) (bool, error) { return readOnly(ctx, t.DB) }

func readOnly(ctx context.Context, db *sql.DB) (bool, error) {
	var server, engine string
	err := db.QueryRowContext(ctx, catalog.ReadOnlyQuery).Scan(&server, &engine)
	return err == nil && catalog.IsReadOnly(server, engine), err
}

// askTime is how long a server has to say whether it takes writes, beside the time to connect.
const askTime = 5 * time.Second

// TakesWrites asks whether the server does: nil, where it does, choice.ErrReadOnly, where it does not.
func (u *Server) TakesWrites(ctx context.Context) error {
	limit := u.within() + askTime
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	readOnly, err := u.ReadOnly(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && readOnly:
		return choice.ErrReadOnly
	}
	return err
}

// OpenUsed returns the server behind a listener that stands for all: the first that takes writes, or
// else, where the listener does not ask for that, the first that answers. The only one is not asked.
func OpenUsed(ctx context.Context, cfg *config.Config, c *config.Listener) (u *Server, takesWrites bool, err error) {
	within := func() time.Duration { return cfg.ConnectTimeout(c) }
	servers := c.Servers()
	if len(servers) == 1 && !c.Writable {
		u, err := OpenAlone(c, servers[0], within)
		return u, true, err
	}
	var failed dial.Failed
	var second *Server // takes no writes
	for _, to := range servers {
		u, err := OpenAlone(c, to, within)
		if err != nil {
			return nil, false, err
		}
		err = u.TakesWrites(ctx)
		if err == nil {
			if second != nil {
				second.Close()
			}
			return u, true, nil
		}
		if errors.Is(err, choice.ErrReadOnly) && !c.Writable && second == nil {
			second = u
			continue
		}
		failed = append(failed, errors.Join(fmt.Errorf("%s: %w", to, err), u.Close()))
	}
	if second != nil {
		return second, false, nil
	}
	return nil, false, failed
}

// Over returns a server that is asked over db alone.
func Over(db *sql.DB) *Server { return &Server{Tables: Tables{db}, watch: db} }

// OpenWriters returns the servers behind a listener that take writes, at each address of their names:
// what is greatest in a column, one of them knows. It is an error where none does, and where one
// answers and does not say whether it does: that one may know more. The only server is not asked,
// unless it is to be writable.
func OpenWriters(ctx context.Context, cfg *config.Config, c *config.Listener, writable bool) ([]*Server, error) {
	within := func() time.Duration { return cfg.ConnectTimeout(c) }
	names := c.Servers()
	if len(names) == 1 && !writable {
		u, err := OpenAlone(c, names[0], within)
		return []*Server{u}, err
	}
	var all []*Server
	var failed dial.Failed
	for _, to := range names {
		addresses, err := dial.Resolve(ctx, to.Network, to.Address)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", to, err))
		}
		for _, address := range addresses {
			u, err := openAt(c, to, address, within)
			if err != nil {
				return nil, errors.Join(err, closeAll(all))
			}
			all = append(all, u)
		}
	}
	said := make([]error, len(all))
	var asked sync.WaitGroup
	for i, u := range all {
		asked.Go(func() { said[i] = u.TakesWrites(ctx) })
	}
	asked.Wait()
	var writers []*Server
	sure := true
	for i, u := range all {
		if said[i] == nil {
			writers = append(writers, u)
			continue
		}
		failed = append(failed, errors.Join(fmt.Errorf("%s: %w", u.Addr, said[i]), u.Close()))
		sure = sure && (errors.Is(said[i], choice.ErrReadOnly) || isSilent(said[i]))
	}
	switch {
	case len(writers) == 0:
		return nil, fmt.Errorf("no server takes writes, and one that does not may lag behind: %w", failed)
	case !sure:
		return nil, errors.Join(fmt.Errorf("not all servers say whether they take writes, and one may hold more: %w", failed), closeAll(writers))
	}
	return writers, nil
}

// isSilent reports whether an error is that of a server that nobody can connect to. One that is there
// and does not answer may go on, and hold more than others.
func isSilent(err error) bool {
	_, silent := errors.AsType[*unreachedError](err)
	return silent && !dial.Ours(err)
}

func closeAll(servers []*Server) error {
	var errs []error
	for _, u := range servers {
		errs = append(errs, u.Close())
	}
	return errors.Join(errs...)
}
