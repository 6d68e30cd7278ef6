package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// load is clients who insert through all members, into all tables on all shards.
type load struct {
	end   context.CancelFunc
	group sync.WaitGroup

	rows    atomic.Int64 // that the servers confirmed
	noIDs   atomic.Int64 // statements that failed with 1467
	lost    atomic.Int64 // whose connection ended, or could not be made
	refused atomic.Int64 // with any other error, which is wrong
	other   atomic.Value // the last of these
}

const (
	rowsPerStatement = 20
	pause            = 20 * time.Millisecond // behind a failure
)

// pick says on which shard, and into which table, the next statement inserts.
type pick func(random *rand.Rand, s *shards) (shard int, table string)

// anywhere is any table of any shard. Nearly each statement is the first of a process for a table of
// a shard, for there are more of these than statements.
func anywhere(random *rand.Rand, s *shards) (int, string) {
	return random.IntN(s.first), name(random.IntN(s.tables))
}

// often is one table of each shard.
func often(random *rand.Rand, s *shards) (int, string) {
	shard := random.IntN(s.first)
	return shard, name(shard % s.tables)
}

// begin starts so many clients for each member.
func begin(t *testing.T, members []*member, clients int, where pick) *load {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	l := &load{end: end}
	for _, m := range members {
		for c := range clients {
			random := rand.New(rand.NewPCG(uint64(m.number), uint64(c)))
			l.group.Go(func() {
				for ctx.Err() == nil {
					shard, table := where(random, m.shards)
					l.note(m.insert(ctx, shard, table, rowsPerStatement))
				}
			})
		}
	}
	t.Cleanup(l.stop)
	return l
}

func (l *load) note(err error) {
	refused, told := errors.AsType[*mysql.MySQLError](err)
	switch {
	case err == nil:
		l.rows.Add(rowsPerStatement)
	case !told:
		l.lost.Add(1)
		time.Sleep(pause)
	case refused.Number == 1467:
		l.noIDs.Add(1)
		time.Sleep(pause)
	case refused.Number == 1053 || refused.Number == 1158: // the member ends; the server was lost
		l.lost.Add(1)
	default:
		l.other.Store(refused.Error())
		l.refused.Add(1)
	}
}

func (l *load) stop() {
	l.end()
	l.group.Wait()
}
