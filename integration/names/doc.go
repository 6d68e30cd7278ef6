// Package names is names and texts in every character set and mode: what a table is called, and
// where a string ends.
package names
