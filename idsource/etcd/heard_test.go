package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "go.etcd.io/etcd/client/v3"

	"idproxy/idsource"
	"idproxy/idsource/lease"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
)

// hooked is a client whose transactions a hook commits. It is told whether one writes.
type hooked struct {
	client.KV
	hook func(ctx context.Context, writes bool, commit func() (*client.TxnResponse, error)) (*client.TxnResponse, error)
}

// Txn implements client.KV.
func (h hooked) Txn(ctx context.Context) client.Txn { return &hookedTxn{of: h, ctx: ctx} }

type hookedTxn struct {
	of       hooked
	ctx      context.Context
	cmp      []client.Cmp
	ops, not []client.Op
}

func (t *hookedTxn) If(c ...client.Cmp) client.Txn {
	t.cmp = c
	return t
}

func (t *hookedTxn) Then(o ...client.Op) client.Txn {
	t.ops = o
	return t
}

func (t *hookedTxn) Else(o ...client.Op) client.Txn {
	t.not = o
	return t
}

func (t *hookedTxn) Commit() (*client.TxnResponse, error) {
	return t.of.hook(t.ctx, slices.ContainsFunc(t.ops, client.Op.IsPut), func() (*client.TxnResponse, error) {
		return t.of.KV.Txn(t.ctx).If(t.cmp...).Then(t.ops...).Else(t.not...).Commit()
	})
}

// TestHeardTwice: a slow cluster is asked again for what it has done already, and says that it
// found something else. What was added or dropped is counted all the same, and a number that was given
// back is.
func TestHeardTwice(t *testing.T) {
	t.Parallel()
	st := newStore(t, newServer(t))
	st.beside = 20 * time.Millisecond
	var next atomic.Bool // the next transaction that writes is not heard of
	st.c.KV = hooked{st.c.KV, func(ctx context.Context, writes bool, commit func() (*client.TxnResponse, error)) (*client.TxnResponse, error) {
		r, err := commit()
		if writes && next.CompareAndSwap(true, false) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return r, err
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	workers := st.Workers()
	add := func(numbers uint64, want int) {
		t.Helper()
		next.Store(true)
		n, err := workers.Add(ctx, lease.Fill{Pool: "p", Shape: "41/10/12", Numbers: numbers, Fresh: true, Rules: holders.Brisk})
		assert.True(t, err == nil && n == want && next.Load() == (want == 0), "Add up to %d = %d, %v, want %d; an answer was lost: %t", numbers, n, err, want, !next.Load())
		l, err := workers.List(ctx, "p")
		assert.True(t, err == nil && uint64(len(l.Records)) == numbers, "%d numbers are there, want %d: %v", len(l.Records), numbers, err)
	}
	add(3, 3) // the pool itself is what is heard twice
	add(5, 2)
	add(5, 0)
	add(5+lease.InsertMost+1, lease.InsertMost+1)
	next.Store(true)
	dropped, err := workers.Drop(ctx, "p", []uint64{1, 2})
	assert.True(t, err == nil && len(dropped) == 2 && !next.Load(), "Drop = %d, %v; an answer was lost: %t", dropped, err, !next.Load())
	add(5+lease.InsertMost+1, 2)

	a := lease.Ask{Pool: "p", Shape: "41/10/12", Rules: holders.Brisk, Use: lease.Use{Token: "x"}}
	for _, step := range []struct {
		name string
		call func(context.Context, lease.Ask) (lease.Reply, error)
	}{{"Take", workers.Take}, {"Release", workers.Release}} {
		next.Store(true)
		r, err := step.call(ctx, a)
		for err == nil && r.Verdict == lease.Wait { // a pool that was made rests for seconds
			time.Sleep(50 * time.Millisecond)
			r, err = step.call(ctx, a)
		}
		assert.True(t, err == nil && r.Verdict == lease.Granted && !next.Load(), "%s = %+v, %v; an answer was lost: %t", step.name, r, err, !next.Load())
		a.Worker, a.Last = r.Worker, r.Start
	}
}

// TestGiveBackTwice: a range that was given back is not given back again, where the cluster was asked
// twice and another process reserved the same ids in between.
func TestGiveBackTwice(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	st, other := newStore(t, s), newStore(t, s)
	reserve := func(st *Store) (lo, hi uint64) {
		t.Helper()
		lo, hi, err := st.Reserve(t.Context(), idsource.Ask{Key: "k", Count: 10, Last: 1 << 40})
		assert.Must(t, err)
		return lo, hi
	}
	assert.Must(t, st.Open(t.Context(), "k", 1, 0))
	lo, hi := reserve(st)
	var armed atomic.Bool
	var theirs [2]uint64
	st.c.KV = hooked{st.c.KV, func(_ context.Context, _ bool, commit func() (*client.TxnResponse, error)) (*client.TxnResponse, error) {
		if armed.CompareAndSwap(true, false) { // the cluster hears it twice, and the first answer is lost
			if _, err := commit(); err != nil {
				return nil, err
			}
			theirs[0], theirs[1] = reserve(other)
		}
		return commit()
	}}
	armed.Store(true)
	assert.Of(st.GiveBack(t.Context(), "k", lo, hi)).Must(t)
	assert.MustTrue(t, !armed.Load() && theirs == [2]uint64{lo, hi}, "another process reserved %d to %d meanwhile, want %d to %d", theirs[0], theirs[1], lo, hi)
	lo, hi = reserve(st)
	assert.True(t, lo >= theirs[1], "%d to %d were reserved, and another process has %d to %d", lo, hi, theirs[0], theirs[1])
}

// TestAnswersOutOfOrder: answers to questions that several goroutines have asked at once are read
// in any order; an older one is no sign of a cluster that forgot.
func TestAnswersOutOfOrder(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	st := newStore(t, s)
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			key := fmt.Sprint("k", k)
			if err := st.Open(t.Context(), key, 1, 0); err != nil {
				t.Error(err)
				return
			}
			for range 100 {
				_, _, err := st.Reserve(t.Context(), ask(key, 1))
				_, err2 := st.Position(t.Context(), key)
				if err = errors.Join(err, err2); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	// A question that was asked when a later revision was known: the cluster forgot.
	assert.Fails(t, "a revision of before was not noticed", st.answered(st.known(), 1), "")
}
