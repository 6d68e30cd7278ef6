// Package zookeeper keeps pools of worker numbers in ZooKeeper, below
// /idproxy/workers/: a node for each pool, below it one for what is kept of the
// pool as a whole and one for each number, which has the fence. Steps are
// transactions that compare the versions of nodes.
//
// No node is ephemeral. What a number was used with must outlive its holder, and
// a session ends by the server's time, whatever its owner is about to do: the
// lease is what package lease says, a heartbeat in the number's node.
//
// ZooKeeper confirms what a majority of its servers has. An ensemble that was put back to an older
// state is found out by its epoch, which each election ends. A server that runs standalone has no
// epochs of its own, and is refused: each one that is connected to is asked how it runs.
package zookeeper
