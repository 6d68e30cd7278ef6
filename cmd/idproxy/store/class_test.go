package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"idproxy/integration/assert"
)

// redisError is what the client makes of a line that begins with a minus sign.
type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

func TestClassOf(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, tt := range []struct {
		err  error
		want Class
	}{
		{&mysql.MySQLError{Number: 1045, Message: "Access denied for user"}, Denied},
		{fmt.Errorf("mysql store: %w", &mysql.MySQLError{Number: 1142, Message: "INSERT command denied"}), Denied},
		{&mysql.MySQLError{Number: 1205, Message: "Lock wait timeout exceeded"}, Other},
		{redisError("WRONGPASS invalid username-password pair or user is disabled."), Denied},
		{redisError("NOAUTH Authentication required."), Denied},
		{redisError("LOADING Redis is loading the dataset in memory"), Other},
		{rpctypes.ErrAuthFailed, Denied},
		{rpctypes.ErrPermissionDenied, Denied},
		{rpctypes.ErrNoLeader, Other},
		{&os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, Denied},
		{fmt.Errorf("ask: %w", context.DeadlineExceeded), Timeout},
		{&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, Timeout},
		{fmt.Errorf("ask: %w", refused), Unreachable},
		{io.EOF, Unreachable},
		{errors.New("something else"), Other},
	} {
		assert.Equal(t, fmt.Sprint(tt.err), ClassOf(tt.err), tt.want)
	}
}

func TestMatching(t *testing.T) {
	keys := []string{"ids_a", "ids_", "ids.a", "a_b", "xids_a"}
	got := Matching("ids_{table}", keys)
	assert.True(t, slices.Equal(got, []string{"ids_a"}), "got %q", got)
	got = Matching("{schema}.{table}", keys)
	assert.True(t, slices.Equal(got, []string{"ids.a"}), "got %q", got)
}
