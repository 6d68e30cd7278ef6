package etcd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	client "go.etcd.io/etcd/client/v3"

	"idproxy/idsource"
)

// histories is what the keys begin with that say who took which range: one for each of the last
// historyMost times that the key of a series was written, by that number modulo historyMost. So
// nothing has to be deleted.
const (
	histories   = "/idproxy/taken/"
	historyMost = 1000
)

// taken is how etcd keeps an idsource.Taken. The time is that of who took the range.
type taken struct {
	Lo uint64    `json:"lo"`
	Hi uint64    `json:"hi"`
	At time.Time `json:"at"`
	By string    `json:"by"`
}

var _ idsource.Historian = (*Store)(nil)

// historyOf is what the keys of a series' history begin with. The series' own key may have slashes.
func historyOf(key string) string { return histories + url.PathEscape(key) + "/" }

// remembering writes who takes [lo, hi) of a key that was written so often.
func remembering(a idsource.Ask, version int64, lo, hi uint64) (client.Op, error) {
	text, err := json.Marshal(taken{Lo: lo, Hi: hi, At: time.Now().UTC(), By: a.By})
	return client.OpPut(fmt.Sprintf("%s%03d", historyOf(a.Key), version%historyMost), string(text)), err
}

// History implements idsource.Historian.
func (s *Store) History(ctx context.Context, key string, upTo uint64, n int) ([]idsource.Taken, error) {
	r, err := try(ctx, s, func(ctx context.Context) (*client.GetResponse, error) {
		return s.c.Get(ctx, historyOf(key), client.WithPrefix())
	})
	if err != nil {
		return nil, s.wrap(err)
	}
	var all []idsource.Taken
	for _, kv := range r.Kvs {
		var one taken
		if err := json.Unmarshal(kv.Value, &one); err != nil {
			return nil, s.wrap(fmt.Errorf("key %q holds %.100q, which no idproxy has written", kv.Key, kv.Value))
		}
		if one.Lo <= upTo {
			all = append(all, idsource.Taken(one))
		}
	}
	slices.SortFunc(all, func(a, b idsource.Taken) int { return cmp.Or(cmp.Compare(b.Lo, a.Lo), b.At.Compare(a.At)) })
	return all[:min(n, len(all))], nil
}
