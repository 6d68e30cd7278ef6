// Package snowflake composes ids from the time, a worker number and a sequence.
//
// A [Snowflake] writes a bound of its timestamps, the fence, into a store before it uses them, so
// that no other holder of its worker number gives the same ids, whatever the clock does. A [Layout]
// says where in an id each part stands.
package snowflake
