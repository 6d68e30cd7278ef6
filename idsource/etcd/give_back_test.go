package etcd

import (
	"context"
	"sync/atomic"
	"testing"

	client "go.etcd.io/etcd/client/v3"

	"idproxy/idsource"
	"idproxy/integration/assert"
)

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
