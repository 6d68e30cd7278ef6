package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"

	"idproxy/cmd/idproxy/admin"
	"idproxy/cmd/idproxy/keys"
	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
	"idproxy/idsource/access"
	"idproxy/idsource/httpapi"
	"idproxy/idsource/resp"
)

// idServer hands ids to other programs, over the protocol of Redis and over HTTP.
type idServer struct {
	registry  *keys.Registry
	leader    func() string // where clients ask for ids of series in one order
	users     sharedUsers
	redis     string // where clients are told to ask this process; empty: they are not
	open      listen
	log       *slog.Logger
	listeners []net.Listener
	serve     []func(context.Context) // one for each listener, which it closes
	end       context.CancelFunc
	wg        sync.WaitGroup
}

// serveIDs starts what the configuration asks for; nil when it is nothing. api makes what it says
// nothing of, and leader says where clients ask for ids of series in one order. A store that does not answer keeps nobody else waiting.
// Nobody is served before come has returned.
func serveIDs(ids *config.IDs, registry *keys.Registry, log *slog.Logger, files *tlsconfig.Files, api func() httpapi.Config, leader func() string, open listen, come func(context.Context)) (*idServer, error) {
	if ids == nil {
		return nil, nil
	}
	ctx, end := context.WithCancel(context.Background())
	s := &idServer{registry: registry, leader: leader, open: open, log: log, end: end, users: sharedUsers{in: ids.UsersIn, log: log}}
	if ids.UsersIn != "" {
		s.users.known = make(chan struct{})
	}
	if err := errors.Join(s.overRedis(ids.Redis, files), s.overHTTP(ids.HTTP, files, api)); err != nil {
		end()
		for _, l := range s.listeners {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	for _, in := range s.watched(ids) {
		s.wg.Go(func() { s.watch(ctx, in) })
	}
	s.wg.Go(func() {
		all := registry.Refresh(ctx)
		if s.users.known != nil { // or a user of the store would be told that his password is wrong
			select {
			case <-s.users.known:
			case <-ctx.Done():
			}
		}
		come(ctx)
		s.wg.Go(func() { registry.KeepFresh(ctx, all) })
		for _, serve := range s.serve {
			s.wg.Go(func() { serve(ctx) })
		}
	})
	return s, nil
}

// listen takes an address. What serves it is called with what the log calls it.
func (s *idServer) listen(a config.Addr, serve func(ctx context.Context, l net.Listener, at string)) error {
	l, err := s.open(a.Network, a.Address)
	if err != nil {
		return err
	}
	at := config.Addr{Network: l.Addr().Network(), Address: l.Addr().String()}.String()
	s.listeners = append(s.listeners, l)
	s.serve = append(s.serve, func(ctx context.Context) { serve(ctx, l, at) })
	return nil
}

func (s *idServer) overRedis(c *config.IDsRedis, files *tlsconfig.Files) error {
	if c == nil {
		return nil
	}
	secure, err := files.Client("ids.redis.tls", c.TLS)
	if err != nil {
		return fmt.Errorf("ids over redis: %w", err)
	}
	rc := resp.Config{
		Lookup: s.registry.Lookup, Create: s.registry.Creator(c.CreateIn), TLS: secure, MaxIncrBy: c.MaxIncrBy, Logger: s.log,
	}
	if c.Moved {
		rc.Lookup, rc.Cluster, rc.Members = s.registry.LookupHere, s.leader, c.Members
	}
	var users []access.User
	for _, u := range c.Users {
		users = append(users, access.User{
			Name: u.Name, Secret: access.DigestOf(string(u.Password)), Keys: u.Sources, Most: u.MaxIncrBy, Rate: u.Rate, Create: u.Create, Set: u.Set,
		})
	}
	rc.Users = s.users.of(users)
	err = s.listen(c.Listen, func(ctx context.Context, l net.Listener, at string) {
		s.log.Info("ids over redis", "listen", at, "login", rc.Users != nil, "users", rc.Users.Len())
		if err := resp.New(rc).Serve(ctx, l); err != nil {
			s.log.Error("ids over redis ended", "error.message", err)
		}
	})
	if err != nil {
		return fmt.Errorf("ids over redis: %w", err)
	}
	if c.Moved {
		s.redis = cmp.Or(c.Announce, s.listeners[len(s.listeners)-1].Addr().String())
	}
	return nil
}

// announced is where clients are told to ask this process; empty: they are not.
func (s *idServer) announced() string {
	if s == nil {
		return ""
	}
	return s.redis
}

func (s *idServer) overHTTP(c *config.IDsHTTP, files *tlsconfig.Files, with func() httpapi.Config) (err error) {
	if c == nil {
		return nil
	}
	api := with()
	if api.TLS, err = files.Client("ids.http.tls", c.TLS, "h2", "http/1.1"); err != nil {
		return fmt.Errorf("ids over http: %w", err)
	}
	api.Lookup = func(key string) (httpapi.Source, bool) { return s.registry.Lookup(key) }
	api.Position, api.Logger, api.MaxN, api.TinyIDStep = s.registry.Position, s.log, c.MaxN, c.TinyIDStep
	var users []access.User
	for _, u := range c.Users {
		users = append(users, access.User{Name: u.Name, Secret: access.DigestOf(string(u.Token)), Keys: u.Sources, Most: u.MaxN, Rate: u.Rate})
	}
	api.Users = s.users.of(users)
	err = s.listen(c.Listen, func(ctx context.Context, l net.Listener, at string) {
		s.log.Info("ids over http", "listen", at, "tls", c.TLS != nil, "login", api.Users != nil, "users", api.Users.Len())
		if err := httpapi.New(api).Serve(ctx, l); err != nil {
			s.log.Error("ids over http ended", "error.message", err)
		}
	})
	if err != nil {
		return fmt.Errorf("ids over http: %w", err)
	}
	return nil
}

// decodeID says what an id tells by itself. A key of a store that no source has is that of a segment.
func decodeID(cfg *config.Config, key, id string) (*httpapi.Decoded, error) {
	src := cfg.Source(key)
	for i := range cfg.Sources {
		if g := cfg.Sources[i].Segment; src == nil && g != nil && g.Key == key {
			src = &cfg.Sources[i]
		}
	}
	if src == nil {
		n, err := strconv.ParseUint(id, 10, 64)
		if err != nil {
			return nil, errors.New("it is no number")
		}
		return &httpapi.Decoded{Key: key, Kind: httpapi.KindSegment, ID: strconv.FormatUint(n, 10)}, nil
	}
	d, err := admin.Apart(cfg, src, id)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), admin.ErrUsage.Error()+": ")) // nobody typed a command
	}
	one := &httpapi.Decoded{
		Key: key, Kind: d.Kind, ID: fmt.Sprint(d.ID), Time: d.Time, Datacenter: d.Datacenter, Worker: d.Worker, Sequence: d.Sequence,
		Counter: d.Counter, Process: d.Process, Random: d.Random,
	}
	if d.Number != nil {
		one.Number = strconv.FormatUint(*d.Number, 10)
	}
	return one, nil
}

// again has the keys read now, as after a reload.
func (s *idServer) again() {
	if s != nil {
		s.registry.Again()
	}
}

// leave ends the series of other programs that some stores have, which are about to be closed.
func (s *idServer) leave(stores []string) error {
	if s == nil || len(stores) == 0 {
		return nil
	}
	return s.registry.Leave(stores)
}

// close ends the server, before the sources and their stores are closed.
func (s *idServer) close() error {
	if s == nil {
		return nil
	}
	s.end()
	s.wg.Wait()
	return s.registry.Close()
}
