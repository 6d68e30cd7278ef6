// Package decide decides on held commands: what must be asked first, what is refused, and else what
// is done with the next piece of a text or with an execution. It does no I/O. A [Decider] is asked
// again from the start whenever something that it lacked was learned, and changes nothing.
//
// What is to be done is an [Order], of a type for each kind of command. Orders draw their ids and
// are written through a [Carrier], which is the session.
package decide
