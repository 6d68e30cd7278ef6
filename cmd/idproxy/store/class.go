package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"os"

	"idproxy/idsource/etcd"
	"idproxy/idsource/mysql"
	"idproxy/idsource/redis"
	"idproxy/idsource/zookeeper"
)

// Class says what kind of error a store gave. The set is closed: metrics have it as a label.
type Class string

// The classes.
const (
	Denied      Class = "denied"      // the store answered, and turned the account away
	Timeout     Class = "timeout"     // no answer came in time
	Unreachable Class = "unreachable" // nobody listens there, or the connection broke
	Other       Class = "other"
)

// ClassOf returns the class of an error of a store.
func ClassOf(err error) Class {
	slow, isNet := errors.AsType[net.Error](err)
	_, broken := errors.AsType[*net.OpError](err)
	switch {
	case mysql.Denied(err), redis.Denied(err), etcd.Denied(err), zookeeper.Denied(err), errors.Is(err, os.ErrPermission):
		return Denied
	case errors.Is(err, context.DeadlineExceeded), isNet && slow.Timeout():
		return Timeout
	case broken, zookeeper.Away(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, driver.ErrBadConn):
		return Unreachable
	}
	return Other
}
