package rule

import (
	"hash/crc32"
	"math"
	"testing"

	"idproxy/integration/assert"
)

func TestGeneOfText(t *testing.T) {
	g := &Gene{Column: "k", Bits: 16, CRC32: true}
	column := func(name, charset string, length int) Column {
		return Column{Type: name, Text: true, Length: length, Charset: charset, Bytes: charset == "binary", Padded: name == "CHAR" || name == "BINARY"}
	}
	varchar, char := column("VARCHAR", "utf8mb4", 5), column("CHAR", "utf8mb4", 5)
	for _, tt := range []struct {
		text    string
		column  Column
		longest int
		fits    bool
	}{
		{"abcde", varchar, 0, true},
		{"abcdef", varchar, 4, false},
		{"abc  ", varchar, 4, true},
		{"abc  ", char, 4, false},
		{"", char, 4, false},
		{"ab\x00", char, 4, true},
		{"grün", varchar, 4, true},
		{"grün", varchar, 3, true},
		{"grün", varchar, 0, false},
		{"abc", varchar, -1, false},
		{"grün", column("VARCHAR", "latin1", 5), 4, false},
		{"grun", column("VARCHAR", "latin1", 5), 4, true},
		{"a😀", varchar, 4, true},
		{"a😀", varchar, 3, false},
		{"a😀", column("VARCHAR", "utf8mb3", 5), 4, false},
		{"äöüßé", column("VARCHAR", "utf8mb3", 5), 4, true},
		{"äöüßéa", column("VARCHAR", "utf8mb3", 5), 4, false},
		{"äöü", column("VARBINARY", "binary", 5), 4, false}, // 6 bytes
		{"äö", column("VARBINARY", "binary", 5), 4, true},
		{"abcd", column("BINARY", "binary", 5), 4, false},
		{"abcd ", column("BINARY", "binary", 5), 4, true},
		{"a\xffb", varchar, 4, false},
		{"\xed\xa0\x80", varchar, 4, false}, // a surrogate
		{"\xf4\x90\x80\x80", varchar, 4, false},
	} {
		gene, why := g.OfText([]byte(tt.text), tt.column, tt.longest)
		assert.True(t, (why == "") == tt.fits && (!tt.fits || gene == crc(tt.text)), "%q in %+v, longest %d: %d, %q; want it to fit: %v", tt.text, tt.column, tt.longest, gene, why, tt.fits)
	}
	for _, tt := range []struct {
		column Column
		mod    bool
		crc    bool
	}{
		{Column{Type: "BIGINT", Max: 1}, true, false},
		{Column{Type: "UNSIGNED TINYINT", Max: 1}, true, false},
		{Column{Type: "BIGINT", Max: 1, AutoIncrement: true}, false, false},
		{Column{Type: "DECIMAL", Max: 1}, false, false},
		{Column{Type: "YEAR"}, false, false},
		{Column{Type: "ENUM", Text: true}, false, false},
		{Column{Type: "UUID", Text: true, Length: 36, UUID: true, Charset: "utf8mb4"}, false, false},
		{column("CHAR", "gbk", 3), false, false},
		{column("CHAR", "", 3), false, false},
		{column("CHAR", "ascii", 3), false, true},
	} {
		mod, crc := (&Gene{}).Fits(tt.column), (&Gene{CRC32: true}).Fits(tt.column)
		assert.True(t, (mod == "") == tt.mod && (crc == "") == tt.crc, "%+v: mod %q, crc32 %q", tt.column, mod, crc)
	}
}

// Any run of 2^bits ids has one of each gene, wherever it begins.
func TestGeneOf(t *testing.T) {
	for _, bits := range []int{1, 3, 8} {
		g := &Gene{Bits: bits}
		for _, first := range []uint64{0, 1, 7, 255, 256, 1000, 1<<63 - 300, math.MaxUint64 - 255} {
			seen := map[uint64]bool{}
			for gene := range g.Size() {
				id := g.Of(first, uint16(gene))
				assert.MustTrue(t, id >= first && id-first < g.Size() && id%g.Size() == gene && !seen[id], "%d bits, from %d on, gene %d: %d", bits, first, gene, id)
				seen[id] = true
			}
		}
	}
}

func crc(text string) uint16 { return uint16(crc32.ChecksumIEEE([]byte(text))) }
