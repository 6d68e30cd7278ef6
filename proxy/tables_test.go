package proxy

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"idproxy/proxy/facts"
)

// columnType is what a column definition says of a column.
type columnType struct {
	code     byte
	flags    uint16
	length   uint32
	decimals byte
	charset  uint16
}

// columnPayload returns a column definition.
func columnPayload(name string, c columnType) []byte {
	b := []byte("\x03def\x04shop\x01t\x01t")
	b = append(append(b, byte(len(name))), name...)
	b = append(append(b, byte(len(name))), name...)
	b = append(b, 12)
	b = binary.LittleEndian.AppendUint16(b, c.charset)
	b = binary.LittleEndian.AppendUint32(b, c.length)
	b = append(b, c.code)
	b = binary.LittleEndian.AppendUint16(b, c.flags)
	return append(b, c.decimals, 0, 0)
}

// New rules may name columns that were not asked for.
func TestNewRulesForgetTables(t *testing.T) {
	srv := New(Config{Listeners: []Listener{{Name: "a"}}}, &Settings{})
	tb := srv.listeners[0].tables
	tb.Put("k", &facts.Table{At: time.Now(), Changes: tb.Count()})
	if tb.Get([]byte("k")) == nil {
		t.Fatal("facts are not kept")
	}
	srv.Set(&Settings{})
	if tb.Get([]byte("k")) != nil {
		t.Error("facts are kept under new rules")
	}
}

// says reports whether err is nil for "", and contains the text else.
func says(err error, text string) bool {
	return (err == nil) == (text == "") && (err == nil || strings.Contains(err.Error(), text))
}
