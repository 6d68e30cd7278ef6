package charset

import (
	"testing"

	"idproxy/integration/assert"
)

func TestPairs(t *testing.T) {
	for _, test := range []struct {
		name   string
		of     *Pairs
		leads  int // bytes that begin a character
		pairs  int
		in     []string
		others []string
	}{
		{"gbk", GBK, 126, 126 * 190, []string{"\x81\x40", "\xFE\xFE", "\x83\\"}, []string{"\x80\x40", "\xFF\x40", "\x81\x7F", "\x81\xFF", "\x81\x3F", "a`"}},
		{"big5", Big5, 89, 89 * 157, []string{"\xA1\x40", "\xF9\xFE"}, []string{"\xA0\x40", "\xFA\x40", "\xA1\x80", "\xA1\xA0"}},
		{"sjis", SJIS, 60, 60 * 188, []string{"\x81\x40", "\xFC\xFC", "\x9F\x80"}, []string{"\xA0\x40", "\xDF\x40", "\xFD\x40", "\x81\xFD"}},
		{"euckr", EUCKR, 126, 126 * 178, []string{"\x81A", "\x81z", "\xFE\x81"}, []string{"\x81@", "\x81[", "\x81`", "\x81{", "\x81\x80"}},
		{"gb2312", GB2312, 87, 87 * 94, []string{"\xA1\xA1", "\xF7\xFE"}, []string{"\xA1\xA0", "\xF8\xA1", "\xA1A"}},
	} {
		leads, pairs := 0, 0
		for c := range 256 {
			if test.of.Leads(byte(c)) {
				leads++
			}
			for d := range 256 {
				if test.of.Has(byte(c), byte(d)) {
					pairs++
				}
			}
		}
		assert.True(t, leads == test.leads && pairs == test.pairs, "%s: %d bytes begin %d characters, want %d and %d", test.name, leads, pairs, test.leads, test.pairs)
		for _, s := range test.in {
			assert.True(t, test.of.Has(s[0], s[1]), "%s has no %x", test.name, s)
		}
		for _, s := range test.others {
			assert.True(t, !test.of.Has(s[0], s[1]), "%s has %x", test.name, s)
		}
	}
}
