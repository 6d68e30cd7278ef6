package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// layout is the bits of each part of a snowflake id. Only its shape is read here;
// idsource gives it its meaning.
type layout struct {
	time, datacenter, worker, sequence int
	unit                               time.Duration
	split                              bool // time/datacenter+worker/sequence
	ascends                            bool // the time comes first
	consecutive                        bool // the sequence comes last
}

// The parts of a layout. In an order of its own worker and sequence are named.
var (
	layoutTime   = regexp.MustCompile(`^([1-9]\d?)(s|ms|x10ms)?$`)
	layoutWorker = regexp.MustCompile(`^(?:([1-9]\d?)\+)?([1-9]\d?)$`)
	layoutBits   = regexp.MustCompile(`^[1-9]\d?$`)
)

var layoutUnits = map[string]time.Duration{"": time.Millisecond, "ms": time.Millisecond, "x10ms": 10 * time.Millisecond, "s": time.Second}

// joined is the layout as ids have it, which do not show where a datacenter's bits end.
func (l layout) joined() layout {
	l.datacenter, l.worker, l.split = 0, l.datacenter+l.worker, false
	return l
}

func parseLayout(s string) (l layout, ok bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return layout{}, false
	}
	at := [3]int{0, 1, 2} // of time, worker and sequence
	if strings.ContainsAny(s, "wq") {
		at = [3]int{-1, -1, -1}
		for i, part := range parts {
			kind := 0
			if number, is := strings.CutSuffix(part, "worker"); is {
				kind, parts[i] = 1, number
			} else if number, is := strings.CutSuffix(part, "seq"); is {
				kind, parts[i] = 2, number
			}
			at[kind] = i
		}
		if slices.Contains(at[:], -1) {
			return layout{}, false
		}
	}
	t, w := layoutTime.FindStringSubmatch(parts[at[0]]), layoutWorker.FindStringSubmatch(parts[at[1]])
	if t == nil || w == nil || !layoutBits.MatchString(parts[at[2]]) {
		return layout{}, false
	}
	var bits [4]int
	for i, text := range []string{t[1], w[1], w[2], parts[at[2]]} {
		bits[i], _ = strconv.Atoi(text) // digits by the expressions; an absent datacenter is 0
	}
	l = layout{
		time: bits[0], datacenter: bits[1], worker: bits[2], sequence: bits[3], unit: layoutUnits[t[2]], split: w[1] != "",
		ascends: at[0] == 0, consecutive: at[2] == 2,
	}
	workers := l.datacenter + l.worker
	return l, l.time+workers+l.sequence <= 63 && workers <= 32 && l.sequence <= 32
}
