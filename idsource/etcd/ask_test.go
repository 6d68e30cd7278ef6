package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"idproxy/integration/assert"
)

// TestAskedAgain has questions be lost, answered late, or answered by members without a leader.
func TestAskedAgain(t *testing.T) {
	broken := errors.New("broken")
	lost := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	at := func(d time.Duration, n int, err error) func(ctx context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(d):
				return n, err
			}
		}
	}
	for _, tt := range []struct {
		name  string
		asks  []func(ctx context.Context) (int, error) // the last one stands for all that follow
		want  int
		err   error
		takes time.Duration
	}{
		{"answered", []func(ctx context.Context) (int, error){at(time.Millisecond, 1, nil)}, 1, nil, time.Millisecond},
		{"lost with a leader", []func(ctx context.Context) (int, error){lost, at(time.Millisecond, 2, nil)}, 2, nil, 201 * time.Millisecond},
		{"two lost", []func(ctx context.Context) (int, error){lost, lost, at(time.Millisecond, 3, nil)}, 3, nil, 226 * time.Millisecond},
		{"a slow cluster", []func(ctx context.Context) (int, error){at(3*time.Second, 1, nil)}, 1, nil, 3 * time.Second},
		{"no leader", []func(ctx context.Context) (int, error){at(0, 0, rpctypes.ErrNoLeader), at(0, 0, rpctypes.ErrNoLeader), at(0, 3, nil)}, 3, nil, 50 * time.Millisecond},
		{"another error", []func(ctx context.Context) (int, error){at(0, 0, broken)}, 0, broken, 0},
		{"none comes", []func(ctx context.Context) (int, error){lost}, 0, context.DeadlineExceeded, 5 * time.Second},
		{"no leader for long", []func(ctx context.Context) (int, error){at(0, 0, rpctypes.ErrNoLeader)}, 0, rpctypes.ErrNoLeader, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				var asked atomic.Int64
				got, err := try(ctx, &Store{beside: askBeside}, func(ctx context.Context) (int, error) {
					n := asked.Add(1)
					return tt.asks[min(int(n), len(tt.asks))-1](ctx)
				})
				took := time.Since(began)
				assert.True(t, got == tt.want && errors.Is(err, tt.err) && took == tt.takes, "%d, %v after %v; want %d, %v after %v", got, err, took, tt.want, tt.err, tt.takes)
				assert.True(t, asked.Load() <= 40 || errors.Is(err, rpctypes.ErrNoLeader), "it was asked %d times", asked.Load())
			})
		})
	}
}

// TestAskedInTime: nothing is asked once the time for it is over.
func TestAskedInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if _, err := try(ctx, &Store{beside: askBeside}, func(context.Context) (int, error) {
			t.Error("it was asked")
			return 0, nil
		}); !errors.Is(err, context.Canceled) {
			t.Errorf("the answer is %v", err)
		}
	}
}

// TestSilentMember: once a member was silent and another one answered, two are asked at once for a while.
func TestSilentMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{beside: askBeside}
		takes := func(silent int64, most time.Duration) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			began := time.Now()
			var asked atomic.Int64
			if _, err := try(ctx, s, func(ctx context.Context) (int, error) {
				if asked.Add(1) <= silent {
					<-ctx.Done()
				}
				return 0, ctx.Err()
			}); err != nil || time.Since(began) != most {
				t.Errorf("%v after %v, want an answer after %v", err, time.Since(began), most)
			}
		}
		takes(1, askBeside)
		takes(1, askPause)
		takes(0, 0)
		time.Sleep(askTwice)
		takes(1, askBeside)
	})
}
