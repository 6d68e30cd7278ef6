package proxy

import (
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// untimed returns a SELECT of our own that MySQL's max_execution_time does not
// end: no statement of the client's is a SELECT because of it.
func (c *conversation) untimed(sql string) string {
	rest, found := strings.CutPrefix(sql, "SELECT ")
	if !found || c.mariaDB {
		return sql
	}
	return "SELECT " + rewriter.Untimed + rest
}

// appendQuery appends a COM_QUERY packet of our own, with an empty set of
// query attributes where the session has them.
func (c *conversation) appendQuery(dst []byte, sql string) []byte {
	payload := []byte{mysql.COM_QUERY}
	if c.has(mysql.CLIENT_QUERY_ATTRIBUTES) {
		payload = append(payload, 0, 1)
	}
	return wire.AppendPacket(dst, 0, append(payload, sql...))
}
