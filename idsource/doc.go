// Package idsource is the contract of everything that hands out ids, n at a time, that no other
// process of the same store or worker pool hands out.
//
// A [Source] gives a [Series] for a table. The kinds of sources are in the folders below: segment
// reserves ranges of integers from a [SegmentStore], snowflake composes ids from the time, a worker
// number and a sequence, whose bound of timestamps a [FenceStore] keeps; uuid and objectid give ids
// that are no numbers. The stores are there, too, each with the driver it needs.
//
// The one invariant: what an id depends on (a range, a bound of timestamps) is durable in its store
// before any id of it leaves the process.
//
// A source is made by its New function, which checks the configuration and
// waits for nothing. It then serves Fill, Admit and Advance from any number of
// goroutines, whether or not its store can be reached; while it cannot, calls
// answer with an [*Error] after a bounded wait and the source keeps trying in
// the background. It ends with Close, which waits for its goroutines, gives
// back what was never issued and releases locks. A source owns no store: who
// opened the store closes it, after the sources.
package idsource
