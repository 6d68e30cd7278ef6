// Package etcd keeps the positions of segment keys in etcd, one key each below
// /idproxy/segment/. Any number of processes may share them. Ranges are taken
// by a transaction that compares the revision of the key, in one round trip
// unless another process was faster.
//
// etcd answers from a majority of its members, and what it has confirmed is
// kept while a majority keeps its disks. A cluster that was restored from a
// snapshot is found out by its id, which is kept with each position, and, by a
// process that ran before, by its revision.
//
// It also keeps pools of worker numbers, see [Store.Workers].
package etcd
