package idsource

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// ErrNoKey is what a SegmentStore answers when it has no such key.
var ErrNoKey = errors.New("the store has no such key")

// FullError is what Reserve answers when fewer ids than asked for lie between
// the key's position and the last id allowed. Nothing was reserved.
type FullError struct {
	Next uint64 // the key's position
}

// Error names the position.
func (e *FullError) Error() string {
	return fmt.Sprintf("no room for that many ids from %d on", e.Next)
}

// WentBackError is what Reserve answers when the key stands below Ask.High. Nothing
// was reserved.
type WentBackError struct {
	Next uint64 // the key's position
}

// Error names the position.
func (e *WentBackError) Error() string { return fmt.Sprintf("the key went back to %d", e.Next) }

// SealedError is what a SegmentStore answers of a key that was sealed. Nothing was changed.
type SealedError struct {
	Next uint64 // the key's position
}

// Error names the position, and what to do.
func (e *SealedError) Error() string {
	return fmt.Sprintf("the key is sealed at %d: where the series was moved, take the configuration that says where to; else idproxy source set opens it, above every id in use", e.Next)
}

// Ask is what a Segment wants from a store.
type Ask struct {
	Key   string // any bytes
	Count uint64 // ids, at least 1
	Floor uint64 // the range starts here or above
	Last  uint64 // greatest id allowed, below 2^64-1
	High  uint64 // where the caller knows the key to stand, or above; 0: not known
	By    string // who asks, for a Historian: host:process
}

// Position is where a key stands.
type Position struct {
	Next uint64 // the lowest id that no Reserve has taken, at least 1; 0 when there is no such key
	Used bool   // whether anything was ever reserved; false with Next 0 when there is no such key
	// Unset says that nobody chose Next, nor reserved anything: the key was opened at 0, or it is where new rows stand in the
	// table of another system.
	Unset bool
	// Sealed is not 0 where nobody reserves until the key is opened: who sealed it.
	Sealed Seal
}

// Seal is who sealed a key: a number that nobody else has. It is below 2^31.
type Seal uint32

// Seals that nobody draws.
const (
	UnknownSeal Seal = 1         // of a key that an earlier version sealed
	AnySeal     Seal = 1<<31 - 1 // for Open: whoever sealed the key
)

// NewSeal draws one.
func NewSeal() Seal { return UnknownSeal + 1 + Seal(rand.Uint32N(uint32(AnySeal-UnknownSeal-1))) }

// SegmentStore keeps one position per key. It is safe for concurrent use, by
// several processes where the store is shared. A key's position only moves up,
// except by GiveBack. Only Open and Seal make keys: of one that does not exist Reserve and Advance answer with ErrNoKey. Of a key
// that is sealed they answer with a *SealedError, and GiveBack moves nothing.
type SegmentStore interface {
	// Reserve takes a.Count ids and returns the half-open range [lo, hi). It
	// is durable on return. After an error that is none of ErrNoKey, *FullError,
	// *WentBackError and *SealedError it is unknown whether the range was taken; it is lost then.
	Reserve(ctx context.Context, a Ask) (lo, hi uint64, err error)
	// Position reads where the key stands. A key that does not exist is no error.
	Position(ctx context.Context, key string) (Position, error)
	// Advance moves the key up to next, never down.
	Advance(ctx context.Context, key string, next uint64) error
	// Open makes a key that does not exist, opens one that seal sealed, and has it stand at next or above; at 0 where the
	// caller does not know where its ids begin. One that is open is moved up. One that somebody else sealed is left alone, and
	// the error is a *SealedError; a store of several servers may have opened it on some. After another error it may have happened, and may yet happen.
	Open(ctx context.Context, key string, next uint64, seal Seal) error
	// GiveBack moves the key from hi down to lo if it still stands at hi, and
	// says whether it did. The caller has issued no id of [lo, hi).
	GiveBack(ctx context.Context, key string, lo, hi uint64) (bool, error)
	// Seal seals a key that is open and stands below a position, and returns where it stands then; another one it leaves alone.
	// Where somebody opened it again meanwhile it may say so.
	// Of one that does not exist it makes one that is sealed, where nobody reserved anything. A store whose keys other programs
	// use, too, seals none: errors.ErrUnsupported.
	Seal(ctx context.Context, key string, below uint64, seal Seal) (Position, error)
}

// Raiser is a SegmentStore of several parts, each of which gives ranges by
// itself: a range above an id says nothing of the other parts.
type Raiser interface {
	// Raise returns nil when no part gives a range below next any more.
	Raise(ctx context.Context, key string, next uint64) error
}

// Tuning is how a series is to be drawn from. What is zero is as the source's configuration says.
type Tuning struct {
	Step        uint64 // ids per range, to begin with
	MaxStep     uint64 // bound of the step's growth
	Policy      string // leaf, rate or fixed
	Description string // for people
}

// Tuner is a SegmentStore that keeps how its series are tuned.
type Tuner interface {
	// Tuning reads how a series is tuned. A key that does not exist is not tuned, which is no error.
	Tuning(ctx context.Context, key string) (Tuning, error)
	// Tune replaces how a series is tuned. What the store has no room for is an error, and changes
	// nothing. The error is ErrNoKey when there is no such key.
	Tune(ctx context.Context, key string, t Tuning) error
}

// Taken is a range of a series, and who took it.
type Taken struct {
	Lo, Hi uint64    // [Lo, Hi); what was given back of it may have been taken by another since
	At     time.Time // by the store's clock, or of who took it where the store has none
	By     string    // as Ask.By
}

// Historian is a SegmentStore that keeps for a while who took which range. Reserve writes that with the
// range, at once or not at all, and asks nothing more.
type Historian interface {
	// History reads the ranges of a key that begin at upTo or below, at most n, those with the
	// greatest ids first. A key that does not exist has none.
	History(ctx context.Context, key string, upTo uint64, n int) ([]Taken, error)
}

// Holding returns the range of id among those of History: the one taken last, where ranges
// overlap because a part was given back or an administrator moved the key down.
func Holding(history []Taken, id uint64) (found Taken, ok bool) {
	for _, t := range history {
		if t.Lo <= id && id < t.Hi && (!ok || t.At.After(found.At)) {
			found, ok = t, true
		}
	}
	return found, ok
}

// Spacing says which ids of the ranges of a series belong to it: those for which
// id % Every == Remainder.
type Spacing struct {
	Every     uint64 // at least 1
	Remainder uint64 // below Every
}

// Spaced is a SegmentStore of which series have every n-th id only; others' ids lie between.
type Spaced interface {
	// Spacing reads which ids a series has. From then on Reserve answers with an error when it is
	// found to have changed. The error is ErrNoKey when there is no such key.
	Spacing(ctx context.Context, key string) (Spacing, error)
}

// Shape is what ids of a worker pool are composed of. A worker's shape is kept
// with its fence: ids of two shapes could coincide.
type Shape struct {
	Layout string // canonical, with its unit: "41ms/10/12"
	Epoch  time.Time
}

// FenceStore keeps one fence per worker number.
type FenceStore interface {
	// Acquire takes the worker number for this process alone; several of its
	// sources may take it, which gives each a lease. A worker whose stored
	// shape differs is refused with an error of kind BadConfig, one that another
	// process holds with an error of kind Held.
	Acquire(ctx context.Context, worker uint64, s Shape) (Lease, error)
}

// Lease is a worker number held by this process. One goroutine uses it.
type Lease interface {
	// Fence is the lowest timestamp, in units since the epoch, that was never
	// allowed to any earlier holder of this worker; 0 for a worker never used.
	Fence() uint64
	// Raise stores a new fence. It is durable when Raise returns nil; after an
	// error the fence may stand at either value.
	Raise(ctx context.Context, fence uint64) error
	// Release gives the worker up. fence, when not 0, replaces the one that
	// was raised: the holder knows that it used no timestamp at or above it.
	Release(ctx context.Context, fence uint64) error
}
