package segment

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/integration/assert"
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
		s := assert.Of(New(Config{Name: "ids", Store: silentStore{}, Wait: func() time.Duration { return wait }})).Must(t)
		gone, cancel := context.WithTimeout(t.Context(), wait/4)
		defer cancel()
		assert.Fails(t, "a column was admitted by nobody", s.Admit(gone, "t.id", 5), "")
		time.Sleep(10 * wait)
		began := time.Now()
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				err := s.Admit(t.Context(), "t.id", 5)
				assert.True(t, errors.Is(err, idsource.StoreDown) && time.Since(began) == wait, "a later call: %v after %v", err, time.Since(began))
			})
		}
		calls.Wait()
		assert.NoError(t, s.Close(t.Context()))
	})
}
