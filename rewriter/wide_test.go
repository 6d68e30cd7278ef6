package rewriter

import (
	"errors"
	"strings"
	"testing"
)

func TestColumnForms(t *testing.T) {
	char := func(n int) Column { return Column{Text: true, Length: n, Padded: true, Max: 1<<64 - 1} }
	varchar := func(n int) Column { return Column{Text: true, Length: n, Max: 1<<64 - 1} }
	binary := func(n int) Column { return Column{Text: true, Bytes: true, Length: n, Padded: true, Max: 1<<64 - 1} }
	varbinary := func(n int) Column { return Column{Text: true, Bytes: true, Length: n, Max: 1<<64 - 1} }
	for name, tt := range map[string]struct {
		column                 Column
		number, uuid, objectID Form
	}{
		"CHAR(36)":      {char(36), FormNumber, FormUUID, FormHex24},
		"CHAR(40)":      {char(40), FormNumber, FormUUID, FormHex24},
		"CHAR(35)":      {char(35), FormNumber, FormNone, FormHex24},
		"CHAR(32)":      {char(32), FormNumber, FormHex32, FormHex24},
		"VARCHAR(32)":   {varchar(32), FormNumber, FormHex32, FormHex24},
		"VARCHAR(255)":  {varchar(255), FormNumber, FormUUID, FormHex24},
		"CHAR(31)":      {char(31), FormNumber, FormNone, FormHex24},
		"CHAR(24)":      {char(24), FormNumber, FormNone, FormHex24},
		"CHAR(23)":      {char(23), FormNumber, FormNone, FormNone},
		"BINARY(16)":    {binary(16), FormNumber, FormBytes16, FormNone},
		"BINARY(12)":    {binary(12), FormNumber, FormNone, FormBytes12},
		"BINARY(36)":    {binary(36), FormNumber, FormNone, FormNone},
		"VARBINARY(16)": {varbinary(16), FormNumber, FormBytes16, FormBytes12},
		"VARBINARY(36)": {varbinary(36), FormNumber, FormBytes16, FormBytes12},
		"VARBINARY(11)": {varbinary(11), FormNumber, FormNone, FormNone},
		"UUID":          {Column{Text: true, Length: 36, UUID: true}, FormNone, FormBytes16, FormNone},
		"BIGINT":        {Column{Bytes: true, Max: 1<<63 - 1}, FormNumber, FormNone, FormNone},
		"BLOB":          {Column{Bytes: true}, FormNone, FormNone, FormNone},
	} {
		for kind, want := range map[IDKind]Form{Number: tt.number, UUID: tt.uuid, ObjectID: tt.objectID} {
			if got := tt.column.Form(kind); got != want {
				t.Errorf("%s for kind %d: form %d, want %d", name, kind, got, want)
			}
		}
	}
}

func TestAppendWide(t *testing.T) {
	id := [2]uint64{0x017f22e279b07cc3, 0x98c4dc0c0c07398f}
	for form, want := range map[Form][2]string{
		FormUUID:    {"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "'017f22e2-79b0-7cc3-98c4-dc0c0c07398f'"},
		FormHex32:   {"017f22e279b07cc398c4dc0c0c07398f", "'017f22e279b07cc398c4dc0c0c07398f'"},
		FormHex24:   {"017f22e279b07cc398c4dc0c", "'017f22e279b07cc398c4dc0c'"},
		FormBytes16: {"\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c\x0c\x07\x39\x8f", "X'017f22e279b07cc398c4dc0c0c07398f'"},
		FormBytes12: {"\x01\x7f\x22\xe2\x79\xb0\x7c\xc3\x98\xc4\xdc\x0c", "X'017f22e279b07cc398c4dc0c'"},
	} {
		value, literal := string(form.AppendValue(nil, id)), string(form.AppendLiteral(nil, id))
		if value != want[0] || literal != want[1] || len(literal) > Longest {
			t.Errorf("form %d: %q and %s, want %q and %s", form, value, literal, want[0], want[1])
		}
	}
}

// wideTable has columns for all that a rule may name.
var wideTable = &Table{Columns: []Column{
	{Name: "pid", Text: true, Length: 36, Padded: true},
	{Name: "a"},
	{Name: "bid", Text: true, Bytes: true, Length: 12, Padded: true},
	{Name: "id", Max: 1<<63 - 1},
}}

var (
	pidRule = &Rule{Schema: "*", Table: "*", Column: "pid", IDs: UUID}
	bidRule = &Rule{Schema: "*", Table: "*", Column: "bid", IDs: ObjectID}
	idRule  = &Rule{Schema: "*", Table: "*", Column: "id"}
)

const (
	u1, u2 = "'00000000-0000-004d-0000-00000000004e'", "'00000000-0000-004f-0000-000000000050'" // planIDs of the first column
	o1     = "X'000000000000043500000000'"
)

func TestWidePlans(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		prepared string // as it is prepared; empty: not looked at
	}{
		{"INSERT INTO t (a) VALUES (1),(2)", "INSERT INTO t (a,`pid`) VALUES (1," + u1 + "),(2," + u2 + ")", "INSERT INTO t (a,`pid`) VALUES (1,?),(2,?)"},
		{"INSERT INTO t VALUES (NULL,1,2,3),(DEFAULT,1,2,3)", "INSERT INTO t VALUES (" + u1 + ",1,2,3),(" + u2 + ",1,2,3)", "INSERT INTO t VALUES (?,1,2,3),(?,1,2,3)"},
		{"INSERT INTO t (pid) VALUES (DEFAULT(pid)),(null)", "INSERT INTO t (pid) VALUES (" + u1 + "),(" + u2 + ")", ""},
		// Values of its own, of whatever kind, also what generates for a number.
		{"INSERT INTO t (pid) VALUES ('x'),(0),('0'),(''),(X'30'),(0x30),(N'x'),(_utf8mb4'x'),('a' 'b'),(1.5),(TRUE),(b'1')", "", ""},
		{"INSERT INTO t (pid,a) VALUES (?,?)", "", "INSERT INTO t (pid,a) VALUES (?,?)"},
		// What may be NULL.
		{"INSERT INTO t (pid,a) VALUES (UUID(),1), ( @x ,2)", "INSERT INTO t (pid,a) VALUES (IFNULL(UUID()," + u1 + "),1), ( IFNULL(@x," + u2 + ") ,2)", "INSERT INTO t (pid,a) VALUES (IFNULL(UUID(),?),1), ( IFNULL(@x,?) ,2)"},
		{"INSERT INTO t SET a=1,pid=f((SELECT 1),',')/* c */,b=2", "INSERT INTO t SET a=1,pid=IFNULL(f((SELECT 1),',')," + u1 + ")/* c */,b=2", "INSERT INTO t SET a=1,pid=IFNULL(f((SELECT 1),','),?)/* c */,b=2"},
		{"INSERT INTO t (pid) VALUES ((NULL)),(NULL+1)", "INSERT INTO t (pid) VALUES (IFNULL((NULL)," + u1 + ")),(IFNULL(NULL+1," + u2 + "))", ""},
		{"INSERT INTO t (pid) VALUES (UNHEX(?))", "INSERT INTO t (pid) VALUES (IFNULL(UNHEX(?)," + u1 + "))", "INSERT INTO t (pid) VALUES (IFNULL(UNHEX(?),?))"},
		{"INSERT INTO t (pid) VALUES (LAST_INSERT_ID()),(-5)", "INSERT INTO t (pid) VALUES (IFNULL(LAST_INSERT_ID()," + u1 + ")),(IFNULL(-5," + u2 + "))", ""},
		{"INSERT INTO t (pid) VALUES ('a' COLLATE utf8mb4_bin)", "INSERT INTO t (pid) VALUES (IFNULL('a' COLLATE utf8mb4_bin," + u1 + "))", ""},
		// Forms.
		{"REPLACE t SET a=1", "REPLACE t SET a=1,`pid`=" + u1, "REPLACE t SET a=1,`pid`=?"},
		{"INSERT INTO t SET pid=NULL ON DUPLICATE KEY UPDATE a=2", "INSERT INTO t SET pid=" + u1 + " ON DUPLICATE KEY UPDATE a=2", ""},
		{"INSERT IGNORE INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE pid=LAST_INSERT_ID(pid)", "INSERT IGNORE INTO t (a,`pid`) VALUES (1," + u1 + ") ON DUPLICATE KEY UPDATE pid=LAST_INSERT_ID(pid)", ""},
		{"INSERT INTO t () VALUES (),()", "INSERT INTO t (`pid`) VALUES (" + u1 + "),(" + u2 + ")", "INSERT INTO t (`pid`) VALUES (?),(?)"},
		{"INSERT INTO t (a) VALUES (LAST_INSERT_ID()) RETURNING pid", "INSERT INTO t (a,`pid`) VALUES (LAST_INSERT_ID()," + u1 + ") RETURNING pid", ""},
		{"INSERT INTO t (pid,a) VALUES (NULL,pid)", "INSERT INTO t (a,`pid`) VALUES (pid," + u1 + ")", ""},
	} {
		for _, prepared := range []bool{false, true} {
			if prepared && tt.prepared == "" || !prepared && strings.Contains(tt.in, "?") {
				continue
			}
			s := &Statement{Text: []byte(tt.in), Rules: []*Rule{pidRule}, Table: wideTable, Mode: Mode{Version: 90704}, Prepared: prepared}
			p := new(Plan)
			if err := p.Read(s); err != nil {
				t.Errorf("%s: %v", tt.in, err)
				continue
			}
			want := tt.want
			if want == "" {
				want = tt.in
			}
			if got := string(p.Append(nil, s.Text, planIDs(p))); got != want {
				t.Errorf("%s\n gives %s\n want  %s", tt.in, got, want)
			}
			if !p.Plain || !p.NoLastID || p.ZeroDoubt || p.Assigned || p.OwnLastID {
				t.Errorf("%s: plan %+v", tt.in, p)
			}
			if made, err := p.Prepare(s); prepared && (err != nil || string(made.Text) != tt.prepared || !made.NoLastID) {
				t.Errorf("%s\n is prepared as %s, %v\n want %s", tt.in, made.Text, err, tt.prepared)
			}
		}
	}
}

// TestWideBesideNumbers: the number feeds the last insert id, whatever the order of the columns.
func TestWideBesideNumbers(t *testing.T) {
	rules := NewRules([]Rule{*bidRule, *pidRule, *idRule}).Match([]byte("s"), []byte("t"), false)
	if len(rules) != 3 || rules[0].Column != "id" {
		t.Fatalf("rules %v", rules)
	}
	for _, tt := range []struct{ in, want string }{
		{"INSERT INTO t (a) VALUES (1),(2)", "INSERT INTO t (a,`pid`,`id`) VALUES (1,PID,77),(2,PID,LAST_INSERT_ID(77)+1)"},
		{"INSERT INTO t (id,a,pid) VALUES (0,LAST_INSERT_ID(),f(1)),(NULL,1,'x')", "INSERT INTO t (a,pid,`id`) VALUES (LAST_INSERT_ID(),IFNULL(f(1),PID),77),(1,'x',LAST_INSERT_ID(77*(`id`<=>`id`))+1)"},
	} {
		s := &Statement{Text: []byte(tt.in), Rules: []*Rule{rules[0], pidRule}, Table: wideTable, Mode: Mode{Version: 90704}}
		p := new(Plan)
		if err := p.Read(s); err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		want := tt.want
		for _, id := range []string{"'00000000-0000-0435-0000-000000000436'", "'00000000-0000-0437-0000-000000000438'"} {
			want = strings.Replace(want, "PID", id, 1)
		}
		if got := string(p.Append(nil, s.Text, planIDs(p))); got != want || p.NoLastID {
			t.Errorf("%s\n gives %s\n want  %s", tt.in, got, want)
		}
	}
	s := &Statement{Text: []byte("INSERT INTO t (a) VALUES (1)"), Rules: []*Rule{pidRule, bidRule}, Table: wideTable}
	p := new(Plan)
	if err := p.Read(s); err != nil {
		t.Fatal(err)
	}
	if got, want := string(p.Append(nil, s.Text, planIDs(p))), "INSERT INTO t (a,`bid`,`pid`) VALUES (1,"+o1+","+u1+")"; got != want {
		t.Errorf("gives %s, want %s", got, want)
	}
}

func TestWideRefused(t *testing.T) {
	for in, want := range map[string]string{
		"INSERT INTO t (a) SELECT 1":                                  "INSERT ... SELECT into column pid",
		"REPLACE t (a) TABLE s":                                       "REPLACE ... TABLE into column pid",
		"INSERT INTO t (pid,a) VALUES (f(1),pid)":                     "value that reads a generated column",
		"INSERT INTO t (pid) VALUES (/*!50000 f( */ 1 /*!50000 ) */)": faultVersion,
		"INSERT INTO t (pid) VALUES (f":                               "end of the statement",
		"INSERT INTO t (pid) VALUES (f;)":                             "';'",
		"INSERT INTO t (pid) VALUES (f(1":                             "end of the statement",
	} {
		s := &Statement{Text: []byte(in), Rules: []*Rule{pidRule}, Table: wideTable, Mode: Mode{Version: 90704}}
		err := new(Plan).Read(s)
		if form, ok := errors.AsType[*Unsupported](err); !ok || !strings.Contains(form.Form, want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
	s := &Statement{Text: []byte("INSERT INTO t (a) VALUES (1)"), Rules: []*Rule{bidRule}, Table: &Table{Columns: []Column{{Name: "bid", Text: true, Length: 12}}}}
	if err := new(Plan).Read(s); err == nil {
		t.Error("ids are written into CHAR(12)")
	}
	load := &Statement{Text: []byte("LOAD DATA LOCAL INFILE 'x' INTO TABLE t (a)"), Rules: []*Rule{idRule, pidRule}, Table: wideTable}
	if err := new(LoadPlan).Read(load); err == nil || !strings.Contains(err.Error(), "LOAD DATA into column pid") {
		t.Errorf("LOAD DATA: %v", err)
	}
}

func TestWideAllocatesNothing(t *testing.T) {
	s := &Statement{Text: []byte("INSERT INTO t (a,pid) VALUES (1,NULL),(2,f(1)),(3,'x')"), Rules: []*Rule{pidRule}, Table: wideTable}
	p, out := new(Plan), make([]byte, 0, 1024)
	if err := p.Read(s); err != nil {
		t.Fatal(err)
	}
	ids := planIDs(p)
	f := func() {
		if err := p.Read(s); err != nil {
			t.Fatal(err)
		}
		out = p.Append(out[:0], s.Text, ids)
	}
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
