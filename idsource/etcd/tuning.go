package etcd

import (
	"context"
	"encoding/json"
	"fmt"

	client "go.etcd.io/etcd/client/v3"

	"idproxy/idsource"
)

// tunings is what the keys begin with that say how series are tuned. The value is a tuning, as
// JSON. An older program writes the key of a series anew, without what it does not know, so that
// it would not do to write it there.
const tunings = "/idproxy/series/"

// tuning is how etcd keeps an idsource.Tuning.
type tuning struct {
	Step        uint64 `json:"step,omitempty"`
	MaxStep     uint64 `json:"max_step,omitempty"`
	Policy      string `json:"step_policy,omitempty"`
	Description string `json:"description,omitempty"`
}

var _ idsource.Tuner = (*Store)(nil)

// Tuning implements idsource.Tuner.
func (s *Store) Tuning(ctx context.Context, key string) (idsource.Tuning, error) {
	r, err := try(ctx, s, func(ctx context.Context) (*client.GetResponse, error) { return s.c.Get(ctx, tunings+key) })
	if err != nil {
		return idsource.Tuning{}, s.wrap(err)
	}
	if len(r.Kvs) == 0 {
		return idsource.Tuning{}, nil
	}
	var t tuning
	if err := json.Unmarshal(r.Kvs[0].Value, &t); err != nil {
		return idsource.Tuning{}, s.wrap(fmt.Errorf("key %q is tuned by %.100q, which no idproxy has written", key, r.Kvs[0].Value))
	}
	return idsource.Tuning(t), nil
}

// Tune implements idsource.Tuner.
func (s *Store) Tune(ctx context.Context, key string, t idsource.Tuning) error {
	text, err := json.Marshal(tuning(t))
	if err != nil {
		return err
	}
	r, err := try(ctx, s, func(ctx context.Context) (*client.TxnResponse, error) {
		return s.c.Txn(ctx).If(client.Compare(client.CreateRevision(prefix+key), ">", 0)).Then(client.OpPut(tunings+key, string(text))).Commit()
	})
	if err != nil {
		return s.wrap(err)
	}
	if !r.Succeeded {
		return idsource.ErrNoKey
	}
	return nil
}
