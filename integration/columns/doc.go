// Package columns is id columns of every type, the grants that they are read with, and tables on
// which rules meet other columns.
package columns
