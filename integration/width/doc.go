// Package width says how much of what repeats itself a run of tests does.
//
// `make test` makes every kind of comparison on both servers. `make test-matrix` makes the same
// comparisons with more servers, character sets, seeds, sizes and triggers. A test has both widths
// in one place:
//
//	for round := range width.Of(1, 3) {
//
// A test that a narrow run leaves out calls [Wide]. It is counted as skipped, with the reason.
//
// What a test compared it logs, for package testrun to add up:
//
//	t.Logf("compared: %d statements, %d facets", statements, facets)
package width
