// Package monitor shows what a running idproxy does: metrics for Prometheus, answers for load
// balancers, a page for people, and an API for both.
//
// The package counts nothing itself. A [Program] is asked for its [State], and everything that is
// shown is made from that one answer, so that the page, the metrics and the API agree. Two things
// are kept here because they are remembered and not asked: [Events], which reads along with the
// log, and [Refusals], the shapes of statements that were refused or observed.
//
// It imports nothing of the proxy.
package monitor
