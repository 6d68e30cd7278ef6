// Package initial writes the first configuration for servers that are there: it reads their tables,
// decides which columns get ids and where those begin, and says what it left out.
//
// [Read] asks all servers, [Survey.Plan] decides without asking, and [Plan.YAML] writes. Only Read
// does I/O, and it changes nothing in the servers.
package initial
