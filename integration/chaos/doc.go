// Package chaos has the tests that harm running idproxy programs and the servers they depend on, and look whether an id
// comes twice. `make chaos` runs them for as long as wanted.
package chaos
