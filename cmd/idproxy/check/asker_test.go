package check

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/cmd/idproxy/store"
)

// TestCheckSilentStore: a store that does not answer costs its time once, and takes none of what
// others have.
func TestCheckSilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, other storeAsker
		began := time.Now()
		for range 3 {
			err := c.ask(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				return fmt.Errorf("etcd store: %w", ctx.Err())
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if err := other.ask(t.Context(), func(ctx context.Context) error { return ctx.Err() }); err != nil {
			t.Errorf("another store: %v", err)
		}
		if took := time.Since(began); took != store.AskTime {
			t.Errorf("it took %v, want %v", took, store.AskTime)
		}
	})
}
