package ordered

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/integration/assert"
)

// receiver records the ids of all clients in one place. The order is broken where a request that began
// after another one was answered got a smaller id.
type receiver struct {
	acknowledged atomic.Int64 // the greatest id of all answers
	ids          atomic.Int64
	calls        atomic.Int64
	failed       atomic.Int64
	wrong, twice atomic.Int64
	example      atomic.Pointer[string]

	mu   sync.Mutex
	seen map[int64]uint64 // by id/64

	event    atomic.Pointer[event]
	answered atomic.Int64 // when the last answer came, since began
	began    time.Time
	patience time.Duration // of clients, with an answer
}

// event is something that was done to who gives ids. It lasts until a request that began behind it is
// answered.
type event struct {
	at     time.Time
	took   atomic.Int64
	silent atomic.Int64 // the longest time without an answer since
}

// paused is the longest time without an answer since the event.
func (e *event) paused() time.Duration { return time.Duration(e.silent.Load()) }

func newReceiver() *receiver {
	return &receiver{seen: map[int64]uint64{}, patience: 30 * time.Second, began: time.Now()}
}

// happens notes an event.
func (r *receiver) happens() *event {
	e := &event{at: time.Now()}
	r.event.Store(e)
	return e
}

// ask makes one request and records its answer.
func (r *receiver) ask(ctx context.Context, c *redis.Client, n int64) error {
	before, began := r.acknowledged.Load(), time.Now()
	last, err := c.IncrBy(ctx, "orders", n).Result()
	if err != nil {
		r.failed.Add(1)
		return err
	}
	now := time.Since(r.began)
	if e, last := r.event.Load(), time.Duration(r.answered.Swap(int64(now))); e != nil {
		for pause := int64(now - max(last, e.at.Sub(r.began))); ; {
			if old := e.silent.Load(); old >= pause || e.silent.CompareAndSwap(old, pause) {
				break
			}
		}
		if began.After(e.at) {
			e.took.CompareAndSwap(0, int64(time.Since(e.at)))
		}
	}
	first := last - n + 1
	if first <= before {
		r.wrong.Add(1)
		text := fmt.Sprintf("ids %d to %d for a request that began after %d had been received", first, last, before)
		r.example.CompareAndSwap(nil, &text)
	}
	for {
		old := r.acknowledged.Load()
		if old >= last || r.acknowledged.CompareAndSwap(old, last) {
			break
		}
	}
	r.calls.Add(1)
	r.ids.Add(n)
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := first; id <= last; id++ {
		bit := uint64(1) << (id & 63)
		if r.seen[id>>6]&bit != 0 {
			r.twice.Add(1)
		}
		r.seen[id>>6] |= bit
	}
	return nil
}

// load has clients ask for ids at all addresses until ctx ends. Each asks again after an error, also
// somewhere else.
func (r *receiver) load(ctx context.Context, addrs []string, clients int, most int64) (wait func()) {
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 11))
			var all []*redis.Client
			for _, addr := range addrs {
				c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: r.patience, DialTimeout: time.Second, PoolSize: 1})
				defer c.Close() //nolint:errcheck // it may have been cut
				all = append(all, c)
			}
			at := i
			for ctx.Err() == nil {
				if err := r.ask(ctx, all[at%len(all)], 1+rnd.Int64N(most)); err != nil || rnd.IntN(50) == 0 {
					at++
				}
				if rnd.IntN(4) == 0 {
					time.Sleep(time.Duration(rnd.IntN(2000)) * time.Microsecond)
				}
			}
		})
	}
	return wg.Wait
}

// report says what came of it, and fails where the order was broken.
func (r *receiver) report(t *testing.T) {
	t.Helper()
	t.Logf("%d ids in %d answers, %d requests failed, %d out of order, %d ids twice", r.ids.Load(), r.calls.Load(), r.failed.Load(), r.wrong.Load(), r.twice.Load())
	assert.True(t, r.wrong.Load() <= 0 && r.twice.Load() <= 0, "the order is broken %d times, %d ids came twice", r.wrong.Load(), r.twice.Load())
	if text := r.example.Load(); text != nil {
		t.Error(*text)
	}
	assert.True(t, r.ids.Load() != 0, "no ids came")
}

// times prints how long it took until ids came again.
func times(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	t.Logf("ids again after %s: p50 %v, max %v of %d", what, took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), len(took))
}
