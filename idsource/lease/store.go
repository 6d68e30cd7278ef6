package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrUnsent is among the errors of a call of which it is certain that the store
// has not heard of it and will not.
var ErrUnsent = errors.New("nothing was sent")

// Store keeps pools. Each call is one atomic step there. After an error other
// than ErrUnsent it is unknown whether the step was made, or will be: what was
// sent can arrive long after its sender has given up.
type Store interface {
	// Take gives a number to a.Token, the one that [Rules.Choose] says.
	Take(ctx context.Context, a Ask) (Reply, error)
	// Renew moves the fence of a.Worker on.
	Renew(ctx context.Context, a Ask) (Reply, error)
	// Release makes a.Worker free.
	Release(ctx context.Context, a Ask) (Reply, error)
	// Add makes the pool when there is none, and adds the numbers below
	// f.Numbers that it lacks. It returns how many it lacked.
	Add(ctx context.Context, f Fill) (added int, err error)
	// Drop takes free numbers out of the pool and returns those it took.
	Drop(ctx context.Context, pool string, workers []uint64) (dropped []uint64, err error)
	// Pools returns the names of all pools that there are.
	Pools(ctx context.Context) ([]string, error)
	// List reads a pool.
	List(ctx context.Context, pool string) (Listing, error)
	// Close ends the store.
	Close() error
}

// Ask is what a process asks of a pool.
type Ask struct {
	Pool, Shape string
	Worker      uint64
	Use
	Label   string
	Numbers uint64 // the layout has room for so many
	Reclaim bool   // take a number that is silent when none is free
	Spare   bool   // take one only when many are free
	Rules   Rules
}

// Reply is what a store answers.
type Reply struct {
	Verdict Verdict
	Worker  uint64
	Start   int64
	Fence   int64
	Beat    int64         // as the record has it
	Now     int64         // the store's clock
	Wait    time.Duration // with Wait: how long
	Rest    time.Duration // to a renewal: for how long the pool rests yet
	Why     string        // with Wait, Empty and OtherShape: more
}

// Given is the answer to a caller who has the number of this record.
func Given(v Verdict, worker uint64, r Record) Reply {
	return Reply{Verdict: v, Worker: worker, Start: r.Start, Fence: r.Fence, Beat: r.Beat}
}

// Fill is what an administrator asks of a pool.
type Fill struct {
	Pool, Shape string
	Numbers     uint64
	Fresh       bool // no id of the shape was ever issued: skip the quarantine
	Grow        bool // leave numbers that were dropped as they are
	Rules       Rules
}

// Listing is a pool as it is at one moment.
type Listing struct {
	Pool    Pool
	Exists  bool
	Now     int64
	Records map[uint64]Record
}

// ShapeText is how a pool's shape is stored.
func ShapeText(layout string, epoch time.Time) string {
	return layout + " since " + epoch.UTC().Format(time.RFC3339Nano)
}

// String is how a record is stored: numbers, token and label apart by bars,
// the label, which may hold anything, last.
func (r Record) String() string {
	return fmt.Sprintf("%d|%s|%d|%d|%d|%s", r.State, r.Token, r.Beat, r.Start, r.Fence, r.Label)
}

// ParseRecord reads what String wrote.
func ParseRecord(text string) (Record, error) {
	parts := strings.SplitN(text, "|", 6)
	if len(parts) != 6 {
		return Record{}, fmt.Errorf("%.60q is no record of a worker number", text)
	}
	var n [4]int64
	for i, part := range []string{parts[0], parts[2], parts[3], parts[4]} {
		var err error
		if n[i], err = strconv.ParseInt(part, 10, 64); err != nil {
			return Record{}, fmt.Errorf("%.60q is no record of a worker number: %w", text, err)
		}
	}
	r := Record{State: State(n[0]), Token: parts[1], Beat: n[1], Start: n[2], Fence: n[3], Label: parts[5]}
	if r.State < Free || r.State > Dropped {
		return Record{}, fmt.Errorf("%.60q has an unknown state", text)
	}
	return r, nil
}
