// Package faults has programs built with the tag faultinject believe in other clocks than the
// host's, and gives them stores that forget, for tests that must see what becomes of it. Other
// builds have nothing of it.
package faults
