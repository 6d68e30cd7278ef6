package replay

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/width"
)

// file answers a server's request for a file with data in packets of size bytes, and its end.
func file(data []byte, size int) func(c *Conn, name string) {
	return func(c *Conn, _ string) {
		for len(data) > 0 {
			n := min(size, len(data))
			c.Send(data[:n]...)
			data = data[n:]
		}
		c.Send()
	}
}

// load runs a LOAD DATA LOCAL INFILE with this answer to the request.
func (c *Conn) load(text string, answer func(c *Conn, name string)) error {
	c.Infile = answer
	return c.Query(text)
}

func infileSession(c *Conn) {
	c.Must("DROP TABLE IF EXISTS p_load", "CREATE TABLE p_load (a INT PRIMARY KEY, b VARCHAR(100)) ENGINE=MyISAM")
	const load = "LOAD DATA LOCAL INFILE '/no/such/file' INTO TABLE p_load"
	Check(c.load(load, file(nil, 1)))
	Check(c.load(load, file([]byte("1\tone\n2\ttwo\n"), 5)))
	Check(c.load(load, file([]byte("3\tINSERT INTO ruled VALUES (1)\n"), 1<<20)))
	c.Must("SHOW WARNINGS", "SELECT * FROM p_load ORDER BY a")
	Check(c.load("DO 1; "+load+"; SELECT COUNT(*) FROM p_load; "+load+"; SELECT 'end'", file([]byte("4\tfour\n"), 100)))
	_ = c.load(load+"_missing", file([]byte("5\tfive\n"), 100)) // the table does not exist; servers differ in when they say so
	c.Must("SELECT 'behind the failed one'")
	// The third row is wrong, and hundreds of packets come behind it: sequence numbers wrap around more
	// than once.
	var rows strings.Builder
	rows.WriteString("10\tten\n11\televen\n")
	for i := range 700 {
		fmt.Fprintf(&rows, "x%d\twrong\n", i)
	}
	Check(c.load("SET SESSION sql_mode = 'STRICT_ALL_TABLES'", nil))
	_ = c.load(strings.Replace(load, "LOCAL", "LOCAL", 1), file([]byte(rows.String()), 16))
	c.Must("SHOW COUNT(*) WARNINGS", "SELECT COUNT(*) FROM p_load", "DROP TABLE p_load")
}

// BigInfileSession uploads more than one packet can hold, in packets of several sizes.
func BigInfileSession(c *Conn) {
	c.Must("DROP TABLE IF EXISTS p_load", "CREATE TABLE p_load (a INT, b LONGTEXT) ENGINE=MyISAM")
	row := append([]byte("1\t"), bytes.Repeat([]byte("z"), 17<<20)...)
	row = append(row, '\n')
	for _, size := range []int{1<<24 - 1, 1 << 20} {
		Check(c.load("LOAD DATA LOCAL INFILE 'f' INTO TABLE p_load", file(row, size)))
	}
	c.Must("SELECT a, LENGTH(b), SHA2(b, 256) FROM p_load", "DROP TABLE p_load")
}

// FailedInfileSession has the server refuse an upload long before its end.
func FailedInfileSession(c *Conn) {
	c.Must("DROP TABLE IF EXISTS p_load", "CREATE TABLE p_load (a INT PRIMARY KEY, b TEXT) ENGINE=MyISAM", "INSERT INTO p_load VALUES (1,'there')")
	rows := bytes.Repeat([]byte("1\tduplicate\n"), 200000)
	c.Must("SET SESSION sql_mode = 'STRICT_ALL_TABLES'")
	_ = c.load("LOAD DATA LOCAL INFILE 'f' INTO TABLE p_load (a, nosuch)", file(rows, 8192))
	_ = c.load("LOAD DATA LOCAL INFILE 'f' INTO TABLE p_load PARTITION (p9)", file(rows, 8192))
	_ = c.load("LOAD DATA LOCAL INFILE 'f' INTO TABLE p_load (a, @b) SET b = (SELECT 1 UNION SELECT 2)", file(rows, 8192))
	c.Must("SELECT COUNT(*) FROM p_load", "DROP TABLE p_load")
}

// BigRowSession has rows just under, at and over what one frame holds, in the text and the binary
// protocol. The bytes behind the frame's end are those of an EOF packet.
func BigRowSession(c *Conn) {
	const full = 1<<24 - 1
	for _, size := range width.Of([]int{full - 5, full - 4}, []int{full - 6, full - 5, full - 4, full - 3, full, full + 5}) {
		c.Must(fmt.Sprintf("SELECT CONCAT(REPEAT('a', %d), x'fe00000200') UNION ALL SELECT 'small'", size-9))
	}
	c.Must(fmt.Sprintf("SELECT REPEAT('b', %d), REPEAT('c', %d)", full, full))
	st, err := c.Prepare("SELECT REPEAT('d', ?), 'behind'")
	Check(err)
	for _, size := range []int64{full - 20, full + 7} {
		Check(c.Execute(st, 0, WithTypes, Long(size)))
	}
	Check(c.Execute(st, 0, SameTypes, Long(3)))
}

// BigRequestSession sends commands of about one frame's size and of more.
func BigRequestSession(c *Conn) {
	const full = 1<<24 - 1
	for _, size := range width.Of([]int{full - 1, full}, []int{full - 1, full, full + 1, 2*full + 3}) {
		head, tail := "SELECT LENGTH('", "')"
		overhead := 1 + len(c.attributes()) + len(head) + len(tail)
		c.Must(head + strings.Repeat("y", size-overhead) + tail)
	}
	st, err := c.Prepare("SELECT LENGTH(?), ?")
	Check(err)
	Check(c.Execute(st, 0, WithTypes, Text(strings.Repeat("y", full+100)), Text("behind")))
	c.longData(st, 0, strings.Repeat("l", full+10))
	Check(c.Execute(st, 0, WithTypes, Param{Kind: mysql.MYSQL_TYPE_BLOB, long: true}, Text("behind")))
}

// ManyRowsSession reads 10,000 rows in each protocol, and by a cursor.
func ManyRowsSession(c *Conn) {
	const digits = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 " +
		"UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	text := "SELECT a.d*1000+b.d*100+c.d*10+e.d AS n, REPEAT('r', a.d*b.d) AS r, NULL, '' FROM " + digits + " a, " + digits + " b, " +
		digits + " c, " + digits + " e ORDER BY n"
	c.Must(text)
	st, err := c.Prepare(text)
	Check(err)
	Check(c.Execute(st, 0, SameTypes))
	c.SendExecute(st, 1, SameTypes)
	Check(c.cursorOpened())
	for range 3 {
		c.Command(mysql.COM_STMT_FETCH, st.Bytes(0xb8, 0x0b, 0, 0)...) // 3,000 rows
		_, err := c.rows()
		Check(err)
	}
}
