package etcd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	client "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"

	"idproxy/idsource"
	"idproxy/idsource/lease"
)

// prefix is what the keys of segments begin with.
const prefix = "/idproxy/segment/"

// Connections to members. What the client does by itself is for long connections
// of many: it would find a cluster that was away for long up to two minutes after
// it is back, and a connection that a firewall forgot a quarter of an hour later.
const (
	dialTimeout  = 2 * time.Second  // of one attempt to connect
	dialPause    = time.Second      // the longest between two of them
	aliveAfter   = 10 * time.Second // of silence a member is asked for a sign of life; servers refuse to be asked far more often
	aliveTimeout = time.Second      // a member that gives none is left
)

// Config says where a Store is.
type Config struct {
	Endpoints []string     // required: host:port of the members
	Username  string       // default: none, or whom the certificate names
	Password  string       //
	TLS       *tls.Config  // default: no TLS
	Logger    *slog.Logger // default: discard
}

// Store keeps positions in etcd. It is an idsource.SegmentStore.
type Store struct {
	c      *client.Client
	login  *login // nil: there is no user
	where  string
	logger *slog.Logger
	clock  func() time.Time // of this host, which is not believed at once
	beside time.Duration    // after so long without an answer another member is asked, too
	spare  atomic.Int32     // questions that are asked again beside themselves

	mu       sync.Mutex
	silence  time.Time       // when a member was silent last, and another one answered
	revision int64           // the greatest the cluster has shown
	cache    map[string]item // as last seen, to spare a question
}

// item is a key's value and revision.
type item struct {
	value
	text     string // as it is written
	revision int64  // 0: there is no such key
	version  int64  // how often it was written
}

// value is what etcd keeps of a key.
type value struct {
	Next    uint64 `json:"next"`
	Used    bool   `json:"used"`
	Cluster string `json:"cluster"`           // id of the cluster that it was written in
	Ordered bool   `json:"ordered,omitempty"` // only the leader of the order takes ranges
	Sealed  bool   `json:"sealed,omitempty"`  // nobody does

	Seal idsource.Seal `json:"seal,omitempty"` // who sealed it; 0, and sealed: an earlier version
}

var _ idsource.SegmentStore = (*Store)(nil)

// New makes a Store that connects when it is used.
func New(c Config) (*Store, error) {
	if len(c.Endpoints) == 0 {
		return nil, errors.New("etcd store: no endpoints")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	options := []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: dialPause / 10, Multiplier: 2, Jitter: 0.2, MaxDelay: dialPause},
		MinConnectTimeout: dialTimeout,
	}), grpc.WithChainUnaryInterceptor(atOnce())}
	if c.TLS != nil && c.TLS.ServerName != "" {
		options = append(options, grpc.WithTransportCredentials(named{credentials.NewTLS(c.TLS), c.TLS.ServerName}))
	}
	var who *login
	if c.Username != "" {
		who = &login{name: c.Username, password: c.Password}
		options = append(options, grpc.WithPerRPCCredentials(who))
	}
	conn, err := client.New(client.Config{
		Endpoints: c.Endpoints, TLS: c.TLS, DialKeepAliveTime: aliveAfter, DialKeepAliveTimeout: aliveTimeout, Logger: zap.NewNop(),
		DialOptions: options, MaxUnaryRetries: 1, // try asks again
	})
	if err != nil {
		return nil, fmt.Errorf("etcd store: %w", err)
	}
	s := Over(conn)
	s.login, s.where, s.logger = who, "etcd store "+strings.Join(c.Endpoints, ","), c.Logger
	return s, nil
}

// Over makes a Store over a client that needs no login. The Store's Close closes it.
func Over(c *client.Client) *Store {
	return &Store{c: c, where: "etcd store", logger: slog.New(slog.DiscardHandler), clock: lease.HostClock(), beside: askBeside, cache: map[string]item{}}
}

// Close closes the connections.
func (s *Store) Close() error { return s.c.Close() }

func (s *Store) wrap(err error) error {
	if errors.Is(err, context.DeadlineExceeded) { // the client has tried all endpoints, and does not say what came of it
		return fmt.Errorf("%s: no answer in time: it is down, cannot be reached, or has no leader: %w", s.where, err)
	}
	return fmt.Errorf("%s: %w", s.where, err)
}

// known is the greatest revision that the cluster has shown.
func (s *Store) known() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// answered notes the revision of an answer. One below what was known when the
// question was asked is that of a cluster that forgot: a snapshot was restored.
// Answers to questions asked at the same time may come in any order.
func (s *Store) answered(known, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if revision < known {
		return s.wrap(fmt.Errorf("the cluster went back from revision %d to %d", known, revision))
	}
	s.revision = max(s.revision, revision)
	return nil
}

func (s *Store) cached(key string) (item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, ok := s.cache[key]
	return it, ok
}

func (s *Store) remember(key string, it item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache[key] = it
}

// parse reads the answer to a Get of one key.
func (s *Store) parse(key string, found []*mvccpb.KeyValue) (it item, err error) {
	if len(found) == 0 {
		return item{}, nil
	}
	it.revision, it.version, it.text = found[0].ModRevision, found[0].Version, string(found[0].Value)
	if err := json.Unmarshal(found[0].Value, &it.value); err != nil {
		return item{}, s.wrap(fmt.Errorf("key %q holds %.100q, which no idproxy has written", key, found[0].Value))
	}
	return it, nil
}

func clusterName(id uint64) string { return strconv.FormatUint(id, 16) }

// restored says that a position was written in another cluster than this.
func restored(it item, cluster string) error {
	if it.revision == 0 || it.Cluster == cluster {
		return nil
	}
	return fmt.Errorf("the position %d was written in cluster %s and this is %s: a snapshot was restored, and ids above may be in use; "+
		"idproxy source set moves the key above every id in use", it.Next, it.Cluster, cluster)
}

// read asks for a key.
func (s *Store) read(ctx context.Context, key string) (it item, cluster string, err error) {
	known := s.known()
	r, err := try(ctx, s, func(ctx context.Context) (*client.GetResponse, error) {
		return s.c.Get(ctx, prefix+key)
	})
	if err != nil {
		return item{}, "", s.wrap(err)
	}
	if err := s.answered(known, r.Header.Revision); err != nil {
		return item{}, "", err
	}
	it, err = s.parse(key, r.Kvs)
	return it, clusterName(r.Header.ClusterId), err
}

// errUnchanged is what a move answers to leave the key as it is.
var errUnchanged = errors.New("unchanged")

// change moves a key. move gets what is there and returns what is to be; it may
// be called several times. Nothing is changed once the term, if there is one, has ended. beside, if
// there is one, returns what is written with the last of them.
func (s *Store) change(ctx context.Context, key string, during *term, move func(old item, cluster string) (value, error), beside ...func(old item) (client.Op, error)) error {
	it, remembered := s.cached(key)
	cluster := it.Cluster // as it was; the transaction finds out whether it still is
	for tries, known := 0, remembered; ; tries++ {
		if !known {
			var err error
			if it, cluster, err = s.read(ctx, key); err != nil {
				return err
			}
		}
		v, err := move(it, cluster)
		switch {
		case err != nil && remembered: // it may be old
			remembered, known = false, false
			continue
		case errors.Is(err, errUnchanged):
			return nil
		case err != nil:
			return err
		}
		v.Cluster = cluster
		var also []client.Op
		for _, op := range beside {
			one, err := op(it)
			if err != nil {
				return err
			}
			also = append(also, one)
		}
		began := time.Now()
		is, err := s.swap(ctx, key, during, it, v, also)
		if is == nil || err != nil {
			return err
		}
		it, cluster, remembered, known = is.item, is.cluster, false, true
		if err := giveWay(ctx, time.Since(began), tries); err != nil {
			return fmt.Errorf("%s: other processes changed key %q each time, %d times in all, since it was read: %w", s.where, key, tries+1, err)
		}
	}
}

// giveWay waits for a moment of chance, where another process was faster, which may be twice as long each time, and is
// the longer the longer etcd took to say so: those that take ranges of one series at once would keep each other, and a
// busy etcd, at transactions that fail.
func giveWay(ctx context.Context, took time.Duration, tries int) error {
	chance := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(os.Getpid()))) // by the clock: a simulation is played again
	most := min(took<<min(tries, wayTwice), wayMost)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(chance.Int64N(int64(most) + 1))):
		return nil
	}
}

// The longest that somebody waits who was not the first.
const (
	wayTwice = 5 // times that it becomes twice as long
	wayMost  = 500 * time.Millisecond
)

// standing is what a key holds, and the cluster that says so.
type standing struct {
	item
	cluster string
}

// swap writes a key, and also what is to be written with it, if it is as it was. Else it returns how it is.
func (s *Store) swap(ctx context.Context, key string, during *term, old item, v value, also []client.Op) (*standing, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	same := []client.Cmp{client.Compare(client.ModRevision(prefix+key), "=", old.revision)}
	if old.revision != 0 { // a cluster that was restored can come to the same revision by another way
		same = append(same, client.Compare(client.Value(prefix+key), "=", old.text))
	}
	same, otherwise := during.compare(same)
	otherwise = append(otherwise, client.OpGet(prefix+key))
	puts := append(also, client.OpPut(prefix+key, string(text))) // here: questions go beside each other
	known := s.known()
	r, err := try(ctx, s, func(ctx context.Context) (*client.TxnResponse, error) {
		return s.c.Txn(ctx).If(same...).Then(puts...).Else(otherwise...).Commit()
	})
	if err != nil {
		return nil, s.wrap(err)
	}
	if err := s.answered(known, r.Header.Revision); err != nil {
		return nil, err
	}
	cluster := clusterName(r.Header.ClusterId)
	if r.Succeeded && cluster != v.Cluster {
		return nil, s.wrap(fmt.Errorf("the cluster was %s and is %s now", v.Cluster, cluster))
	}
	if !r.Succeeded {
		if err := during.check(r); err != nil {
			return nil, err
		}
		is, err := s.parse(key, r.Responses[len(r.Responses)-1].GetResponseRange().Kvs)
		return &standing{is, cluster}, err
	}
	s.remember(key, item{value: v, text: string(text), revision: r.Header.Revision, version: old.version + 1})
	return nil, nil
}

// Reserve implements idsource.SegmentStore.
func (s *Store) Reserve(ctx context.Context, a idsource.Ask) (lo, hi uint64, err error) {
	return s.reserve(ctx, nil, a)
}

func (s *Store) reserve(ctx context.Context, during *term, a idsource.Ask) (lo, hi uint64, err error) {
	err = s.change(ctx, a.Key, during, func(old item, cluster string) (value, error) {
		if old.revision == 0 {
			return value{}, idsource.ErrNoKey
		}
		if old.Ordered && during == nil {
			return value{}, s.wrap(errOrdered)
		}
		if old.Sealed {
			return value{}, &idsource.SealedError{Next: old.Next}
		}
		if err := restored(old, cluster); err != nil {
			return value{}, s.wrap(err)
		}
		if old.Next < a.High {
			return value{}, &idsource.WentBackError{Next: old.Next}
		}
		lo = max(old.Next, a.Floor)
		if lo > a.Last || a.Count > a.Last-lo+1 {
			return value{}, &idsource.FullError{Next: lo}
		}
		hi = lo + a.Count
		return value{Next: hi, Used: true, Ordered: during != nil}, nil
	}, func(old item) (client.Op, error) { return remembering(a, old.version, lo, hi) })
	if err != nil {
		return 0, 0, err
	}
	return lo, hi, nil
}

// errOrdered is why a range of a series of one order is not for whoever comes.
var errOrdered = errors.New("the series is in one order, which only the leader gives ids of: set order: global for its source here, too; " +
	"idproxy source set makes it a series without order again, once no process has it as one")

// Position implements idsource.SegmentStore.
func (s *Store) Position(ctx context.Context, key string) (idsource.Position, error) {
	it, cluster, err := s.read(ctx, key)
	if err != nil {
		return idsource.Position{}, err
	}
	if it.revision == 0 {
		return idsource.Position{}, nil
	}
	if err := restored(it, cluster); err != nil {
		return idsource.Position{}, s.wrap(err)
	}
	return it.position(), nil
}

// position is a key as others know it.
func (v *value) position() idsource.Position {
	return idsource.Position{Next: max(1, v.Next), Used: v.Used, Unset: v.Next == 0, Sealed: v.sealed()}
}

// sealed is who sealed a key.
func (v *value) sealed() idsource.Seal {
	if v.Sealed {
		return max(v.Seal, idsource.UnknownSeal)
	}
	return 0
}

// Advance implements idsource.SegmentStore.
func (s *Store) Advance(ctx context.Context, key string, next uint64) error {
	return s.advance(ctx, nil, key, next)
}

func (s *Store) advance(ctx context.Context, during *term, key string, next uint64) error {
	return s.change(ctx, key, during, func(old item, cluster string) (value, error) {
		if err := restored(old, cluster); err != nil && next <= old.Next {
			return value{}, s.wrap(err)
		}
		switch {
		case old.revision == 0:
			return value{}, idsource.ErrNoKey
		case old.Sealed:
			return value{}, &idsource.SealedError{Next: old.Next}
		case old.Next >= next:
			return value{}, errUnchanged
		}
		return value{Next: next, Used: old.Used, Ordered: old.Ordered || during != nil}, nil
	})
}

// Open implements idsource.SegmentStore.
func (s *Store) Open(ctx context.Context, key string, next uint64, seal idsource.Seal) error {
	return s.change(ctx, key, nil, func(old item, cluster string) (value, error) {
		if old.Sealed && old.sealed() != seal && seal != idsource.AnySeal {
			return value{}, &idsource.SealedError{Next: old.Next}
		}
		if err := restored(old, cluster); err != nil && next <= old.Next {
			return value{}, s.wrap(err)
		}
		if old.revision != 0 && !old.Sealed && old.Next >= next {
			return value{}, errUnchanged
		}
		return value{Next: max(old.Next, next), Used: old.Used, Ordered: old.Ordered}, nil
	})
}

// Seal implements idsource.SegmentStore.
func (s *Store) Seal(ctx context.Context, key string, below uint64, seal idsource.Seal) (at idsource.Position, err error) {
	err = s.change(ctx, key, nil, func(old item, _ string) (value, error) {
		v, is := old.value, error(nil)
		if old.Sealed || old.Next >= below {
			is = errUnchanged
		} else {
			v.Sealed, v.Seal = true, seal
		}
		at = v.position()
		return v, is
	})
	return at, err
}

// Set puts an existing key at next, also below where it stands, and opens it: whoever calls
// it knows that no id from next on is in use. It belongs to the cluster then, and is in no order.
func (s *Store) Set(ctx context.Context, key string, next uint64) error {
	return s.change(ctx, key, nil, func(old item, _ string) (value, error) {
		return value{Next: next, Used: old.Used}, nil
	})
}

// GiveBack implements idsource.SegmentStore.
func (s *Store) GiveBack(ctx context.Context, key string, lo, hi uint64) (back bool, err error) {
	return s.giveBack(ctx, nil, key, lo, hi)
}

// giveBack tries once. Where it is not known whether the key was moved, another process may have
// reserved the same ids since: the key then stands where it stood, and must not be moved back again.
func (s *Store) giveBack(ctx context.Context, during *term, key string, lo, hi uint64) (back bool, err error) {
	old, cluster, err := s.read(ctx, key)
	if err != nil || old.revision == 0 || old.Next != hi || lo >= hi || old.Sealed || restored(old, cluster) != nil {
		return false, err
	}
	is, err := s.swap(ctx, key, during, old, value{Next: lo, Used: true, Ordered: old.Ordered, Cluster: cluster}, nil)
	return is == nil && err == nil, err
}

// Keys lists the keys there are.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	known := s.known()
	r, err := try(ctx, s, func(ctx context.Context) (*client.GetResponse, error) {
		return s.c.Get(ctx, prefix, client.WithPrefix(), client.WithKeysOnly())
	})
	if err != nil {
		return nil, s.wrap(err)
	}
	if err := s.answered(known, r.Header.Revision); err != nil {
		return nil, err
	}
	var keys []string
	for _, kv := range r.Kvs {
		keys = append(keys, strings.TrimPrefix(string(kv.Key), prefix))
	}
	return keys, nil
}
