// Package holders runs processes that hold worker numbers and issue ids with
// them, so that tests can do them harm, and has the tests that every
// [lease.Store] must pass.
//
// A holder is the test program itself, started again with a [Job]: a TestMain calls [Main] first.
// It writes the ids that it issues to its standard output, where the parent, which is never killed,
// takes note of them.
package holders
