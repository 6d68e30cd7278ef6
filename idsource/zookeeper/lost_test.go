package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"idproxy/idsource/lease"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

// losing is a connection that ends behind a transaction, before its answer is read.
type losing struct {
	net.Conn
	armed *atomic.Int32 // so many transactions lose their answers
	lose  atomic.Bool
}

const opMulti = 14

func (c *losing) Write(b []byte) (int, error) {
	multi := len(b) >= 12 && binary.BigEndian.Uint32(b[8:]) == opMulti
	if multi && c.armed.Add(-1) >= 0 {
		c.lose.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *losing) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.lose.Load() {
		return 0, errors.Join(errors.New("the answer is lost"), c.Close())
	}
	return n, err
}

// losesAnswers has the answers lost to what makes, takes, renews and gives back a number. Each is
// done once, and who did it is told so.
func losesAnswers(t *testing.T, s *Store, pool string) {
	var armed atomic.Int32
	s.dial = func(network, addr string, timeout time.Duration) (net.Conn, error) {
		c, err := net.DialTimeout(network, addr, timeout)
		if err != nil {
			return nil, err
		}
		return &losing{Conn: c, armed: &armed}, nil
	}
	w := s.Workers()
	rules := holders.Brisk
	rules.Gap, rules.Reclaim = 60_000, 200_000 // the lease does not end while answers are lost
	rules = rules.Lasting()
	armed.Store(2) // the pool, the numbers
	fill := lease.Fill{Pool: pool, Shape: holders.Shape(), Numbers: 3, Fresh: true, Rules: rules}
	assert.Of(w.Add(t.Context(), fill)).Equal(t, "Add", 3)
	a := lease.Ask{Pool: pool, Shape: holders.Shape(), Rules: rules, Use: lease.Use{Token: "a"}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lose := func(do func(context.Context, lease.Ask) (lease.Reply, error)) (lease.Reply, error) {
		armed.Store(1)
		return do(ctx, a)
	}
	r, err := lose(w.Take)
	assert.MustTrue(t, err == nil && r.Verdict == lease.Granted && held(t, w, pool) == 1, "Take: %+v, %v; %d are held, want 1", r, err, held(t, w, pool))
	a.Worker, a.Last = r.Worker, r.Start
	r, err = lose(w.Renew)
	assert.True(t, err == nil && r.Verdict == lease.Granted, "Renew: %+v, %v", r, err)
	r, err = lose(w.Release)
	assert.True(t, err == nil && r.Verdict == lease.Granted && held(t, w, pool) == 0, "Release: %+v, %v; %d are held", r, err, held(t, w, pool))
	assert.LessOrEqual(t, "answers were not lost", armed.Load(), 0)
}

// held is how many numbers of a pool are held.
func held(t *testing.T, w lease.Store, pool string) (n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, r := range assert.Of(w.List(ctx, pool)).Must(t).Records {
		if r.State == lease.Held {
			n++
		}
	}
	return n
}

// goesOn: ids go on while the server is away for less than the lease lasts, and come back
// by themselves after more.
func goesOn(t *testing.T, s *servers.ZooKeeper, pool string) {
	holders.Fill(t, newStore(t, s).Workers(), pool, 4)
	var all holders.Record
	j := jobAt(t, s.Addr, pool)
	a, b := holders.Start(t, j, &all), holders.Start(t, j, &all)
	holders.EachIssues(t, 200, a, b)
	for range 3 {
		again(t, s, func() error { return nil })
		holders.EachIssues(t, 200, a, b)
	}
	holders.End(t, &all, a, b)
}

// asUser: nodes that a user makes are that user's, and others are turned away.
func asUser(t *testing.T, s *servers.ZooKeeper, pool string) {
	fill := lease.Fill{Pool: pool, Shape: holders.Shape(), Numbers: 2, Fresh: true, Rules: holders.Brisk}
	assert.Of(newStore(t, s).Workers().Add(t.Context(), fill)).Must(t) // the nodes above are everybody's here
	fill.Pool += "-own"
	own := open(t, Config{Servers: []string{s.Addr}, Username: "idproxy", Password: "secret"})
	assert.Of(own.Workers().Add(t.Context(), fill)).Must(t)
	own.leave(own.conn)
	fill.Numbers = 3
	assert.Of(own.Workers().Add(t.Context(), fill)).Equal(t, "in another session", 1)
	for _, c := range []Config{{}, {Username: "idproxy", Password: "other"}} {
		c.Servers = []string{s.Addr}
		_, err := open(t, c).Workers().List(t.Context(), fill.Pool)
		assert.True(t, Denied(err), "user %q with password %q: %v", c.Username, c.Password, err)
	}
}

// TestLastStat: a reply that has not what was asked for is an error.
func TestLastStat(t *testing.T) {
	whole := zk.MultiResponse{Stat: &zk.Stat{}}
	for _, r := range [][]zk.MultiResponse{nil, {whole}, {whole, {}}, {whole, whole, whole}} {
		stat, err := lastStat(r, 2)
		assert.True(t, err != nil && stat == nil, "%+v: %v", r, stat)
	}
	stat, err := lastStat([]zk.MultiResponse{{}, whole}, 2)
	assert.True(t, err == nil && stat != nil, "%v %v", stat, err)
}
