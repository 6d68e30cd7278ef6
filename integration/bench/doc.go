// Command bench measures what idproxy costs beside a direct connection, a plain TCP relay and
// HAProxy.
//
//	go run ./integration/bench            # everything, some twenty minutes; `make bench` runs this
//	go run ./integration/bench -quick     # a look: two short rounds at 8 connections
//	go run ./integration/bench -ids       # the id sources, and ids for programs beside a Redis: three minutes, no MySQL server
//	go run ./integration/bench -profile   # and where the time goes, by perf
//
// It starts a MariaDB server of its own with relaxed flushing, builds idproxy (without the race
// detector) and the relay of the folder below, and starts each as a process. There are two clients.
// One thread of this program speaks the wire protocol with packets made beforehand, so that two
// processors are enough to load the server. sysbench, where it is installed, is libmariadb as
// applications have it; its INSERTs go to tables of the engine BLACKHOLE.
//
// Every round measures each statement on each way, one right after the other in an order that
// rotates, on emptied tables. What is compared is processor time of the proxy's process per statement,
// read from the kernel's scheduler clock before and after: it hardly depends on what else the machine
// does, as elapsed time does. Ratios are taken to HAProxy in the same round, and medians over rounds.
// Nothing is asserted: the tables on standard output are for docs/benchmarks.md, progress goes to
// standard error.
package main
