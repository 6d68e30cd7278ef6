package rule

import "sync/atomic"

// Reason is why a statement that a rule concerns is refused. The set is closed: metrics have it as
// a label.
type Reason uint8

// The reasons.
const (
	OtherReason    Reason = iota // something that has none of its own
	NoIDs                        // the source gave none
	OtherForm                    // the form of the statement is none that gets ids
	WouldStoreZero               // the rule forwards the form, and the server would store 0
	ExplicitID                   // explicit: reject, and the statement brings an id
	NoNumber                     // explicit: advance, and the statement brings an id that is no whole number
	BelowZero                    // an id below zero for an unsigned column
	LongID                       // an id that is too long
	NoColumn                     // the table lacks the rule's column
	ColumnType                   // the column's type cannot hold the ids
	Undecided                    // what the statement writes to could not be found out
	Miscounted                   // the server counts other parameters
	RowsComing                   // rows came again and again while an INSERT ... SELECT was counted
	TooLarge                     // the statement is too large with its ids, or to be held
	TooGreat                     // the source gave an id that is too great for the column
	OtherShard                   // the key of a row is of another shard than the listener's
	Reasons                      // how many there are
)

var reasonNames = [Reasons]string{
	"other", "no_ids", "form", "would_store_zero", "explicit_id", "no_number", "below_zero", "long_id", "no_column", "column_type",
	"undecided", "miscounted", "rows_coming", "too_large", "id_too_great", "other_shard",
}

// String returns the reason as metrics have it.
func (r Reason) String() string { return reasonNames[r] }

// Counts is what a rule came to. Its methods take a nil one, which counts nothing.
type Counts struct {
	ids, observed atomic.Uint64
	refused       [Reasons]atomic.Uint64
}

// Drew counts n ids.
func (c *Counts) Drew(n int) {
	if c != nil {
		c.ids.Add(uint64(n))
	}
}

// Observed counts a statement that the rule would have filled or refused.
func (c *Counts) Observed() {
	if c != nil {
		c.observed.Add(1)
	}
}

// Refused counts a statement.
func (c *Counts) Refused(why Reason) {
	if c != nil {
		c.refused[why].Add(1)
	}
}

// Load returns ids, observed statements, and refused ones by reason.
func (c *Counts) Load() (ids, observed uint64, refused [Reasons]uint64) {
	for i := range c.refused {
		refused[i] = c.refused[i].Load()
	}
	return c.ids.Load(), c.observed.Load(), refused
}
