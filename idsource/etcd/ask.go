package etcd

import (
	"cmp"
	"context"
	"errors"
	"sync"
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
	askBeside = 200 * time.Millisecond // what Store.beside is
	askPause  = 25 * time.Millisecond  // after an answer that there is no leader, and between two members that are asked at once
	askTwice  = 10 * time.Second       // for so long two are asked at once, once a member has been silent
	// askSpare is how many questions of a store may be asked again at once: an etcd that is slow because it is asked a lot
	// would be asked even more, and a silent member is passed soon enough.
	askSpare = 4
)

// try asks a question until there is an answer or ctx ends. Where none comes it asks again, beside
// the question that waits: that one may be lost with a leader, or its answer may take so long. The
// client turns to the next member each time, also to one that is silent, so that two are asked at once
// then. A question that changes something must say what it changes: it may be asked again after it has
// been heard.
func try[A any](ctx context.Context, s *Store, ask func(ctx context.Context) (A, error)) (answer A, err error) {
	type result struct {
		answer A
		err    error
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(client.WithRequireLeader(ctx))
	defer cancel()
	results := make(chan result)
	began, asked, waits := time.Now(), 0, 0
	spare := false
	defer func() {
		if spare {
			s.spare.Add(-1)
		}
	}()
	next := time.NewTimer(0)
	defer next.Stop()
	for ctx.Err() == nil { // also where more has come: what is asked behind its time is in vain
		select {
		case <-ctx.Done():
		case <-next.C:
			if waits > 0 && !spare {
				if spare = s.mayAskBeside(); !spare {
					next.Reset(askPause)
					continue
				}
			}
			asked, waits = asked+1, waits+1
			asking.Go(func() {
				var r result
				if r.err = s.login.first(ctx, s.c); r.err == nil {
					r.answer, r.err = ask(ctx)
				}
				select {
				case results <- r:
				case <-ctx.Done():
				}
			})
			pause := max(s.beside, time.Since(began)/8) // a cluster that is slow is not asked ever more
			if asked%2 == 0 && asked > 1 || asked == 1 && s.silent(began) {
				pause = askPause
			}
			next.Reset(pause)
		case r := <-results:
			if waits--; r.err == nil && waits > 0 && time.Since(began) >= s.beside {
				s.fellSilent()
			}
			if r.err == nil || ctx.Err() != nil || !s.again(r.err, time.Since(began)) {
				return r.answer, r.err
			}
			err = r.err
			next.Reset(askPause)
		}
	}
	return answer, cmp.Or(err, ctx.Err())
}

// mayAskBeside reports whether one more question may be asked again, and counts it.
func (s *Store) mayAskBeside() bool {
	if s.spare.Add(1) <= askSpare {
		return true
	}
	s.spare.Add(-1)
	return false
}

// fellSilent notes that a member answered while another one did not.
func (s *Store) fellSilent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silence = time.Now()
}

// silent says whether a member was silent a moment ago.
func (s *Store) silent(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.silence.IsZero() && now.Sub(s.silence) < askTwice
}

// again says whether an answer is none, and another one may come.
func (s *Store) again(err error, passed time.Duration) bool {
	e, said := errors.AsType[rpctypes.EtcdError](err)
	switch {
	case s.login.forgotten(err):
		return true
	case said && e.Code() == codes.Unavailable: // an election may be under way
		return true
	}
	// The client connects to none, or not yet again.
	return status.Code(err) == codes.Unavailable && passed < dialPause*3/2
}

// atOnce has a question fail whose members cannot be reached, with the reason why. The client
// would wait for one that can be, and then say nothing but that time is over.
func atOnce() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, question, answer any, c *grpc.ClientConn, next grpc.UnaryInvoker, o ...grpc.CallOption) error {
		return next(ctx, method, question, answer, c, append(o, grpc.WaitForReady(false))...)
	}
}
