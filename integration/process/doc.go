// Package process runs the programs that tests, benchmarks and the demo need: database servers and
// idproxy itself.
//
// A Process belongs to the program that started it. It runs in a process group of its own, so that
// a Ctrl-C in the terminal reaches only the starter, which then stops things in order. When the
// starter dies without stopping it (a test that timed out, a kill -9), the kernel kills it.
// Everything it prints goes to one log file.
//
// It is not a supervisor: nothing is restarted and nothing is run in the background after the
// starter has gone. All methods of a Process may be called from several goroutines at once.
package process
