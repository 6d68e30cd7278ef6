package wire

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// First bytes of the packets that decide how a reply goes on.
const (
	OKByte     = 0x00
	InfileByte = 0xfb
	EOFByte    = 0xfe // EOF, or OK at the end of rows under CLIENT_DEPRECATE_EOF
	ErrByte    = 0xff
)

// ProgressCode is the error code of MariaDB's progress reports: an ERR packet
// that ends nothing.
const ProgressCode = 0xffff

// OKPrefix is the most an OK packet's header byte, affected rows, insert id,
// status and warnings take.
const OKPrefix = 1 + 9 + 9 + 2 + 2

// OK is an OK packet, with header 0x00 or 0xFE.
type OK struct {
	AffectedRows uint64
	InsertID     uint64
	Status       uint16
	Warnings     uint16
	// Track is the session state information, nil when there is none or when
	// the payload did not hold all of it.
	Track []byte

	insertAt, insertEnd int
}

// ParseOK reads an OK packet of a client that speaks protocol 4.1 with the
// given capabilities. payload may be cut off behind the first OKPrefix bytes;
// then Track is nil.
func ParseOK(payload []byte, caps uint64) (ok OK, valid bool) {
	r := NewReader(payload)
	r.Uint8()
	ok.AffectedRows = r.Lenenc()
	ok.insertAt = len(payload) - r.Len()
	ok.InsertID = r.Lenenc()
	ok.insertEnd = len(payload) - r.Len()
	ok.Status = r.Uint16()
	ok.Warnings = r.Uint16()
	if !r.OK() {
		return OK{}, false
	}
	if caps&uint64(mysql.CLIENT_SESSION_TRACK) != 0 && ok.Status&mysql.SERVER_SESSION_STATE_CHANGED != 0 {
		r.LenencBytes() // info
		if track := r.LenencBytes(); r.OK() {
			ok.Track = track
		}
	}
	return ok, true
}

// OKInfo returns the text of an OK packet, such as "Records: 3  Duplicates: 1  Warnings: 0". Servers
// send its length in front of it, whether or not the session tracks its state; the manual knows
// that only of sessions that do.
func OKInfo(payload []byte) []byte {
	ok, valid := ParseOK(payload, 0)
	if !valid {
		return nil
	}
	rest := payload[ok.insertEnd+4:]
	r := NewReader(rest)
	if info := r.LenencBytes(); r.OK() {
		return info
	}
	return rest
}

// AppendPrefixWithInsertID appends the part of the OK packet payload up to and
// with its insert id, the latter replaced by id, and returns how many bytes of
// payload that stands for: the rest of the packet follows as it came.
func (ok *OK) AppendPrefixWithInsertID(dst, payload []byte, id uint64) (out []byte, used int) {
	dst = append(dst, payload[:ok.insertAt]...)
	return mysql.AppendLengthEncodedInteger(dst, id), ok.insertEnd
}

// ParseEOF reads the status of an EOF packet, or of the OK packet that stands
// in its place under CLIENT_DEPRECATE_EOF. A server may send the short form to
// a client that asked for the long one (MySQL bug 83346), so the length tells.
func ParseEOF(payload []byte) (status uint16, valid bool) {
	if len(payload) == 5 {
		return binary.LittleEndian.Uint16(payload[3:]), true
	}
	ok, valid := ParseOK(payload, 0)
	return ok.Status, valid
}

// AddStatus sets status flags in an OK or EOF packet, of which the first OKPrefix
// bytes are enough.
func AddStatus(payload []byte, flags uint16) {
	at := len(payload) - 2 // of an EOF packet
	if len(payload) != 5 || payload[0] != EOFByte {
		ok, valid := ParseOK(payload, 0)
		if !valid {
			return
		}
		at = ok.insertEnd
	}
	payload[at] |= byte(flags)
	payload[at+1] |= byte(flags >> 8)
}

// ErrCode returns the error code of an ERR packet, 0 when it is cut off.
func ErrCode(payload []byte) uint16 {
	if len(payload) < 3 {
		return 0
	}
	return binary.LittleEndian.Uint16(payload[1:])
}

// ErrMessage returns the text of an ERR packet without its SQL state.
func ErrMessage(payload []byte) string {
	r := NewReader(payload)
	r.Bytes(3)
	text := r.Rest()
	if len(text) >= 6 && text[0] == '#' {
		text = text[6:]
	}
	return string(text)
}

// AppendERR appends an ERR packet. state is a five-character SQL state, or
// empty before the client has said that it speaks protocol 4.1.
func AppendERR(dst []byte, seq byte, e *mysql.MyError) []byte {
	payload := []byte{ErrByte, byte(e.Code), byte(e.Code >> 8)}
	if e.State != "" {
		payload = append(append(payload, '#'), e.State...)
	}
	return AppendPacket(dst, seq, append(payload, e.Message...))
}

// Session tracking types of an OK packet.
const (
	trackSystemVariables = 0
	trackSchema          = 1
)

// WalkTrack reads the session state information of an OK packet and calls
// schema for a changed default schema and variable for each changed system
// variable. It stops at the first malformed entry and reports false.
func WalkTrack(track []byte, schema func(name []byte), variable func(name, value []byte)) bool {
	r := NewReader(track)
	for r.Len() > 0 {
		kind := r.Uint8()
		entry := NewReader(r.LenencBytes())
		if !r.OK() {
			return false
		}
		switch kind {
		case trackSchema:
			if name := entry.LenencBytes(); entry.OK() {
				schema(name)
			}
		case trackSystemVariables:
			for entry.Len() > 0 { // MariaDB packs several pairs in one entry
				name, value := entry.LenencBytes(), entry.LenencBytes()
				if !entry.OK() {
					return false
				}
				variable(name, value)
			}
		}
		if !entry.OK() {
			return false
		}
	}
	return true
}
