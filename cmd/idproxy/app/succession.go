package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"idproxy/cmd/idproxy/handover"
	"idproxy/cmd/idproxy/sources"
	"idproxy/config"
	"idproxy/proxy"
)

// succession is how a program took another one's place, and has one take its own.
type succession struct {
	p     *Program
	start *handover.Start

	changing sync.Mutex // held while a successor comes up, or during a reload
	mu       sync.Mutex // guards what follows, and is held with it

	life      context.Context // of the program; nil until it has come up
	next      *handover.Successor
	succeeded chan struct{} // closed once a successor serves
}

// sourcesTime is how long a predecessor serves yet while its successor's sources come up.
const sourcesTime = 10 * time.Second

// inherit has the program's sources know how far their series were given to its predecessor.
func (s *succession) inherit() error {
	return s.start.Hear(func(value json.RawMessage) error {
		var all sources.HighWater
		if err := json.Unmarshal(value, &all); err != nil {
			return err
		}
		s.p.sources.Inherit(all)
		return nil
	})
}

// awaitSources waits in a successor until there are ids, so that nobody waits for them that the predecessor
// would have served.
func (s *succession) awaitSources(ctx context.Context) {
	if !s.start.Succeeds() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sourcesTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !s.p.sources.Come() {
		select {
		case <-ctx.Done():
			return // what it lacks its predecessor may lack, too
		case <-tick.C:
		}
	}
}

// comeUp says that the program serves. ctx is its life.
func (s *succession) comeUp(ctx context.Context) {
	s.awaitSources(ctx)
	s.mu.Lock()
	s.life = ctx
	s.mu.Unlock()
	for _, address := range s.start.Ready() {
		s.p.log.Warn("a socket of systemd is of no listener", "listen", address)
	}
	s.p.notify(daemon.SdNotifyReady)
	if s.start.Succeeds() {
		go s.outlive()
	}
}

// outlive waits until the program shares what its predecessors needed with nobody any more.
func (s *succession) outlive() {
	if err := s.start.Alone(); err != nil {
		s.p.log.Warn("it is not known whether the predecessor lives", "error.message", err)
		return // to share goes on being right
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.p.sources.Share(false)
		s.p.log.Info("the predecessor has ended")
	}
}

// change begins an upgrade or a reload, unless one is under way. What else has mu is over in a moment, and is waited for.
func (s *succession) change() (end func(), ok bool) {
	if !s.changing.TryLock() {
		return nil, false
	}
	s.mu.Lock()
	return func() { s.mu.Unlock(); s.changing.Unlock() }, true
}

// Upgrade has a successor serve in place of the program, which ends when its sessions have. On an
// error nothing has changed.
func (s *succession) Upgrade() error {
	next, err := (*handover.Successor)(nil), errors.New("an upgrade or a reload is under way: try again when it is over")
	if end, ok := s.change(); ok {
		defer end()
		next, err = s.succeed()
	}
	if err != nil {
		s.p.log.Error("not upgraded, this process goes on", "error.message", err)
		return err
	}
	s.next = next
	s.p.log.Info("a successor serves", "process.pid", next.PID)
	s.p.notify(fmt.Sprintf("MAINPID=%d", next.PID))
	close(s.succeeded)
	return nil
}

func (s *succession) succeed() (*handover.Successor, error) {
	switch {
	case s.life == nil:
		return nil, errors.New("it has not come up itself")
	case s.next != nil:
		return nil, fmt.Errorf("process %d serves already", s.next.PID)
	case s.p.srv.Phase() != proxy.Serving:
		return nil, errors.New("it drains: take that back with idproxy resume, or start another one when it has ended")
	case s.p.watch.inForce.Load().cfg.Order != nil:
		return nil, errors.New("it may lead series in one order, which cannot be handed over: restart it with another one beside it")
	}
	if err := mayTakeOver(s.p.watch.inForce.Load().cfg); err != nil {
		return nil, err
	}
	return s.start.Succeed(s.life, s.p.sources.HighWater())
}

// mayTakeOver looks whether the file, as it is now, lets a successor give ids beside this process, which
// goes on with what is in force.
func mayTakeOver(inForce *config.Config) error {
	cfg, err := config.Load(inForce.Path)
	if err != nil {
		return fmt.Errorf("the configuration must be one that this version reads, too: %w", err)
	}
	return config.Handover(inForce, cfg)
}

// handOver waits for a successor, lets it have what one process at a time can have, and ends.
func (s *succession) handOver(ctx context.Context, end func()) {
	select {
	case <-ctx.Done():
		s.mu.Lock() // a successor may just have come up
		next := s.next
		s.mu.Unlock()
		if next == nil {
			s.p.notify(daemon.SdNotifyStopping)
			return
		}
	case <-s.succeeded:
	}
	s.p.srv.StopAccepting()
	s.p.sources.Share(true)
	end()
}

// gone tells the successor that the program needs nothing any more.
func (s *succession) gone() {
	if s.next == nil {
		return
	}
	if err := s.next.Leave(s.p.sources.HighWater()); err != nil {
		s.p.log.Warn("the successor is not told that this process has ended", "error.message", err)
	}
}
