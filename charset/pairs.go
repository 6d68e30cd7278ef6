package charset

// Pairs is a set of characters of two bytes each. Other bytes stand alone.
type Pairs struct{ lead, trail bytes }

// bytes marks some of all bytes.
type bytes [256]bool

// The sets that servers have. SJIS is also cp932. GBK has also what gb18030 has of two bytes.
var (
	GBK    = newPairs("\x81\xFE", "\x40\x7E\x80\xFE")
	Big5   = newPairs("\xA1\xF9", "\x40\x7E\xA1\xFE")
	SJIS   = newPairs("\x81\x9F\xE0\xFC", "\x40\x7E\x80\xFC")
	EUCKR  = newPairs("\x81\xFE", "AZaz\x81\xFE")
	GB2312 = newPairs("\xA1\xF7", "\xA1\xFE")
)

// newPairs takes the first and the last byte of each range that begins and ends characters.
func newPairs(lead, trail string) *Pairs { return &Pairs{ranges(lead), ranges(trail)} }

func ranges(ends string) (b bytes) {
	for i := 0; i < len(ends); i += 2 {
		for c := int(ends[i]); c <= int(ends[i+1]); c++ {
			b[c] = true
		}
	}
	return b
}

// Leads reports whether c begins a character of two bytes.
func (p *Pairs) Leads(c byte) bool { return p.lead[c] }

// Has reports whether two bytes are a character.
func (p *Pairs) Has(c, d byte) bool { return p.lead[c] && p.trail[d] }
