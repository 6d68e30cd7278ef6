package main

import "slices"

// way is a way of a statement to the server: a target, and what idproxy does with it.
type way struct {
	name   string
	target *target
	fills  bool // idproxy fills ids
}

// How ways are called: a target by its name, and idproxy once for each thing that it does.
const (
	forwards = ", forwarded"
	fills    = ", filled"
)

// allWays are the ways through targets. There are two through each idproxy.
func allWays(targets []*target) (ways []way) {
	for _, t := range targets {
		if t.injects {
			ways = append(ways, way{t.name + forwards, t, false}, way{t.name + fills, t, true})
		} else {
			ways = append(ways, way{name: t.name, target: t})
		}
	}
	return ways
}

// waysTo are the ways of a statement, whose ids can be filled or not.
func waysTo(targets []*target, fillable bool) []way {
	return slices.DeleteFunc(allWays(targets), func(w way) bool { return w.fills && !fillable })
}
