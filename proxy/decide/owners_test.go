package decide

import (
	"fmt"
	"testing"

	"idproxy/proxy/relay"
)

// What a session knows of whose tables are has a bound.
func TestOwnersAreBounded(t *testing.T) {
	s := relay.State{Unseen: true}
	for i := range 3 * relay.MaxTables {
		s.NoteTable(fmt.Sprint(i), false)
	}
	if _, known := s.Temporary[fmt.Sprint(3*relay.MaxTables-1)]; !known || len(s.Temporary) > relay.MaxTables {
		t.Errorf("%d tables are known", len(s.Temporary))
	}
}
