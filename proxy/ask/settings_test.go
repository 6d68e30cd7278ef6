package ask

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"idproxy/proxy/facts"
)

func TestParseGreatest(t *testing.T) {
	for in, want := range map[string]uint64{"": 0, "-5": 0, "0": 0, "17": 17, "18446744073709551615": math.MaxUint64} {
		if got, err := parseGreatest(in); got != want || err != nil {
			t.Errorf("parseGreatest(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"x", "1.5", "18446744073709551616"} {
		if got, err := parseGreatest(in); err == nil {
			t.Errorf("parseGreatest(%q) = %d; want an error", in, got)
		}
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
	if got, ok := readProbed(good); !ok || cmp.Diff(want, got) != "" {
		t.Errorf("%+v, %v; want %+v", got, ok, want)
	}
	if got, _ := readProbed(row("", "gbk", "73", "1", "1", "2", "0", "gbk")); !got.Folds {
		t.Error("lower_case_table_names=2 does not fold")
	}
	for _, bad := range [][][]byte{nil, good[:7], row("", "gbk", "73", "x", "1", "0", "0", "gbk"), row("", "gbk", "73", "0", "1", "0", "0", "gbk"), row("", "gbk", "73", "1", "", "0", "0", "gbk"), row("", "gbk", "73", "1", "1", "0", "", "gbk")} {
		if p, ok := readProbed(bad); ok {
			t.Errorf("%q is understood as %+v", bad, p)
		}
	}
}
