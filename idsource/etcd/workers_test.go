package etcd

import (
	"encoding/json"
	"syscall"
	"testing"
	"time"

	"idproxy/idsource/lease"
	"idproxy/idsource/snowflake"
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
	if j.Once {
		return holders.Owned(s.Disposable(), s), nil
	}
	return holders.Owned(s.Workers(), s), nil
}

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
	holders.Contract(t, workers, "", 400)
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

// TestWorkersClocks has a host whose clock is behind take the number of one that
// issued ids: ids that come later carry later times, whatever the clocks say.
func TestWorkersClocks(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, tt := range []struct {
		name   string
		behind time.Duration
		kill   bool // the one before, which gives back nothing
		same   bool // the host: what the one before left in its file is taken up
		waits  bool // until the clock has caught up, which is too long for this test
	}{
		{name: "10ms", behind: 10 * time.Millisecond},
		{name: "10ms-killed", behind: 10 * time.Millisecond, kill: true},
		{name: "10ms-same-host", behind: 10 * time.Millisecond, kill: true, same: true},
		{name: "3s", behind: 3 * time.Second},
		{name: "3s-killed", behind: 3 * time.Second, kill: true},
		{name: "3s-same-host", behind: 3 * time.Second, kill: true, same: true},
		{name: "1h", behind: time.Hour, waits: true},
		{name: "1h-killed", behind: time.Hour, kill: true, waits: true},
		{name: "1h-same-host", behind: time.Hour, kill: true, same: true, waits: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			late, twice := followed(t, s, tt.name, follow{behind: tt.behind, kill: tt.kill, same: tt.same, waits: tt.waits})
			if late > 0 || twice > 0 {
				t.Errorf("%d ids carry a time that the holder before may have used, %d came twice", late, twice)
			}
		})
	}
	t.Run("control", func(t *testing.T) {
		t.Parallel()
		if late, _ := followed(t, s, "control", follow{behind: 3 * time.Second, unsafe: holders.WithoutStart}); late == 0 {
			t.Error("a holder that starts at its clock, not at the fence, is not noticed")
		}
	})
}

// follow is how a holder follows another one.
type follow struct {
	behind            time.Duration
	kill, same, waits bool
	unsafe            string
}

// followed has one holder follow another, and returns how many of its ids carry
// times that the other one came to, and how many of all came twice.
func followed(t *testing.T, s *servers.Etcd, pool string, f follow) (late, twice int) {
	t.Helper()
	layout, err := snowflake.ParseLayout(snowflake.DefaultLayout)
	if err != nil {
		t.Fatal(err)
	}
	holders.Fill(t, newStore(t, s).Workers(), pool, 1)
	var all holders.Record
	before, after := jobAt(t, s, pool, 0), jobAt(t, s, pool, -f.behind)
	after.Unsafe = f.unsafe
	if f.same {
		before.Dir = t.TempDir()
		after.Dir = before.Dir
	}
	a := holders.Start(t, before, &all)
	a.Issues(t, 500, silent)
	if f.kill {
		a.Kill(t)
	} else {
		a.End(t)
	}
	ids := a.IDs()
	last := layout.Decode(ids[len(ids)-1]).Time
	b := holders.Start(t, after, &all)
	if f.waits {
		time.Sleep(3 * time.Second)
	} else {
		b.Issues(t, 500, 3*silent)
	}
	b.End(t)
	for _, id := range b.IDs() {
		if layout.Decode(id).Time <= last {
			late++
		}
	}
	return late, len(all.Twice())
}
