package rewriter

import "strconv"

// decimal writes ids in turn. Those of one statement mostly follow each other, and then only the
// last digit is new.
type decimal struct {
	last   uint64
	digits [20]byte
	start  int // of the digits in use
}

func (d *decimal) append(dst []byte, id uint64) []byte {
	if end := len(d.digits) - 1; d.start > 0 && id == d.last+1 && d.digits[end] != '9' {
		d.digits[end]++
	} else {
		var room [20]byte
		text := strconv.AppendUint(room[:0], id, 10)
		d.start = len(d.digits) - len(text)
		copy(d.digits[d.start:], text)
	}
	d.last = id
	return append(dst, d.digits[d.start:]...)
}
