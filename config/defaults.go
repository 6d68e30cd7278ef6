package config

import (
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

const (
	defaultStep    = 1000
	defaultMaxStep = 1000000
	defaultLayout  = "41/10/12"
	defaultDir     = "idproxy-data"
)

func (c *Config) setDefaults() {
	c.Limits = Limits{Sessions: 10000, Handshake: 10 * time.Second, Statement: 256 << 20, Held: 1 << 30, IDWait: 2 * time.Second}
	c.TCP.Keepalive = Span(30 * time.Second)
	c.ShutdownTimeout = 30 * time.Second
	c.Engine = EngineGoroutines
	if runtime.GOOS == "linux" {
		c.Engine = EngineLoops
	}
	c.Log = Log{Level: "info", Format: "text"}
}

func (l *Listener) setDefaults() {
	l.UpstreamTLS.Mode, l.Compression, l.UpstreamKind = TLSAsClient, CompressionOff, KindAuto
}

func (n *Network) setDefaults() { n.IPv4, n.IPv6 = 32, 64 }

func (t *ListenerTLS) setDefaults() { t.Mode = TLSOptional }

func (r *IDsRedis) setDefaults() { r.MaxIncrBy = 1_000_000 }

func (h *IDsHTTP) setDefaults() { h.MaxN, h.TinyIDStep = maxN, 1000 }

func (s *Segment) setDefaults() {
	s.Start, s.Step, s.StepPolicy, s.Prefetch = 1, defaultStep, "leaf", 10
}

func (s *Scramble) setDefaults() { s.Bits = mostScrambled }

func (s *Snowflake) setDefaults() {
	s.Layout = defaultLayout
	s.Epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	s.Sequence = "continue"
	s.MaxAhead = 3 * time.Second
	s.ClockBack.Hold = 15 * time.Millisecond
}

func (l *Lease) setDefaults() { l.setPreset(LeaseStandard) }

func (l *Lease) presets() []string { return []string{LeaseStandard, LeasePatient} }

func (l *Lease) setPreset(name string) {
	l.Heartbeat, l.Reclaim = 2*time.Second, 20*time.Second
	if name == LeasePatient {
		l.Heartbeat, l.Reclaim = 5*time.Second, 5*time.Minute
	}
}

func (r *Rule) setDefaults() {
	r.Explicit, r.Unsupported = ExplicitKeep, UnsupportedReject
	r.LastInsertID, r.Mode.Word = LastIDServer, ModeEnforce
}

func (m *Mode) presets() []string { return []string{ModeEnforce, ModeObserve} }

func (m *Mode) setPreset(word string) { m.Word = word }

func (g *Gene) setDefaults() { g.By = GeneMod }

// complete fills the defaults that depend on other keys and joins relative paths
// to the folder of the file.
func (c *Config) complete() {
	for i := range c.Rules {
		if m := &c.Rules[i].Mode; m.Switch != "" {
			m.Word = ""
		}
	}
	if c.Limits.Logins == 0 {
		c.Limits.Logins = max(c.Limits.Sessions/2, 1)
	}
	for i := range c.Listeners {
		l := &c.Listeners[i]
		if l.Name == "" {
			l.Name = "listener" + strconv.Itoa(i)
		}
		paths := []*string{&l.UpstreamTLS.CA}
		if l.TLS != nil {
			paths = append(paths, &l.TLS.Cert, &l.TLS.Key, &l.TLS.ClientCA)
		}
		addrs := []*Addr{&l.Listen, &l.Upstream}
		for j := range l.Upstreams {
			addrs = append(addrs, &l.Upstreams[j])
		}
		for _, a := range addrs {
			if a.Network == "unix" {
				paths = append(paths, &a.Address)
			}
		}
		c.joinDir(paths)
	}
	if c.IDs != nil {
		c.joinDir(c.IDs.paths())
	}
	if c.Admin != nil {
		c.joinDir(c.Admin.paths())
	}
	if c.Order != nil && c.Order.TLS != nil {
		c.joinDir([]*string{&c.Order.TLS.CA, &c.Order.TLS.Cert, &c.Order.TLS.Key})
	}
	for _, s := range c.Stores {
		if s.File != nil {
			c.joinDir([]*string{&s.File.Dir})
		}
		for _, t := range s.tls() {
			c.joinDir([]*string{&t.CA, &t.Cert, &t.Key})
		}
	}
	for i := range c.Sources {
		c.completeSource(&c.Sources[i])
	}
}

// paths are those of files that the section names.
func (i *IDs) paths() (all []*string) {
	if i.Redis != nil {
		all = append(all, pathsOf(&i.Redis.Listen, i.Redis.TLS)...)
	}
	if i.HTTP != nil {
		all = append(all, pathsOf(&i.HTTP.Listen, i.HTTP.TLS)...)
	}
	return all
}

// paths are those of files that the section names.
func (a *Admin) paths() (all []*string) {
	for _, l := range []*Addr{&a.Listen, &a.Socket} {
		if l.Network == "unix" {
			all = append(all, &l.Address)
		}
	}
	if a.TLS != nil {
		all = append(all, &a.TLS.Cert, &a.TLS.Key, &a.TLS.ClientCA)
	}
	return all
}

// pathsOf are those of files that a listener has.
func pathsOf(l *Addr, t *TLS) (all []*string) {
	if l.Network == "unix" {
		all = append(all, &l.Address)
	}
	if t != nil {
		all = append(all, &t.Cert, &t.Key, &t.ClientCA)
	}
	return all
}

// tls is how the store is spoken to over TLS, if it is.
func (s *Store) tls() (set []*StoreTLS) {
	if s.Redis != nil && s.Redis.TLS != nil {
		set = append(set, s.Redis.TLS)
	}
	if s.ZooKeeper != nil && s.ZooKeeper.TLS != nil {
		set = append(set, s.ZooKeeper.TLS)
	}
	if s.Etcd != nil && s.Etcd.TLS != nil {
		set = append(set, s.Etcd.TLS)
	}
	return set
}

func (c *Config) completeSource(s *Source) {
	if g := s.Segment; g != nil {
		if g.Key == "" {
			g.Key = s.Name
		}
		if g.MaxStep == 0 {
			g.MaxStep = max(defaultMaxStep, g.Step)
		}
		if g.Store == "" {
			g.Store = c.defaultStore()
		}
	}
	if f := s.Snowflake; f != nil {
		if f.ClockBack.Then == "" {
			f.ClockBack.Then = ThenError
			if f.Workers != "" {
				f.ClockBack.Then = ThenSwap
			}
		}
		if f.Workers != "" && f.PoolName == "" {
			f.PoolName = s.Name
		}
		if f.Workers != "" && f.Lease == nil {
			f.Lease = &Lease{}
			f.Lease.setDefaults()
		}
		if f.Store == "" && f.Workers == "" {
			f.Store = c.defaultStore()
		}
	}
}

// defaultStore is the store that has the default folder, added when there is none:
// two stores on one folder would lock each other out.
func (c *Config) defaultStore() string {
	dir := filepath.Join(c.Dir, defaultDir)
	for _, s := range c.Stores {
		if s.File != nil && s.File.Dir == dir {
			return s.Name
		}
	}
	c.Stores = append(c.Stores, Store{
		Pos:  Pos{File: c.Path, Line: 1, Column: 1},
		Name: DefaultStore,
		File: &FileStore{Dir: dir},
	})
	return DefaultStore
}

func (c *Config) joinDir(paths []*string) {
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) && (*p)[0] != '@' { // @: a socket without a file
			*p = filepath.Join(c.Dir, *p)
		} else if *p != "" && (*p)[0] != '@' {
			*p = filepath.Clean(*p)
		}
	}
}
