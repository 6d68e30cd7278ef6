// Command bench measures what idproxy costs beside a direct connection, a plain TCP relay and
// HAProxy.
//
//	go run ./integration/bench            # everything, a quarter of an hour; `make bench` runs this
//	go run ./integration/bench -quick     # the same work in two short rounds
//	go run ./integration/bench -ids       # the id sources alone, two minutes, no server
//	go run ./integration/bench -profile   # and where idproxy's time goes, by perf
//
// It starts a MariaDB server of its own with relaxed flushing, builds idproxy (without the race
// detector) and the relay of the folder below, and starts each as a process. One thread of this
// program is the client of them all: it speaks the wire protocol with packets made beforehand, so
// that two processors are enough to load the server.
//
// Every round measures each workload against each target, one right after the other in an order
// that rotates, on emptied tables. What is compared is processor time of the proxy's process per
// statement, read from the kernel's scheduler clock before and after: it hardly depends on what
// else the machine does, as elapsed time does. Ratios are taken to the relay of the same round, and
// medians over rounds. The split into user and system time is sampled by the kernel at its tick and
// only as good as that. Nothing is asserted: the tables on standard output are for
// docs/benchmarks.md, progress goes to standard error.
package main
