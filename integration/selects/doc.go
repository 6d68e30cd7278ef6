// Package selects is INSERT ... SELECT beside writers: nothing is counted wrong, however the rows
// change meanwhile.
package selects
