package config

import "strings"

// Error is one problem of the file.
type Error struct {
	Pos     Pos
	Message string // what is wrong and what to do; never a secret
}

// Error is file:line:column: message.
func (e *Error) Error() string { return e.Pos.String() + ": " + e.Message }

// Errors is every problem of a file, sorted by position, never empty.
type Errors []*Error

// Error is one line for each problem.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives errors.Is and errors.As the single problems.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}
