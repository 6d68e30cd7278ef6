package ids

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"idproxy/idsource/scramble"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

const (
	secret      = "00112233445566778899aabbccddeeff"
	otherSecret = "ffeeddccbbaa99887766554433221100"
)

// scrambled is a Scramble as a configuration has it.
func scrambled(t *testing.T, secret string, bits int) *scramble.Scramble {
	t.Helper()
	key := assert.Of(hex.DecodeString(secret)).Must(t)
	return assert.Of(scramble.New(key, bits)).Must(t)
}

// TestScrambled fills a table from a scrambled segment: by INSERTs of several rows, from a query and
// from a file through two proxies, and beside programs that ask over Redis. No id comes twice, all
// have their bits, and their numbers are those of one series.
func TestScrambled(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	store := harness.Database(t, s)
	name, direct := harness.Tables(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE q (a INT)", "INSERT INTO q SELECT seq FROM seq_1_to_50",
		"INSERT INTO t (id) VALUES (7000)") // of before: it is no id of 53 bits
	config := harness.OneListener(s.Addr) + fmt.Sprintf(`
stores:    {main: {mysql: {dsn: %q}}}
sources:   {order_id: {segment: {store: main, key: orders, step: 50, max_step: 50, scramble: {key: %s, bits: 53}}}}
limits:    {id_wait: 1m}
rules:     [{table: "*.t", column: id, source: order_id}]
ids:       {redis: {listen: "127.0.0.1:0"}, http: {listen: "127.0.0.1:0"}}
`, harness.StoreDSN(s, store), secret)
	proxies := []*harness.Proxy{harness.StartProxy(t, config), harness.StartProxy(t, config)}
	by := scrambled(t, secret, 53)
	db := harness.Open(t, s.Config(name), proxies[0].Addr("a"))
	id, err := harness.MustExec(t, db, "INSERT INTO t (a) VALUES (1)").LastInsertId()
	assert.True(t, err == nil && harness.Count(t, direct, fmt.Sprintf("SELECT COUNT(*) FROM t WHERE id = %d", id)) == 1 && id>>52 == 1, "insert id %d, %v", id, err)
	var mu sync.Mutex
	given := map[int64]bool{}
	var wg sync.WaitGroup
	for _, p := range proxies {
		db, ids := harness.Open(t, s.Config(name), p.Addr("a")), redisTo(t, p, "", "")
		wg.Go(func() {
			for n := range 40 {
				assert.Of(db.Exec("INSERT INTO t (a) VALUES (1), (2), (3)")).NoError(t)
				assert.Of(db.Exec("INSERT INTO t (a) SELECT a FROM q WHERE a <= 5")).NoError(t)
				if n == 0 {
					assert.Of(db.Exec("INSERT INTO t (a) SELECT a FROM q")).NoError(t)
				}
			}
		})
		wg.Go(func() {
			for range 40 {
				list, err := ids.Do(t.Context(), "IDS.NEXT", "orders", 5).Int64Slice()
				one, err2 := ids.Incr(t.Context(), "order_id").Result()
				leaf, err3 := strconv.ParseInt(over(t, http.MethodGet, "http://"+httpOf(t, p)+"/api/segment/get/orders", ""), 10, 64)
				assert.NoError(t, errors.Join(err, err2, err3))
				mu.Lock()
				for _, id := range append(list, one, leaf) {
					assert.True(t, !given[id], "id %d twice", id)
					given[id] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	assert.Equal(t, "rows", harness.Count(t, direct, "SELECT COUNT(*) FROM t"), 2+2*(40*8+50))
	assert.Equal(t, "ids to programs", len(given), 2*40*7)
	for _, id := range rowIDs(t, direct, "SELECT id FROM t WHERE id <> 7000") {
		assert.True(t, !given[id], "id %d of a row was given to a program, too", id)
		given[id] = true
	}
	for id := range given {
		n, ok := by.Number(uint64(id))
		assert.True(t, ok && n <= 10_000, "id %d is of number %d, %v", id, n, ok)
	}
	assert.Fails(t, "INCRBY", redisTo(t, proxies[0], "", "").IncrBy(t.Context(), "orders", 3).Err(), "no 3 consecutive ids")
	assert.Fails(t, "a program has the numbers themselves", redisTo(t, proxies[0], "", "").Incr(t.Context(), "orders"+by.Name()).Err(), "")
}

// TestScrambledRestored puts an older copy of the store back. MAX(id) tells nothing then; that the
// table holds ids which the series has yet to give does. The control is a store that was not put
// back.
func TestScrambledRestored(t *testing.T) {
	t.Parallel()
	for _, restored := range []bool{true, false} {
		c := newScrambled(t, "")
		assert.Must(t, c.insert(t, 15))
		restore := c.backup(t)
		assert.Must(t, c.insert(t, 45))
		if !restored {
			assert.NoError(t, c.insert(t, 5))
			continue
		}
		restore()
		harness.WantError(t, c.insert(t, 1), 1467, "order_id", "which is number", "has not come to it", "idproxy source set order_id NUMBER")
		c.set(t, "100")
		assert.NoError(t, c.insert(t, 10))
		assert.Equal(t, "rows", harness.Count(t, c.direct, "SELECT COUNT(*) FROM t"), 70)
	}
}

// newScrambled is newStoreCase with scrambled ids.
func newScrambled(t *testing.T, bits string) *storeCase {
	t.Helper()
	c := newStoreCase(t, "mysql")
	c.spec.Config = strings.Replace(c.spec.Config, "step: 10,", "scramble: {key: "+secret+bits+"}, step: 10,", 1)
	return c
}

// set is idproxy source set.
func (c *storeCase) set(t *testing.T, next string) {
	t.Helper()
	out, err := harness.Command(t, "source", "set", "order_id", next, "--config", harness.WriteConfig(t, c.spec.Config))
	assert.Must(t, err, out)
}

// TestScrambledEmptied: a store that lost the series is refused until someone says above which
// number it goes on.
func TestScrambledEmptied(t *testing.T) {
	t.Parallel()
	c := newScrambled(t, ", bits: 53")
	assert.Must(t, c.insert(t, 15))
	harness.MustExec(t, c.direct, "DELETE FROM "+c.store+".idproxy_segment")
	harness.WantError(t, c.insert(t, 1), 1467, "order_id", "may be an id of this series", "idproxy source set order_id NUMBER")
	c.set(t, "1000")
	assert.NoError(t, c.insert(t, 5))
	assert.Equal(t, "rows", harness.Count(t, c.direct, "SELECT COUNT(*) FROM t"), 20)
}

// TestScrambledSecret: a series is not given out under another secret. More bits make another
// series, whose ids lie above.
func TestScrambledSecret(t *testing.T) {
	t.Parallel()
	c := newStoreCase(t, "mysql")
	plain := c.spec.Config
	with := func(secret string, bits int) {
		c.spec.Config = strings.Replace(plain, "step: 10,", "scramble: {key: "+secret+", bits: "+strconv.Itoa(bits)+"}, step: 10,", 1)
	}
	assert.Must(t, c.insert(t, 5)) // ids that are the numbers, of before
	with(secret, 53)
	assert.Must(t, c.insert(t, 5))
	with(otherSecret, 53)
	harness.WantError(t, c.insert(t, 1), 1467, "another scramble.key", "choose more bits")
	with(otherSecret, 54)
	assert.NoError(t, c.insert(t, 5))
	with(secret, 53)
	assert.NoError(t, c.insert(t, 5))
	c.spec.Config = plain // above all that is there
	harness.WantError(t, c.insert(t, 5), 1467, "holds", "already")
}

// TestScrambledExplicit: an id that an application brought, and that the series comes to later, is
// refused by the key of the table.
func TestScrambledExplicit(t *testing.T) {
	t.Parallel()
	c := newScrambled(t, ", bits: 53")
	assert.Must(t, c.insert(t, 1))
	id := []uint64{400} // beyond what Admit looks for, also behind ranges that were not given back
	scrambled(t, secret, 53).IDs(id)
	harness.MustExec(t, c.direct, fmt.Sprintf("INSERT INTO t (id) VALUES (%d)", id[0]))
	harness.WantError(t, c.insert(t, 410), 1062)
}

// TestScrambledSkippedRows: the last insert id of a statement of which some rows were skipped is that of its
// own row, although ids of others lie between its ids.
func TestScrambledSkippedRows(t *testing.T) {
	t.Parallel()
	c := newScrambled(t, ", bits: 53")
	harness.MustExec(t, c.direct, "ALTER TABLE t ADD UNIQUE (a)")
	p := harness.Start(t, c.spec)
	config := c.server.Config(c.name)
	config.AllowAllFiles = true
	db := harness.Open(t, config, p.Addr("a"))
	db.SetMaxOpenConns(1) // LAST_INSERT_ID() is that of a session
	harness.MustExec(t, db, "INSERT INTO t (a) SELECT seq FROM seq_1_to_300")
	file := filepath.Join(t.TempDir(), "rows")
	for i, query := range []string{
		"INSERT IGNORE INTO t (a) VALUES (1), (1000), (2)",
		"INSERT IGNORE INTO t (a) VALUES (1001), (3)",
		"INSERT IGNORE INTO t (a) SELECT seq FROM seq_290_to_310 WHERE seq < 301 OR seq = 310",
		"LOAD DATA LOCAL INFILE '" + file + "' IGNORE INTO TABLE t (a)",
	} {
		assert.Must(t, os.WriteFile(file, []byte("1\n2\n3000\n4\n"), 0o600))
		before := harness.Count(t, c.direct, "SELECT COUNT(*) FROM t")
		harness.MustExec(t, db, query)
		id := harness.Count(t, db, "SELECT LAST_INSERT_ID()")
		want := harness.Count(t, c.direct, "SELECT id FROM t WHERE a = "+[]string{"1000", "1001", "310", "3000"}[i])
		got := harness.Count(t, c.direct, "SELECT COUNT(*) FROM t")
		assert.True(t, id == want && got == before+1, "%s: LAST_INSERT_ID() %d, want %d; %d rows came", query, id, want, got-before)
	}
}
