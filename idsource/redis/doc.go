// Package redis keeps pools of worker numbers in a Redis server, a group under
// Sentinel or a cluster.
//
// A pool is one hash, so that it is lost as a whole or not at all; two sorted
// sets beside it are indexes that only save looking at every number. Each step
// is one script and runs on the server's clock. The rules are those of package
// lease; a test runs both side by side.
package redis
