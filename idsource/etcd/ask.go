package etcd

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	client "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// How a question is asked again. A member that passed it on to a leader that died says so after
// seven seconds only, and another leader is elected within one or two.
const (
	askTime  = 500 * time.Millisecond // for one member to answer; more after that time has passed twice
	askPause = 25 * time.Millisecond
)

// try asks a question, and asks it again where a member gives no answer or has no leader, until ctx
// ends. The client turns to the next member each time. A question that changes something must
// say what it changes: it may be asked again after it has been heard.
func (s *Store) try(ctx context.Context, ask func(ctx context.Context) error) error {
	began := time.Now()
	for {
		// Longer each time: where all answers take so long, one of them must come.
		one, cancel := context.WithTimeout(client.WithRequireLeader(ctx), max(askTime, time.Since(began)/2))
		err := s.login.first(one, s.c)
		if err == nil {
			err = ask(one)
		}
		late := one.Err() != nil
		cancel()
		switch e, said := errors.AsType[rpctypes.EtcdError](err); {
		case err == nil || ctx.Err() != nil:
			return err
		case s.login.forgotten(err):
		case late, said && e.Code() == codes.Unavailable: // an election may be under way
		case status.Code(err) == codes.Unavailable && time.Since(began) < dialPause+askTime: // the client connects to none, or not yet again
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(askPause):
		}
	}
}

// atOnce has a question fail whose members cannot be reached, with the reason why. The client
// would wait for one that can be, and then say nothing but that time is over.
func atOnce() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, question, answer any, c *grpc.ClientConn, next grpc.UnaryInvoker, o ...grpc.CallOption) error {
		return next(ctx, method, question, answer, c, append(o, grpc.WaitForReady(false))...)
	}
}
