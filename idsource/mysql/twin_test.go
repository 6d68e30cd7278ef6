package mysql

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// leafTable is scripts/leaf_alloc.sql of Meituan-Dianping/Leaf.
const leafTable = "CREATE TABLE `leaf_alloc` (`biz_tag` varchar(128) NOT NULL DEFAULT '', `max_id` bigint(20) NOT NULL DEFAULT '1', " +
	"`step` int(11) NOT NULL, `description` varchar(256) DEFAULT NULL, " +
	"`update_time` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (`biz_tag`)) ENGINE=InnoDB"

// leaf is one process of Leaf: SegmentIDGenImpl and IDAllocDaoImpl of leaf-core, line by line for
// one key.
type leaf struct {
	db      *sql.DB
	key     string
	maxStep int64 // Leaf's is 1,000,000
	buffer  leafBuffer
}

// leafBuffer is SegmentBuffer.
type leafBuffer struct {
	lock            sync.RWMutex
	init            sync.Mutex // synchronized (buffer)
	initOK          atomic.Bool
	segments        [2]leafSegment
	current         atomic.Int32
	nextReady       atomic.Bool
	threadRunning   atomic.Bool
	step, minStep   atomic.Int64
	updateTimestamp atomic.Int64 // milliseconds
	threads         sync.WaitGroup
}

// leafSegment is Segment.
type leafSegment struct{ value, max, step atomic.Int64 }

func newLeaf(db *sql.DB, key string, maxStep int64) *leaf {
	return &leaf{db: db, key: key, maxStep: maxStep}
}

// leafAlloc is LeafAlloc.
type leafAlloc struct{ maxID, step int64 }

// updateMaxID is updateMaxIdAndGetLeafAlloc, and updateMaxIdByCustomStepAndGetLeafAlloc where there is a
// step: an UPDATE and a SELECT in one transaction.
func (l *leaf) updateMaxID(step int64) (a leafAlloc, err error) {
	ctx := context.Background()
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return a, err
	}
	defer tx.Rollback() //nolint:errcheck // it was committed, or there is an error already
	if step == 0 {
		_, err = tx.ExecContext(ctx, "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?", l.key)
	} else {
		_, err = tx.ExecContext(ctx, "UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?", step, l.key)
	}
	if err != nil {
		return a, err
	}
	row := tx.QueryRowContext(ctx, "SELECT max_id, step FROM leaf_alloc WHERE biz_tag = ?", l.key)
	return a, errors.Join(row.Scan(&a.maxID, &a.step), tx.Commit())
}

// update is updateSegmentFromDb.
func (l *leaf) update(s *leafSegment) error {
	const duration = 15 * 60 * 1000
	b, now := &l.buffer, time.Now().UnixMilli()
	var alloc leafAlloc
	var err error
	switch since := now - b.updateTimestamp.Load(); {
	case !b.initOK.Load() || b.updateTimestamp.Load() == 0:
		if alloc, err = l.updateMaxID(0); err != nil {
			return err
		}
		if b.initOK.Load() {
			b.updateTimestamp.Store(now)
		}
		b.step.Store(alloc.step)
	default:
		next := b.step.Load()
		switch {
		case since < duration && next*2 <= l.maxStep:
			next *= 2
		case since >= 2*duration && next/2 >= b.minStep.Load():
			next /= 2
		}
		if alloc, err = l.updateMaxID(next); err != nil {
			return err
		}
		b.updateTimestamp.Store(now)
		b.step.Store(next)
	}
	b.minStep.Store(alloc.step)
	s.value.Store(alloc.maxID - b.step.Load()) // must be set before max
	s.max.Store(alloc.maxID)
	s.step.Store(b.step.Load())
	return nil
}

// errNotReady is EXCEPTION_ID_TWO_SEGMENTS_ARE_NULL.
var errNotReady = errors.New("both two segments are not ready")

// get is get and getIdFromSegmentBuffer.
func (l *leaf) get() (int64, error) {
	b := &l.buffer
	if !b.initOK.Load() {
		b.init.Lock()
		if !b.initOK.Load() {
			if err := l.update(&b.segments[b.current.Load()]); err != nil {
				b.init.Unlock()
				return 0, err
			}
			b.initOK.Store(true)
		}
		b.init.Unlock()
	}
	for {
		if value, ok := l.take(); ok {
			return value, nil
		}
		for range 10_000 { // waitAndSleep
			if !b.threadRunning.Load() {
				break
			}
			runtime.Gosched()
		}
		if b.threadRunning.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		value, ok, err := l.swap()
		if ok || err != nil {
			return value, err
		}
	}
}

// take is the half of getIdFromSegmentBuffer under the read lock.
func (l *leaf) take() (value int64, ok bool) {
	b := &l.buffer
	b.lock.RLock()
	defer b.lock.RUnlock()
	s := &b.segments[b.current.Load()]
	idle := s.max.Load() - s.value.Load()
	if !b.nextReady.Load() && float64(idle) < 0.9*float64(s.step.Load()) && b.threadRunning.CompareAndSwap(false, true) {
		b.threads.Go(l.loadNext)
	}
	value = s.value.Add(1) - 1
	return value, value < s.max.Load()
}

// loadNext is what getIdFromSegmentBuffer has a thread do.
func (l *leaf) loadNext() {
	b := &l.buffer
	if err := l.update(&b.segments[1-b.current.Load()]); err != nil {
		b.threadRunning.Store(false)
		return
	}
	b.lock.Lock()
	b.nextReady.Store(true)
	b.threadRunning.Store(false)
	b.lock.Unlock()
}

// swap is the half of getIdFromSegmentBuffer under the write lock.
func (l *leaf) swap() (value int64, ok bool, err error) {
	b := &l.buffer
	b.lock.Lock()
	defer b.lock.Unlock()
	s := &b.segments[b.current.Load()]
	if value = s.value.Add(1) - 1; value < s.max.Load() {
		return value, true, nil
	}
	if !b.nextReady.Load() {
		return 0, false, errNotReady
	}
	b.current.Store(1 - b.current.Load())
	b.nextReady.Store(false)
	return 0, false, nil
}

// nextID returns the next id, as clients of Leaf do that try again.
func (l *leaf) nextID() (uint64, error) {
	for {
		id, err := l.get()
		if errors.Is(err, errNotReady) {
			time.Sleep(time.Millisecond)
			continue
		}
		return uint64(id), err
	}
}

func (l *leaf) close() { l.buffer.threads.Wait() }

// tinyidTable is that of tinyid-server/db.sql of didi/tinyid.
const tinyidTable = "CREATE TABLE `tiny_id_info` (`id` bigint(20) NOT NULL AUTO_INCREMENT, `biz_type` varchar(63) NOT NULL DEFAULT '', " +
	"`begin_id` bigint(20) NOT NULL DEFAULT '0', `max_id` bigint(20) NOT NULL DEFAULT '0', `step` int(11) DEFAULT '0', " +
	"`delta` int(11) NOT NULL DEFAULT '1', `remainder` int(11) NOT NULL DEFAULT '0', " +
	"`create_time` timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', `update_time` timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', " +
	"`version` bigint(20) NOT NULL DEFAULT '0', PRIMARY KEY (`id`), UNIQUE KEY `uniq_biz_type` (`biz_type`)) " +
	"ENGINE=InnoDB AUTO_INCREMENT=1 DEFAULT CHARSET=utf8"

// tinyid is one process of tinyid: CachedIdGenerator of tinyid-base, and DbSegmentIdServiceImpl and
// TinyIdInfoDAOImpl of tinyid-server, line by line for one key.
type tinyid struct {
	db  *sql.DB
	key string

	load          sync.Mutex // synchronized loadCurrent
	lock          sync.Mutex
	current, next atomic.Pointer[tinyidSegment]
	isLoadingNext atomic.Bool
	threads       sync.WaitGroup
}

// tinyidSegment is SegmentId: ids of (current, max].
type tinyidSegment struct {
	max, loading, delta, remainder int64
	current                        atomic.Int64
	mu                             sync.Mutex
	isInit                         atomic.Bool
}

func newTinyid(db *sql.DB, key string) *tinyid { return &tinyid{db: db, key: key} }

// init is SegmentId.init.
func (s *tinyidSegment) init() {
	if s.isInit.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isInit.Load() {
		return
	}
	if s.current.Load()%s.delta == s.remainder {
		s.isInit.Store(true)
		return
	}
	for i := int64(0); i <= s.delta; i++ {
		if s.current.Add(1)%s.delta == s.remainder {
			s.current.Add(-s.delta)
			s.isInit.Store(true)
			return
		}
	}
}

// getNextSegmentID is that of DbSegmentIdServiceImpl.
func (g *tinyid) getNextSegmentID() (*tinyidSegment, error) {
	ctx := context.Background()
	tx, err := g.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // it was committed, or there is an error already
	for range 3 {
		var id, old, step, version int64
		s := &tinyidSegment{}
		row := tx.QueryRowContext(ctx, "select id, max_id, step, delta, remainder, version from tiny_id_info where biz_type = ?", g.key)
		if err := row.Scan(&id, &old, &step, &s.delta, &s.remainder, &version); err != nil {
			return nil, err
		}
		r, err := tx.ExecContext(ctx, "update tiny_id_info set max_id= ?, update_time=now(), version=version+1"+
			" where id=? and max_id=? and version=? and biz_type=?", old+step, id, old, version, g.key)
		if err != nil {
			return nil, err
		}
		if n, err := r.RowsAffected(); err != nil || n != 1 {
			if err != nil {
				return nil, err
			}
			continue
		}
		s.max = old + step
		s.current.Store(old)
		s.loading = old + step*20/100
		return s, tx.Commit()
	}
	return nil, errors.New("get next segmentId conflict")
}

// loadCurrent is that of CachedIdGenerator.
func (g *tinyid) loadCurrent() error {
	g.load.Lock()
	defer g.load.Unlock()
	if s := g.current.Load(); s != nil && s.current.Load() <= s.max {
		return nil
	}
	if s := g.next.Load(); s != nil {
		g.current.Store(s)
		g.next.Store(nil)
		return nil
	}
	s, err := g.getNextSegmentID()
	if err == nil {
		g.current.Store(s)
	}
	return err
}

// loadNext is that of CachedIdGenerator.
func (g *tinyid) loadNext() {
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.next.Load() != nil || g.isLoadingNext.Load() {
		return
	}
	g.isLoadingNext.Store(true)
	g.threads.Go(func() {
		defer g.isLoadingNext.Store(false)
		if s, err := g.getNextSegmentID(); err == nil {
			g.next.Store(s)
		}
	})
}

// nextID returns the next id, as clients of tinyid do that try again.
func (g *tinyid) nextID() (uint64, error) {
	for range 1000 {
		s := g.current.Load()
		if s != nil {
			s.init()
			id := s.current.Add(s.delta)
			if id <= s.max {
				if id >= s.loading {
					g.loadNext()
				}
				return uint64(id), nil
			}
		}
		if err := g.loadCurrent(); err != nil {
			time.Sleep(time.Millisecond)
		}
	}
	return 0, errors.New("no ids of tinyid")
}

func (g *tinyid) close() { g.threads.Wait() }
