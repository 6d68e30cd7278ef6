package simulation

import "slices"

// shrink returns as few of the faults as fail still says are enough, by delta debugging: it leaves
// out ever smaller parts, as long as that goes. tries bounds how often fail is asked.
func shrink(faults []int, tries int, fail func([]int) bool) []int {
	for part := max(1, len(faults)/2); ; part = (part + 1) / 2 {
		for from := 0; from < len(faults); {
			if tries--; tries < 0 {
				return faults
			}
			fewer := slices.Delete(slices.Clone(faults), from, min(len(faults), from+part))
			if fail(fewer) {
				faults = fewer
			} else {
				from += part
			}
		}
		if part == 1 {
			return faults
		}
	}
}
