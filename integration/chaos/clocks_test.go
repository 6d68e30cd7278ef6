package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

// movedClock is the clock of a store that loses nothing and has a pool of worker numbers.
type movedClock struct {
	*servers.Clock
	server string // whose it is
	source string // whose pool is there
	pool   int    // how many numbers that has
	now    func() (time.Time, error)

	ahead, most time.Duration // of the host's; most is the furthest it has been
}

const (
	// far is how far back a clock is set that makes numbers useless for longer than a test lasts.
	far = 5 * time.Second
	// poolMost is how many numbers a pool is given.
	poolMost = 1000
	// band is how far the clocks of the two Redis are from each other at most: a server of a pool
	// may be a second behind the one that it replaces.
	band = 900 * time.Millisecond
)

func newClock(t *testing.T) *servers.Clock {
	t.Helper()
	c := assert.Of(servers.NewClock()).Must(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (c *movedClock) set(ahead time.Duration) {
	c.ahead, c.most = ahead, max(c.most, ahead)
	c.Ahead(ahead)
}

// catchUp sets the clock to where all times lie in the past that it has shown, and looks whether
// the store follows.
func (c *movedClock) catchUp(t testing.TB) {
	t.Helper()
	c.set(c.most + time.Second)
	now, err := c.now()
	off := time.Until(now) - c.ahead
	assert.True(t, err == nil && off.Abs() <= 30*time.Second, "the clock of %s is ahead by %v, and the server says that it is %v (%v)", c.server, c.ahead, now, err)
}

// databaseTime and redisTime are what it is by a server's clock.
func databaseTime(s *servers.Server) (time.Time, error) {
	c, err := mysql.NewConnector(s.Config(""))
	if err != nil {
		return time.Time{}, err
	}
	db := sql.OpenDB(c)
	defer db.Close() //nolint:errcheck // it was asked
	var seconds int64
	err = db.QueryRowContext(context.Background(), "SELECT UNIX_TIMESTAMP()").Scan(&seconds)
	return time.Unix(seconds, 0), err
}

func redisTime(r *servers.Redis) (time.Time, error) {
	answer, err := r.Do("EVAL", `"return(redis.call('TIME')[1])"`, "0")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(answer, 10, 64)
	return time.Unix(seconds, 0), err
}

// storeClock moves the clock of a store: by a little, which stays, or by a lot, for a while or
// until it is moved again.
func (n *nemesis) storeClock(c *movedClock) {
	if n.random.IntN(4) == 0 || c.pool >= poolMost {
		n.setStore(c, c.most)
		return
	}
	by := pick(n, 5*time.Millisecond, 100*time.Millisecond, time.Second, 3*time.Second, 10*time.Second, time.Minute, time.Hour)
	before := c.ahead
	n.setStore(c, c.ahead+by*pick(n, time.Duration(1), -1))
	if by < time.Minute {
		return
	}
	switch n.random.IntN(3) {
	case 0: // where it was, behind numbers that were used meanwhile
		n.in(n.upTo(4*time.Second), func() { n.setStore(c, before) })
		n.in(4*time.Second+n.upTo(4*time.Second), func() { n.setStore(c, c.most) })
	case 1: // where all numbers can be used
		n.in(n.upTo(6*time.Second), func() { n.setStore(c, c.most) })
	}
}

// setStore sets the clock of a store. Numbers that were used with one that was far ahead are of no
// use: there are others soon.
func (n *nemesis) setStore(c *movedClock, ahead time.Duration) {
	n.did("clock of "+c.server, "from %v to %v", c.ahead, ahead)
	back := c.ahead - ahead
	c.set(ahead)
	if back > far && c.pool < poolMost {
		c.pool += numbers
		n.in(n.upTo(2*time.Second), func() { n.moreNumbers(c) })
	}
}

// moreNumbers adds to a pool once its server is there.
func (n *nemesis) moreNumbers(c *movedClock) {
	if !n.started(c.server) {
		n.in(100*time.Millisecond, func() { n.moreNumbers(c) })
		return
	}
	n.addNumbers(n.t, c.source, c.pool)
}

// redisClocks sets the clocks of the two Redis that may replace each other: both ahead for good,
// and apart within the band.
func (n *nemesis) redisClocks() {
	n.base += pick(n, 0, 0, 0, 0, 100*time.Millisecond, time.Second, time.Minute, time.Hour)
	for _, c := range n.apart {
		ahead := n.base + n.upTo(band)
		n.did("clock of redis", "to %v", ahead)
		c.Ahead(ahead)
	}
}

// checkTimes waits until ids follow the clocks of the stores that have their pools.
func (w *world) checkTimes(t testing.TB) {
	t.Helper()
	for _, c := range w.clocks {
		ahead := func() time.Duration {
			id := w.records[c.source].greatest()
			return time.Until(time.UnixMilli(int64(id>>22) + epoch.UnixMilli()))
		}
		what := func() string {
			return fmt.Sprintf("the clock of %s is ahead by %v, ids of %s by %v", c.server, c.ahead, c.source, ahead().Round(time.Second))
		}
		assert.Until(t, "ids follow the clock", func() bool { return ahead() >= c.ahead-30*time.Second }, what)
		t.Log(what())
	}
}

var epoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
