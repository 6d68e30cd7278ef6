package redis

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/idsource/lease"
	"idproxy/idsource/snowflake"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

func private(t testing.TB, args ...string) *servers.Redis {
	t.Helper()
	return owned(t, assert.Of(servers.StartRedis(t.Context(), args...)).Must(t))
}

// owned stops a server when the test ends.
func owned(t testing.TB, r *servers.Redis) *servers.Redis {
	t.Cleanup(func() { assert.NoError(t, r.Stop()) })
	return r
}

func TestZombie(t *testing.T) {
	t.Parallel()
	holders.Zombie(t, open(t, Config{}), jobAt(shared.Addr, "zombie"))
}

// TestRedisBackWithOldDump has Redis come back with a dump from before its
// number was taken, as one that keeps no log does.
func TestRedisBackWithOldDump(t *testing.T) {
	t.Parallel()
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}})
	holders.FillBy(t, s, restful(), lease.Fill{Pool: "p", Numbers: 1, Fresh: true})
	assert.Of(r.Do("SAVE")).Must(t)
	var all holders.Record
	j := jobAt(r.Addr, "p")
	a := holders.Start(t, j, &all)
	a.Issues(t, 200)
	a.Signal(t, syscall.SIGSTOP)
	assert.Must(t, errors.Join(r.Kill(), r.Start(t.Context())))
	ask := lease.Ask{Pool: "p", Shape: holders.Shape(), Rules: restful(), Use: lease.Use{Token: "b"}}
	reply, err := s.Take(t.Context(), ask)
	assert.True(t, err == nil && reply.Verdict == lease.Wait, "a number that is in use, and was forgotten: %+v, %v", reply, err)
	a.Signal(t, syscall.SIGCONT)
	b := holders.Start(t, j, &all)
	holders.Issue(t, 1000, a, b)
	a.End(t)
	b.Issues(t, 100)
	holders.End(t, &all, b)
	forgets := open(t, Config{Addrs: []string{r.Addr}})
	forgets.sha = redis.NewScript(unsafe["incarnation"](source))
	assert.Must(t, errors.Join(r.Kill(), r.Start(t.Context())))
	reply, err = forgets.Take(t.Context(), ask)
	assert.True(t, err == nil && reply.Verdict == lease.Granted, "without the rule: %+v, %v", reply, err)
}

// restful are rules by which a pool rests for longer than a busy machine takes to ask.
func restful() lease.Rules {
	rules := holders.Brisk
	rules.Lead = 60_000
	return rules
}

// TestEmptied: nobody takes a number until every id of the pool that was lost lies in the past.
func TestEmptied(t *testing.T) {
	t.Parallel()
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}})
	holders.Fill(t, s, "p", 2)
	var all holders.Record
	j := jobAt(r.Addr, "p")
	both := []*holders.Process{holders.Start(t, j, &all), holders.Start(t, j, &all)}
	holders.EachIssues(t, 200, both...)
	assert.Of(r.Do("FLUSHALL")).Must(t)
	lost := time.Now()
	time.Sleep(time.Duration(holders.Brisk.Lead+holders.Brisk.Ahead+300) * time.Millisecond)
	again := time.Now()
	holders.FillAgain(t, s, "p", 2)
	holders.EachIssues(t, 200, both...)
	holders.End(t, &all, both...)
	// The server's clock is this host's.
	since := func(at time.Time) uint64 { return uint64(at.Sub(snowflake.DefaultEpoch).Milliseconds()) }
	from, to := since(lost)+uint64(holders.Brisk.Lead+holders.Brisk.Ahead), since(again)
	for _, p := range both {
		for _, at := range p.Times() {
			assert.MustTrue(t, from > at || at >= to, "an id was issued without a pool, %d ms behind the last that could be", at-from)
		}
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	r := private(t)
	holders.Restart(t, open(t, Config{Addrs: []string{r.Addr}}), jobAt(r.Addr, "p"), r)
}

// TestDisposable puts data back by a dump from before, and takes the server away by stopping it.
func TestDisposable(t *testing.T) {
	t.Parallel()
	r := private(t)
	at := Config{Addrs: []string{r.Addr}}
	holders.Disposable(t, jobAt(r.Addr, "p"), holders.Place{
		Open:    func() lease.Store { return open(t, at).Disposable() },
		Control: func() lease.Store { return lease.Disposable(holders.SameServer(table{open(t, at)})) },
		Save:    func() { assert.Of(r.Do("SAVE")).Must(t) },
		Restore: func() { assert.Must(t, errors.Join(r.Kill(), r.Start(t.Context()))) },
	}, r)
}

// TestOlderData puts the keys back while Redis runs, as RESTORE does.
func TestOlderData(t *testing.T) {
	t.Parallel()
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}})
	keys := func(from, to string) func() { // keys that begin with from are copied to such as begin with to, which had others
		return func() {
			assert.Must(t, s.client.Eval(t.Context(), `
				for _, key in ipairs(redis.call('KEYS', ARGV[2] .. 'idproxy:*')) do redis.call('DEL', key) end
				for _, key in ipairs(redis.call('KEYS', ARGV[1] .. 'idproxy:*')) do
					redis.call('COPY', key, ARGV[2] .. string.sub(key, #ARGV[1] + 1))
				end
				return 1`, nil, from, to).Err())
		}
	}
	holders.OlderData(t, jobAt(r.Addr, "p"), holders.Place{
		Open: func() lease.Store { return open(t, Config{Addrs: []string{r.Addr}}) },
		Save: keys("", "saved:"), Restore: keys("saved:", ""),
	})
}

// TestUnsent: only where no connection was made it is certain that Redis will never hear of a step.
func TestUnsent(t *testing.T) {
	t.Parallel()
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}})
	holders.Fill(t, s, "p", 1)
	ask := lease.Ask{Pool: "p", Shape: holders.Shape(), Rules: holders.Brisk, Use: lease.Use{Token: "a"}}
	hasty := assert.Of(New(Config{Addrs: []string{r.Addr}})).Must(t) // it waits for a second
	defer hasty.Close()                                              //nolint:errcheck // nothing is pending
	assert.Must(t, r.Signal(syscall.SIGSTOP))
	_, err := hasty.Take(t.Context(), ask)
	assert.True(t, err != nil && !errors.Is(err, lease.ErrUnsent), "Redis is stopped, and will see it later: %v", err)
	assert.Must(t, errors.Join(r.Signal(syscall.SIGCONT), r.Kill()))
	assert.Of(open(t, Config{Addrs: []string{r.Addr}}).Take(t.Context(), ask)).ErrorIs(t, "Redis is gone", lease.ErrUnsent)
	_, err = open(t, Config{Addrs: []string{r.Addr}, Cluster: true}).Take(t.Context(), ask)
	assert.True(t, err != nil && !errors.Is(err, lease.ErrUnsent), "the client of a cluster, which may have sent it before: %v", err)
}

// TestDisposableCutOff: a server that has lost its replicas, and takes no writes then, does not confirm a
// number that is used once.
func TestDisposableCutOff(t *testing.T) {
	t.Parallel()
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}}).Disposable()
	shape := lease.DisposableShape(holders.Shape())
	assert.Of(s.Add(t.Context(), lease.Fill{Pool: "p", Shape: shape, Fresh: true, Rules: holders.Brisk})).Must(t)
	ask := lease.Ask{Pool: "p", Shape: shape, Rules: holders.Brisk, Use: lease.Use{Token: "a"}, Numbers: 9}
	reply, err := s.Take(t.Context(), ask)
	assert.MustTrue(t, err == nil && reply.Verdict == lease.Granted, "%v %v", reply, err)
	ask.Worker, ask.Last = reply.Worker, reply.Start
	for replicas, want := range map[string]bool{"1": false, "0": true} {
		assert.Of(r.Do("CONFIG", "SET", "min-replicas-to-write", replicas)).Must(t)
		reply, err := s.Renew(t.Context(), ask)
		assert.True(t, (err == nil) == want, "with %s replicas to write to: %+v, %v", replicas, reply, err)
	}
}
