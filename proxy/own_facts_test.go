package proxy

import (
	"fmt"
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

// What a session knows of whose tables are has a bound.
func TestOwnersAreBounded(t *testing.T) {
	s := state{unseen: true}
	for i := range 3 * maxTables {
		s.noteTable(fmt.Sprint(i), false)
	}
	if _, known := s.temporary[fmt.Sprint(3*maxTables-1)]; !known || len(s.temporary) > maxTables {
		t.Errorf("%d tables are known", len(s.temporary))
	}
}

func testFacts(changes uint64) *facts { return &facts{at: time.Now(), changes: changes} }
