// Package parity holds that a client without a rule on its tables cannot tell idproxy from the
// server: byte for byte over sessions of both protocols, over statements of a whole grammar, and by
// the results of other drivers' own tests.
package parity
