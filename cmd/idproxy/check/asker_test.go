package check

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/integration/assert"
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
			assert.True(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
		}
		assert.NoError(t, other.ask(t.Context(), func(ctx context.Context) error { return ctx.Err() }), "another store")
		assert.Equal(t, "it took", time.Since(began), store.AskTime)
	})
}
