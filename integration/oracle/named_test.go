package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/wireclient"
)

// named is a session on one world of an oracle, for tests that know what each number must be.
type named struct {
	*wireclient.Session
	tb testing.TB
}

// inserted runs an INSERT and returns the insert id of its OK packet.
func (n named) inserted(sql string) uint64 {
	n.tb.Helper()
	return n.Must(n.tb, sql).InsertID
}

// numbers returns the first column of a result.
func (n named) numbers(sql string) []uint64 {
	n.tb.Helper()
	var all []uint64
	for _, row := range n.Must(n.tb, sql).Rows {
		id, ok := wireclient.ParseID(row[0])
		if !ok {
			n.tb.Fatalf("%s: %q is no number", sql, row[0])
		}
		all = append(all, id)
	}
	return all
}

func (n named) want(what string, got, want any) {
	n.tb.Helper()
	assert.True(n.tb, fmt.Sprint(got) == fmt.Sprint(want), "%s: %v, want %v", what, got, want)
}

func (n named) lastID() uint64 {
	n.tb.Helper()
	return n.numbers("SELECT LAST_INSERT_ID()")[0]
}

// TestLastInsertID runs the cases whose numbers are known beforehand natively and through the proxy
// on both kinds of column, with every kind of trigger.
func TestLastInsertID(t *testing.T) {
	tests := []struct {
		name string
		test func(named, *world, trigger)
	}{
		{"batch", insertIDOfBatch},
		{"explicit ids", insertIDOfExplicitIDs},
		{"behind a failure", lastIDBehindFailure},
		{"triggers see ids", triggersSeeIDs},
		{"explicit id between", explicitIDBetween}, // last: it moves native counters far up
	}
	everywhere(t, func(t *testing.T, o *oracle) {
		for _, w := range append([]*world{o.native}, o.worlds...) {
			for _, tt := range tests {
				t.Run(w.column.String()+", "+tt.name, func(t *testing.T) {
					w.reset(t)
					tt.test(named{wireclient.Open(t, w.addr, w.db), t}, w, o.trigger)
				})
			}
		}
	})
}

// insertIDOfBatch is the plain case: n rows get consecutive ids, the OK packet and LAST_INSERT_ID()
// name the first, and what the statement itself reads is the value from before, in each of its rows
// (A). Any trigger makes the server report 0 or the last id instead (B1).
func insertIDOfBatch(n named, _ *world, _ trigger) {
	seed := n.inserted("INSERT INTO t (a) VALUES ('seed')")
	first := n.inserted("INSERT INTO t (a,parent) VALUES ('x', LAST_INSERT_ID()), ('y', @@identity), ('z', (SELECT LAST_INSERT_ID()))")
	n.want("last insert id", n.lastID(), first)
	n.want("ids", n.numbers("SELECT id FROM t WHERE a IN ('x','y','z') ORDER BY a"), []uint64{first, first + 1, first + 2})
	n.want("parents", n.numbers("SELECT parent FROM t WHERE a IN ('x','y','z')"), []uint64{seed, seed, seed})
	one := n.inserted("REPLACE INTO mid VALUES ('x', DEFAULT, LAST_INSERT_ID(), NULL, NULL, NULL, NULL)")
	n.want("id", n.numbers("SELECT id FROM mid WHERE a = 'x'"), []uint64{one})
	n.want("parent", n.numbers("SELECT parent FROM mid WHERE a = 'x'"), []uint64{first})
	assert.True(n.tb, !slices.Contains([]uint64{0, first, first + 2}, one) && seed != 0 && first != seed, "insert ids %d, %d, %d", seed, first, one)
}

// insertIDOfExplicitIDs: the OK packet shows the id of the last row, LAST_INSERT_ID() stays (B3).
func insertIDOfExplicitIDs(n named, _ *world, _ trigger) {
	seed := n.inserted("INSERT INTO t (a) VALUES ('seed')")
	n.want("one", n.inserted("INSERT INTO t (id,a) VALUES (500,'x')"), 500)
	n.want("two", n.inserted("INSERT INTO t (id,a) VALUES (501,'x'), ('503','y')"), 503)
	n.want("below zero", n.inserted("INSERT INTO t (id,a) VALUES (-5,'x')"), strconv.FormatUint(1<<64-5, 10))
	n.want("replaced", n.inserted("REPLACE INTO t (id,a) VALUES (500,'y')"), 500)
	n.want("last insert id", n.lastID(), seed)
	mixed := n.inserted("INSERT INTO t (id,a) VALUES (600,'m1'), (NULL,'m2'), (700,'m3')")
	n.want("mixed", n.numbers("SELECT id FROM t WHERE a = 'm2'"), []uint64{mixed})
	n.want("last insert id behind mixed rows", n.lastID(), mixed)
}

// lastIDBehindFailure is the idiom that a wrong value breaks without a word: a child that fails is
// tried again, and still has to find its parent (B5).
func lastIDBehindFailure(n named, w *world, _ trigger) {
	parent := n.inserted("INSERT INTO t (a) VALUES ('parent')")
	n.want("error", n.Fails(n.tb, "INSERT INTO t (a,u,parent) VALUES ('child', 1, LAST_INSERT_ID())").Code, 1062)
	n.inserted("INSERT INTO t (a,u,parent) VALUES ('child', 7, LAST_INSERT_ID())")
	n.want("parent of the child", n.numbers("SELECT parent FROM t WHERE a = 'child'"), []uint64{parent})
}

// explicitIDBetween is a deviation: an explicit id above the counter moves the native counter
// within the statement, where a source keeps the generated ids consecutive (B4). Its uniqueness
// matters more than its order.
func explicitIDBetween(n named, w *world, _ trigger) {
	const high = 900_000_000_000
	first := n.inserted(fmt.Sprintf("INSERT INTO t (id,a) VALUES (NULL,'one'), (%d,'two'), (NULL,'three')", int64(high)))
	third := uint64(high + 1)
	if w.column != native {
		third = first + 1
	}
	n.want("ids", n.numbers("SELECT id FROM t WHERE a <> 'fixed' ORDER BY FIELD(a,'one','two','three')"), []uint64{first, high, third})
	n.want("last insert id", n.lastID(), first)
}

// triggersSeeIDs is a deviation: natively a BEFORE trigger sees 0 in NEW.id and every trigger sees
// the LAST_INSERT_ID() from before; behind the proxy they see the row's id, and from the last
// generated row on the statement's first (B2).
func triggersSeeIDs(n named, w *world, tr trigger) {
	when := map[trigger]string{noTrigger: "BEFORE", beforeTrigger: "BEFORE", afterTrigger: "AFTER"}[tr]
	w.observer.Must(n.tb, "DROP TRIGGER IF EXISTS t_before", "DROP TRIGGER IF EXISTS t_after",
		"CREATE TABLE seen (k INT AUTO_INCREMENT PRIMARY KEY, id BIGINT, last BIGINT)",
		"CREATE TRIGGER sees "+when+" INSERT ON t FOR EACH ROW INSERT INTO seen (id, last) VALUES (NEW.id, LAST_INSERT_ID())")
	seed := n.inserted("INSERT INTO tail (a) VALUES ('seed')")
	first := n.inserted("INSERT INTO t (a) VALUES ('x'), ('y')")
	ids, last := []uint64{first, first + 1}, []uint64{seed, seed}
	switch {
	case w.column != native:
		last[1] = first
	case when == "BEFORE":
		ids = []uint64{0, 0}
	}
	n.want("NEW.id in "+when, n.numbers("SELECT id FROM seen ORDER BY k"), ids)
	n.want("LAST_INSERT_ID() in "+when, n.numbers("SELECT last FROM seen ORDER BY k"), last)
	n.want("last insert id", n.lastID(), first)
}
