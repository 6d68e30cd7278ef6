// Package lifecycle is sessions and the program from start to end: logins and TLS, bad input,
// servers and clients that go away, drain, reload and limits.
package lifecycle
