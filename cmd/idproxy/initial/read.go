package initial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
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
}

// said is what one server said.
type said struct {
	tables map[name]*table
	grantee
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
	r := &reader{Server: u, tables: map[name]*table{}}
	grantee, err := r.grantee(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.list(ctx, o.Schemas); err != nil {
		return nil, err
	}
	r.greatest(ctx)
	return &said{r.tables, grantee}, nil
}
