package width

import "os"

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
