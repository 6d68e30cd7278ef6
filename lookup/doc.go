// Package lookup remembers answers by the bytes of a name. Who asks takes no lock and makes no
// string, whoever else asks or adds an answer at the moment. What is remembered is bounded: names
// push each other out.
package lookup
