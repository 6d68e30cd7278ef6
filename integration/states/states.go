// Package states walks through all states of a model.
package states

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// Steps are those that lead on from a state.
type Steps[S comparable] struct {
	To   []S
	Said []string // what each step is, where that was asked for
	Bad  int      // the place of a step that must not be possible; -1: there is none
}

// Walk visits the states that next leads to, nearest first, until there are none left, limit is reached,
// or a step is bad. Then trace says how that came about. next may use its slices again.
func Walk[S comparable](first S, limit int, next func(from S, say bool) Steps[S]) (states int, whole bool, trace string) {
	type visited struct {
		state  S
		parent int32
	}
	seed, seen := maphash.MakeSeed(), make(map[uint64]struct{}, 1<<16)
	queue := []visited{{first, -1}}
	for i := 0; i < len(queue); i++ {
		if len(queue) >= limit {
			return len(queue), false, ""
		}
		steps := next(queue[i].state, false)
		if steps.Bad >= 0 {
			path := []S{steps.To[steps.Bad]}
			for at := int32(i); at >= 0; at = queue[at].parent {
				path = append(path, queue[at].state)
			}
			slices.Reverse(path)
			return len(queue), false, explain(path, next)
		}
		for _, s := range steps.To {
			// A hash in place of the state: two of ten million collide once in a hundred thousand runs.
			h := maphash.Comparable(seed, s)
			if _, ok := seen[h]; !ok {
				seen[h] = struct{}{}
				queue = append(queue, visited{s, int32(i)})
			}
		}
	}
	return len(queue), true, ""
}

// explain words a path. A step that begins with two spaces is time.
func explain[S comparable](path []S, next func(S, bool) Steps[S]) string {
	var lines []string
	now := 0
	for i := range path[1:] {
		steps := next(path[i], true)
		said := steps.Said[slices.Index(steps.To, path[i+1])]
		lines = append(lines, fmt.Sprintf("%2d  %s", now, said))
		if strings.HasPrefix(said, "  ") {
			now++
		}
	}
	return strings.Join(lines, "\n")
}
