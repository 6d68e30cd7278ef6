package sessions

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// generator draws one session.
type generator struct {
	*rand.Rand
	dialect string
	session Session
	tables  []*table
	made    int    // tables, and other places where a counter begins
	serial  int    // of values that are to be unlike others
	split   bool   // texts are split at semicolons
	manual  bool   // autocommit may be off
	zero    bool   // 0 may be a value, by sql_mode
	myISAM  bool   // tables may have no transactions
	trigger bool   // writes behind a row, and may fail there
	upsert  bool   // the INSERT has ON DUPLICATE KEY UPDATE
	cached  []Step // statements that have been prepared
	packet  bool   // the rule says last_insert_id: packet
	hides   bool   // and statements are drawn that do not show their insert ids, for tables with rules alone
}

func (g *generator) pick(all ...string) string { return all[g.IntN(len(all))] }

// one is true once in n times.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func (g *generator) mariaDB() bool { return g.dialect == MariaDB }

func (g *generator) add(s Step) {
	if g.packet {
		if !toldByPacket(s.Text) {
			return
		}
		if strings.Contains(s.Text, "ON DUPLICATE") {
			s.Traits |= Skips // the insert id of a row that was there is not shown
		}
	}
	if s.Has(Inserts) {
		s.Traits |= Quotes
	}
	if s.Has(Inserts) && g.trigger {
		s.Traits |= Several
	}
	g.session.Steps = append(g.session.Steps, s)
}

// say adds a text.
func (g *generator) say(text string, traits Trait) {
	g.add(Step{Way: AsText, Text: text, Traits: traits})
}

// step adds a step or a few that belong together.
func (g *generator) step() {
	switch n := g.IntN(100); {
	case n < 34:
		text, traits := g.insert(false)
		g.say(text, traits)
		g.look()
	case n < 52:
		g.prepared()
		g.look()
	case n < 57:
		g.dynamic()
	case n < 58:
		g.insertFrom()
	case n < 64:
		g.several()
	case n < 72:
		g.say(g.setting(), 0)
	case n < 77:
		g.say(g.transaction(), 0)
	case n < 83:
		g.say(g.other(), 0)
	case n < 89:
		text, seen := g.ddl()
		way := Elsewhere
		if seen || g.one(3) {
			way = ElsewhereSeen
		}
		g.add(Step{Way: way, Text: text})
	case n < 91:
		text, _ := g.ddl()
		if strings.Contains(text, ";\n") || strings.Contains(text, "MODIFY id") { // a temporary table has an id of its own

			return
		}
		g.say(text, 0)
	case n < 93:
		g.temporary()
	case n < 95:
		g.command()
	case n < 96:
		g.load()
		g.look()
	default:
		g.query()
	}
}

// look reads what an INSERT left, or does not.
func (g *generator) look() {
	switch g.IntN(9) {
	case 0, 1:
		g.say(g.pick("SELECT LAST_INSERT_ID()", "SELECT @@identity", "SELECT @@last_insert_id", "SELECT LAST_INSERT_ID(), @@identity"), 0)
	case 2:
		g.say(g.pick("SELECT ROW_COUNT()", "SELECT ROW_COUNT(), 1", "SHOW COUNT(*) WARNINGS", "SHOW COUNT(*) ERRORS", "SELECT @@warning_count, @@error_count", "SHOW WARNINGS LIMIT 1"), Counts|Warnings)
	case 3:
		g.say(g.pick("SHOW WARNINGS", "SHOW ERRORS"), Warnings)
	case 4:
		g.say("INSERT INTO log (what, ref) VALUES ('last', LAST_INSERT_ID())", Inserts)
	case 5:
		g.cache(Step{Text: "SELECT LAST_INSERT_ID()"})
	}
}

// cache adds an execution.
func (g *generator) cache(s Step) {
	s.Way = AsCached
	g.add(s)
}

// prepared executes a new statement or one that was executed before, with other values.
func (g *generator) prepared() {
	if len(g.cached) > 0 && g.IntN(3) > 0 {
		s := g.cached[g.IntN(len(g.cached))]
		s.Args = g.values(s.Text)
		g.cache(s)
		return
	}
	text, traits := g.insert(true)
	if g.one(6) {
		text, traits = "SELECT id, a, n FROM "+g.any().name+" WHERE n <= ?/*n*/ ORDER BY a, n, u, id LIMIT 5", 0
	}
	s := Step{Text: text, Traits: traits, Args: g.values(text)}
	g.cached = append(g.cached, s)
	for i := range s.Args { // MariaDB takes long data for something else when it prepares anew
		if text, ok := s.Args[i].(string); ok && g.one(6) && !strings.Contains(s.Text, "SELECT") {
			s.Args[i] = []byte(text)
		}
	}
	g.cache(s)
}

// values binds the parameters of a text. What stands in a comment behind each says what it is for.
func (g *generator) values(text string) (args []any) {
	for _, rest := range strings.Split(text, "?")[1:] {
		args = append(args, g.bound(rest))
	}
	return args
}

// bound is the value of a parameter in front of this text.
func (g *generator) bound(rest string) any {
	g.serial++
	switch {
	case strings.HasPrefix(rest, "/*id*/"):
		return []any{nil, nil, nil, int64(0), int64(g.explicit()), fmt.Sprint(g.explicit()), "0"}[g.IntN(7)]
	case strings.HasPrefix(rest, "/*u*/"):
		return []any{nil, int64(1 + g.IntN(30)), int64(1000 + g.serial), int64(1000 + g.serial), fmt.Sprint(1 + g.IntN(30))}[g.IntN(5)]
	case strings.HasPrefix(rest, "/*n*/"): // what is wrong with others is said in other words when a statement is prepared anew
		return int64(g.IntN(12))
	}
	return []any{nil, int64(g.IntN(100)), int64(g.IntN(10)), "text", "7", 2.5, "9", "12", fmt.Sprint("s", g.serial), int64(g.serial)}[g.IntN(10)]
}

// explicit is an id of the session's own.
func (g *generator) explicit() int {
	if g.one(5) {
		return 1 + g.IntN(20)
	}
	return 100 + g.IntN(80_000)
}

// several adds a text of several statements.
func (g *generator) several() {
	var texts []string
	var traits Trait
	for range 2 + g.IntN(3) {
		switch g.IntN(8) {
		case 0:
			texts = append(texts, g.setting())
		case 1:
			texts = append(texts, "SELECT LAST_INSERT_ID()")
		case 2:
			texts = append(texts, g.transaction())
		case 3:
			texts = append(texts, g.other())
		default:
			text, more := g.insert(false)
			texts, traits = append(texts, text), traits|more
		}
	}
	g.say(strings.Join(texts, g.pick(";", "; ", " ;\n", ";/* x */"))+g.pick("", "", ";"), traits|Several|Asks|Quotes)
}

// dynamic prepares or executes in SQL.
func (g *generator) dynamic() {
	name := g.pick("s0", "s1", "s2")
	switch g.IntN(8) {
	case 0, 1, 2:
		text, _ := g.insertRows(withParams)
		g.say("PREPARE "+name+" FROM "+g.literal(text), Inserts)
		g.using(name, strings.Count(text, "?"))
	case 3:
		text, _ := g.insertRows(withValues)
		g.say("SET @t = "+g.literal(text), 0)
		g.say("PREPARE "+name+" FROM @t", Inserts)
	case 4:
		if g.mariaDB() {
			text, traits := g.insertRows(withValues)
			g.say("EXECUTE IMMEDIATE "+g.literal(text), traits)
			return
		}
		g.say("DEALLOCATE PREPARE "+name, 0)
	case 5:
		g.say(g.pick("DEALLOCATE", "DROP")+" PREPARE "+name, 0)
	default:
		g.using(name, g.IntN(5))
	}
}

// using executes a named statement.
func (g *generator) using(name string, n int) {
	text := "EXECUTE " + name
	var set []string
	for i := range n {
		set = append(set, fmt.Sprintf("@p%d = %s", i, g.pick("NULL", "1", "'2'", fmt.Sprint(g.IntN(40)), fmt.Sprint(1000+g.serial+i), "3")))
	}
	if n > 0 {
		g.say("SET "+strings.Join(set, ", "), 0)
		text += " USING @p0"
		for i := 1; i < n; i++ {
			text += fmt.Sprintf(", @p%d", i)
		}
	}
	g.say(text, Several|Asks|Inserts|Placed|Skips)
}

// literal writes a text as one.
func (g *generator) literal(text string) string {
	ascii := func(r rune) rune { // others are refused in such a text where character sets differ
		if r < 128 {
			return r
		}
		return 'x'
	}
	return "'" + strings.ReplaceAll(strings.Map(ascii, text), "'", "''") + "'"
}

// temporary makes or drops a temporary table, mostly with the name of one that has a rule.
func (g *generator) temporary() {
	if g.hides {
		return
	}
	t := g.any()
	if t.temp && g.one(2) {
		t.temp = false
		g.say("DROP TEMPORARY TABLE "+t.name, 0)
		return
	}
	t.temp = true
	g.say(g.create(t, "TEMPORARY "), 0)
}

// command is one that is no text.
func (g *generator) command() {
	schema := g.pick("{db}", "{db}", "{db}", "{db}b")
	switch g.IntN(8) {
	case 0:
		g.forget(Step{Way: Reset})
		g.say("USE {db}", 0)
	case 1:
		g.forget(Step{Way: ChangeUser, Text: schema})
	case 2, 3:
		g.add(Step{Way: InitDB, Text: schema})
	case 4, 5:
		g.add(Step{Way: SplitNoTexts})
		g.several()
		g.add(Step{Way: SplitTexts})
	case 6:
		g.add(Step{Way: SplitTexts})
	case 7:
		g.add(Step{Way: CloseStatement})
	}
}

// forget is a step that ends what a session has.
func (g *generator) forget(s Step) {
	g.add(s)
	for _, t := range g.tables {
		t.temp = false
	}
	if g.one(3) {
		g.cached = nil
	}
}

var (
	lastIDAlone = regexp.MustCompile(`SELECT (LAST_INSERT_ID\(\)|@@identity|@@last_insert_id)\s*(;|$)`)
	readsLastID = regexp.MustCompile(`LAST_INSERT_ID\(\)|@@identity|@@last_insert_id|@last\b|SET n = LAST_INSERT_ID`)
	asksForIDs  = regexp.MustCompile(`insert_id=|(INSERT|REPLACE) .*SELECT [^1]`)
)

// toldByPacket reports whether a text shows the same where the server does not know LAST_INSERT_ID(): one that uses
// it among others does not, SET insert_id is not followed, and an INSERT of a query is refused.
func toldByPacket(text string) bool {
	return !readsLastID.MatchString(lastIDAlone.ReplaceAllString(text, "")) && !strings.Contains(text, "@@insert_id") && !asksForIDs.MatchString(strings.ReplaceAll(text, "last_insert_id=", ""))
}
