package app

import (
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/proxy"
)

// ProxyConfig returns what the proxy is made of at first. It
// reads the files that they name.
func ProxyConfig(cfg *config.Config, log *slog.Logger) (proxy.Config, error) {
	return new(rereading).proxyConfig(cfg, log)
}

// proxyConfig is ProxyConfig for files and passwords that are read again.
func (r *rereading) proxyConfig(cfg *config.Config, log *slog.Logger) (proxy.Config, error) {
	c := proxy.Config{Logger: log}
	if cfg.Engine == config.EngineLoops {
		c.Loops = runtime.GOMAXPROCS(0)
	}
	for i := range cfg.Listeners {
		l, err := r.listener(&cfg.Listeners[i])
		if err != nil {
			return c, ofListener(&cfg.Listeners[i], err)
		}
		c.Listeners = append(c.Listeners, l)
	}
	return c, nil
}

// ofListener places an error at its listener in the file.
func ofListener(c *config.Listener, err error) error {
	return &config.Error{Pos: c.Pos, Message: fmt.Sprintf("listener %s: %v", c.Name, err)}
}

func (r *rereading) listener(c *config.Listener) (proxy.Listener, error) {
	l := proxy.Listener{
		Name:        c.Name,
		Listen:      proxy.Address{Net: c.Listen.Network, Addr: c.Listen.Address},
		Writable:    c.Writable,
		Compression: c.Compression == config.CompressionOn,
		UpstreamTLSMode: map[string]proxy.TLSMode{
			config.TLSRequired: proxy.Required, config.TLSPreferred: proxy.Preferred, config.TLSDisabled: proxy.Disabled,
		}[c.UpstreamTLS.Mode],
		ClientsNeedTLS: c.TLS != nil && c.TLS.Mode == config.TLSRequired,
		Kind:           kindOf(c),
	}
	if p := c.ProxyProtocol; p != nil {
		for _, network := range p.Accept {
			l.Balancers = append(l.Balancers, netip.MustParsePrefix(network)) // config has checked it
		}
		switch p.Send {
		case "v1":
			l.TellOrigin = 1
		case "v2":
			l.TellOrigin = 2
		}
	}
	var err error
	if l.ClientTLS, err = r.files.Client("listeners."+c.Name+".tls", c.TLS.Files()); err != nil {
		return l, err
	}
	first := len(r.accounts)
	for _, to := range c.Servers() {
		u, err := r.upstream(c, to)
		if err != nil {
			return l, err
		}
		l.Upstreams = append(l.Upstreams, u)
	}
	asked := slices.Clone(r.accounts[first:])
	l.OnGone = func() {
		for _, a := range asked {
			_ = a.server.Close() // nobody asks it any more
		}
	}
	return l, nil
}

// kindOf is what the servers of a listener are said to be.
func kindOf(l *config.Listener) proxy.Kind {
	switch {
	case l.Foreign():
		return proxy.Foreign
	case l.UpstreamKind == config.KindAuto:
		return proxy.Learned
	}
	return proxy.Native
}

func (r *rereading) upstream(c *config.Listener, to config.Addr) (u proxy.Upstream, err error) {
	u.Addr = proxy.Address{Net: to.Network, Addr: to.Address}
	if u.TLS, err = r.files.Upstream(c, to); err != nil || c.Account == nil {
		return u, err
	}
	asked, err := upstream.Open(c, to, u.TLS, func() time.Duration { return r.inForce().ConnectTimeout(c) })
	if err != nil {
		return u, err
	}
	r.accounts = append(r.accounts, account{c, asked})
	u.Account = asked
	return u, nil
}
