package etcd

import (
	"encoding/json"
	"errors"
	"syscall"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/lease"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

// place is where a holder finds its pool, and how its host's clock is wrong.
type place struct {
	Addr string
	Off  time.Duration
}

func openJob(j holders.Job) (lease.Store, error) {
	var p place
	if err := json.Unmarshal(j.Store, &p); err != nil {
		return nil, err
	}
	s, err := New(Config{Endpoints: []string{p.Addr}})
	if err != nil {
		return nil, err
	}
	s.clock = func() time.Time { return time.Now().Add(p.Off) }
	if j.Unsafe == holders.WithoutFence {
		return owned{holders.Boundless(s.Workers()), s}, nil
	}
	if j.Once {
		return owned{s.Disposable(), s}, nil
	}
	return owned{s.Workers(), s}, nil
}

// owned closes the store of segments with that of workers.
type owned struct {
	lease.Store
	s *Store
}

func (o owned) Close() error { return errors.Join(o.Store.Close(), o.s.Close()) }

func jobAt(t *testing.T, s *servers.Etcd, pool string, off time.Duration) holders.Job {
	t.Helper()
	text, err := json.Marshal(place{s.Addr, off})
	if err != nil {
		t.Fatal(err)
	}
	return holders.Job{Store: text, Pool: pool, Rules: holders.Brisk.Lasting()}
}

// silent is when a holder that was killed has been silent for long enough, and
// a store that was replaced has been for long enough.
const silent = 10 * time.Second

func TestWorkers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	workers := func() lease.Store { return newStore(t, s).Workers() }
	t.Run("rules", func(t *testing.T) {
		t.Parallel()
		holders.ObeysTheRules(t, workers(), "rules", 400)
	})
	t.Run("administers", func(t *testing.T) {
		t.Parallel()
		holders.Administers(t, workers(), "administers")
	})
	t.Run("races", func(t *testing.T) {
		t.Parallel()
		holders.Races(t, workers, "races")
	})
	t.Run("zombie", func(t *testing.T) {
		t.Parallel()
		holders.Zombie(t, workers(), jobAt(t, s, "zombie", 0))
	})
}

func TestWorkersRestart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	holders.Restart(t, newStore(t, s).Workers(), jobAt(t, s, "p", 0), pause(s))
}

func TestWorkersRestored(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	holders.Restored(t, jobAt(t, s, "p", 0), holders.Place{
		Open:    func() lease.Store { return newStore(t, s).Workers() },
		Control: func() lease.Store { return lease.FromTable(holders.SameServer(table{newStore(t, s)})) },
		Save:    func() { again(t, s, func() error { return s.Save("backup") }) },
		Restore: func() { again(t, s, func() error { return s.Restore("backup") }) },
	})
}

func TestDisposable(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	holders.Disposable(t, jobAt(t, s, "p", 0), holders.Place{
		Open:    func() lease.Store { return newStore(t, s).Disposable() },
		Control: func() lease.Store { return lease.Disposable(holders.SameServer(table{newStore(t, s)})) },
		Save:    func() { again(t, s, func() error { return s.Save("backup") }) },
		Restore: func() { again(t, s, func() error { return s.Restore("backup") }) },
	}, pause(s))
}

func pause(s *servers.Etcd) func(away bool) error {
	return func(away bool) error {
		if away {
			return s.Signal(syscall.SIGSTOP)
		}
		return s.Signal(syscall.SIGCONT)
	}
}

// TestWorkersOtherCluster: a cluster that was made anew has no pool, and the one
// that is made in it rests.
func TestWorkersOtherCluster(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	holders.Fill(t, newStore(t, s).Workers(), "p", 2)
	var all holders.Record
	j := jobAt(t, s, "p", 0)
	a, b := holders.Start(t, j, &all), holders.Start(t, j, &all)
	a.Issues(t, 200, silent)
	b.Issues(t, 200, silent)
	again(t, s, s.Renew)
	holders.FillAgain(t, newStore(t, s).Workers(), "p", 2)
	a.Issues(t, 200, silent)
	b.Issues(t, 200, silent)
	a.End(t)
	b.End(t)
	if n := len(all.Twice()); n > 0 {
		t.Errorf("%d ids twice", n)
	}
}

// TestWorkersClocks has hosts whose clocks differ hand a number to each other:
// ids that come later carry later times, whatever the clocks say.
func TestWorkersClocks(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	st := newStore(t, s).Workers()
	layout, err := idsource.ParseLayout(idsource.DefaultLayout)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		behind time.Duration
		issues bool // before the clock has caught up
		kill   bool // the one before
	}{
		{name: "10ms", behind: 10 * time.Millisecond, issues: true},
		{name: "10ms-killed", behind: 10 * time.Millisecond, issues: true, kill: true},
		{name: "3s", behind: 3 * time.Second, issues: true},
		{name: "3s-killed", behind: 3 * time.Second, issues: true, kill: true},
		{name: "1h", behind: time.Hour},
		{name: "1h-killed", behind: time.Hour, kill: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			holders.Fill(t, st, tt.name, 1)
			var all holders.Record
			a := holders.Start(t, jobAt(t, s, tt.name, 0), &all)
			a.Issues(t, 500, silent)
			if tt.kill {
				a.Kill(t)
			} else {
				a.End(t)
			}
			ids := a.IDs()
			last := layout.Decode(ids[len(ids)-1]).Time
			b := holders.Start(t, jobAt(t, s, tt.name, -tt.behind), &all)
			if tt.issues {
				b.Issues(t, 500, 2*silent)
			} else {
				time.Sleep(3 * time.Second)
			}
			b.End(t)
			if !tt.issues && b.Count() > 0 {
				t.Errorf("%d ids were issued an hour before their time", b.Count())
			}
			for _, id := range b.IDs() {
				if ts := layout.Decode(id).Time; ts <= last {
					t.Fatalf("the holder that follows issues an id of time %d, the one before came to %d", ts, last)
				}
			}
			if n := len(all.Twice()); n > 0 {
				t.Errorf("%d ids twice", n)
			}
		})
	}
}
