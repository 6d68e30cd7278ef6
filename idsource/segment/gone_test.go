package segment

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
)

// silentStore is a store that answers nothing.
type silentStore struct{ idsource.SegmentStore }

// Position implements idsource.SegmentStore.
func (silentStore) Position(ctx context.Context, _ string) (idsource.Position, error) {
	<-ctx.Done()
	return idsource.Position{}, ctx.Err()
}

// TestClientGone: a client that leaves takes no time from those behind it.
func TestClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 2 * time.Second
		s, err := New(Config{Name: "ids", Store: silentStore{}, Wait: func() time.Duration { return wait }})
		if err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithTimeout(t.Context(), wait/4)
		defer cancel()
		if err := s.Admit(gone, "t.id", 5); err == nil {
			t.Error("a column was admitted by nobody")
		}
		time.Sleep(10 * wait)
		began := time.Now()
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				if err := s.Admit(t.Context(), "t.id", 5); !errors.Is(err, idsource.StoreDown) || time.Since(began) != wait {
					t.Errorf("a later call: %v after %v", err, time.Since(began))
				}
			})
		}
		calls.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
