// Package sizes is statements, replies and dumps around and beyond the size of a packet, and the
// memory they take.
package sizes
