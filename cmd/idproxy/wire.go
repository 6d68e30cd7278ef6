package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"

	"idproxy/config"
	"idproxy/proxy"
	"idproxy/rewriter"
)

// settings returns what of the configuration may change while sessions run.
func (p *program) settings() *proxy.Settings {
	return &proxy.Settings{
		Rules:           ruleSets(p.cfg),
		Sources:         p.sources.named(),
		Sessions:        int(p.cfg.Limits.Sessions),
		Handshake:       p.cfg.Limits.Handshake,
		Statement:       int(p.cfg.Limits.Statement),
		ShutdownTimeout: p.cfg.ShutdownTimeout,
	}
}

// ruleSets returns the rules of each listener, by its name. Listeners with the same
// rules share them.
func ruleSets(cfg *config.Config) map[string]*rewriter.Rules {
	sets, byRules := map[string]*rewriter.Rules{}, map[string]*rewriter.Rules{}
	for i := range cfg.Listeners {
		name := cfg.Listeners[i].Name
		which := make([]byte, 0, len(cfg.Rules)) // of the rules hold here
		for j := range cfg.Rules {
			on := byte('0')
			if cfg.Rules[j].On(name) {
				on = '1'
			}
			which = append(which, on)
		}
		if byRules[string(which)] == nil {
			byRules[string(which)] = rewriter.NewRules(rulesOf(cfg, name))
		}
		sets[name] = byRules[string(which)]
	}
	return sets
}

// rulesOn returns the rules that hold on a listener, in the order of rulesOf.
func rulesOn(cfg *config.Config, listener string) (rules []*config.Rule) {
	for i := range cfg.Rules {
		if r := &cfg.Rules[i]; r.On(listener) {
			rules = append(rules, r)
		}
	}
	return rules
}

// rulesOf returns the rules that hold on a listener, as the proxy takes them.
func rulesOf(cfg *config.Config, listener string) []rewriter.Rule {
	var rules []rewriter.Rule
	kinds := map[string]rewriter.IDKind{}
	for i := range cfg.Sources {
		kinds[cfg.Sources[i].Name] = kindOf(&cfg.Sources[i])
	}
	for _, r := range rulesOn(cfg, listener) {
		rule := rewriter.Rule{
			Schema: r.Schema, Table: r.Table, Column: r.Column, Source: r.Source, IDs: kinds[r.Source],
			Packet:  r.LastInsertID == config.LastIDPacket,
			Forward: r.Unsupported == config.UnsupportedForward,
			Observe: r.Mode == config.ModeObserve,
		}
		switch r.Explicit {
		case config.ExplicitReject:
			rule.Explicit = rewriter.Reject
		case config.ExplicitAdvance:
			rule.Explicit = rewriter.Advance
		}
		rule.Gene = geneOf(r)
		rules = append(rules, rule)
	}
	return rules
}

// kindOf returns what the ids of a source are.
func kindOf(s *config.Source) rewriter.IDKind {
	switch {
	case s != nil && s.UUIDv7 != nil:
		return rewriter.UUID
	case s != nil && s.ObjectID != nil:
		return rewriter.ObjectID
	}
	return rewriter.Number
}

func proxyConfig(cfg *config.Config, log *slog.Logger) (proxy.Config, error) {
	c := proxy.Config{Logger: log}
	for i := range cfg.Listeners {
		l, err := proxyListener(&cfg.Listeners[i])
		if err != nil {
			return c, fmt.Errorf("%s: listener %s: %w", cfg.Listeners[i].Pos, cfg.Listeners[i].Name, err)
		}
		c.Listeners = append(c.Listeners, l)
	}
	return c, nil
}

func proxyListener(c *config.Listener) (proxy.Listener, error) {
	l := proxy.Listener{
		Name:     c.Name,
		Listen:   proxy.Address{Net: c.Listen.Network, Addr: c.Listen.Address},
		Upstream: proxy.Address{Net: c.Upstream.Network, Addr: c.Upstream.Address},
		UpstreamTLSMode: map[string]proxy.TLSMode{
			config.TLSRequired: proxy.Required, config.TLSDisabled: proxy.Disabled,
		}[c.UpstreamTLS.Mode],
	}
	var err error
	if l.ClientTLS, err = clientTLS(c.TLS); err != nil {
		return l, err
	}
	if l.UpstreamTLS, err = upstreamTLS(c); err != nil {
		return l, err
	}
	if c.Account != nil {
		u, err := openUpstream(c)
		if err != nil {
			return l, err
		}
		l.Greatest, l.Definition = u.greatest, u.definition
	}
	return l, nil
}

// clientTLS returns what is offered to clients; nil for none.
func clientTLS(c *config.TLS) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	// Go would start with records of 1.2 kB and make one write of each.
	t := &tls.Config{Certificates: []tls.Certificate{cert}, DynamicRecordSizingDisabled: true}
	if c.ClientCA != "" {
		if t.ClientCAs, err = loadCA(c.ClientCA); err != nil {
			return nil, fmt.Errorf("tls.client_ca: %w", err)
		}
		t.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return t, nil
}

// upstreamTLS returns how the server is spoken to over TLS. Without a CA its
// certificate is not verified, as with MySQL's ssl-mode=REQUIRED.
func upstreamTLS(c *config.Listener) (*tls.Config, error) {
	t := &tls.Config{ServerName: c.UpstreamTLS.ServerName, DynamicRecordSizingDisabled: true}
	if t.ServerName == "" && c.Upstream.Network == "tcp" {
		host, _, err := net.SplitHostPort(c.Upstream.Address)
		if err != nil {
			return nil, err
		}
		t.ServerName = host
	}
	if c.UpstreamTLS.CA == "" {
		t.InsecureSkipVerify = true
		return t, nil
	}
	var err error
	if t.RootCAs, err = loadCA(c.UpstreamTLS.CA); err != nil {
		return nil, fmt.Errorf("upstream_tls.ca: %w", err)
	}
	return t, nil
}

func loadCA(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	return pool, nil
}
