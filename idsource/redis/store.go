package redis

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/idsource/lease"
)

// Config says where a Store is.
type Config struct {
	Addrs    []string    // required: the server; or the Sentinels, or nodes of the cluster
	Master   string      // name of the group; then Addrs are Sentinels
	Cluster  bool        // Addrs are nodes of a cluster
	DB       int         // default 0
	Username string      // default: none
	Password string      // default: none
	TLS      *tls.Config // default: none
}

// Store is a lease.Store in Redis.
type Store struct {
	client  redis.UniversalClient
	sha     *redis.Script
	where   string // names the servers in errors
	cluster bool   // the client tries again by itself: its last error tells nothing of the tries before
}

var _ lease.Store = (*Store)(nil)

//go:embed pool.lua
var source string

// timeout bounds one try to reach the server. A heartbeat must not wait for
// longer than for the next one.
const timeout = time.Second

// New checks the configuration and connects to nothing.
func New(c Config) (*Store, error) { return within(c, timeout) }

// within is New with another bound of a try.
func within(c Config, timeout time.Duration) (*Store, error) {
	switch {
	case len(c.Addrs) == 0:
		return nil, errors.New("a redis store needs an address")
	case c.Master != "" && c.Cluster:
		return nil, errors.New("a redis store is a group under Sentinel or a cluster, not both")
	case c.Master == "" && !c.Cluster && len(c.Addrs) > 1:
		return nil, errors.New("several addresses need master (they are Sentinels) or cluster")
	}
	quiet.Do(func() { redis.SetLogger(discard{}) })
	options := &redis.UniversalOptions{
		Addrs: c.Addrs, MasterName: c.Master, IsClusterMode: c.Cluster, DB: c.DB,
		Username: c.Username, Password: c.Password, TLSConfig: c.TLS,
		// A script that took a number is not sent again: that would take another.
		MaxRetries: -1, DialerRetries: 1, DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout,
		ContextTimeoutEnabled: true, DisableIdentity: true, PoolSize: 4, ClientName: "idproxy",
	}
	if c.TLS != nil {
		options.Dialer = dialTLS(c.TLS)
	}
	return &Store{client: redis.NewUniversalClient(options), sha: redis.NewScript(source), where: "redis store " + strings.Join(c.Addrs, ","), cluster: c.Cluster}, nil
}

// quiet keeps the client from writing to standard error what it also returns.
var quiet sync.Once

type discard struct{}

func (discard) Printf(context.Context, string, ...any) {}

// Close closes the connections.
func (s *Store) Close() error { return s.client.Close() }

// keys lie in one slot of a cluster.
func keys(pool string) []string {
	base := "idproxy:{" + pool + "}:workers"
	return []string{base, base + ":free", base + ":held"}
}

func (s *Store) run(ctx context.Context, op string, a lease.Ask, flag string) (lease.Reply, error) {
	r := a.Rules
	v, err := s.sha.Run(ctx, s.client, keys(a.Pool), op, a.Shape, a.Worker, a.Token, a.Label, a.Last,
		r.Gap, r.Lead, r.Ahead, r.Reclaim, r.Quarantine(), flag, a.Beat, r.Skew).StringSlice()
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && !s.cluster {
		return lease.Reply{}, fmt.Errorf("%s: %w: %w", s.where, lease.ErrUnsent, err)
	}
	if err != nil {
		return lease.Reply{}, fmt.Errorf("%s: %w", s.where, err)
	}
	return parseReply(v)
}

const noServer = "the server does not say who it is: INFO must show run_id and master_replid"

var verdicts = map[string]lease.Verdict{
	"granted": lease.Granted, "anew": lease.Anew, "wait": lease.Wait, "nopool": lease.NoPool, "othershape": lease.OtherShape,
	"empty": lease.Empty, "gone": lease.Gone, "stolen": lease.Stolen, "late": lease.Late,
}

func parseReply(v []string) (lease.Reply, error) {
	if len(v) != 8 {
		return lease.Reply{}, fmt.Errorf("redis store: a reply of %d parts", len(v))
	}
	if v[0] == "noserver" {
		return lease.Reply{}, errors.New("redis store: " + noServer)
	}
	verdict, known := verdicts[v[0]]
	var n [6]int64
	var errs [6]error
	for i, text := range append(slices.Clone(v[1:6]), v[7]) {
		n[i], errs[i] = strconv.ParseInt(text, 10, 64)
	}
	if err := errors.Join(errs[:]...); err != nil || !known {
		return lease.Reply{}, fmt.Errorf("redis store: reply %.100q: %w", v, err)
	}
	return lease.Reply{
		Verdict: verdict, Worker: uint64(n[0]), Start: n[1], Fence: n[2], Now: n[3],
		Beat: n[3], // who is given a number is heard of in the same step
		Wait: time.Duration(n[4]) * time.Millisecond, Why: v[6], Rest: time.Duration(n[5]) * time.Millisecond,
	}, nil
}

// Take implements lease.Store.
func (s *Store) Take(ctx context.Context, a lease.Ask) (lease.Reply, error) {
	flag := "queue"
	if a.Reclaim {
		flag = "reclaim"
	}
	if a.Spare {
		flag = "spare"
	}
	return s.run(ctx, "take", a, flag)
}

// Renew implements lease.Store.
func (s *Store) Renew(ctx context.Context, a lease.Ask) (lease.Reply, error) {
	return s.run(ctx, "renew", a, "")
}

// Release implements lease.Store.
func (s *Store) Release(ctx context.Context, a lease.Ask) (lease.Reply, error) {
	return s.run(ctx, "release", a, "")
}

// poolMost is how many numbers a pool has: they are made by one script, and
// nobody else is answered meanwhile.
const poolMost = 1 << 16

// Add implements lease.Store.
func (s *Store) Add(ctx context.Context, f lease.Fill) (int, error) {
	if f.Numbers > poolMost {
		return 0, fmt.Errorf("%s: a pool has at most %d numbers; twice as many as there are processes are enough", s.where, poolMost)
	}
	flag := ""
	switch {
	case f.Fresh:
		flag = "fresh"
	case f.Grow:
		flag = "grow"
	}
	r, err := s.run(ctx, "add", lease.Ask{Pool: f.Pool, Shape: f.Shape, Worker: f.Numbers, Rules: f.Rules}, flag)
	if err != nil {
		return 0, err
	}
	if r.Verdict != lease.Granted {
		return 0, fmt.Errorf("%s: pool %s: %s: it has %s, the configuration says %s", s.where, f.Pool, r.Verdict, r.Why, f.Shape)
	}
	return int(r.Worker), nil
}

// Drop implements lease.Store.
func (s *Store) Drop(ctx context.Context, pool string, workers []uint64) (dropped []uint64, err error) {
	for _, w := range workers {
		r, err := s.run(ctx, "drop", lease.Ask{Pool: pool, Worker: w}, "")
		if err != nil {
			return dropped, err
		}
		switch r.Verdict {
		case lease.Granted:
			dropped = append(dropped, w)
		case lease.NoPool:
			return dropped, fmt.Errorf("%s: pool %s: %s", s.where, pool, r.Verdict)
		}
	}
	return dropped, nil
}

// Pools implements lease.Store. It goes through all keys of the servers.
func (s *Store) Pools(ctx context.Context) (pools []string, err error) {
	var mu sync.Mutex
	before, behind, _ := strings.Cut(keys("*")[0], "*")
	scan := func(ctx context.Context, c redis.Cmdable) error {
		found := c.Scan(ctx, 0, before+"*"+behind, 10_000).Iterator()
		for found.Next(ctx) {
			mu.Lock()
			pools = append(pools, strings.TrimSuffix(strings.TrimPrefix(found.Val(), before), behind))
			mu.Unlock()
		}
		return found.Err()
	}
	if c, ok := s.client.(*redis.ClusterClient); ok {
		err = c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
	} else {
		err = scan(ctx, s.client)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.where, err)
	}
	return pools, nil
}

// List implements lease.Store.
func (s *Store) List(ctx context.Context, pool string) (lease.Listing, error) {
	now, err := s.client.Time(ctx).Result()
	if err != nil {
		return lease.Listing{}, fmt.Errorf("%s: %w", s.where, err)
	}
	fields, err := s.client.HGetAll(ctx, keys(pool)[0]).Result()
	if err != nil {
		return lease.Listing{}, fmt.Errorf("%s: %w", s.where, err)
	}
	l := lease.Listing{Exists: fields["shape"] != "", Now: now.UnixMilli(), Records: map[uint64]lease.Record{}}
	l.Pool.Shape, l.Pool.Server = fields["shape"], fields["server"]
	if since := fields["since"]; since != "" {
		if l.Pool.Since, err = strconv.ParseInt(since, 10, 64); err != nil {
			return lease.Listing{}, fmt.Errorf("redis store: since: %w", err)
		}
	}
	for name, text := range fields {
		digits, isWorker := strings.CutPrefix(name, "w")
		w, err := strconv.ParseUint(digits, 10, 64)
		if !isWorker || err != nil {
			continue
		}
		if l.Records[w], err = lease.ParseRecord(text); err != nil {
			return lease.Listing{}, fmt.Errorf("redis store: worker %d: %w", w, err)
		}
	}
	return l, nil
}
