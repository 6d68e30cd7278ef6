package simulation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	etcdclient "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"idproxy/idsource/etcd"
)

// cluster is an etcd, as its clients see it: each transaction is one step, and what is answered
// is what a majority has.
type cluster struct {
	node
	id       uint64
	revision int64
	keys     map[string]*mvccpb.KeyValue // none of them changes
	past     []put                       // oldest first
	before   func(p *process, put *etcdserverpb.PutRequest)
}

// put is what a key was before.
type put struct {
	at     time.Time
	key    string
	before *mvccpb.KeyValue
}

func newCluster(w *world, waits time.Duration) *cluster {
	return &cluster{node: node{w: w, waits: waits}, id: 1, revision: 1, keys: map[string]*mvccpb.KeyValue{}}
}

// back undoes all changes made behind a moment. The caller holds mu.
func (c *cluster) back(to time.Time) {
	for n := len(c.past); n > 0 && c.past[n-1].at.After(to); n-- {
		old := c.past[n-1]
		c.revision = c.keys[old.key].ModRevision - 1
		if c.keys[old.key] = old.before; old.before == nil {
			delete(c.keys, old.key)
		}
		c.past = c.past[:n-1]
	}
	c.w.note("back", uint64(c.revision))
}

// elect has the members elect a leader: nobody answers meanwhile, and what was on its way is done
// or not. The caller holds mu.
func (c *cluster) elect(down time.Duration) {
	if c.down {
		return
	}
	c.back(time.Now().Add(-c.waits))
	c.life++
	c.down = true
	time.AfterFunc(down, func() {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		c.down = false
	})
}

// txn is one transaction, of a process.
func (c *cluster) txn(p *process, in *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	out := &etcdserverpb.TxnResponse{Succeeded: !slices.ContainsFunc(in.Compare, c.differs)}
	steps := in.Failure
	if out.Succeeded {
		steps = in.Success
	}
	next := c.revision + 1
	for _, s := range steps {
		if get := s.GetRequestRange(); get != nil {
			out.Responses = append(out.Responses, &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: c.get(get)}})
			continue
		}
		put := s.GetRequestPut()
		c.before(p, put)
		c.put(next, string(put.Key), put.Value)
		out.Responses = append(out.Responses, &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponsePut{ResponsePut: &etcdserverpb.PutResponse{}}})
	}
	out.Header = c.header()
	return out, nil
}

func (c *cluster) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: c.id, Revision: c.revision}
}

func (c *cluster) put(revision int64, name string, value []byte) {
	old := c.keys[name]
	c.past = append(c.past, put{time.Now(), name, old})
	kv := &mvccpb.KeyValue{Key: []byte(name), Value: value, CreateRevision: revision, ModRevision: revision, Version: 1}
	if old != nil {
		kv.CreateRevision, kv.Version = old.CreateRevision, old.Version+1
	}
	c.keys[name], c.revision = kv, revision
	c.w.note("put", uint64(revision), uint64(len(name)))
}

func (c *cluster) get(in *etcdserverpb.RangeRequest) *etcdserverpb.RangeResponse {
	out := &etcdserverpb.RangeResponse{Header: c.header()}
	if len(in.RangeEnd) > 0 {
		panic("a range of keys, which no order reads")
	}
	if kv, ok := c.keys[string(in.Key)]; ok {
		out.Kvs, out.Count = append(out.Kvs, kv), 1
	}
	return out
}

// differs says whether what is compared for equality is another.
func (c *cluster) differs(want *etcdserverpb.Compare) bool {
	kv := c.keys[string(want.Key)]
	if want.Result != etcdserverpb.Compare_EQUAL {
		panic("a comparison that is not for equality")
	}
	switch want.Target {
	case etcdserverpb.Compare_MOD:
		return kv.GetModRevision() != want.GetModRevision()
	case etcdserverpb.Compare_VALUE: // of a key that is not there nothing is equal
		return kv == nil || string(kv.Value) != string(want.GetValue())
	}
	panic("a comparison of " + want.Target.String())
}

// leader is what the key of who leads holds.
func (c *cluster) leader() string { return string(c.keys[leaderKey].GetValue()) }

// The keys of the order, which etcd has.
const (
	leaderKey = "/idproxy/order/leader"
	beatKey   = "/idproxy/order/beat"
	seriesKey = "/idproxy/segment/" + key
)

// member is the cluster as a process has it. What it does not have nobody asks for.
type member struct {
	etcdserverpb.KVClient
	p *process
	c *cluster
}

// newEtcd is the real store over a simulated cluster.
func newEtcd(p *process, c *cluster) *etcd.Store {
	made := etcdclient.NewCtxClient(context.Background())
	made.KV = etcdclient.NewKVFromKVClient(member{p: p, c: c}, nil)
	return etcd.Over(made)
}

func (m member) node() *node { return &m.c.node }

// said is an error as gRPC has it.
func said(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errLost), errors.Is(err, errRefused):
		return status.Error(codes.Unavailable, err.Error())
	case err != nil:
		return cmp.Or(ctx.Err(), err)
	}
	return nil
}

// aboutTxn names the first key that a transaction writes.
func aboutTxn(in *etcdserverpb.TxnRequest) string {
	for _, one := range in.Success {
		if put := one.GetRequestPut(); put != nil {
			return "txn " + string(put.Key)
		}
	}
	return "txn"
}

// Txn implements etcdserverpb.KVClient.
func (m member) Txn(ctx context.Context, in *etcdserverpb.TxnRequest, _ ...grpc.CallOption) (*etcdserverpb.TxnResponse, error) {
	out, err := callAbout(ctx, m.p, aboutTxn(in), m.node, errRefused, func() (*etcdserverpb.TxnResponse, error) { return m.c.txn(m.p, in) })
	return out, said(ctx, err)
}

// Range implements etcdserverpb.KVClient.
func (m member) Range(ctx context.Context, in *etcdserverpb.RangeRequest, _ ...grpc.CallOption) (*etcdserverpb.RangeResponse, error) {
	out, err := callAbout(ctx, m.p, "range "+string(in.Key), m.node, errRefused, func() (*etcdserverpb.RangeResponse, error) {
		m.c.w.mu.Lock()
		defer m.c.w.mu.Unlock()
		return m.c.get(in), nil
	})
	return out, said(ctx, err)
}

// isSeries says whether a key is that of the series, beside those of its history.
func isSeries(name []byte) bool { return strings.HasPrefix(string(name), seriesKey) }
