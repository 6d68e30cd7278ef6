package rule

import "fmt"

// TooGreatError says that a source gave an id that a column cannot hold.
type TooGreatError struct {
	Source string
	ID     uint64
	Most   uint64 // that the column holds
}

// Error says what to do about it.
func (e *TooGreatError) Error() string {
	return fmt.Sprintf("source %s gave id %d, and the column holds at most %d: make the column BIGINT or give it a source of smaller ids", e.Source, e.ID, e.Most)
}
