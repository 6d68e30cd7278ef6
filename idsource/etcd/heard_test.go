package etcd

import (
	"context"
	"fmt"
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

// deaf is a client that does not hear what became of its next transaction that writes.
type deaf struct {
	client.KV
	next *atomic.Bool
}

// Txn implements client.KV.
func (d deaf) Txn(ctx context.Context) client.Txn {
	return &deafTxn{Txn: d.KV.Txn(ctx), ctx: ctx, next: d.next}
}

type deafTxn struct {
	client.Txn
	ctx    context.Context
	next   *atomic.Bool
	writes bool
}

func (t *deafTxn) If(c ...client.Cmp) client.Txn {
	t.Txn = t.Txn.If(c...)
	return t
}

func (t *deafTxn) Then(o ...client.Op) client.Txn {
	for _, op := range o {
		t.writes = t.writes || op.IsPut()
	}
	t.Txn = t.Txn.Then(o...)
	return t
}

func (t *deafTxn) Commit() (*client.TxnResponse, error) {
	r, err := t.Txn.Commit()
	if t.writes && t.next.CompareAndSwap(true, false) {
		<-t.ctx.Done()
		return nil, t.ctx.Err()
	}
	return r, err
}

// TestHeardTwice: a slow cluster is asked again for what it has done already, and says that it
// found something else. What was added or dropped is counted all the same, and a number that was given
// back is.
func TestHeardTwice(t *testing.T) {
	t.Parallel()
	st := newStore(t, newServer(t))
	st.beside = 20 * time.Millisecond
	next := &atomic.Bool{}
	st.c.KV = deaf{st.c.KV, next}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	workers := st.Workers()
	add := func(numbers uint64, want int) {
		t.Helper()
		next.Store(true)
		n, err := workers.Add(ctx, lease.Fill{Pool: "p", Shape: "41/10/12", Numbers: numbers, Fresh: true, Rules: holders.Brisk})
		if err != nil || n != want || next.Load() != (want == 0) {
			t.Errorf("Add up to %d = %d, %v, want %d; an answer was lost: %t", numbers, n, err, want, !next.Load())
		}
		l, err := workers.List(ctx, "p")
		assert.True(t, err == nil && uint64(len(l.Records)) == numbers, "%d numbers are there, want %d: %v", len(l.Records), numbers, err)
	}
	add(3, 3) // the pool itself is what is heard twice
	add(5, 2)
	add(5, 0)
	add(5+lease.InsertMost+1, lease.InsertMost+1)
	next.Store(true)
	if dropped, err := workers.Drop(ctx, "p", []uint64{1, 2}); err != nil || len(dropped) != 2 || next.Load() {
		t.Errorf("Drop = %d, %v; an answer was lost: %t", dropped, err, !next.Load())
	}
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
		if err != nil || r.Verdict != lease.Granted || next.Load() {
			t.Errorf("%s = %+v, %v; an answer was lost: %t", step.name, r, err, !next.Load())
		}
		a.Worker, a.Last = r.Worker, r.Start
	}
}

// twice is a client whose next transaction is heard twice by the cluster. The answer to the first
// is lost, and meanwhile happens before the second.
type twice struct {
	client.KV
	armed     *atomic.Bool
	meanwhile func()
}

// Txn implements client.KV.
func (d twice) Txn(ctx context.Context) client.Txn {
	return &twiceTxn{Txn: d.KV.Txn(ctx), of: d, ctx: ctx}
}

type twiceTxn struct {
	client.Txn
	of  twice
	ctx context.Context
	cmp []client.Cmp
	ops []client.Op
	not []client.Op
}

func (t *twiceTxn) If(c ...client.Cmp) client.Txn {
	t.cmp = c
	return t
}

func (t *twiceTxn) Then(o ...client.Op) client.Txn {
	t.ops = o
	return t
}

func (t *twiceTxn) Else(o ...client.Op) client.Txn {
	t.not = o
	return t
}

func (t *twiceTxn) Commit() (*client.TxnResponse, error) {
	if t.of.armed.CompareAndSwap(true, false) {
		if _, err := t.of.KV.Txn(t.ctx).If(t.cmp...).Then(t.ops...).Else(t.not...).Commit(); err != nil {
			return nil, err
		}
		t.of.meanwhile()
	}
	return t.of.KV.Txn(t.ctx).If(t.cmp...).Then(t.ops...).Else(t.not...).Commit()
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
	assert.Must(t, st.Advance(t.Context(), "k", 1))
	lo, hi := reserve(st)
	var armed atomic.Bool
	var theirs [2]uint64
	st.c.KV = twice{st.c.KV, &armed, func() { theirs[0], theirs[1] = reserve(other) }}
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
			if err := st.Advance(t.Context(), key, 1); err != nil {
				t.Error(err)
				return
			}
			for range 100 {
				if _, _, err := st.Reserve(t.Context(), ask(key, 1)); err != nil {
					t.Errorf("Reserve: %v", err)
					return
				}
				if _, err := st.Position(t.Context(), key); err != nil {
					t.Errorf("Position: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	// A question that was asked when a later revision was known: its answer is from a cluster that
	// forgot.
	assert.Fails(t, "a revision of before was not noticed", st.answered(st.known(), 1), "")
}
