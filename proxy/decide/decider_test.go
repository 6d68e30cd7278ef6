package decide

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// idle carries nothing out.
type idle struct {
	Carrier
	c protocol.Conn
}

func (i *idle) Conversation() *protocol.Conn { return &i.c }

// deciding is a decider with facts made up: shop.orders has id BIGINT, a and b;
// shop.narrow has a column of type DATE as its id; shop.log_a has no id column.
type deciding struct {
	d    *Decider
	c    *protocol.Conn
	st   Statement
	s    idle
	last error

	replies  protocol.ReplyParser
	reply    []byte
	expected []protocol.Expect
}

func newDeciding(rules ...rule.Rule) *deciding {
	c := &protocol.Conn{Caps: uint64(mysql.CLIENT_PROTOCOL_41), TablesChanged: func() {}}
	state := protocol.Vars{Known: protocol.KnowAll | protocol.KnowAsked, Strict: true, Schema: []byte("shop"), Increment: 1, MaxPacket: 1 << 20, LastID: protocol.LastID{Known: true}}
	c.Update(func(s *protocol.Vars) { *s = state })
	if rules == nil {
		rules = []rule.Rule{{Schema: "shop", Table: "orders", Column: "id", Source: "s"}}
	}
	x := &deciding{d: newDecider(rules), c: c}
	x.d.Tables.SetFold(false)
	id := rule.Column{Name: "id", Max: 1<<63 - 1, NotNull: true}
	x.facts("shop", "orders", nil, id, rule.Column{Name: "a"}, rule.Column{Name: "b", Max: 1<<31 - 1})
	x.facts("shop", "narrow", nil, rule.Column{Name: "id"}, rule.Column{Name: "a"})
	x.facts("shop", "log_a", nil, rule.Column{Name: "a"})
	x.facts("shop", "gone", &mysql.MyError{Code: mysql.ER_NO_SUCH_TABLE, State: "42S02", Message: "no table"})
	x.facts("shop", "secret", &mysql.MyError{Code: mysql.ER_TABLEACCESS_DENIED_ERROR, State: "42000", Message: "denied"})
	return x
}

func (x *deciding) facts(schema, table string, refused *mysql.MyError, columns ...rule.Column) *catalog.Table {
	f := &catalog.Table{Name: schema + "." + table, At: time.Now(), Err: refused}
	if refused == nil {
		f.Table = &rule.Table{Columns: columns}
	}
	x.d.Tables.Put(schema+"\x00"+table, f)
	x.d.Tables.Admit(catalog.Admission{Table: f.Name, Column: "id", Source: "s"})
	x.d.Tables.Admit(catalog.Admission{Table: f.Name, Column: "b", Source: "s"})
	return f
}

// on decides on a command and says how, in a word or two.
func (x *deciding) on(command byte, text string, multi bool) string {
	packet := wire.AppendPacket(nil, 0, append([]byte{command}, text...))
	as := (&protocol.RequestParser{Conn: x.c}).Arrival(packet)
	as.Multi = multi && command == mysql.COM_QUERY
	x.st.Read(packet, as)
	n, err := x.decide()
	x.st.Found.Note(x.c)
	x.last = err
	if e, ok := errors.AsType[*mysql.MyError](err); ok {
		return fmt.Sprintf("error %d", e.Code)
	}
	if err != nil {
		return err.Error()
	}
	switch n := n.(type) {
	case NeedQuiet:
		return "need quiet"
	case NeedProbe:
		return "need probe"
	case NeedRenewal:
		return "need renewal"
	case NeedTable:
		return fmt.Sprintf("need table %s.%s", n.Table.Schema, n.Table.Table)
	case NeedSource:
		return "need the text of " + n.SQL
	case NeedValues:
		return fmt.Sprintf("need values %q", n.SQL)
	case NeedMax:
		return fmt.Sprintf("need max %s.%s.%s", n.Column.Table.Schema, n.Column.Table.Table, n.Column.Column.Name)
	}
	var parts []string
	for i := range x.st.Filled.Parts {
		p := &x.st.Filled.Parts[i]
		filled := ""
		for _, c := range x.st.Filled.plans[i].Columns {
			filled += fmt.Sprintf("%d ", c.Generated)
		}
		parts = append(parts, fmt.Sprintf("%sof %s in result %d", filled, p.Facts.Name, p.result))
	}
	what := "forward"
	if p := x.st.Prepared; p != nil && FillerOf(p) != nil && parts == nil {
		what += " " + string(FillerOf(p).Plan.Text)
	}
	if parts != nil {
		what = "fill " + strings.Join(parts, ", ")
	}
	if x.st.Rest > 0 {
		what += "; then " + string(bytes.TrimSpace(x.st.Text[x.st.Rest:]))
	}
	return what
}

func TestDecide(t *testing.T) {
	const insert = "INSERT INTO orders (a) VALUES (1)"
	mariaDB := func(x *deciding) { x.is(func(s *protocol.Vars) { s.Mode.MariaDB = true }) }
	unknown := func(k protocol.VarSet) func(x *deciding) {
		return func(x *deciding) { x.is(func(s *protocol.Vars) { s.Known &^= k }) }
	}
	named := func(e *protocol.Stmt) func(x *deciding) {
		return func(x *deciding) { x.c.Prepared.ByName = map[string]*protocol.Stmt{"s": e} }
	}
	tests := []struct {
		name, text string
		setup      func(x *deciding)
		multi      bool
		want       string
		says       string // in the error
	}{
		{name: "insert", text: insert, want: "fill 1 of shop.orders in result 0"},
		{name: "three rows", text: "INSERT INTO shop.orders (a) VALUES (1), (2), (3)", want: "fill 3 of shop.orders in result 0"},
		{name: "no column list", text: "REPLACE orders VALUES (NULL, 1, 2)", want: "need table shop.orders"},
		{name: "explicit id", text: "INSERT INTO orders (id) VALUES (7)", want: "fill 0 of shop.orders in result 0"},
		{name: "another table", text: "INSERT INTO other (a) VALUES (1)", want: "forward"},
		{name: "another schema", text: "INSERT INTO elsewhere.orders (a) VALUES (1)", want: "forward"},
		{name: "case counts", text: "INSERT INTO Orders (a) VALUES (1)", want: "forward"},
		{name: "text ends before the table", text: "INSERT INTO", want: "forward"},
		{name: "nothing", text: "", want: "forward"},

		{name: "schema unknown", text: insert, setup: unknown(protocol.KnowSchema), want: "need probe"},
		{name: "schema unknown, named", text: "INSERT INTO shop.orders (a) VALUES (1)", setup: unknown(protocol.KnowSchema), want: "fill 1 of shop.orders in result 0"},
		{name: "schema unknown, no table of that name", text: "INSERT INTO other (a) VALUES (1)", setup: unknown(protocol.KnowSchema), want: "forward"},
		{name: "server's case rule unknown", text: insert, setup: func(x *deciding) { x.d.Tables = catalog.New() }, want: "need probe"},
		{name: "doubt of quotes", text: `INSERT INTO orders (a) VALUES ("x")`, setup: unknown(protocol.KnowQuotes), want: "need probe"},
		{name: "doubt of backslash", text: `INSERT INTO orders (a) VALUES ('\n')`, setup: unknown(protocol.KnowBackslash), want: "need probe"},
		{name: "doubt of charset", text: "INSERT INTO orders (a) VALUES ('\x95\\')", setup: unknown(protocol.KnowCharset), want: "need probe"},
		{name: "no doubt", text: insert, setup: unknown(protocol.KnowQuotes | protocol.KnowBackslash | protocol.KnowCharset | protocol.KnowZero), want: "fill 1 of shop.orders in result 0"},
		{name: "doubt of zero", text: "INSERT INTO orders (id, a) VALUES (0, 1)", setup: unknown(protocol.KnowZero), want: "need probe"},
		{name: "many rows need the increment", text: "INSERT INTO orders (a) VALUES (1), (2)", setup: unknown(protocol.KnowNumbers), want: "need probe"},
		{name: "large text needs the limit", text: insert + strings.Repeat(" ", SmallText), setup: unknown(protocol.KnowNumbers), want: "need probe"},
		{name: "zero stands for itself", text: "INSERT INTO orders (id, a) VALUES (0, 1)", setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Mode.NoAutoValueOnZero = true }) }, want: "fill 0 of shop.orders in result 0"},

		{name: "columns unknown", text: insert, setup: func(x *deciding) { x.d.Tables.Forget() }, want: "need table shop.orders"},
		{name: "source not compared yet", text: insert, setup: func(x *deciding) { x.d.Tables.Withdraw(rule.NewList(nil)) }, want: "need max shop.orders.id"},
		{name: "explicit id needs no comparison", text: "INSERT INTO orders (id) VALUES (7)", setup: func(x *deciding) { x.d.Tables.Withdraw(rule.NewList(nil)) }, want: "fill 0 of shop.orders in result 0"},

		{name: "temporary table", text: insert, setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.MakeTemporary("shop\x00orders") }) }, want: "forward"},
		{name: "temporary table of another schema", text: insert, setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.MakeTemporary("other\x00orders") }) }, want: "fill 1 of shop.orders in result 0"},

		{name: "INSERT ... SELECT", text: "INSERT INTO orders SELECT SLEEP(0), 2, 3", want: "error 1235", says: "SELECT"},
		{name: "LOAD DATA", text: "LOAD DATA INFILE 'f' INTO TABLE orders", want: "error 1235", says: "LOAD DATA"},
		{name: "SQL PREPARE", text: "PREPARE s FROM 'INSERT INTO orders (a) VALUES (1)'", want: "forward INSERT INTO orders (a,`id`) VALUES (1,LAST_INSERT_ID(?))"},
		{name: "SQL PREPARE of two rows", text: "PREPARE s FROM 'INSERT INTO orders (a) VALUES (?),(?)'", want: "forward INSERT INTO orders (a,`id`) VALUES (?,?),(?,LAST_INSERT_ID(?)+?)"},
		{name: "SQL PREPARE behind another", text: insert + "; PREPARE s FROM '" + insert + "'", multi: true, want: "fill 1 of shop.orders in result 0; then PREPARE s FROM '" + insert + "'"},
		{name: "SQL PREPARE in front of another", text: "PREPARE s FROM '" + insert + "'; EXECUTE s", multi: true, want: "forward INSERT INTO orders (a,`id`) VALUES (1,LAST_INSERT_ID(?)); then EXECUTE s"},
		{name: "SQL PREPARE of a form that is not filled", text: "PREPARE s FROM 'LOAD DATA INFILE ''f'' INTO TABLE orders'", want: "error 1235", says: "LOAD DATA"},
		{name: "SQL PREPARE of a block", text: "PREPARE s FROM 'BEGIN NOT ATOMIC INSERT INTO orders (a) VALUES (1); END'", want: "error 1235", says: "inside another"},
		{name: "SQL PREPARE from a variable", text: "PREPARE s FROM @v", want: "need the text of @v"},
		{name: "SQL PREPARE from a variable, settings unknown", text: "PREPARE s FROM @v", setup: unknown(protocol.KnowQuotes), want: "need probe"},
		{name: "SQL PREPARE from a variable waits", text: "PREPARE s FROM @v", setup: func(x *deciding) { x.c.Send(protocol.Pending{Reply: protocol.ReplyOne}) }, want: "need quiet"},
		{name: "SQL PREPARE of what MySQL does not take", text: "PREPARE s FROM CONCAT('INSERT INTO ', @t)", want: "forward"},
		{name: "SQL PREPARE beyond ASCII", text: "PREPARE \xc3\xa9 FROM 'INSERT INTO orders (a) VALUES (1)'", want: "error 1235", says: "beyond ASCII"},
		{name: "EXECUTE of a name not known", text: "EXECUTE s USING @a", want: "forward"},
		{name: "an EXECUTE that is not read", text: "EXECUTE s USING @a /*!80000 ,@b */ [", want: "forward"},
		{name: "an EXECUTE of what gets ids that is not read", text: "EXECUTE s USING @a /*!80000 ,@b */ [", setup: named(&protocol.Stmt{Kind: &filler{}}), want: "error 1235", says: "could not be read"},
		{name: "an EXECUTE that is not read of another name", text: "EXECUTE t USING @a /*!80000 ,@b */ [", setup: named(&protocol.Stmt{Kind: &filler{}}), want: "forward"},
		{name: "a PREPARE that is not read, and names the table", text: "PREPARE t FROM 'INSERT INTO orders (a) VALUES (1)' [", want: "error 1235", says: "could not be read"},
		{name: "a PREPARE that is not read", text: "PREPARE t FROM 'INSERT INTO other (a) VALUES (1)' [", want: "forward"},
		{name: "SQL PREPARE of another table", text: "PREPARE s FROM 'INSERT INTO other (a) VALUES (1)'", want: "forward"},
		{name: "SQL PREPARE of a SELECT", text: "PREPARE s FROM 'SELECT 1'", want: "forward"},
		{name: "EXECUTE IMMEDIATE", text: "EXECUTE IMMEDIATE 'INSERT INTO shop.orders (a) VALUES (1)'", setup: mariaDB, want: "fill 1 of shop.orders in result 0"},
		{name: "EXECUTE IMMEDIATE of an expression", text: "EXECUTE IMMEDIATE CONCAT('INSERT INTO ', @t)", setup: mariaDB, want: "need the text of CONCAT('INSERT INTO ', @t)"},
		{name: "EXECUTE IMMEDIATE of what has effects", text: "EXECUTE IMMEDIATE CONCAT('INSERT INTO ', SLEEP(1))", setup: mariaDB, want: "forward"},
		{name: "EXECUTE IMMEDIATE with too few arguments", text: "EXECUTE IMMEDIATE 'INSERT INTO shop.orders (a) VALUES (?)'", setup: mariaDB, want: "forward"},
		{name: "EXECUTE IMMEDIATE on MySQL, which has none", text: "EXECUTE IMMEDIATE 'INSERT INTO shop.orders (a) VALUES (1)'", want: "forward"},
		{name: "wrong number of values, by old facts", text: "INSERT INTO orders (a) VALUES (1, 2)", want: "need table shop.orders"},
		{name: "wrong number of values", text: "INSERT INTO orders (a) VALUES (1, 2)", setup: func(x *deciding) {
			x.d.Tables.Get([]byte("shop\x00orders")).At = time.Now().Add(time.Hour)
		}, want: "forward"},

		{name: "two statements", text: insert + "; " + insert, multi: true, want: "fill 1 of shop.orders in result 0, 1 of shop.orders in result 1"},
		{name: "without multi-statements the server refuses", text: insert + "; " + insert, want: "error 1235"},
		{name: "behind SELECT", text: "SELECT 1; " + insert, multi: true, want: "fill 1 of shop.orders in result 1"},
		{name: "behind USE", text: "USE other; SELECT 1; USE shop; " + insert, multi: true, want: "fill 1 of shop.orders in result 3"},
		{name: "behind what may set the last insert id", text: "USE other; " + insert + "; USE shop; " + insert, multi: true, want: "forward; then " + insert},
		{name: "behind what reads the last insert id", text: insert + "; SELECT LAST_INSERT_ID(); " + insert, multi: true, want: "fill 1 of shop.orders in result 0, 1 of shop.orders in result 2"},
		{name: "behind SET", text: "SET sql_mode = ''; " + insert, multi: true, want: "forward; then " + insert},
		{name: "behind SET of a variable", text: "SET @a = 1; " + insert, multi: true, want: "fill 1 of shop.orders in result 1"},
		{name: "behind CALL", text: "CALL p(); " + insert, multi: true, want: "forward; then " + insert},
		{name: "behind DDL", text: "CREATE TABLE t (id INT); " + insert, multi: true, want: "forward; then " + insert},
		{name: "behind SET, nothing that writes", text: "SET sql_mode = ''; SELECT 1", multi: true, want: "forward"},
		{name: "behind SET, what reads otherwise then", text: "SET sql_mode = ''; SELECT \"; " + insert + "; \"", multi: true, want: "forward; then SELECT \"; " + insert + "; \""},
		{name: "behind SET and another", text: insert + ";SET sql_mode = ''; SELECT 1;" + insert, multi: true, want: "fill 1 of shop.orders in result 0; then SELECT 1;" + insert},
		{name: "refused behind another", text: insert + "; INSERT INTO orders SELECT SLEEP(0), 2, 3", multi: true, want: "error 1235"},
		{name: "behind DDL, elsewhere", text: "CREATE TABLE t (id INT); INSERT INTO other VALUES (1)", multi: true, want: "forward"},
		{name: "before DDL", text: insert + "; DROP TABLE t", multi: true, want: "fill 1 of shop.orders in result 0"},
		{name: "several statements wait for what is pending", text: "SELECT 1; SELECT 2 FROM orders", multi: true, setup: func(x *deciding) { x.c.Send(protocol.Pending{Reply: protocol.ReplyOne}) }, want: "need quiet"},
		{name: "but not where no table with a rule is named", text: "SELECT 1; SELECT 2", multi: true, setup: func(x *deciding) { x.c.Send(protocol.Pending{Reply: protocol.ReplyOne}) }, want: "forward"},
		{name: "what cannot be read, and names none", text: "INSERT INTO (SELECT 'x", multi: true, want: "forward"},
		{name: "what cannot be read, and names one", text: "INSERT INTO (SELECT orders", multi: true, want: "error 1235"},
		{name: "doubt, where no table with a rule is named", text: `SELECT "x"; INSERT INTO other VALUES ("\")`, multi: true, setup: unknown(protocol.KnowQuotes), want: "forward"},
		{name: "doubt, where one is", text: `SELECT "x"; INSERT INTO other VALUES ("\orders")`, multi: true, setup: unknown(protocol.KnowQuotes), want: "need probe"},
		{name: "pieces, where no table with a rule is named", text: "SET sql_mode = ''; INSERT INTO other VALUES (1)", multi: true, want: "forward"},
		{name: "a reader waits for what is pending", text: "INSERT INTO orders (a) VALUES (LAST_INSERT_ID())", setup: func(x *deciding) { x.c.Send(protocol.Pending{Reply: protocol.ReplyOne}) }, want: "need quiet"},
		{name: "columns wait for DDL that is pending", text: insert, setup: func(x *deciding) {
			x.c.Send(protocol.Pending{Reply: protocol.ReplyResult, Touch: protocol.TouchTables})
		}, want: "need quiet"},
		{name: "one statement does not", text: insert, setup: func(x *deciding) { x.c.Send(protocol.Pending{Reply: protocol.ReplyOne}) }, want: "fill 1 of shop.orders in result 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := newDeciding()
			if tt.setup != nil {
				tt.setup(x)
			}
			if got := x.on(mysql.COM_QUERY, tt.text, tt.multi); got != tt.want || tt.says != "" && (x.last == nil || !strings.Contains(x.last.Error(), tt.says)) {
				t.Errorf("%.80q: %s (%v); want %s, saying %q", tt.text, got, x.last, tt.want, tt.says)
			}
		})
	}
}

func TestDecidePrepared(t *testing.T) {
	x := newDeciding()
	for text, want := range map[string]string{
		"INSERT INTO orders (a) VALUES (?)":                   "forward INSERT INTO orders (a,`id`) VALUES (?,LAST_INSERT_ID(?))",
		"INSERT INTO orders (id, a) VALUES (?+1, ?)":          "error 1235",
		"INSERT INTO other (a) VALUES (?)":                    "forward",
		"PREPARE s FROM 'INSERT INTO orders (a) VALUES (1)'":  "error 1235",
		"BEGIN NOT ATOMIC INSERT INTO orders VALUES (1); END": "error 1235",
	} {
		if got := x.on(mysql.COM_STMT_PREPARE, text, true); got != want {
			t.Errorf("%q: %s (%v); want %s", text, got, x.last, want)
		}
	}
	if got := x.on(mysql.COM_STMT_PREPARE, "USE other", false); got != "forward" || x.st.After != nil {
		t.Errorf("USE that is only prepared: %s, %+v", got, x.st.After)
	}
}

// An execution that is held because LAST_INSERT_ID() is owed may change what
// any execution may change.
func TestDecideExecute(t *testing.T) {
	x := newDeciding()
	x.is(func(s *protocol.Vars) { s.LastID.Owed = true })
	head, _ := rewriter.ReadHead([]byte("CALL p()"), x.c.Vars().Mode)
	x.st.Prepared = protocol.NewStmt(head, []byte("CALL p()"), true)
	x.c.Prepared.ByNumber = map[uint32]*protocol.Stmt{1: x.st.Prepared}
	if got := x.on(mysql.COM_STMT_EXECUTE, "\x01\x00\x00\x00\x00\x01\x00\x00\x00", false); got != "forward" || !x.st.Owing {
		t.Errorf("%s, owing %v", got, x.st.Owing)
	}
	if want := protocol.TouchLastID | protocol.TouchAll; x.st.Touch != want {
		t.Errorf("touches %05b; want %05b", x.st.Touch, want)
	}
}

// Preparing tells as much of SET and USE as their text does, which is that tables
// stay as they are.
func TestPreparedTouch(t *testing.T) {
	for text, want := range map[string]protocol.Touch{
		"SET @tenant = ?":              0,
		"SET sql_mode = ?":             protocol.TouchSettings,
		"USE other":                    protocol.TouchSchema,
		"CREATE TEMPORARY TABLE t (a)": protocol.TouchAll,
		"CALL p(?)":                    protocol.TouchAll | protocol.TouchLastID,
	} {
		head, _ := rewriter.ReadHead([]byte(text), rewriter.Mode{})
		got := protocol.Touch(0)
		if e := protocol.NewStmt(head, []byte(text), true); e != nil {
			got = e.Touch
		}
		if got != want {
			t.Errorf("%s touches %07b, want %07b", text, got, want)
		}
	}
}

// A statement that went as it is, for its table had no column with a rule, is
// refused once the table has one.
func TestDecideBare(t *testing.T) {
	rules := []rule.Rule{
		{Schema: "shop", Table: "*", Column: "id", Source: "s"},
		{Schema: "shop", Table: "*", Column: "b", Source: "s"},
		{Schema: "shop", Table: "*", Column: "c", Source: "s", Observe: true},
	}
	id, a := rule.Column{Name: "id", Max: 1<<63 - 1, NotNull: true}, rule.Column{Name: "a"}
	b, c := rule.Column{Name: "b", Max: 1<<63 - 1, NotNull: true}, rule.Column{Name: "c", Max: 1<<63 - 1, NotNull: true}
	byItself := rule.Column{Name: "id", Max: 1<<63 - 1, NotNull: true, Own: "nextval(`s`)"}
	for _, tt := range []struct {
		before, after []rule.Column
		text, want    string
	}{
		{[]rule.Column{a}, []rule.Column{a}, "forward", "forward"},
		{[]rule.Column{a}, []rule.Column{a, c}, "forward", "forward"},
		{[]rule.Column{a}, []rule.Column{a, id}, "forward", "need renewal"},
		{[]rule.Column{a}, []rule.Column{a, byItself}, "forward", "forward"},
		{[]rule.Column{a, byItself}, []rule.Column{a, id}, "forward", "need renewal"},
		{[]rule.Column{a, id}, []rule.Column{a, id, c}, "forward INSERT INTO t (a,`id`) VALUES (?,LAST_INSERT_ID(?))", "fill 1 of shop.t in result 0"},
		{[]rule.Column{a, id}, []rule.Column{a, id, b}, "forward INSERT INTO t (a,`id`) VALUES (?,LAST_INSERT_ID(?))", "need renewal"},
	} {
		x := newDeciding(rules...)
		x.facts("shop", "t", nil, tt.before...)
		if got := x.on(mysql.COM_STMT_PREPARE, "INSERT INTO t (a) VALUES (?)", false); got != tt.text {
			t.Errorf("%s (%v), want %s", got, x.last, tt.text)
		}
		x.c.Prepared.ByNumber = map[uint32]*protocol.Stmt{1: x.st.Prepared}
		execute := "\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\xfd\x00\x01x"
		x.d.Tables.Forget()
		if got := x.on(mysql.COM_STMT_EXECUTE, execute, false); got != "need table shop.t" {
			t.Errorf("when tables have changed: %s", got)
		}
		x.d.Tables.Put("shop\x00t", &catalog.Table{Name: "shop.t", At: time.Now(), Table: &rule.Table{Columns: tt.after}, Changes: x.d.Tables.Count()})
		if got := x.on(mysql.COM_STMT_EXECUTE, execute, false); got != tt.want {
			t.Errorf("%s (%v), want %s", got, x.last, tt.want)
		}
	}
	x := newDeciding(rule.Rule{Schema: "shop", Table: "gone", Column: "id", Source: "s"})
	if got := x.on(mysql.COM_STMT_PREPARE, "INSERT INTO gone (a) VALUES (?)", false); got != "forward" || x.st.Prepared == nil || x.st.Prepared.Kind != (stale{}) {
		t.Errorf("a table that is not there: %s, %+v", got, x.st.Prepared)
	}
}

// Rules that forward or observe let pass what others refuse, and count it.
func TestDecideRules(t *testing.T) {
	orders := rule.Rule{Schema: "shop", Table: "orders", Column: "id", Source: "s"}
	with := func(change func(r *rule.Rule)) rule.Rule {
		r := orders
		change(&r)
		return r
	}
	forward := with(func(r *rule.Rule) { r.Forward = true })
	observe := with(func(r *rule.Rule) { r.Observe = true })
	both := with(func(r *rule.Rule) { r.Observe, r.Forward = true, true })
	reject := with(func(r *rule.Rule) { r.Explicit = rule.Reject })
	any := with(func(r *rule.Rule) { r.Table = "*" })
	tests := []struct {
		name, text string
		rules      []rule.Rule
		want       string
		counts     [3]int // forwarded, observed, left alone
		setup      func(x *deciding)
		would      string // what the first rule that observes says; empty: it is not looked at
	}{
		{name: "refused", text: "INSERT INTO orders SELECT SLEEP(0), 2, 3", rules: []rule.Rule{orders}, want: "error 1235"},
		{name: "forwarded", text: "INSERT INTO orders SELECT SLEEP(0), 2, 3", rules: []rule.Rule{forward}, want: "forward", counts: [3]int{1}},
		{name: "forwarded, not strict", text: "INSERT INTO orders SELECT SLEEP(0), 2, 3", rules: []rule.Rule{forward}, want: "error 1235", setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Strict = false }) }},
		{name: "forwarded, not known", text: "INSERT INTO orders SELECT SLEEP(0), 2, 3", rules: []rule.Rule{forward}, want: "need probe", setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Known &^= protocol.KnowStrict }) }},
		{name: "forwarded behind SET TRANSACTION", text: "INSERT INTO orders (a) SELECT 1", rules: []rule.Rule{forward}, want: "forward", counts: [3]int{1}, setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.OneShot = true }) }},
		{name: "forwarded, hidden", text: "PREPARE s FROM 'BEGIN NOT ATOMIC INSERT INTO orders (a) VALUES (1); END'", rules: []rule.Rule{forward}, want: "forward", counts: [3]int{1}},
		{name: "forwarded, hidden, not strict", text: "PREPARE s FROM 'BEGIN NOT ATOMIC INSERT INTO orders (a) VALUES (1); END'", rules: []rule.Rule{forward}, want: "error 1235", setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Strict = false }) }},
		{name: "a view without the column", text: "INSERT INTO short (a) VALUES (1)", rules: []rule.Rule{any}, want: "error 1235"},
		{name: "a view without the column, forwarded", text: "INSERT INTO short (a) VALUES (1)", rules: []rule.Rule{with(func(r *rule.Rule) { r.Table, r.Forward = "*", true })}, want: "forward", counts: [3]int{1}},
		{name: "a view without the column, forwarded, not strict", text: "INSERT INTO short (a) VALUES (1)", rules: []rule.Rule{with(func(r *rule.Rule) { r.Table, r.Forward = "*", true })}, want: "error 1235", setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Strict = false }) }},
		{name: "forwarded rules fill what they can", text: "INSERT INTO orders (a) VALUES (1)", rules: []rule.Rule{forward}, want: "fill 1 of shop.orders in result 0"},
		{name: "observed", text: "INSERT INTO orders (a) VALUES (1)", rules: []rule.Rule{observe}, want: "forward", counts: [3]int{0, 1}},
		{name: "observed in SQL PREPARE", text: "PREPARE s FROM 'INSERT INTO orders (a) VALUES (1)'", rules: []rule.Rule{observe}, want: "forward", counts: [3]int{0, 1}},
		{name: "a form forwarded in SQL PREPARE", text: "PREPARE s FROM 'INSERT INTO orders (a) SELECT 1'", rules: []rule.Rule{forward}, want: "forward", counts: [3]int{1}},
		{name: "CREATE TABLE ... SELECT", text: "CREATE TABLE orders (id INT, a INT) SELECT 1 a", rules: []rule.Rule{orders}, want: "error 1235"},
		{name: "CREATE TABLE ... SELECT, forwarded", text: "CREATE TABLE orders (id INT, a INT) SELECT 1 a", rules: []rule.Rule{forward}, want: "forward", counts: [3]int{1}},
		{name: "CREATE TABLE ... SELECT, forwarded, not strict", text: "CREATE TABLE orders (id INT, a INT) SELECT 1 a", rules: []rule.Rule{forward}, want: "error 1235", setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Strict = false }) }},
		{name: "CREATE TABLE ... SELECT, observed", text: "CREATE TABLE orders (id INT, a INT) SELECT 1 a", rules: []rule.Rule{observe}, want: "forward", counts: [3]int{0, 1}},
		{name: "CREATE TABLE", text: "CREATE TABLE orders (id INT, a INT)", rules: []rule.Rule{orders}, want: "forward"},
		{name: "FOR PORTION OF", text: "UPDATE orders FOR PORTION OF p FROM 1 TO 2 SET a = 1", rules: []rule.Rule{orders}, want: "error 1235", setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Mode.MariaDB = true }) }},
		{name: "FOR PORTION OF, forwarded", text: "DELETE FROM orders FOR PORTION OF p FROM 1 TO 2", rules: []rule.Rule{forward}, want: "forward", counts: [3]int{1}, setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Mode.MariaDB = true }) }},
		{name: "FOR PORTION OF, observed", text: "DELETE FROM orders FOR PORTION OF p FROM 1 TO 2", rules: []rule.Rule{observe}, want: "forward", counts: [3]int{0, 1}, setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Mode.MariaDB = true }) }},
		{name: "FOR PORTION OF in SQL PREPARE", text: "PREPARE s FROM 'DELETE FROM orders FOR PORTION OF p FROM 1 TO 2'", rules: []rule.Rule{orders}, want: "error 1235", setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Mode.MariaDB = true }) }},
		{name: "FOR PORTION OF, hidden", text: "BEGIN NOT ATOMIC UPDATE orders FOR PORTION OF p FROM 1 TO 2 SET a = 1; END", rules: []rule.Rule{orders}, want: "error 1235", setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Mode.MariaDB = true }) }},
		{name: "FOR PORTION OF of another table", text: "UPDATE other FOR PORTION OF p FROM 1 TO 2 SET a = 1", rules: []rule.Rule{orders}, want: "forward", setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Mode.MariaDB = true }) }},
		{name: "UPDATE", text: "UPDATE orders SET a = 1", rules: []rule.Rule{orders}, want: "forward"},
		{name: "observed, refused", text: "INSERT INTO orders SELECT SLEEP(0), 2, 3", rules: []rule.Rule{observe}, want: "forward", counts: [3]int{0, 1}},
		{name: "observed, forwarded", text: "INSERT INTO orders SELECT SLEEP(0), 2, 3", rules: []rule.Rule{both}, want: "forward", counts: [3]int{0, 1}, would: "would forward without an id: INSERT ... SELECT that calls a function which may do more than read"},
		{name: "observed, forwarded, not strict", text: "INSERT INTO orders SELECT SLEEP(0), 2, 3", rules: []rule.Rule{both}, want: "forward", counts: [3]int{0, 1}, would: "would refuse: INSERT ... SELECT that calls a function which may do more than read", setup: func(x *deciding) { x.is(func(s *protocol.Vars) { s.Strict = false }) }},
		{name: "observed, forwarded, hidden", text: "PREPARE s FROM 'BEGIN NOT ATOMIC INSERT INTO orders (a) VALUES (1); END'", rules: []rule.Rule{both}, want: "forward", counts: [3]int{0, 1}, would: "would forward without an id: INSERT inside another statement"},
		{name: "explicit rejected", text: "INSERT INTO orders (id) VALUES (5)", rules: []rule.Rule{reject}, want: "error 1235"},
		{name: "wildcard", text: "INSERT INTO orders (a) VALUES (1)", rules: []rule.Rule{any}, want: "fill 1 of shop.orders in result 0"},
		{name: "wildcard on a table without the column", text: "INSERT INTO log_a (a) VALUES (1)", rules: []rule.Rule{any}, want: "forward", counts: [3]int{0, 0, 1}},
		{name: "wildcard on a type that holds no ids", text: "INSERT INTO narrow (a) VALUES (1)", rules: []rule.Rule{any}, want: "forward", counts: [3]int{0, 0, 1}},
		{name: "wildcard on such a table, in a block", text: "BEGIN NOT ATOMIC INSERT INTO narrow (a) VALUES (1); END", rules: []rule.Rule{any}, want: "forward", counts: [3]int{0, 0, 1}},
		{name: "a type that holds no ids", text: "INSERT INTO narrow (a) VALUES (1)", rules: []rule.Rule{with(func(r *rule.Rule) { r.Table = "narrow" })}, want: "error 1467"},
		{name: "a table that does not exist", text: "INSERT INTO gone (a) VALUES (1)", rules: []rule.Rule{any}, want: "forward"},
		{name: "a table that may not be read", text: "INSERT INTO secret (a) VALUES (1)", rules: []rule.Rule{any}, want: "error 1142"},
		{name: "the named column is missing", text: "INSERT INTO log_a (a) VALUES (1)", rules: []rule.Rule{with(func(r *rule.Rule) { r.Table = "log_a" })}, want: "error 1054"},
		{
			name: "two columns of one table", text: "INSERT INTO orders (a) VALUES (1)",
			rules: []rule.Rule{orders, with(func(r *rule.Rule) { r.Column = "b" })}, want: "fill 1 1 of shop.orders in result 0",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := newDeciding(tt.rules...)
			x.facts("shop", "short", nil, rule.Column{Name: "a"}).View = true
			if tt.setup != nil {
				tt.setup(x)
			}
			if got := x.on(mysql.COM_QUERY, tt.text, false); got != tt.want {
				t.Errorf("%s (%v); want %s", got, x.last, tt.want)
			}
			found := &x.st.Found
			if got := [3]int{len(found.Passed), len(found.Observed), found.LeftAlone}; got != tt.counts {
				t.Errorf("counted %v; want %v", got, tt.counts)
			}
			if tt.would != "" && found.Observed[0].What != tt.would {
				t.Errorf("it %s; want %s", found.Observed[0].What, tt.would)
			}
		})
	}
}

// What a decided text changes is noted for when its reply comes.
func TestDecideEffects(t *testing.T) {
	x := newDeciding()
	x.is(func(s *protocol.Vars) { s.Temporary = map[string]bool{"shop\x00t": true} })
	x.is(func(s *protocol.Vars) { s.LastID.Owed = true })
	x.on(mysql.COM_QUERY, "CREATE TEMPORARY TABLE t (id INT); DROP TABLE t; USE other; SELECT LAST_INSERT_ID()", true)
	if j := x.st.After; j == nil || string(j.Schema) != "other" || len(j.Temps) != 2 || j.Temps[0] != (protocol.Temp{Result: 0, Name: "shop\x00t"}) || j.Temps[1] != (protocol.Temp{Result: 1, Name: ""}) {
		t.Errorf("after %+v", j)
	}
	if x.st.Touch&protocol.TouchTables == 0 || !x.st.Owing {
		t.Errorf("touches %05b, owing %v", x.st.Touch, x.st.Owing)
	}
	x.is(func(s *protocol.Vars) { s.LastID.Owed = false })
	x.on(mysql.COM_QUERY, "SELECT 1; INSERT INTO other VALUES (1)", true)
	if x.st.Touch&protocol.TouchLastID == 0 || x.st.Owing || x.st.After != nil {
		t.Errorf("behind it: touches %05b, owing %v, after %+v", x.st.Touch, x.st.Owing, x.st.After)
	}
}

// is changes what is known of the session.
func (x *deciding) is(change func(s *protocol.Vars)) { x.c.Update(change) }

// decide decides on the command by what is known now.
func (x *deciding) decide() (Need, error) { return x.d.Decide(&x.st, x.c.Snapshot(x.st.Executes)) }

// newDecider returns a decider, as a session has it.
func newDecider(rules []rule.Rule) *Decider {
	book := protocol.RuleBook{List: rule.NewList(rules)}
	return &Decider{Tables: catalog.New(), Rules: func() protocol.RuleBook { return book }}
}
