// Package idsources measures the id sources without a MySQL server: what an id costs beside a bare atomic
// addition and beside two Go libraries of snowflake ids, what a source takes of the processor when
// it gives all that its layout allows, how long a caller waits where one range ends and the next
// begins, and what an id costs that a program asks for, over the Redis protocol and over HTTP, beside
// INCR of a Redis. Other programs import those libraries: only this package does here.
package idsources
