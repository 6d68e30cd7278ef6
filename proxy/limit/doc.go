// Package limit counts what clients may have at once: sessions by listener, user and network, logins
// that are not over, and bytes of statements that are held. It knows no sessions and does no I/O.
package limit
