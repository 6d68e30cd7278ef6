package main

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

// waysTo are the ways through targets. There are two through each idproxy if ids can be filled.
func waysTo(targets []*target, fillable bool) (ways []way) {
	for _, t := range targets {
		switch {
		case !t.injects:
			ways = append(ways, way{name: t.name, target: t})
		case fillable:
			ways = append(ways, way{t.name + forwards, t, false}, way{t.name + fills, t, true})
		default:
			ways = append(ways, way{t.name + forwards, t, false})
		}
	}
	return ways
}
