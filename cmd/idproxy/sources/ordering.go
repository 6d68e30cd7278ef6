package sources

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
	"idproxy/idsource/access"
	"idproxy/idsource/order"
	"idproxy/idsource/resp"
)

// ordering is what the sources share whose ids are in one order: who gives them, how this process asks
// whoever does, and where it is asked.
type ordering struct {
	log      *slog.Logger
	listener net.Listener
	addr     string // that others are told
	token    string
	secure   *tls.Config
	line     *order.Line
	end      context.CancelFunc
	wg       sync.WaitGroup

	mu       sync.Mutex
	election *order.Election          // nil: there is no source yet
	sources  map[string]*order.Source // by key
}

// newOrdering listens.
func newOrdering(c *config.Order, log *slog.Logger, listen Listen) (*ordering, error) {
	if c == nil {
		return nil, nil
	}
	o := &ordering{log: log, token: string(c.Token), sources: map[string]*order.Source{}}
	line := order.LineConfig{Password: o.token}
	if c.TLS != nil {
		var err error
		if o.secure, err = tlsconfig.Client(&config.TLS{Cert: c.TLS.Cert, Key: c.TLS.Key, ClientCA: c.TLS.CA}); err != nil {
			return nil, fmt.Errorf("order: %w", err)
		}
		outward, err := tlsconfig.Store(&config.StoreTLS{CA: c.TLS.CA, Cert: c.TLS.Cert, Key: c.TLS.Key})
		if err != nil {
			return nil, fmt.Errorf("order: %w", err)
		}
		dialer := &tls.Dialer{Config: outward}
		line.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }
	}
	l, err := listen(c.Listen.Network, c.Listen.Address)
	if err != nil {
		return nil, fmt.Errorf("order: %w", err)
	}
	o.listener, o.addr, o.line = l, cmp.Or(c.Announce, l.Addr().String()), order.NewLine(line)
	return o, nil
}

// lookup returns the source of a key, as those who ask the leader have it.
func (o *ordering) lookup(key string) (resp.Source, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.sources[key]
	if !ok {
		return nil, false
	}
	return s.Local(), true
}

// make makes a source, which nobody may ask for yet. Who leads is decided in its store, by one election
// for all.
func (o *ordering) make(c order.Config, register order.Register) (*order.Source, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.election == nil {
		o.election = order.NewElection(order.ElectionConfig{Register: register, Addr: o.addr, Logger: o.log})
	}
	c.Election, c.Line = o.election, o.line
	return order.New(c)
}

// add has others ask for the ids of a source.
func (o *ordering) add(s *order.Source) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sources[s.Key()] = s
}

// serve answers others, and stands for the lead. redis is where clients ask this process; empty: they are
// not told.
func (o *ordering) serve(redis string) {
	if o == nil || o.election == nil {
		return
	}
	ctx, end := context.WithCancel(context.Background())
	o.end = end
	server := resp.New(resp.Config{
		Lookup: o.lookup, TLS: o.secure, MaxIncrBy: 1 << 62, Logger: o.log,
		Users: access.NewUsers(access.User{Name: o.election.User(), Secret: access.DigestOf(o.token), Set: true}),
	})
	o.log.Info("series in one order", "listen", o.listener.Addr().String(), "announce", o.addr)
	o.wg.Go(func() {
		if err := server.Serve(ctx, o.listener); err != nil {
			o.log.Error("series in one order are not served any more", "error.message", err)
		}
	})
	o.election.Start(redis)
}

// leader returns where clients ask for ids over the Redis protocol; empty: it is not known.
func (o *ordering) leader() string {
	if o == nil || o.election == nil {
		return ""
	}
	return o.election.State().Leader.Redis
}

// close gives up the lead, and then ends what asks and what is asked.
func (o *ordering) close() error {
	if o == nil {
		return nil
	}
	var err error
	if o.election != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		err = o.election.Close(ctx)
	}
	if o.end != nil {
		o.end()
	} else {
		_ = o.listener.Close() // nobody was served
	}
	o.wg.Wait()
	o.line.Close()
	if err != nil {
		return fmt.Errorf("give up the lead of the order: %w", err)
	}
	return nil
}
