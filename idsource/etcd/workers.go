package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	client "go.etcd.io/etcd/client/v3"

	"idproxy/idsource/lease"
)

// Workers is a lease.Store of the same cluster: pools of worker numbers below
// /idproxy/workers/, with a key for each pool and for each number. Times are
// those of this host. Closing it closes nothing.
func (s *Store) Workers() lease.Store { return lease.FromTable(table{s}) }

// Disposable is a store of numbers that are used once, with the same keys.
func (s *Store) Disposable() lease.Store { return lease.Disposable(table{s}) }

type table struct{ s *Store }

// Close implements lease.Table.
func (t table) Close() error { return nil }

// pools is what the keys of pools begin with.
const pools = "/idproxy/workers/"

// Pools implements lease.Table.
func (t table) Pools(ctx context.Context) (names []string, err error) {
	r, err := t.s.c.Get(ctx, pools, client.WithPrefix(), client.WithKeysOnly())
	if err != nil {
		return nil, t.s.wrap(err)
	}
	for _, kv := range r.Kvs {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(string(kv.Key), pools), "/pool"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// Visit implements lease.Table.
func (t table) Visit(_ context.Context, pool string, do func(v lease.Visit) error) error {
	base := pools + pool + "/"
	if err := do(&visit{s: t.s, pool: base + "pool", base: base + "number/"}); err != nil {
		return t.s.wrap(err)
	}
	return nil
}

// visit is a stay at one pool.
type visit struct {
	s      *Store
	pool   string // its key
	base   string // of the keys of numbers
	server string // who answered
}

// poolValue is what etcd keeps of a pool.
type poolValue struct {
	Shape  string `json:"shape"`
	Server string `json:"server"`
	Since  int64  `json:"since"`
}

// Ten digits: the greatest number comes last.
func (v *visit) key(w uint64) string { return fmt.Sprintf("%s%010d", v.base, w) }

// answered notes who answers: a cluster and its term. A cluster that was
// restored has another id; a member that was restarted with older data, or
// that lost an election, begins another term.
func (v *visit) answered(r *client.TxnResponse) error {
	name := fmt.Sprintf("%x.%d", r.Header.ClusterId, r.Header.RaftTerm)
	if v.server != "" && v.server != name {
		return fmt.Errorf("the cluster and its term were %s and are %s now", v.server, name)
	}
	v.server = name
	return nil
}

// Read implements lease.Visit.
func (v *visit) Read(ctx context.Context, w lease.Workers) (lease.Page, error) {
	records := client.OpGet(v.base, client.WithPrefix())
	switch {
	case w >= 0:
		records = client.OpGet(v.key(uint64(w)))
	case w == lease.Highest:
		records = client.OpGet(v.base, append(client.WithLastKey(), client.WithPrefix())...)
	}
	v.server = ""
	now := v.s.clock().UnixMilli()
	r, err := try(ctx, v.s, func(ctx context.Context) (*client.TxnResponse, error) {
		return v.s.c.Txn(ctx).Then(client.OpGet(v.pool), records).Commit()
	})
	if err != nil {
		return lease.Page{}, err
	}
	if err := v.answered(r); err != nil {
		return lease.Page{}, err
	}
	p := lease.Page{Server: v.server, Now: now, Records: map[uint64]lease.Record{}, Versions: map[uint64]int64{}}
	for _, kv := range r.Responses[0].GetResponseRange().Kvs {
		var value poolValue
		if err := json.Unmarshal(kv.Value, &value); err != nil {
			return lease.Page{}, fmt.Errorf("key %s holds %.100q, which no idproxy has written", kv.Key, kv.Value)
		}
		p.Exists, p.PoolVersion, p.Pool = true, kv.ModRevision, lease.Pool(value)
	}
	for _, kv := range r.Responses[1].GetResponseRange().Kvs {
		n, err := strconv.ParseUint(strings.TrimPrefix(string(kv.Key), v.base), 10, 32)
		if err != nil {
			return lease.Page{}, fmt.Errorf("key %s is none that an idproxy has written", kv.Key)
		}
		if p.Records[n], err = lease.ParseRecord(string(kv.Value)); err != nil {
			return lease.Page{}, fmt.Errorf("key %s: %w", kv.Key, err)
		}
		p.Versions[n] = kv.ModRevision
	}
	return p, nil
}

// put is one transaction. What it compares with is what Read has found, of the
// same cluster in the same term. Where its answer was lost it may say that it found
// something else, which is what it wrote.
func (v *visit) put(ctx context.Context, same []client.Cmp, puts []client.Op) (bool, error) {
	r, err := try(ctx, v.s, func(ctx context.Context) (*client.TxnResponse, error) {
		return v.s.c.Txn(ctx).If(same...).Then(puts...).Commit()
	})
	if err != nil {
		return false, err
	}
	return r.Succeeded, v.answered(r)
}

// WritePool implements lease.Visit.
func (v *visit) WritePool(ctx context.Context, old lease.Page, p lease.Pool) (bool, error) {
	text, err := json.Marshal(poolValue(p))
	if err != nil {
		return false, err
	}
	return v.put(ctx, []client.Cmp{v.unchanged(old)}, []client.Op{client.OpPut(v.pool, string(text))})
}

func (v *visit) unchanged(old lease.Page) client.Cmp {
	return client.Compare(client.ModRevision(v.pool), "=", old.PoolVersion)
}

// Write implements lease.Visit.
func (v *visit) Write(ctx context.Context, old lease.Page, w uint64, r lease.Record) (bool, error) {
	same := client.Compare(client.ModRevision(v.key(w)), "=", old.Versions[w])
	return v.put(ctx, []client.Cmp{v.unchanged(old), same}, []client.Op{client.OpPut(v.key(w), r.String())})
}

// Insert implements lease.Visit.
func (v *visit) Insert(ctx context.Context, old lease.Page, workers []uint64, r lease.Record) (bool, error) {
	same := []client.Cmp{v.unchanged(old)}
	var puts []client.Op
	for _, w := range workers {
		same = append(same, client.Compare(client.ModRevision(v.key(w)), "=", 0))
		puts = append(puts, client.OpPut(v.key(w), r.String()))
	}
	return v.put(ctx, same, puts)
}
