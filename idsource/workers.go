package idsource

import (
	"context"
	"time"
)

// WorkerPool lends worker numbers that other processes may hold at other times.
type WorkerPool interface {
	// Keep holds a number for the tenant until ctx is done, and gives it back
	// then. While it has none it keeps trying, and says why.
	Keep(ctx context.Context, t Tenant)
}

// Term is what a pool allows: ids of a worker number with timestamps in
// [Start, Fence). Times are milliseconds since 1970, on the pool's clock.
type Term struct {
	Worker uint64
	Start  int64
	Fence  int64
	Now    int64         // the pool's clock
	Late   time.Duration // by how much Now may be too low
	Fresh  bool          // the first of a number, or of a lease that began anew: the number may be the one from before
}

// Tenant is who uses a number. One goroutine calls its methods.
type Tenant interface {
	// Unused is the first timestamp that the tenant's process has not used with a number, which it may have had from
	// elsewhere before; 0 when it used none.
	Unused(worker uint64) int64
	// Grant replaces the term.
	Grant(t Term)
	// Last is a bound of what was used: no timestamp above it.
	Last() int64
	// Revoke takes the term away. No timestamp above the one it returns was
	// used with it, or will be; 0 when nothing was used.
	Revoke() (last int64)
	// Report says why there is no term, or nil when all is well.
	Report(err error)
	// Swap is sent to when another number is wanted, and why.
	Swap() <-chan string
	// Shape is what the ids are composed of, and how many numbers that has room for.
	Shape() (s Shape, numbers uint64)
}
