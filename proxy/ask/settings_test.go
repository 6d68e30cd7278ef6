package ask

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"idproxy/integration/assert"
	"idproxy/proxy/facts"
)

func TestParseGreatest(t *testing.T) {
	for in, want := range map[string]uint64{"": 0, "-5": 0, "0": 0, "17": 17, "18446744073709551615": math.MaxUint64} {
		assert.Of(parseGreatest(in)).Equal(t, fmt.Sprintf("parseGreatest(%q)", in), want)
	}
	for _, in := range []string{"x", "1.5", "18446744073709551616"} {
		got, err := parseGreatest(in)
		assert.True(t, err != nil, "parseGreatest(%q) = %d; want an error", in, got)
	}
}

func TestReadProbed(t *testing.T) {
	row := func(values ...string) (r [][]byte) {
		for _, v := range values {
			r = append(r, []byte(v))
		}
		return r
	}
	good := row("ANSI_QUOTES", "gbk", "73686f70", "2", "1048576", "1", "17", "latin1")
	want := facts.Probed{SQLMode: "ANSI_QUOTES", Charset: "gbk", Connection: "latin1", Schema: []byte("shop"), Increment: 2, MaxPacket: 1 << 20, LastID: 17, Folds: true}
	got, ok := readProbed(good)
	assert.True(t, ok && cmp.Diff(want, got) == "", "%+v, %v; want %+v", got, ok, want)
	got, _ = readProbed(row("", "gbk", "73", "1", "1", "2", "0", "gbk"))
	assert.True(t, got.Folds, "lower_case_table_names=2 does not fold")
	for _, bad := range [][][]byte{nil, good[:7], row("", "gbk", "73", "x", "1", "0", "0", "gbk"), row("", "gbk", "73", "0", "1", "0", "0", "gbk"), row("", "gbk", "73", "1", "", "0", "0", "gbk"), row("", "gbk", "73", "1", "1", "0", "", "gbk")} {
		p, ok := readProbed(bad)
		assert.True(t, !ok, "%q is understood as %+v", bad, p)
	}
}
