package etcd

import (
	"context"
	"encoding/json"
	"fmt"

	client "go.etcd.io/etcd/client/v3"

	"idproxy/idsource"
	"idproxy/idsource/order"
)

// The keys of who leads. The revision of the first is the term: it changes when another term
// begins. That of the second changes with each sign of life.
const (
	leaderKey = "/idproxy/order/leader"
	beatKey   = "/idproxy/order/beat"
)

// Register is where the processes of this cluster agree on who gives ids of series in one order.
//
// It has no lease of etcd: those last two seconds at least, with etcd's defaults, and a member that is
// no leader any more and does not know renews them.
func (s *Store) Register() order.Register { return register{s} }

type register struct{ s *Store }

// Look implements order.Register.
func (g register) Look(ctx context.Context) (seen order.Seen, err error) {
	known := g.s.known()
	r, err := try(ctx, g.s, func(ctx context.Context) (*client.TxnResponse, error) {
		return g.s.c.Txn(ctx).Then(client.OpGet(leaderKey), client.OpGet(beatKey)).Commit()
	})
	if err != nil {
		return seen, g.s.wrap(err)
	}
	if err := g.s.answered(known, r.Header.Revision); err != nil {
		return seen, err
	}
	for _, kv := range r.Responses[0].GetResponseRange().Kvs {
		if err := json.Unmarshal(kv.Value, &seen.Leader); err != nil {
			return seen, g.s.wrap(fmt.Errorf("key %s holds %.100q, which no idproxy has written", leaderKey, kv.Value))
		}
		seen.Term = kv.ModRevision
	}
	for _, kv := range r.Responses[1].GetResponseRange().Kvs {
		seen.Beat = kv.ModRevision
	}
	return seen, nil
}

// put is one transaction. It is asked again as it is, so that its answer may be false where it was
// done before.
func (g register) put(ctx context.Context, same []client.Cmp, puts ...client.Op) (revision int64, done bool, err error) {
	known := g.s.known()
	r, err := try(ctx, g.s, func(ctx context.Context) (*client.TxnResponse, error) {
		return g.s.c.Txn(ctx).If(same...).Then(puts...).Commit()
	})
	if err != nil {
		return 0, false, g.s.wrap(err)
	}
	return r.Header.Revision, r.Succeeded, g.s.answered(known, r.Header.Revision)
}

// Take implements order.Register.
func (g register) Take(ctx context.Context, seen order.Seen, l order.Leader) (term int64, taken bool, err error) {
	text, err := json.Marshal(l)
	if err != nil {
		return 0, false, err
	}
	return g.put(ctx, []client.Cmp{
		client.Compare(client.ModRevision(leaderKey), "=", seen.Term), client.Compare(client.ModRevision(beatKey), "=", seen.Beat),
	}, client.OpPut(leaderKey, string(text)), client.OpPut(beatKey, l.Token))
}

// Renew implements order.Register.
func (g register) Renew(ctx context.Context, number int64, token string) (bool, error) {
	t := &term{number, token}
	same, _ := t.compare(nil)
	_, done, err := g.put(ctx, same, client.OpPut(beatKey, token))
	return done, err
}

// Resign implements order.Register.
func (g register) Resign(ctx context.Context, number int64, token string) error {
	t := &term{number, token}
	same, _ := t.compare(nil)
	_, _, err := g.put(ctx, same, client.OpPut(leaderKey, "{}"))
	return err
}

// During implements order.Register.
func (g register) During(number int64, token string) idsource.SegmentStore {
	return during{g.s, &term{number, token}}
}

// term is that of a leader. nil is none: whoever comes.
type term struct {
	number int64
	token  string // the process wrote it beside the number: a cluster that was restored comes to the same number again
}

// compare adds that the term has not ended to what a transaction compares, and returns what it reads
// where something differs. The process has led since the leader's key has the term's number: it holds
// the token last written to the key of signs of life.
func (t *term) compare(same []client.Cmp) ([]client.Cmp, []client.Op) {
	if t == nil {
		return same, nil
	}
	return append(same, client.Compare(client.ModRevision(leaderKey), "=", t.number), client.Compare(client.Value(beatKey), "=", t.token)),
		[]client.Op{client.OpGet(leaderKey), client.OpGet(beatKey)}
}

// check says whether a transaction failed because the term has ended.
func (t *term) check(r *client.TxnResponse) error {
	if t == nil {
		return nil
	}
	leader, beat := r.Responses[0].GetResponseRange().Kvs, r.Responses[1].GetResponseRange().Kvs
	if len(leader) == 1 && leader[0].ModRevision == t.number && len(beat) == 1 && string(beat[0].Value) == t.token {
		return nil
	}
	return order.ErrDeposed
}

// during is the store for one term.
type during struct {
	*Store
	term *term
}

// Reserve implements idsource.SegmentStore.
func (d during) Reserve(ctx context.Context, a idsource.Ask) (lo, hi uint64, err error) {
	return d.reserve(ctx, d.term, a)
}

// Advance implements idsource.SegmentStore.
func (d during) Advance(ctx context.Context, key string, next uint64) error {
	return d.advance(ctx, d.term, key, next)
}

// GiveBack implements idsource.SegmentStore.
func (d during) GiveBack(ctx context.Context, key string, lo, hi uint64) (bool, error) {
	return d.giveBack(ctx, d.term, key, lo, hi)
}
