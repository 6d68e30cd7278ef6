//go:build long

package width

// Long reports whether this run takes all the time it needs: every form in every mode with every
// kind of trigger, several times over. It is for builds with the tag long.
const Long = true
