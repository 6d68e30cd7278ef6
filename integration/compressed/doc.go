// Package compressed tests compressed connections between clients and idproxy, with the clients of both
// servers and with a client that breaks the rules.
package compressed
