package mysql

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

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
