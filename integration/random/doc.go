// Package random plays sessions that are drawn by chance, directly and through idproxy, and shrinks
// one that differs.
package random
