package mysql

import (
	"fmt"
	"math"

	"idproxy/idsource"
)

// blocks are the ids of one server of a group: blocks of so many consecutive ids, of which it has
// one in servers. The server's own are those whose number is own, counted modulo servers.
type blocks struct{ size, own, servers uint64 }

// align returns where a range of n ids can start, at x or above: within
// one block of the server's own. It is 2^64-1 where there is no such block.
func (b blocks) align(x, n uint64) uint64 {
	k := x / b.size
	if k > math.MaxUint64/b.size-2*b.servers {
		return math.MaxUint64
	}
	switch {
	case k%b.servers != b.own:
		return (k + (b.own+b.servers-k%b.servers)%b.servers) * b.size
	case x%b.size+n > b.size:
		return (k + b.servers) * b.size
	}
	return x
}

// reserve is the SQL of align and the reservation in one statement, for a server that is known to
// have stood at known. Its one parameter is the key.
func (b blocks) reserve(a idsource.Ask, known uint64) string {
	x := fmt.Sprintf("CAST(GREATEST(max_id, %d) AS UNSIGNED)", a.Floor)
	k := fmt.Sprintf("(%s DIV %d)", x, b.size)
	lo := fmt.Sprintf("CAST(IF(%[2]s %% %[3]d <> %[4]d, (%[2]s + (%[5]d - %[2]s %% %[3]d) %% %[3]d) * %[6]d, "+
		"IF(%[1]s %% %[6]d + %[7]d > %[6]d, (%[2]s + %[3]d) * %[6]d, %[1]s)) AS UNSIGNED)",
		x, k, b.servers, b.own, b.own+b.servers, b.size, a.Count)
	return fmt.Sprintf("UPDATE idproxy_segment SET max_id = LAST_INSERT_ID(CAST(%[1]s + %[2]d AS UNSIGNED)), step = %[3]d "+
		"WHERE biz_tag = ? AND step >= 0 AND max_id >= %[4]d AND %[1]s <= %[5]d", lo, a.Count, min(a.Count, 1<<31-1), known, a.Last-(a.Count-1))
}
