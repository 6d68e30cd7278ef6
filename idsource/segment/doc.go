// Package segment hands out ids from ranges that it reserves from a store.
//
// A [Segment] keeps ranges in memory, asks for the next one before the last one is used up, and
// gives back what it did not use when it is closed. A [PerTable] keeps one for each table.
package segment
