package initial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/pattern"
)

// Shard is a server to be read.
type Shard struct {
	Name string // of its listener
	At   config.Addr
}

// Login is the account that reads the servers, and that the configuration names.
type Login struct {
	User     string
	Password config.Secret
	Written  string // the password as the file has it: a reference; empty: none
}

// Survey is what all servers said, in the order of the shards.
type Survey struct {
	Shards []Shard
	Login  Login
	said   []*said

	unclear map[string]bool // names, without case, of which one server has several and another takes them for one
}

// said is what one server said.
type said struct {
	tables map[name]*table
	*upstream.Rights
}

// has reports whether a server shows a table of a schema.
func (s *said) has(schema string) bool {
	for of := range s.tables {
		if s.Same(of.schema, schema) {
			return true
		}
	}
	return false
}

// unite gives a table one name on all servers, where some compare names without regard to case: as a
// server has it that does not.
func (s *Survey) unite() {
	names := map[string][]name{} // by the name without case
	for _, fold := range []bool{false, true} {
		for _, server := range s.said {
			if server.Fold != fold {
				continue
			}
			for of := range server.tables {
				in := pattern.Fold(of.String())
				if known := names[in]; !slices.Contains(known, of) && (!fold || known == nil) {
					names[in] = append(known, of)
				}
			}
		}
	}
	s.unclear = map[string]bool{}
	for _, server := range s.said {
		if !server.Fold {
			continue
		}
		tables := map[name]*table{}
		for of, t := range server.tables {
			in := pattern.Fold(of.String())
			s.unclear[in] = len(names[in]) > 1
			tables[names[in][0]] = t
		}
		server.tables = tables
	}
}

// connectTime is how long a server has to take the account in, and readTime how long the greatest
// id of one table may take to find.
const (
	connectTime = 5 * time.Second
	readTime    = 30 * time.Second
)

// Read asks all servers at once. It is an error when one of them cannot be asked: nobody knows then
// where ids may begin.
func Read(ctx context.Context, shards []Shard, login Login, o Options) (*Survey, error) {
	s := &Survey{Shards: shards, Login: login, said: make([]*said, len(shards))}
	errs := make([]error, len(shards))
	var wg sync.WaitGroup
	for i, shard := range shards {
		wg.Go(func() {
			if s.said[i], errs[i] = readShard(ctx, shard, login, o); errs[i] != nil {
				errs[i] = fmt.Errorf("server %s=%s: %w", shard.Name, shard.At, errs[i])
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%w; nothing is written, because ids must begin above those of all servers", err)
	}
	return s, nil
}

func readShard(ctx context.Context, shard Shard, login Login, o Options) (*said, error) {
	account := &config.Account{User: login.User, Password: login.Password}
	l := &config.Listener{Name: shard.Name, Upstream: shard.At, UpstreamTLS: config.UpstreamTLS{Mode: config.TLSAsClient}, Account: account}
	if o.CA != "" {
		l.UpstreamTLS = config.UpstreamTLS{Mode: config.TLSRequired, CA: o.CA}
	}
	u, err := upstream.OpenAlone(l, shard.At, func() time.Duration { return connectTime })
	if err != nil {
		return nil, err
	}
	defer u.Close()
	r := &reader{Server: u, tables: map[name]*table{}, plain: func(schema, table, column string) bool {
		return o.IntegerKeys || o.Filled != nil && o.Filled(schema, table, column)
	}}
	out := &said{tables: r.tables}
	if out.Rights, err = u.Rights(ctx); err != nil {
		return nil, err
	}
	r.periods = out.MariaDB
	if err := r.list(ctx, o.Schemas); err != nil {
		return nil, err
	}
	r.greatest(ctx)
	return out, nil
}
