package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"idproxy/idsource/lease"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

func TestMain(m *testing.M) {
	holders.Main(openJob)
	servers.Parallel(4)
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("idproxy/integration/process.(*Process).own"))
}

// shortSession ends while a holder is stopped.
const shortSession = 500 * time.Millisecond

func openJob(j holders.Job) (lease.Store, error) {
	var addr string
	if err := json.Unmarshal(j.Store, &addr); err != nil {
		return nil, err
	}
	s, err := New(Config{Servers: strings.Split(addr, ",")})
	if err != nil {
		return nil, err
	}
	s.session = shortSession
	if j.Once {
		return holders.Owned(s.Disposable(), s), nil
	}
	return holders.Owned(s.Workers(), s), nil
}

func jobAt(t *testing.T, addr, pool string) holders.Job {
	t.Helper()
	text := assert.Of(json.Marshal(addr)).Must(t)
	return holders.Job{Store: text, Pool: pool, Rules: holders.Brisk.Lasting()}
}

// owned stops a server when the test ends.
func owned(t *testing.T, s *servers.ZooKeeper) *servers.ZooKeeper {
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	return s
}

func newServer(t *testing.T) *servers.ZooKeeper {
	t.Helper()
	return owned(t, assert.Of(servers.StartZooKeeper(t.Context())).Must(t))
}

func open(t *testing.T, c Config) *Store {
	t.Helper()
	s := assert.Of(New(c)).Must(t)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func newStore(t *testing.T, s *servers.ZooKeeper) *Store {
	t.Helper()
	return open(t, Config{Servers: []string{s.Addr}})
}

// again does something to a server that is not running, and starts it again.
func again(t *testing.T, s *servers.ZooKeeper, do func() error) {
	t.Helper()
	assert.Must(t, errors.Join(s.Kill(), do(), s.Start(t.Context())))
}

// TestWorkers has in its zombie a holder whose session ends while it is stopped.
func TestWorkers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	clock := &holders.Clock{}
	holders.Contract(t, func() lease.Store {
		st := newStore(t, s)
		st.clock = clock.Now
		return st.Workers()
	}, clock, "", 400)
	t.Run("side by side", func(t *testing.T) {
		holders.Zombie(t, newStore(t, s).Workers(), jobAt(t, s.Addr, "zombie"))
		t.Run("answer lost", func(t *testing.T) {
			t.Parallel()
			losesAnswers(t, newStore(t, s), "lost")
		})
		t.Run("user", func(t *testing.T) {
			t.Parallel()
			asUser(t, s, "users")
		})
		t.Run("silent server", func(t *testing.T) {
			t.Parallel()
			leavesSilent(t, s)
		})
	})
	t.Run("restart", func(t *testing.T) { holders.Restart(t, newStore(t, s).Workers(), jobAt(t, s.Addr, "restart"), s) })
	t.Run("killed", func(t *testing.T) { goesOn(t, s, "killed") })
}

// at is an ensemble whose data is put back to what it was, from its snapshot and log.
func at(t *testing.T, s *servers.ZooKeeper, open, control func() lease.Store) holders.Place {
	return holders.Place{
		Open: open, Control: control,
		Save:    func() { again(t, s, func() error { return s.Save("backup") }) },
		Restore: func() { again(t, s, func() error { return s.Restore("backup") }) },
	}
}

// TestRestored has data put back.
func TestRestored(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	t.Run("workers", func(t *testing.T) {
		control := func() lease.Store { return lease.FromTable(holders.SameServer(table{newStore(t, s)})) }
		holders.Restored(t, jobAt(t, s.Addr, "leased"), at(t, s, func() lease.Store { return newStore(t, s).Workers() }, control))
	})
	t.Run("disposable", func(t *testing.T) {
		control := func() lease.Store { return lease.Disposable(holders.SameServer(table{newStore(t, s)})) }
		holders.Disposable(t, jobAt(t, s.Addr, "once"), at(t, s, func() lease.Store { return newStore(t, s).Disposable() }, control), s)
	})
	t.Run("standalone", func(t *testing.T) { standaloneOnData(t, s) })
}

// standaloneOnData: an ensemble's data does not make an ensemble of a server. It would show the
// same epoch however often it is put back.
func standaloneOnData(t *testing.T, s *servers.ZooKeeper) {
	old := newStore(t, s)
	holders.Fill(t, old.Workers(), "p", 1)
	again(t, s, s.Alone)
	ask := lease.Ask{Pool: "p", Shape: holders.Shape(), Rules: holders.Brisk, Use: lease.Use{Token: "a"}}
	for name, store := range map[string]*Store{"known": old, "new": newStore(t, s)} {
		for range 2 { // a client that was connected may find out at the second try
			assert.Of(store.Workers().Take(t.Context(), ask)).Fails(t, name+" store, of a server that does not tell of its past", "")
		}
		assert.Fails(t, name+" store", store.Ping(t.Context()), "standaloneEnabled=false")
	}
}

// speaker is a server that answers srvr, and is silent otherwise.
func speaker(t *testing.T, says string) (addr string) {
	t.Helper()
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go func() {
				word := make([]byte, 4)
				if _, err := io.ReadFull(c, word); err == nil && string(word) == "srvr" && says != "" {
					_, _ = io.WriteString(c, says)
					_ = c.Close()
				}
			}()
		}
	}()
	return l.Addr().String()
}

// leavesSilent: a server that lets clients connect and says nothing more does not keep them from
// another one for longer than one question lasts.
func leavesSilent(t *testing.T, s *servers.ZooKeeper) {
	for name, says := range map[string]string{"from the beginning": "", "behind srvr": "Mode: follower\n"} {
		store := open(t, Config{Servers: []string{speaker(t, says), s.Addr}})
		store.session = time.Minute // a client that stays with the silent one does so for almost seven
		var err error
		for range 60 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err = store.Ping(ctx)
			cancel()
			if err == nil {
				break
			}
		}
		assert.NoError(t, err, name)
	}
}

// counted is a connection that is counted as long as it is open.
type counted struct {
	net.Conn
	open *atomic.Int32
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// TestCloseSilent: no connection outlives a store by long, not even one to a server that does not
// let the client in: that one would wait for ten times two thirds of a session.
func TestCloseSilent(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]bool{"client in use": false, "client that was left": true} {
		s := assert.Of(New(Config{Servers: []string{speaker(t, "Mode: follower\n")}})).Must(t)
		s.session = time.Minute
		var wires atomic.Int32
		s.dial = func(network, addr string, timeout time.Duration) (net.Conn, error) {
			c, err := net.DialTimeout(network, addr, timeout)
			if err != nil {
				return nil, err
			}
			wires.Add(1)
			return &counted{Conn: c, open: &wires}, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		asked := make(chan error, 1)
		go func() { asked <- s.Ping(ctx) }()
		assert.Until(t, "it is connected", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.conn != nil && s.conn.State() == zk.StateConnected
		})
		if leave {
			cancel()
			<-asked
		}
		assert.NoError(t, s.Close())
		if !leave {
			assert.Fails(t, name+": a server that says nothing has answered", <-asked, "")
		}
		assert.Until(t, name+": no connection is open behind Close", func() bool { return wires.Load() == 0 })
		cancel()
	}
}

// TestModeUnsaid: a server that may not say how it runs is refused.
func TestModeUnsaid(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Servers: []string{speaker(t, "srvr is not executed because it is not in the whitelist.\n")}})
	assert.ErrorIs(t, "s.Ping(t.Context())", s.Ping(t.Context()), errModeUnsaid)
}

// TestStandalone: a server without epochs is refused, and the refusal says what to do.
func TestStandalone(t *testing.T) {
	t.Parallel()
	s := owned(t, assert.Of(servers.StartZooKeeperStandalone(t.Context())).Must(t))
	fill := lease.Fill{Pool: "p", Shape: holders.Shape(), Numbers: 1, Fresh: true, Rules: holders.Brisk}
	assert.Of(newStore(t, s).Workers().Add(t.Context(), fill)).Fails(t, "numbers of a server that does not tell of its past", "standaloneEnabled=false")
}
