package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"idproxy/cmd/idproxy/keys"
	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
	"idproxy/idsource/resp"
	"idproxy/proxy"
)

// idServer hands ids to other programs, over the protocol of Redis.
type idServer struct {
	registry *keys.Registry
	end      context.CancelFunc
	wg       sync.WaitGroup
}

// serveIDs starts what the configuration asks for; nil when it is nothing. A
// store that does not answer keeps nobody else waiting.
func serveIDs(ids *config.IDs, registry *keys.Registry, log *slog.Logger) (*idServer, error) {
	if ids == nil || ids.Redis == nil {
		return nil, nil
	}
	c := ids.Redis
	secure, err := tlsconfig.Client(c.TLS)
	if err != nil {
		return nil, fmt.Errorf("ids over redis: %w", err)
	}
	l, err := proxy.Listen(c.Listen.Network, c.Listen.Address)
	if err != nil {
		return nil, fmt.Errorf("ids over redis: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	s := &idServer{registry: registry, end: end}
	rc := resp.Config{Lookup: registry.Lookup, Create: registry.Creator(c.CreateIn), TLS: secure, MaxIncrBy: c.MaxIncrBy, Logger: log}
	for _, u := range c.Users {
		rc.Users = append(rc.Users, resp.User{
			Name: u.Name, Password: string(u.Password), Keys: u.Sources, MaxIncrBy: u.MaxIncrBy, Rate: u.Rate, Create: u.Create, Set: u.Set,
		})
	}
	s.wg.Go(func() {
		all := registry.Refresh(ctx)
		s.wg.Go(func() { registry.KeepFresh(ctx, all) })
		log.Info("ids over redis", "listen", config.Addr{Network: l.Addr().Network(), Address: l.Addr().String()}.String(), "users", len(c.Users))
		if err := resp.New(rc).Serve(ctx, l); err != nil {
			log.Error("ids over redis ended", "error.message", err)
		}
	})
	return s, nil
}

// again has the keys read now, as after a reload.
func (s *idServer) again() {
	if s != nil {
		s.registry.Again()
	}
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
