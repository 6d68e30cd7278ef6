package proxy

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rule"
)

// theRules are those of all tests with a server: one table.
var theRules = rule.NewList([]rule.Rule{{Schema: "shop", Table: "orders", Column: "id", Source: "s"}})

// countedRules are theRules of a run, with what they came to.
func countedRules(c *rule.Counts) map[string]*rule.List {
	return map[string]*rule.List{"l": rule.NewList([]rule.Rule{{Schema: "shop", Table: "orders", Column: "id", Source: "s", Counts: c}})}
}

// commandOf returns a packet from the client.
func commandOf(b ...byte) []byte { return packet(0, b) }

func packet(seq byte, payload []byte) []byte { return wire.AppendPacket(nil, seq, payload) }

// query returns a COM_QUERY packet.
func query(sql string) []byte { return commandOf(append([]byte{mysql.COM_QUERY}, sql...)...) }

// okPayload returns the payload of an OK packet.
func okPayload(affected, id uint64, status uint16) []byte {
	b := mysql.AppendLengthEncodedInteger([]byte{0}, affected)
	b = mysql.AppendLengthEncodedInteger(b, id)
	return append(b, byte(status), byte(status>>8), 0, 0)
}

// testError is an ERR packet of these tests.
func testError(code uint16) *mysql.MyError {
	return &mysql.MyError{Code: code, State: "HY000", Message: "no"}
}
