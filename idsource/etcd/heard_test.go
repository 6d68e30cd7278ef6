package etcd

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	client "go.etcd.io/etcd/client/v3"

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
