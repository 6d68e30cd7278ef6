package wire

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"idproxy/integration/assert"
)

// FuzzDecodeWide: what is written in a wide set reads as it was, and any bytes read as UTF-8.
func FuzzDecodeWide(f *testing.F) {
	for _, text := range []string{"", "STRICT_TRANS_TABLES", "größe", "日本", "😀x", "\x00", "\xd8\x3d", "\xff\xff\xff\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, set := range []string{setUCS2, setUTF16, setUTF16L, setUTF32} {
			got := DecodeWide([]byte(text), set)
			assert.True(t, utf8.Valid(got), "%q in %s reads as %q", text, set, got)
			whole := strings.ToValidUTF8(text, "")
			got = DecodeWide(encodeWide(whole, set), set)
			assert.True(t, string(got) == whole, "%q in %s reads as %q", whole, set, got)
		}
	})
}

func encodeWide(text, set string) (out []byte) {
	if set == setUTF32 {
		for _, r := range text {
			out = binary.BigEndian.AppendUint32(out, uint32(r))
		}
		return out
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		if set == setUTF16L {
			out = binary.LittleEndian.AppendUint16(out, unit)
		} else {
			out = binary.BigEndian.AppendUint16(out, unit)
		}
	}
	return out
}

func TestWideSets(t *testing.T) {
	for collation, want := range map[uint16]string{
		8: notWide, 63: notWide, 33: notWide, 255: notWide, 2048: notWide, 2304: notWide, // latin1, binary, utf8mb3, utf8mb4, the latter two again
		35: setUCS2, 90: setUCS2, 54: setUTF16, 101: setUTF16, 56: setUTF16L, 62: setUTF16L, 60: setUTF32, 160: setUTF32,
		1059: setUCS2, 2560: setUCS2, 2816: setUTF16, 3072: setUTF32,
	} {
		assert.Equal(t, fmt.Sprintf("collation %d is of", collation), WideSet(collation), want)
	}
}
