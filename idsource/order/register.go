package order

import (
	"context"

	"idproxy/idsource"
)

// Register is where the processes of a store agree on who leads. It answers from what a majority
// confirmed. Questions may be asked again after they have been heard.
type Register interface {
	// Look reads who leads.
	Look(ctx context.Context) (Seen, error)
	// Take makes l the leader of a new term, if nothing has changed since seen. After an error it is
	// not known whether it did; nor after false, where l.Token may lead by a question that was
	// asked again. Look tells.
	Take(ctx context.Context, seen Seen, l Leader) (term int64, taken bool, err error)
	// Renew leaves a sign of life of a term. It is false when the term has ended.
	Renew(ctx context.Context, term int64, token string) (bool, error)
	// Resign ends a term, if it has not ended: nobody leads then.
	Resign(ctx context.Context, term int64, token string) error
	// During is the store of the register's segments for one term. It changes nothing once that has
	// ended: its methods answer with ErrDeposed.
	During(term int64, token string) idsource.SegmentStore
}
