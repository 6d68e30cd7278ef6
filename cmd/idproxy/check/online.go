package check

import (
	"context"
	"slices"
	"sync"

	"idproxy/cmd/idproxy/inventory"
	"idproxy/config"
)

// serversAtOnce are asked at once, each over a few connections (upstream.ConnectionsAtOnce):
// 64 connections in all, which leaves a small server some for others.
const serversAtOnce = 16

// run asks stores and servers, all at once, and compares what they say. Findings come
// in the order of the file.
func (c *checker) run(ctx context.Context) (findings []Finding) {
	servers := c.servers()
	var sources sourceChecks
	var stores []Finding
	var wg sync.WaitGroup
	wg.Go(func() { sources = c.sources(ctx) })
	wg.Go(func() { stores = c.storeServers(ctx) })
	turn := make(chan struct{}, serversAtOnce)
	for _, s := range servers {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			s.run(ctx)
		})
	}
	wg.Wait()
	for _, s := range servers {
		for _, t := range s.tables {
			t.compare(sources.positions)
		}
	}
	findings = slices.Concat(stores, sources.findings, c.begins(ctx, servers))
	for i := range c.cfg.Listeners {
		l := &c.cfg.Listeners[i]
		var n notes
		switch {
		case l.Foreign():
			n.add(l.Pos, LevelWarning, "listener %s: NOT checked: server %s is asked over the connections of clients alone, for its upstream_kind is %s; "+
				"what stands against a rule is told to the first INSERT into its table", l.Name, l.Behind(), l.UpstreamKind)
			findings = append(findings, n.findings...)
			continue
		case l.Account == nil:
			n.add(l.Pos, LevelError, "listener %s: NOT checked: it has no account to ask server %s and its tables with; add one: account: {user: ..., password: ...}", l.Name, l.Behind())
			findings = append(findings, n.findings...)
			continue
		}
		for _, s := range servers {
			if s.Listeners[0] == l {
				findings = append(findings, s.report()...)
			}
		}
	}
	return once(findings)
}

// once leaves out what was said before.
func once(findings []Finding) (list []Finding) {
	said := map[Finding]bool{}
	for _, f := range findings {
		if !said[f] {
			list = append(list, f)
		}
		said[f] = true
	}
	return list
}

// servers returns the servers that can be asked. Listeners with the same server and
// account have it asked once.
func (c *checker) servers() (servers []*server) {
	type way struct {
		to       string
		writable bool
		as       config.Account
		tls      config.UpstreamTLS
	}
	shards := inventory.Shards(c.cfg, func(l *config.Listener, _ []*config.Rule) (w way, ok bool) {
		if l.Account == nil || l.Foreign() {
			return w, false
		}
		return way{l.Behind(), l.Writable, *l.Account, l.UpstreamTLS}, true
	})
	for _, s := range shards {
		servers = append(servers, &server{Shard: s, asked: asked{cfg: c.cfg}, patience: c.patience, alone: len(shards) == 1})
	}
	return servers
}
