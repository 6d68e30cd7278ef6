// Package lease is the protocol by which processes share the worker numbers of
// a pool: who holds which number, for how long, and which timestamps may carry
// it. It knows neither a store nor a clock.
//
// A number is held under a token that only its holder knows. Beside the token
// the store keeps a fence, the bound of the timestamps that the holder may use.
// The holder looks at the fence for every id, raises it by a heartbeat before
// it gets there, and whoever holds the number next starts at the fence. So two
// holders of one number use different timestamps whatever their clocks say and
// however long one of them was stopped, as long as the store keeps what it was
// told.
//
// The other rules are for a store that does not: that was emptied, restarted
// from an older dump, or replaced by a replica that lags. They bound how much
// of the past such a store can have forgotten and wait that long. The test of
// this package walks through all states of a small model of owners, messages
// and disasters that obeys these very functions, and shows for each rule what
// goes wrong without it.
//
// All times are milliseconds since 1970 on the store's clock unless a name says
// otherwise. Functions are pure; stores that can compare and set (etcd, MySQL)
// call them by way of [FromTable], and the script of the Redis store is tested
// against them.
package lease
