// Package pair is a schema with rules, one without, and a proxy in front of both, and scripts that
// say what must come of each of their statements.
package pair
