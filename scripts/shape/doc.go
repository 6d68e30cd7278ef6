// Command shape prints how dense the packages of this module are: how long their functions are, how
// they branch, how wide their types, and how tightly their files hold together. Tests and generated
// files do not count.
//
//	make shape
//	go run ./scripts/shape ./proxy/...
//
// The columns:
//
//	code       lines that have code
//	com%       share of comments among the lines that have either
//	func lines lines of functions: median, the longest but a tenth, the longest
//	cyc        the most ways through one function: 1 and 1 for each branch
//	>15%       share of functions with more than 15 of them
//	br         branches for each 100 lines of code: if, for, case, select, && and ||
//	struct     the struct with the most fields
//	methods    the type with the most methods
//	circle     the most files of which each refers, by way of others, to every other
//
// A ! stands behind what is above its limit. Limits are signs, not aims: where one fights clarity,
// clarity wins.
package main
