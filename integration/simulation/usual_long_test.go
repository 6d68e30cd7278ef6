//go:build long

package simulation

// usualHours is how long fleets live where the tests are the long ones.
const usualHours = 30_000
