// Package faults has programs built with the tag faultinject believe in other clocks than the
// host's, and leave out a guard, for tests that must see what becomes of it. Other builds have
// nothing of it.
package faults
