package proxy

import (
	"testing"
	"time"
)

// What the server says of a table while DDL is on its way is not kept.
func TestFactsOfAnOlderTableAreDropped(t *testing.T) {
	tables := newTables()
	asked := tables.count()
	tables.put("a", testFacts(asked))
	if tables.get([]byte("a")) == nil {
		t.Error("facts are not kept")
	}
	tables.forget()
	tables.put("a", testFacts(asked))
	if tables.get([]byte("a")) != nil {
		t.Error("facts asked for before DDL are kept behind it")
	}
}

// A session in which a routine has run may see a temporary table: what it is
// told stays with it.
func TestFactsOfASessionStayWithIt(t *testing.T) {
	tables := newTables()
	one, other := decider{tables: tables}, decider{tables: tables}
	one.keep("a", testFacts(tables.count()), true)
	if tables.get([]byte("a")) != nil || other.own["a"] != nil || !tables.current(one.own["a"]) {
		t.Error("facts of one session are not its own")
	}
	tables.forget()
	if tables.current(one.own["a"]) {
		t.Error("a session's own facts survive DDL")
	}
	for i := range 3 * maxOwn {
		one.keep(string(rune('b'+i)), testFacts(tables.count()), true)
	}
	if len(one.own) > maxOwn {
		t.Errorf("a session keeps facts of %d tables", len(one.own))
	}
}

func testFacts(changes uint64) *facts { return &facts{at: time.Now(), changes: changes} }
