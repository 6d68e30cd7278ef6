package idsource

import "context"

// Source hands out ids. It is safe for concurrent use.
type Source interface {
	// Fill sets every element of ids, in ascending order. Within a run,
	// ids[i+1] is ids[i]+stride. A Segment makes one run whatever the number of
	// ids; a Snowflake makes runs that each lie within one unit of its time.
	//
	// stride is at least 1; it is what the session's auto_increment_increment
	// says, since clients compute the ids of rows 2..n from the first one.
	//
	// Errors are of type *Error; none of the ids may be used then. Fill waits
	// for a store or a clock no longer than ctx and the source's own limit
	// allow. It does not allocate unless it has to wait.
	Fill(ctx context.Context, ids []uint64, stride uint64) error

	// Admit is asked once per column, before its table gets a first id. column
	// names it in messages ("shop.orders.id of listener a"), highest is the greatest
	// value it holds, 0 when the table is empty. An error of kind Behind means that
	// ids at or below highest might be issued again.
	Admit(ctx context.Context, column string, highest uint64) error

	// Advance moves the source past an id that was written without it: after
	// a nil return neither id nor anything below it is issued that had not been
	// issued before. That holds for this process and for ranges that any process
	// fetches from now on. What another process holds in memory at this moment
	// it does issue, and a Snowflake speaks for its own worker number alone.
	// Admit comes first, for a column as for any other of its ids.
	//
	// An id that leaves the source no room to go on is refused with kind TooHigh
	// and moves nothing. After other errors the source may have moved.
	Advance(ctx context.Context, id uint64) error

	// Close ends the source: waits for its goroutines, gives back ids that were
	// never issued when the store allows it, and releases locks. Fill, Admit and
	// Advance answer with kind Closed from then on.
	Close(ctx context.Context) error
}

var (
	_ Source = (*Segment)(nil)
	_ Source = (*Snowflake)(nil)
)
