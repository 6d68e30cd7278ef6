//go:build !faultinject

package segment

// beginOff is a negative control that this build does not have.
const beginOff = false
