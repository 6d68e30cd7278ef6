package mysql

import "fmt"

// Dialect is whose table a [Shared] store is.
type Dialect string

const (
	// Leaf is Meituan-Dianping/Leaf, scripts/leaf_alloc.sql. It gives [max_id - step, max_id)
	// after it moved max_id there (SegmentIDGenImpl.updateSegmentFromDb).
	Leaf Dialect = "leaf"
	// Tinyid is didi/tinyid, tinyid-server/db.sql. It gives those of (max_id - step, max_id] for which
	// id % delta = remainder (SegmentId.init), and compares version before it moves
	// max_id (TinyIdInfoDAOImpl.updateMaxId).
	Tinyid Dialect = "tinyid"
)

// Table is the name that the system gives its table.
func (d Dialect) Table() string {
	if d == Tinyid {
		return "tiny_id_info"
	}
	return "leaf_alloc"
}

// dialect is what is said to a system's table. Each statement is one that the system
// itself could be in the middle of: its own moves are relative or compare the version.
type dialect struct {
	reserve  string // floor, count, [every, remainder,] key, floor, most, high: of max_id
	position string // key; max_id, used, step, description, every, remainder
	raise    string // next, key: max_id moves up
	set      string // next, key
	giveBack string // next, key, next: compares
	create   string // key, next, step, description
	tune     string // step, description, key
	keys     string
	columns  string // asks for all of them, and for no row
	above    uint64 // the lowest id that is not reserved is so far above max_id
	spaced   bool   // reserve compares the spacing
	describe bool   // there is a description
}

// statements returns what is said to the table, whose name is quoted. max_id has a sign: no
// range may end above 2^63-1, for a server that is not strict would store that instead.
func (d Dialect) statements(table string) dialect {
	if d == Tinyid {
		const moved = "update_time = NOW(), version = version + 1"
		return dialect{
			reserve: "UPDATE " + table + " SET max_id = LAST_INSERT_ID(GREATEST(max_id, ?) + ?), " + moved +
				" WHERE delta = ? AND remainder = ? AND biz_type = ? AND max_id >= 0 AND GREATEST(max_id, ?) <= ? AND max_id >= ?",
			position: "SELECT max_id, max_id <> begin_id, COALESCE(step, 0), '', delta, remainder FROM " + table + " WHERE biz_type = ?",
			raise:    "UPDATE " + table + " SET max_id = GREATEST(max_id, ?), " + moved + " WHERE biz_type = ?",
			set:      "UPDATE " + table + " SET max_id = ?, " + moved + " WHERE biz_type = ?",
			giveBack: "UPDATE " + table + " SET max_id = ?, " + moved + " WHERE biz_type = ? AND max_id = ?",
			create: "INSERT INTO " + table + " (biz_type, begin_id, max_id, step, delta, remainder, create_time, update_time, version) " +
				"SELECT n.k, n.i, n.i, n.s, 1, 0, NOW(), NOW(), 1 FROM (SELECT ? AS k, ? AS i, ? AS s) n",
			tune:    "UPDATE " + table + " SET step = ?, update_time = NOW() WHERE biz_type = ?",
			keys:    "SELECT biz_type FROM " + table + " ORDER BY biz_type",
			columns: "SELECT id, biz_type, begin_id, max_id, step, delta, remainder, create_time, update_time, version FROM " + table + " LIMIT 0",
			above:   1,
			spaced:  true,
		}
	}
	return dialect{
		reserve: "UPDATE " + table + " SET max_id = LAST_INSERT_ID(GREATEST(max_id, ?) + ?) " +
			"WHERE biz_tag = ? AND max_id >= 0 AND GREATEST(max_id, ?) <= ? AND max_id >= ?",
		position: "SELECT max_id, max_id > 1, step, COALESCE(description, ''), 1, 0 FROM " + table + " WHERE biz_tag = ?",
		raise:    "UPDATE " + table + " SET max_id = GREATEST(max_id, ?) WHERE biz_tag = ?",
		set:      "UPDATE " + table + " SET max_id = ? WHERE biz_tag = ?",
		giveBack: "UPDATE " + table + " SET max_id = ? WHERE biz_tag = ? AND max_id = ?",
		create:   "INSERT INTO " + table + " (biz_tag, max_id, step, description) VALUES (?, ?, ?, ?)",
		tune:     "UPDATE " + table + " SET step = ?, description = ? WHERE biz_tag = ?",
		keys:     "SELECT biz_tag FROM " + table + " ORDER BY biz_tag",
		columns:  "SELECT biz_tag, max_id, step, description, update_time FROM " + table + " LIMIT 0",
		describe: true,
	}
}

// known says whether the dialect is one.
func (d Dialect) known() error {
	if d == Leaf || d == Tinyid {
		return nil
	}
	return fmt.Errorf("unknown dialect %q of a table: it is %s or %s", d, Leaf, Tinyid)
}
