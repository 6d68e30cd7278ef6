package width

import (
	"os"
	"testing"
)

// Variable is what `make test-matrix` sets in the environment.
const Variable = "IDPROXY_MATRIX"

// Matrix reports whether this run is a wide one. Runs with the build tag long are.
func Matrix() bool { return Long || os.Getenv(Variable) != "" }

// Of returns narrow for `make test`, and matrix for `make test-matrix`.
func Of[T any](narrow, matrix T) T {
	if Matrix() {
		return matrix
	}
	return narrow
}

// Wide skips a test, or a part of one, that runs in `make test-matrix` only, and says why.
func Wide(tb testing.TB, why string) {
	tb.Helper()
	if !Matrix() {
		tb.Skipf("skipped: %s; runs in: make test-matrix", why)
	}
}

// InLong is Wide of what runs in `make test-long` only.
func InLong(tb testing.TB, why string) {
	tb.Helper()
	if !Long {
		tb.Skipf("skipped: %s; runs in: make test-long", why)
	}
}

// Need skips a test that needs what this machine does not have, such as a right or a program. In
// continuous integration, which sets CI, the test fails instead.
func Need(tb testing.TB, what string, has bool) {
	tb.Helper()
	switch {
	case has:
	case os.Getenv("CI") != "":
		tb.Fatalf("this machine lacks %s", what)
	default:
		tb.Skipf("skipped: this machine lacks %s; runs in: continuous integration", what)
	}
}
