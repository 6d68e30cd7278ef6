package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// outage is for how long a store is away at least, and what is inserted meanwhile.
type outage struct {
	lasts time.Duration
	rate  int // ids per second
	lease string
	gap   time.Duration // that the lease survives
}

const (
	inserters = 4
	together  = 100 // rows of an INSERT
)

// insert is how one ended.
type insert struct {
	began, at time.Time
	err       error
}

func well(i insert) bool  { return i.err == nil }
func badly(i insert) bool { return i.err != nil }

// outageConfiguration has one source, whose store is reached through a relay.
const outageConfiguration = `
listeners: [{listen: "unix:%s", upstream: %q}]
stores:    {away: %s}
sources:   {order_id: %s}
rules:     [{table: "*.t", column: id, source: order_id}]
`

// TestOutage takes the store away. While ids are held no INSERT fails; then they fail with error
// 1467 and nothing else, other statements go on, and when the store is back so are INSERTs, without
// a restart.
func TestOutage(t *testing.T) {
	var all sync.WaitGroup // they wait for most of their time
	defer all.Wait()
	o := theOutage
	enough, few := int(o.lasts.Seconds())*o.rate*2, int(o.lasts.Seconds())*o.rate*2/5
	for _, tt := range []struct {
		name, store, source string
		ids                 int           // that are held at least; 0: that is not the measure
		time                time.Duration // for which they last at least
	}{
		{"segment with ids for longer", "mysql", fmt.Sprintf("{segment: {store: away, step: %d, step_policy: fixed, max_step: %[1]d}}", enough), enough, o.lasts},
		{"segment with ids for less", "mysql", fmt.Sprintf("{segment: {store: away, step: %d, step_policy: fixed, max_step: %[1]d}}", few), few, 0},
		{"leased number", "redis", "{snowflake: {workers: away, " + o.lease + "}}", 0, o.gap},
	} {
		suffers := func(t *testing.T) {
			s := harness.MariaDB(t)
			name, _ := harness.Tables(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
			var store string
			var n *node
			if tt.store == "redis" {
				r := assert.Of(servers.StartRedis(t.Context())).Must(t)
				t.Cleanup(func() { _ = r.Stop() })
				n = newNode(t, 0, map[string]string{"away": r.Addr})
				store = fmt.Sprintf("{redis: {addrs: [%q]}}", n.relays["away"].addr)
			} else {
				n = newNode(t, 0, map[string]string{"away": s.Addr})
				c := s.Config(harness.Database(t, s))
				c.Addr = n.relays["away"].addr
				store = fmt.Sprintf("{mysql: {dsn: %q}}", c.FormatDSN())
			}
			n.configure(t, fmt.Sprintf(outageConfiguration, n.sqlSocket(), s.Addr, store, tt.source))
			if tt.store == "redis" {
				n.command(t, "worker", "--config", n.config(), "add", "4", "--new-pool")
			}
			if tt.store == "mysql" {
				n.command(t, "source", "--config", n.config(), "create", "--all", "--force")
			}
			n.start(t)
			pid := n.proc.PID()
			all, away, back := suffer(t, n, name, o, tt.time < o.lasts)
			var ids, late int
			var firstFailure, lastFailure time.Time
			for _, one := range all {
				e, isServers := errors.AsType[*mysql.MySQLError](one.err)
				switch {
				case one.err == nil && one.at.After(away) && firstFailure.IsZero():
					ids += together
				case one.err == nil:
				case !isServers || e.Number != 1467:
					t.Errorf("an INSERT failed with %v", one.err)
				case one.at.Before(away):
					t.Errorf("before the outage: %v", one.err)
				default:
					if firstFailure.IsZero() {
						firstFailure = one.at
					}
					lastFailure = one.at
					late++
				}
			}
			t.Logf("%d INSERTs, %d of them failed, from %v of the outage on until %v after its end; %d ids came before",
				len(all), late, since(firstFailure, away), since(lastFailure, back), ids)
			failed := !firstFailure.IsZero()
			switch {
			case tt.ids > 0 && failed && ids < tt.ids*3/4:
				t.Errorf("INSERTs failed after %d ids, at least %d were held", ids, tt.ids)
			case tt.ids == 0 && failed && firstFailure.Sub(away) < tt.time:
				t.Errorf("INSERTs failed after %v, the lease lasts for %v", firstFailure.Sub(away), tt.time)
			case tt.time >= o.lasts && failed:
				t.Errorf("INSERTs failed although enough ids were held")
			case tt.time < o.lasts && !failed:
				t.Errorf("no INSERT failed: the outage was too short to say anything")
			}
			assert.True(t, n.proc.PID() == pid, "the process was started again")
			n.stop(t)
		}
		all.Go(func() { t.Run(tt.name, suffers) })
	}
}

func since(at, from time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return at.Sub(from).Round(time.Millisecond)
}

// suffer inserts before, in and after an outage, until INSERTs have succeeded again for two
// seconds. With fails the outage lasts until one has failed. It returns them in their order.
func suffer(t *testing.T, n *node, database string, o outage, fails bool) (all []insert, away, back time.Time) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var mu sync.Mutex
	var load sync.WaitGroup
	ended := func(how func(insert) bool) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, one := range all {
			if how(one) {
				n++
			}
		}
		return n
	}
	db := openSocket(t, n, database)
	defer db.Close() //nolint:errcheck // what matters was answered
	text := "INSERT INTO t (a) VALUES (1)" + strings.Repeat(",(1)", together-1)
	assert.Until(t, "the first INSERT", func() bool { _, err := db.Exec(text); return err == nil }, n.tail)
	for range inserters {
		load.Go(func() {
			next := time.Now()
			for ctx.Err() == nil {
				began := time.Now()
				_, err := db.Exec(text)
				mu.Lock()
				all = append(all, insert{began, time.Now(), err})
				mu.Unlock()
				next = next.Add(time.Second * inserters * together / time.Duration(o.rate))
				time.Sleep(time.Until(next))
			}
		})
	}
	load.Go(func() { // what needs no id
		for ctx.Err() == nil {
			assert.Of(db.Exec("UPDATE t SET a = 2 WHERE id = 0")).NoError(t, "UPDATE")
			time.Sleep(20 * time.Millisecond)
		}
	})
	more := func(before int) func() bool { return func() bool { return ended(well) > before } }
	assert.Until(t, "20 INSERTs", more(20), n.tail)
	away = time.Now()
	n.relays["away"].set(hold)
	time.Sleep(o.lasts)
	if fails {
		assert.Until(t, "an INSERT fails", func() bool { return ended(badly) > 0 }, n.tail)
	}
	n.relays["away"].set(refuse)
	n.relays["away"].set(pass)
	back = time.Now()
	before := ended(well)
	assert.Until(t, "INSERTs again", more(before), n.tail)
	served := time.Now().Add(time.Second) // those that waited have been told by now, or served
	time.Sleep(3 * time.Second)
	before = ended(well)
	assert.Until(t, "INSERTs again", more(before), n.tail)
	end()
	load.Wait()
	for _, one := range all {
		assert.True(t, one.err == nil || !one.began.After(served), "%v after INSERTs succeeded again: %v", one.began.Sub(served), one.err)
	}
	return all, away, back
}

func openSocket(t *testing.T, n *node, database string) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = servers.AppUser, servers.AppPassword, "unix", n.sqlSocket(), database
	c.Logger = &mysql.NopLogger{} // it may not listen yet
	db := sql.OpenDB(assert.Of(mysql.NewConnector(c)).Must(t))
	db.SetMaxIdleConns(inserters + 1)
	return db
}
