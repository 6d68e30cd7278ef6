// Package handover has a running idproxy replaced by another one, and no client notice.
//
// The running process starts its successor: the same program by its path, which may be a new one,
// with the same arguments. It gets copies of all listening sockets, so that none is ever closed.
// Once the successor can serve it says so; from then on it alone accepts, and its predecessor
// drains. One that does not come up says why, and nothing has changed.
//
// Two pipes connect them. Over the first the successor says that it is ready, or why it is not. The
// second stays open for as long as the predecessor lives: its end is how the successor learns that
// nobody else needs what one process at a time can have. A successor that is replaced itself passes
// the ends of its own predecessors on.
//
// Sockets that systemd opened come by the same door: [Begin] finds both. DESIGN.md says what was
// decided.
package handover
