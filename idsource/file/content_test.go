package file

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

func TestParsePositions(t *testing.T) {
	good := positions{"a": {Next: 1}, "b\n": {Next: math.MaxUint64, Used: true}}
	got, err := parsePositions(good.render())
	assert.True(t, err == nil && len(got) == 2 && got["b\n"] == good["b\n"], "parsePositions of what was rendered: %+v, %v", got, err)
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"no key", []string{"1 used"}, "no key"},
		{"key not closed", []string{`"a 1 used`}, "no key"},
		{"another quote", []string{"`a` 1 used"}, "not written as"},
		{"another escape", []string{`"\x61" 1 used`}, "not written as"},
		{"only a key", []string{`"a"`}, "not a number"},
		{"no space", []string{`"a"1 used`}, "neither new nor used"},
		{"leading zero", []string{`"a" 01 used`}, "not a number"},
		{"sign", []string{`"a" -1 used`}, "not a number"},
		{"too large", []string{`"a" 18446744073709551616 used`}, "not a number"},
		{"state", []string{`"a" 1 use`}, "neither new nor used"},
		{"more", []string{`"a" 1 used again`}, "neither new nor used"},
		{"twice", []string{`"a" 1 used`, `"a" 2 used`}, "line 3: keys are not in order"},
	} {
		assert.Of(parsePositions(seal(segmentsKind, tt.lines))).Fails(t, tt.name, tt.want)
	}
}

// Every flipped bit is noticed.
func TestDamage(t *testing.T) {
	whole := positions{"order_id": {Next: 2001, Used: true}, "x": {Next: 7}}.render()
	for i := range whole {
		for bit := range 8 {
			bad := bytes.Clone(whole)
			bad[i] ^= 1 << bit
			assert.Of(parsePositions(bad)).Fails(t, fmt.Sprintf("byte %d, bit %d flipped", i, bit), "")
		}
		assert.Of(parsePositions(whole[:i])).Fails(t, fmt.Sprintf("the first %d bytes were read as a whole file", i), "")
	}
}

// What parses renders to the very same bytes, so nothing in a file is ignored.
// Half of the inputs get a valid checksum, to get behind it.
func FuzzParse(f *testing.F) {
	f.Add(positions{"a": {Next: 1, Used: true}}.render(), false)
	f.Add([]byte(`"a" 1 used`), true)
	f.Add(newFence(7, testShape).render(), false)
	f.Add(renderWorkers([]uint64{1, 7}), false)
	f.Add([]byte("1\n7"), true)
	f.Add(tunings{"a b\"ü": {Step: 1, MaxStep: 1 << 60, Policy: "rate", Description: "x y"}}.render(), false)
	f.Add([]byte(`"a" 1 0 "" "b"`), true)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		for _, kind := range []string{segmentsKind, workersKind, fenceKind, tuningsKind} {
			in := data
			if sealed {
				in = seal(kind, strings.Split(string(data), "\n"))
			}
			var again []byte
			switch kind {
			case segmentsKind:
				if p, err := parsePositions(in); err == nil {
					again = p.render()
				}
			case workersKind:
				if w, err := parseWorkers(in); err == nil {
					again = renderWorkers(w)
				}
			case tuningsKind:
				if all, err := parseTunings(in); err == nil {
					again = all.render()
				}
			case fenceKind:
				if f, err := parseFence(in); err == nil {
					again = f.render()
				}
			}
			assert.True(t, again == nil || bytes.Equal(in, again), "%q was read as what is written %q", in, again)
		}
	})
}
