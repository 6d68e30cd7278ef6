// Package simulation runs fleets of sixteen processes in one test: the real code of sources and of
// leases, over stores, networks, disks and clocks that are simulated, in virtual time. A seed
// replays a run. See DESIGN.md.
package simulation
