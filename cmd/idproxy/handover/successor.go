package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Successor is a process that serves in place of this one.
type Successor struct {
	PID  int
	life *os.File // the end that is closed with this process
	tell *os.File // what it is told
}

// lastWord is how long a successor may take to listen at the end.
const lastWord = 5 * time.Second

// Leave tells it something, and that nothing is needed any more that one process at a time can have.
func (s *Successor) Leave(last any) error {
	err := s.tell.SetWriteDeadline(time.Now().Add(lastWord))
	if err == nil {
		err = json.NewEncoder(s.tell).Encode(last)
	}
	return errors.Join(err, s.tell.Close(), s.life.Close())
}

// comesUp is how long a successor may take until it serves.
const comesUp = time.Minute

// maxReport bounds what a successor may say.
const maxReport = 64 << 10

// Succeed starts a successor, tells it something, and returns once it serves. On an error there is none, and nothing
// has changed.
func (s *Start) Succeed(ctx context.Context, first any) (*Successor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	theirs, sockets, err := s.Sockets.copies()
	if err != nil {
		return nil, err
	}
	defer closeAll(sockets)
	told, report, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer told.Close() //nolint:errcheck // nothing was written
	left, life, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, report.Close())
	}
	hears, tell, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, report.Close(), left.Close(), life.Close())
	}
	text, err := json.Marshal(papers{Predecessors: 1 + len(s.lives), Sockets: theirs, Tells: true})
	if err != nil {
		return nil, errors.Join(err, report.Close(), left.Close(), life.Close(), hears.Close(), tell.Close())
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...) // by its path: the program may be another one by now
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = slices.Concat([]*os.File{report, left}, s.lives, sockets, []*os.File{hears})
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, variable+"=") }), variable+"="+string(text))
	err = cmd.Start()
	closeAll([]*os.File{report, left, hears})
	if err != nil {
		return nil, errors.Join(err, life.Close(), tell.Close())
	}
	telling := make(chan error, 1)
	go func() { telling <- json.NewEncoder(tell).Encode(first) }()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, cancel := context.WithTimeoutCause(ctx, comesUp, fmt.Errorf("it did not serve within %v", comesUp))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = told.SetReadDeadline(time.Unix(1, 0)) }) // a pipe has deadlines
	defer stop()
	if err := listen(told); err != nil {
		_ = cmd.Process.Kill() // it may have ended
		how := <-ended
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else if errors.Is(err, io.EOF) {
			err = fmt.Errorf("it ended without a word (%v): its log says why", how)
		}
		return nil, errors.Join(fmt.Errorf("the successor does not come up: %w", err), life.Close(), tell.Close())
	}
	s.Sockets.leave()
	_ = tell.SetWriteDeadline(time.Now().Add(lastWord)) // one that serves has listened, or is of a version that does not
	<-telling
	_ = tell.SetWriteDeadline(time.Time{})
	return &Successor{PID: cmd.Process.Pid, life: life, tell: tell}, nil
}

// listen returns nil once the successor says that it serves.
func listen(told io.Reader) error {
	var r report
	if err := json.NewDecoder(io.LimitReader(told, maxReport)).Decode(&r); err != nil {
		return err
	}
	if !r.Ready {
		return errors.New(r.Problem)
	}
	return nil
}
