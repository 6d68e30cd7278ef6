package zookeeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"

	"idproxy/idsource/lease"
)

// root is the node that pools are below.
const root = "/idproxy/workers"

// Workers is a lease.Store of the ensemble. Times are those of this host. Closing it closes
// nothing.
func (s *Store) Workers() lease.Store { return lease.FromTable(table{s}) }

// Disposable is a store of numbers that are used once, with the same nodes.
func (s *Store) Disposable() lease.Store { return lease.Disposable(table{s}) }

type table struct{ s *Store }

// Close implements lease.Table.
func (t table) Close() error { return nil }

// Pools implements lease.Table.
func (t table) Pools(ctx context.Context) ([]string, error) {
	names, err := ask(ctx, t.s, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(root)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, t.s.wrap(err)
}

// Visit implements lease.Table.
func (t table) Visit(_ context.Context, pool string, do func(v lease.Visit) error) error {
	return t.s.wrap(do(&visit{s: t.s, base: root + "/" + pool}))
}

// visit is a stay at one pool.
type visit struct {
	s     *Store
	base  string // the pool's node: whoever reads the pool writes there, to hear of the epoch
	epoch string // in which that was
}

// poolValue is what ZooKeeper keeps of a pool.
type poolValue struct {
	Shape  string `json:"shape"`
	Server string `json:"server"`
	Since  int64  `json:"since"`
}

func (v *visit) pool() string { return v.base + "/pool" }

// Ten digits: the greatest number comes last.
func (v *visit) number(w uint64) string { return fmt.Sprintf("%s/%010d", v.base, w) }

// answered notes the epoch in which something was written: the upper half of its transaction's id.
// https://zookeeper.apache.org/doc/r3.8.0/zookeeperInternals.html#sc_guaranteesPropertiesDefinitions
func (v *visit) answered(stat *zk.Stat) error {
	n := stat.Mzxid >> 32
	if n == 0 {
		return errStandalone
	}
	name := fmt.Sprintf("epoch %d", n)
	if v.epoch != "" && v.epoch != name {
		return fmt.Errorf("the ensemble was in %s and is in %s now", v.epoch, name)
	}
	v.epoch = name
	return nil
}

// touch writes nothing new. What is read behind it in this session is no older.
func (v *visit) touch(ctx context.Context) (there bool, err error) {
	v.epoch = ""
	stat, err := ask(ctx, v.s, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(v.base, nil, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, v.answered(stat)
}

type node struct {
	data    []byte
	version int64 // 0: there is no such node
}

func (v *visit) get(ctx context.Context, path string) (node, error) {
	n, err := ask(ctx, v.s, func(c *zk.Conn) (node, error) {
		data, stat, err := c.Get(path)
		if err != nil {
			return node{}, err
		}
		return node{data, int64(stat.Version) + 1}, nil
	})
	if errors.Is(err, zk.ErrNoNode) {
		return node{}, nil
	}
	return n, err
}

// Read implements lease.Visit. The nodes of numbers are read one after the other: each is compared
// when it is written.
func (v *visit) Read(ctx context.Context, w lease.Workers) (lease.Page, error) {
	p := lease.Page{Now: v.s.clock().UnixMilli(), Records: map[uint64]lease.Record{}, Versions: map[uint64]int64{}}
	there, err := v.touch(ctx)
	if err != nil || !there {
		return p, err
	}
	p.Server = v.epoch
	n, err := v.get(ctx, v.pool())
	if err != nil {
		return p, err
	}
	if n.version > 0 {
		var value poolValue
		if err := json.Unmarshal(n.data, &value); err != nil {
			return p, fmt.Errorf("node %s holds %.100q, which no idproxy has written", v.pool(), n.data)
		}
		p.Exists, p.PoolVersion, p.Pool = true, n.version, lease.Pool(value)
	}
	numbers := []uint64{uint64(w)}
	if w < 0 {
		if numbers, err = v.numbers(ctx, w); err != nil {
			return p, err
		}
	}
	nodes, err := v.getAll(ctx, numbers)
	if err != nil {
		return p, err
	}
	for i, n := range nodes {
		if n.version == 0 {
			continue
		}
		if p.Records[numbers[i]], err = lease.ParseRecord(string(n.data)); err != nil {
			return p, fmt.Errorf("node %s: %w", v.number(numbers[i]), err)
		}
		p.Versions[numbers[i]] = n.version
	}
	return p, nil
}

// numbers lists the numbers that there are, or the greatest one.
func (v *visit) numbers(ctx context.Context, w lease.Workers) (list []uint64, err error) {
	names, err := ask(ctx, v.s, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(v.base)
		return names, err
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if name == path.Base(v.pool()) {
			continue
		}
		n, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("node %s/%s is none that an idproxy has written", v.base, name)
		}
		if w == lease.Highest && len(list) > 0 {
			list[0] = max(list[0], n)
			continue
		}
		list = append(list, n)
	}
	return list, nil
}

// getMost is how many nodes are asked for at once.
const getMost = 64

func (v *visit) getAll(ctx context.Context, numbers []uint64) ([]node, error) {
	nodes, errs := make([]node, len(numbers)), make([]error, len(numbers))
	var wg sync.WaitGroup
	for first := range min(getMost, len(numbers)) {
		wg.Go(func() {
			for i := first; i < len(numbers); i += getMost {
				if nodes[i], errs[i] = v.get(ctx, v.number(numbers[i])); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return nodes, errors.Join(errs...)
}

// write is one transaction, false: something is not as it was read. The pool's node is written
// too, so that the answer has the epoch. Where an answer was lost it may say false of what it wrote.
func (v *visit) write(ctx context.Context, ops ...any) (bool, error) {
	ops = append(ops, &zk.SetDataRequest{Path: v.base, Version: -1})
	r, err := ask(ctx, v.s, func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(ops...) })
	for _, changed := range []error{zk.ErrBadVersion, zk.ErrNodeExists, zk.ErrNoNode} {
		if errors.Is(err, changed) {
			return false, nil
		}
	}
	if err != nil {
		return false, err
	}
	stat, err := lastStat(r, len(ops))
	if err != nil {
		return false, err
	}
	return true, v.answered(stat)
}

// lastStat is what the last of some steps left.
func lastStat(r []zk.MultiResponse, steps int) (*zk.Stat, error) {
	if len(r) != steps || r[steps-1].Stat == nil {
		return nil, fmt.Errorf("a reply of %d parts to %d steps, or one that lacks its last part", len(r), steps)
	}
	return r[steps-1].Stat, nil
}

// set is a node's next content. version is that of its last, 0 when there is none.
func (v *visit) set(path string, version int64, data []byte) any {
	if version == 0 {
		return &zk.CreateRequest{Path: path, Data: data, Acl: v.acl()}
	}
	return &zk.SetDataRequest{Path: path, Data: data, Version: int32(version - 1)}
}

func (v *visit) acl() []zk.ACL {
	if c := v.s.cfg; c.Username != "" {
		return zk.DigestACL(zk.PermAll, c.Username, c.Password)
	}
	return zk.WorldACL(zk.PermAll)
}

func (v *visit) unchanged(old lease.Page) any {
	return &zk.CheckVersionRequest{Path: v.pool(), Version: int32(old.PoolVersion - 1)}
}

// WritePool implements lease.Visit.
func (v *visit) WritePool(ctx context.Context, old lease.Page, p lease.Pool) (bool, error) {
	if old.Server == "" { // the pool's node is to come first: it tells the epoch
		return false, v.makeNodes(ctx)
	}
	text, err := json.Marshal(poolValue(p))
	if err != nil {
		return false, err
	}
	return v.write(ctx, v.set(v.pool(), old.PoolVersion, text))
}

func (v *visit) makeNodes(ctx context.Context) error {
	name := ""
	for part := range strings.SplitSeq(strings.TrimPrefix(v.base, "/"), "/") {
		name += "/" + part
		_, err := ask(ctx, v.s, func(c *zk.Conn) (string, error) { return c.Create(name, nil, 0, v.acl()) })
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("make node %s: %w", name, err)
		}
	}
	return nil
}

// Write implements lease.Visit.
func (v *visit) Write(ctx context.Context, old lease.Page, w uint64, r lease.Record) (bool, error) {
	return v.write(ctx, v.unchanged(old), v.set(v.number(w), old.Versions[w], []byte(r.String())))
}

// Insert implements lease.Visit.
func (v *visit) Insert(ctx context.Context, old lease.Page, workers []uint64, r lease.Record) (bool, error) {
	ops := []any{v.unchanged(old)}
	for _, w := range workers {
		ops = append(ops, v.set(v.number(w), 0, []byte(r.String())))
	}
	return v.write(ctx, ops...)
}
