package load

import (
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/width"
)

// TestSmallBesideLarge has eight sessions read large results, one after the other, and a ninth run
// small statements all the while. It says how long those take, directly and over each engine. How
// long is not asserted: that none of them waits for a large result is.
func TestSmallBesideLarge(t *testing.T) {
	const (
		readers = 8
		results = 2
		fewest  = 20 // small statements while all of that is read
	)
	s := harness.MariaDB(t)
	name := harness.Database(t, s)
	large := fmt.Sprintf("SELECT REPEAT('x', 1048576) FROM seq_1_to_%d", width.Of(16, 64))
	for _, way := range []string{"", "loops", "goroutines"} {
		addr := ""
		if way != "" {
			addr = harness.Start(t, harness.Spec{Plain: true, Config: fmt.Sprintf(
				"listeners:\n  - {name: a, listen: \"127.0.0.1:0\", upstream: %q}\nengine: %s\n", s.Addr, way)}).Addr("a")
		}
		pool := harness.Open(t, s.Config(name), addr)
		pool.SetMaxIdleConns(readers + 1)
		var reading sync.WaitGroup
		for range readers {
			reading.Go(func() {
				for range results {
					assert.NoError(t, readAll(pool, large))
				}
			})
		}
		over := make(chan struct{})
		go func() {
			reading.Wait()
			close(over)
		}()
		took := smallOnes(t, pool, over)
		if len(took) < fewest {
			t.Errorf("%q: %d small statements while %d large results were read, want %d at least", way, len(took), readers*results, fewest)
			continue
		}
		slices.Sort(took)
		at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))].Round(time.Microsecond) }
		t.Logf("%q: %d small statements, p50 %v, p99 %v, max %v", way, len(took), at(0.5), at(0.99), at(1))
	}
}

// readAll reads a result to its end and keeps none of it.
func readAll(db *sql.DB, query string) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	var cell sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&cell); err != nil {
			return err
		}
	}
	return rows.Err()
}

// smallOnes runs small statements until over is closed, and returns how long each took.
func smallOnes(t *testing.T, db *sql.DB, over <-chan struct{}) (took []time.Duration) {
	for {
		select {
		case <-over:
			return took
		default:
		}
		began := time.Now()
		if err := db.QueryRow("SELECT 1").Scan(new(int)); err != nil {
			t.Error(err)
			<-over
			return took
		}
		took = append(took, time.Since(began))
	}
}
