package decide

import (
	"fmt"
	"testing"

	"idproxy/proxy/protocol"
)

// What a session knows of whose tables are has a bound.
func TestOwnersAreBounded(t *testing.T) {
	s := protocol.Vars{Unseen: true}
	for i := range 3 * protocol.MaxTables {
		s.NoteTable(fmt.Sprint(i), false)
	}
	if _, known := s.Temporary[fmt.Sprint(3*protocol.MaxTables-1)]; !known || len(s.Temporary) > protocol.MaxTables {
		t.Errorf("%d tables are known", len(s.Temporary))
	}
}
