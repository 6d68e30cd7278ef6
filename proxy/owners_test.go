package proxy

import (
	"fmt"
	"testing"
)

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
