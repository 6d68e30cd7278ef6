package loaddata

import "errors"

// Errors of [Edit] for files whose ids have no certain place.
var (
	ErrShortLine = errors.New("a line that ends before its id, which is not the next field")
	ErrLongID    = errors.New("a field of more than 1,000 bytes for an id")
	ErrBroken    = errors.New("broken characters beside an id")
)
