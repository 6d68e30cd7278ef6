package etcd

import (
	"context"
	"sync"
	"testing"
	"time"

	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

func TestNotes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	one, other := newStore(t, s), newStore(t, s)
	sourcetest.Notes(t, one.Notes(), other.Notes())

	// A member that was away: who watches is told why nothing is heard, and hears again.
	ctx, cancel := context.WithCancel(t.Context())
	told, failed := make(chan map[string]string, 100), make(chan error, 100)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		other.Notes().Watch(ctx, func(all map[string]string) { told <- all }, func(err error) {
			select {
			case failed <- err:
			default: // enough
			}
		})
	})
	<-told
	again(t, s, func() error {
		select {
		case <-failed:
		case <-time.After(2 * time.Minute): // the watch ends after 10 s at the latest
			t.Error("nobody says that the member is away")
		}
		return nil
	})
	assert.Must(t, one.Notes().Write(t.Context(), "back", "1"))
	for limit := time.After(2 * time.Minute); ; {
		select {
		case all := <-told:
			if all["back"] == "1" {
				return
			}
		case <-limit:
			t.Fatal("nothing is heard")
		}
	}
}
