package idsource

import (
	"context"
	"errors"
)

// Source is what the configuration calls a source: one series of ids, or one for
// each table. It is safe for concurrent use.
type Source interface {
	// Series returns the series that a table's ids come from. It waits for nothing.
	// Errors are of type *Error.
	Series(schema, table string) (Series, error)

	// EachTable reports whether tables have series of their own.
	EachTable() bool

	// Standing says where the source stands. It waits for nothing.
	Standing() Standing

	// Close ends the source: waits for its goroutines, gives back ids that were
	// never issued when the store allows it, and releases locks. The methods of its
	// series answer with kind Closed from then on.
	Close(ctx context.Context) error
}

// Series hands out ids. It is safe for concurrent use.
//
// An id is a number, or, where Wide says so, two words: a UUID or an ObjectID.
type Series interface {
	// Wide reports whether an id is two words. Wide ids have no position: Admit and
	// Advance have nothing to compare, and Blocks is an error.
	Wide() bool

	// Fill sets every element of ids, in ascending order; a wide id takes two
	// elements. Within a run, ids[i+1] is ids[i]+stride. A Segment makes one run
	// whatever the number of ids; a Snowflake makes runs that each lie within one
	// unit of its time.
	//
	// stride is at least 1; it is what the session's auto_increment_increment
	// says, since clients compute the ids of rows 2..n from the first one. Wide ids
	// have none.
	//
	// Errors are of type *Error; none of the ids may be used then. Fill waits
	// for a store or a clock no longer than ctx and the source's own limit
	// allow. It does not allocate unless it has to wait.
	Fill(ctx context.Context, ids []uint64, stride uint64) error

	// Blocks reserves a run of size ids for each element of ids, ascending, and
	// sets it to the first of its run: all from ids[i] up to ids[i]+size-1 are the
	// caller's. size is a power of two. The runs of one call need not lie side by
	// side. See Fill for errors.
	Blocks(ctx context.Context, ids []uint64, size uint64) error

	// Admit is asked once per column, before its table gets a first id. column
	// names it in messages ("shop.orders.id of listener a"), highest is the greatest
	// value it holds, 0 when the table is empty. An error of kind Behind means that
	// ids at or below highest might be issued again.
	Admit(ctx context.Context, column string, highest uint64) error

	// Advance moves the series past an id that was written without it. After a nil
	// return the series issues neither id nor anything below it. This holds for this
	// process, and for ranges that any process fetches from now on. Another process still
	// issues what it holds in memory at this moment, and a Snowflake moves its own worker
	// number only. Admit comes before the first Advance for a column, as before its first
	// Fill.
	//
	// An id that leaves the series no room to go on is refused with kind TooHigh
	// and moves nothing. After other errors the series may have moved.
	Advance(ctx context.Context, id uint64) error

	// Return takes back the ids from first up to end, of which the caller has used
	// none, if they are the ones that Fill gave last. Where that is not so, or the
	// series takes none back, they are lost.
	Return(first, end uint64)
}

// Scattered is a Series whose ids lie anywhere, so that the greatest id of a column tells nothing of
// where the series stands. Its Advance is an error.
type Scattered interface {
	Series

	// Unissued returns ids of which the series has given none, by where it stands in its store; an
	// empty list when it is used up. A column that holds one of them shows that the store went back,
	// if the store stands at that moment where it stood before: another process may have given the id
	// meanwhile, and then the ids of another call are others.
	Unissued(ctx context.Context) ([]uint64, error)

	// Holds is the error for a column that does. It is of kind Behind.
	Holds(column string, id uint64) error
}

// OneSeries is embedded by sources that are a series of numbers themselves.
type OneSeries struct{ Issued }

// EachTable implements Source.
func (*OneSeries) EachTable() bool { return false }

// Wide implements Series.
func (*OneSeries) Wide() bool { return false }

// NoPosition is embedded by series of wide ids.
type NoPosition struct{ Issued }

// Standing implements Source: there are always ids.
func (p *NoPosition) Standing() Standing { return Standing{Issued: p.Given()} }

// EachTable implements Source.
func (*NoPosition) EachTable() bool { return false }

// Close implements Source: there is nothing to end.
func (*NoPosition) Close(context.Context) error { return nil }

// Wide implements Series.
func (*NoPosition) Wide() bool { return true }

// Blocks implements Series.
func (*NoPosition) Blocks(context.Context, []uint64, uint64) error {
	return &Error{Kind: BadConfig, Cause: errNoBlocks}
}

// Admit implements Series.
func (*NoPosition) Admit(context.Context, string, uint64) error { return nil }

// Advance implements Series.
func (*NoPosition) Advance(context.Context, uint64) error { return nil }

// Return implements Series.
func (*NoPosition) Return(uint64, uint64) {}

var errNoBlocks = errors.New("its ids are no numbers")
