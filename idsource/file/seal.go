package file

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// A file of a store is text: a first line that says what it is, one record per
// line, and the CRC-32C of all that in the last line. There is one way to write
// each content, so that reading can insist on it.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal renders a file of the given kind.
func seal(kind string, lines []string) []byte {
	var b strings.Builder
	b.WriteString(kind)
	b.WriteByte('\n')
	for _, l := range lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "sum %08x\n", crc32.Checksum([]byte(b.String()), castagnoli))
	return []byte(b.String())
}

// unseal checks a file and returns its records.
func unseal(kind string, data []byte) ([]string, error) {
	text, whole := strings.CutSuffix(string(data), "\n")
	end := strings.LastIndexByte(text, '\n') + 1
	if !whole || end == 0 {
		return nil, errors.New("the file is damaged: it is cut short")
	}
	if want := fmt.Sprintf("sum %08x", crc32.Checksum(data[:end], castagnoli)); text[end:] != want {
		return nil, fmt.Errorf("the file is damaged: its last line is %.20q, not %q", text[end:], want)
	}
	lines := strings.Split(text[:end-1], "\n")
	if lines[0] != kind {
		return nil, fmt.Errorf("the first line is %.40q, not %q", lines[0], kind)
	}
	return lines[1:], nil
}
