package snowflake

import (
	"context"
	"errors"
	"time"

	"idproxy/idsource"
	"idproxy/inside"
)

// How long a worker number is held in turns, how long it is left to the others then, which is how
// often others look whether it is free, and how long that may take until it counts as an error.
const (
	turnTime  = 50 * time.Millisecond
	turnPause = 5 * time.Millisecond
	turnWait  = time.Second
)

// Share has the source hold its fixed worker number for moments only, when ids are asked for, so that
// another process that shares it has its turn. It is for the time in which one process takes the
// other's place: a turn costs two writes of the fence. A number from a pool is never shared.
func (s *Snowflake) Share(with bool) {
	s.turns.Store(with && s.cfg.Pool == nil)
	select {
	case s.switched <- struct{}{}:
	default: // keep looks anyway
	}
}

// anotherOnes reports whether only another one's turn keeps the source from its number.
func (s *Snowflake) anotherOnes(failed error) bool {
	return s.turns.Load() && errors.Is(failed, idsource.Held)
}

// takeTurn waits until ids are asked for, and holds the worker number for a moment. Between two turns
// the fence stands right behind the last id, and whoever has the next turn begins there.
func (s *Snowflake) takeTurn() {
	s.endTurn()
	select {
	case <-s.life.Done():
		return
	case <-s.switched:
		return
	case <-s.kick:
	}
	asked := time.Now()
	err := s.renew(s.time.units(s.time.wall()))
	for err != nil && s.lease == nil && time.Since(asked) < turnWait && s.life.Err() == nil && !errors.Is(err, idsource.BadConfig) {
		s.pause(turnPause) // it is another one's turn
		err = s.renew(s.time.units(s.time.wall()))
	}
	s.report(err)
	s.pause(turnTime)
}

// endTurn gives the number up, if it is held.
func (s *Snowflake) endTurn() {
	if s.lease == nil {
		return
	}
	last, granted := s.words.revoke()
	var fence uint64
	if granted {
		fence = last + 1
	}
	err := s.lease.Release(context.WithoutCancel(s.life), fence)
	s.lease = nil
	if err != nil {
		s.report(inside.Mark(err))
	}
	s.pause(turnPause)
}

func (s *Snowflake) pause(d time.Duration) {
	select {
	case <-s.life.Done():
	case <-time.After(d):
	}
}
