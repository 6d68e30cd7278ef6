package rule

import "encoding/binary"

// IDKind says what the ids of a source are.
type IDKind uint8

// Ids of kinds other than Number are wide: two words each, of which an ObjectID is the first twelve
// bytes. They feed no last insert id: a column of theirs has no AUTO_INCREMENT natively either.
const (
	Number   IDKind = iota // up to 64 bits
	UUID                   // 16 bytes
	ObjectID               // 12 bytes
)

// Wide reports whether an id of the kind is two words.
func (k IDKind) Wide() bool { return k != Number }

// Words returns how many words n ids of the kind are.
func (k IDKind) Words(n int) int {
	if k.Wide() {
		return 2 * n
	}
	return n
}

// Form is how an id is written into a column.
type Form uint8

const (
	FormNone    Form = iota // the column cannot hold it
	FormNumber              // decimal digits
	FormUUID                // text, 36 characters with dashes
	FormHex32               // text, a UUID without dashes
	FormHex24               // text, an ObjectID
	FormBytes16             // the bytes of a UUID
	FormBytes12             // the bytes of an ObjectID
)

// Form returns how ids of a kind are written into the column.
func (c *Column) Form(kind IDKind) Form {
	text, holds := c.Text && !c.Bytes && !c.UUID, func(n int) bool { return c.Text && c.Bytes && (c.Length == n || c.Length > n && !c.Padded) }
	switch {
	case kind == Number && c.Max > 0:
		return FormNumber
	case kind == UUID && c.UUID: // as text a session whose character set is binary could not write it
		return FormBytes16
	case kind == UUID && text && c.Length >= 36:
		return FormUUID
	case kind == UUID && text && c.Length == 32:
		return FormHex32
	case kind == UUID && holds(16):
		return FormBytes16
	case kind == ObjectID && text && c.Length >= 24:
		return FormHex24
	case kind == ObjectID && holds(12):
		return FormBytes12
	}
	return FormNone
}

// SetCharset notes the character set of a column that holds text or bytes, by the server's name.
// One in which ASCII is not one byte a character holds no wide ids: a session whose own set is
// binary stores text there as if it were of that set.
func (c *Column) SetCharset(name string) {
	c.Bytes = name == "binary"
	switch name {
	case "ucs2", "utf16", "utf16le", "utf32":
		c.Length = 0
		c.Type += " CHARACTER SET " + name
	}
}

// Columns says what columns hold ids of the kind, for messages.
func (k IDKind) Columns() string {
	switch k {
	case UUID:
		return "CHAR(36), CHAR(32), VARCHAR of that many or more, in a character set of which ASCII is a part, BINARY(16), VARBINARY, and MariaDB's UUID"
	case ObjectID:
		return "CHAR(24), VARCHAR of that many or more, in a character set of which ASCII is a part, BINARY(12) and VARBINARY"
	}
	return "an integer, DECIMAL or CHAR type"
}

// AnyForm is the form in a column that is not known.
func (k IDKind) AnyForm() Form { return [...]Form{FormNumber, FormUUID, FormHex24}[k] }

// Wide reports whether ids of the form are two words.
func (f Form) Wide() bool { return f > FormNumber }

// Binary reports whether the form is bytes that have no character set.
func (f Form) Binary() bool { return f >= FormBytes16 }

// LongestLiteral is the most bytes that a literal of a form takes.
const LongestLiteral = len(`'xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx'`)

// AppendValue appends a wide id as the column stores it: text, or its bytes.
func (f Form) AppendValue(dst []byte, id [2]uint64) []byte {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], id[0])
	binary.BigEndian.PutUint64(b[8:], id[1])
	switch f {
	case FormUUID:
		for _, part := range [...][2]int{{0, 4}, {4, 6}, {6, 8}, {8, 10}} {
			dst = append(appendHex(dst, b[part[0]:part[1]]), '-')
		}
		return appendHex(dst, b[10:])
	case FormHex32:
		return appendHex(dst, b[:])
	case FormHex24:
		return appendHex(dst, b[:12])
	case FormBytes16:
		return append(dst, b[:]...)
	}
	return append(dst, b[:12]...)
}

// AppendLiteral appends a wide id as SQL: a string of ASCII characters that mean the same in every
// sql_mode and character set, or a hexadecimal literal.
func (f Form) AppendLiteral(dst []byte, id [2]uint64) []byte {
	if !f.Binary() {
		return append(f.AppendValue(append(dst, '\''), id), '\'')
	}
	var room [16]byte
	return append(appendHex(append(dst, "X'"...), f.AppendValue(room[:0], id)), '\'')
}

func appendHex(dst, b []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range b {
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}
