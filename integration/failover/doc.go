// Package failover is listeners with several servers: one that is killed or becomes read-only, and
// hosts that vanish.
package failover
