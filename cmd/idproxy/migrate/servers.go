package migrate

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
)

// servers knows a server again by whatever name it is reached. GET_LOCK takes a name on the whole server,
// so that a second connection to it does not get the same one. Where a server has no such locks, each name
// counts as a server.
type servers struct {
	lock string // the name that is taken on each
	met  []meeting
}

// meeting is a server that is there for the first time, and the connection that holds the lock.
type meeting struct {
	shard *shard
	conn  *sql.Conn
}

func newServers() *servers { return &servers{lock: "idproxy migrate " + rand.Text()} }

// same returns the shard that was met before and is on the same server; nil: there is none.
func (v *servers) same(ctx context.Context, s *shard) *shard {
	if s.away != nil {
		return nil
	}
	conn, err := s.server.DB.Conn(ctx)
	if err != nil {
		return nil
	}
	if v.takes(ctx, conn, v.lock) != no {
		v.met = append(v.met, meeting{s, conn})
		return nil
	}
	defer conn.Close()
	for i, m := range v.met {
		one := fmt.Sprintf("%s %d", v.lock, i)
		if v.takes(ctx, m.conn, one) == yes && v.takes(ctx, conn, one) == no {
			return m.shard
		}
	}
	return nil
}

// answer is what GET_LOCK says.
type answer = sql.NullBool

var yes, no = answer{Bool: true, Valid: true}, answer{Valid: true}

func (*servers) takes(ctx context.Context, conn *sql.Conn, name string) (a answer) {
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, 0)", name).Scan(&a); err != nil {
		return answer{}
	}
	return a
}

// forget gives the connections back. The locks end with them, and nobody else has their names.
func (v *servers) forget() {
	for _, m := range v.met {
		_ = m.conn.Close()
	}
}
