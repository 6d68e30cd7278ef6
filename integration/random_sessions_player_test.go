package integration

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/sessions"
)

// outcome is what a step of a session showed.
type outcome struct {
	facets                []facet
	sent, replies, errors int
}

// differing is the first step that differs, or -1. The contents at the end count as a step behind the last.
func differing(direct, proxied []outcome) int {
	for i := range max(len(direct), len(proxied)) {
		if i >= len(direct) || i >= len(proxied) {
			return min(i, len(direct)-1, len(proxied)-1)
		}
		if !slices.Equal(direct[i].facets, proxied[i].facets) {
			return i
		}
	}
	return -1
}

// pair plays a session each way at the same time.
func (p *playground) pair(worker int, s sessions.Session) (direct, proxied []outcome, err error) {
	var wg sync.WaitGroup
	var errs [2]error
	wg.Go(func() {
		direct, errs[0] = play(s, &player{side: sessions.Side{Schema: fmt.Sprintf("direct_%d", worker)}, addr: p.server.Addr, direct: p.server.Addr})
	})
	wg.Go(func() {
		proxied, errs[1] = play(s, &player{side: sessions.Side{Schema: fmt.Sprintf("proxied%d", worker), Proxied: true}, addr: p.proxy.Addr("a"), direct: p.server.Addr})
	})
	wg.Wait()
	for i, way := range []string{"direct", "proxied"} {
		if errs[i] != nil {
			return nil, nil, fmt.Errorf("%s: %w", way, errs[i])
		}
	}
	return direct, proxied, nil
}

// player is a client on one side.
type player struct {
	side             sessions.Side
	addr, direct     string
	app, other, seen *rawSession       // the session, and those that change tables elsewhere
	labels           map[string]string // of ids, in the order in which they appeared
	status           uint16            // what the server said last
	cached           map[string]bool   // statements that are prepared
	before           sessions.Step     // in the session itself
	otherText        bool              // it got an error that may be another
}

// play runs a session in a new schema.
func play(s sessions.Session, pl *player) (all []outcome, err error) {
	pl.labels, pl.cached, pl.status = map[string]string{}, map[string]bool{}, mysql.SERVER_STATUS_AUTOCOMMIT
	for _, c := range []struct {
		to   **rawSession
		addr string
	}{{&pl.other, pl.direct}, {&pl.seen, pl.addr}, {&pl.app, pl.addr}} {
		if *c.to, err = dialSession(c.addr, ""); err != nil {
			return nil, err
		}
		defer (*c.to).close()
	}
	if err := pl.begin(s.World); err != nil {
		return nil, err
	}
	for i, step := range s.Steps {
		o, err := pl.step(step)
		if err != nil {
			return append(all, outcome{facets: []facet{{lost, err.Error()}}}), nil
		}
		if i%20 == 19 {
			if err := pl.contents(&o); err != nil {
				return nil, err
			}
		}
		all = append(all, o)
	}
	var end outcome
	err = pl.contents(&end)
	return append(all, end), err
}

// begin makes the world.
func (pl *player) begin(world []string) error {
	db := pl.side.Schema
	texts := []string{"SET sql_mode='STRICT_ALL_TABLES'"}
	for _, name := range []string{db + "b", db} {
		texts = append(texts, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
	}
	texts = append(texts, "USE "+db)
	for _, text := range append(texts, world...) {
		replies, err := pl.seen.query(pl.side.Fit(text))
		if err == nil && replies[0].err != nil {
			err = replies[0].err
		}
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	for _, s := range []*rawSession{pl.app, pl.other} {
		if _, err := s.query("USE " + db); err != nil {
			return err
		}
	}
	_, err := pl.other.query("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
	return err
}

// step does what a step says.
func (pl *player) step(s sessions.Step) (o outcome, err error) {
	if s.Has(sessions.Counts) && pl.before.Has(sessions.Asks) || s.Has(sessions.Warnings) && (pl.before.Has(sessions.Placed) || pl.otherText) {
		return o, nil
	}
	text := pl.side.Fit(s.Text)
	o.sent = 1
	var replies []reply
	switch s.Way {
	case sessions.AsText:
		replies, err = pl.app.query(text)
	case sessions.AsCached:
		replies, err = pl.execute(text, s.Args)
	case sessions.Elsewhere, sessions.ElsewhereSeen:
		return pl.elsewhere(s.Way, text)
	case sessions.Reset:
		replies, err = pl.begins(pl.app.resetConnection())
	case sessions.ChangeUser:
		replies, err = pl.begins(pl.app.changeLogin(text))
	case sessions.InitDB:
		if err = pl.app.send(mysql.COM_INIT_DB, []byte(text)); err == nil {
			replies, err = pl.app.results()
		}
	case sessions.SplitTexts:
		replies, err = pl.option(0)
	case sessions.SplitNoTexts:
		replies, err = pl.option(1)
	case sessions.CloseStatement:
		for name := range pl.cached {
			if _, err := pl.app.closeStatement(name); err != nil {
				return o, err
			}
		}
		clear(pl.cached)
	}
	if err != nil {
		return o, err
	}
	if s.Way > sessions.ElsewhereSeen {
		for i := range replies {
			replies[i].warnings = 0 // of the statement before
		}
	}
	o.add(pl.facets(replies, s))
	pl.before, pl.otherText = s, false
	for _, r := range replies {
		pl.otherText = pl.otherText || r.err != nil && r.err.Code == mysql.ER_PARSE_ERROR && s.Has(sessions.Quotes)
	}
	if n := len(replies); n > 0 && replies[n-1].err != nil && s.Has(sessions.Several) {
		// An INSERT that fails behind its first row leaves natively the id of a row that is not there.
		_, err = pl.app.query("SET last_insert_id=7")
	}
	return o, err
}

// begins is behind what ends all that a session has. MariaDB's character set is not the same each time then.
func (pl *player) begins(replies []reply, err error) ([]reply, error) {
	clear(pl.cached)
	if err != nil {
		return nil, err
	}
	more, err := pl.app.query("SET NAMES utf8mb4")
	return append(replies, more...), err
}

// option sends COM_SET_OPTION, whose reply is an EOF.
func (pl *player) option(option byte) ([]reply, error) {
	if err := pl.app.send(mysql.COM_SET_OPTION, []byte{option, 0}); err != nil {
		return nil, err
	}
	p, err := pl.app.conn.ReadPacket()
	switch {
	case err != nil:
		return nil, err
	case p[0] == mysql.ERR_HEADER:
		return []reply{{err: parseERR(p)}}, nil
	}
	return []reply{parseEOF(p)}, nil
}

// execute executes a statement, which it prepares if need be.
func (pl *player) execute(text string, values []any) ([]reply, error) {
	var all []reply
	if !pl.cached[text] {
		replies, err := pl.app.prepare(text, text)
		if err != nil || replies[0].err != nil {
			return replies, err
		}
		pl.cached[text], all = true, replies
	}
	var e execution
	for i := range pl.app.statements[text].params {
		a := null(mysql.MYSQL_TYPE_NULL)
		if i < len(values) {
			a = bind(values[i])
		}
		e.args = append(e.args, a)
	}
	replies, err := pl.app.execute(text, e)
	return append(all, replies...), err
}

func bind(value any) argument {
	switch v := value.(type) {
	case int64:
		return long(v)
	case float64:
		return double(v)
	case string:
		return varchar(v)
	case []byte:
		return inPieces(mysql.MYSQL_TYPE_BLOB, string(v))
	}
	return null(mysql.MYSQL_TYPE_NULL)
}

// elsewhere runs statements on another connection. A transaction that would keep them waiting ends first.
func (pl *player) elsewhere(way sessions.Way, text string) (o outcome, err error) {
	if pl.status&mysql.SERVER_STATUS_IN_TRANS != 0 || pl.status&mysql.SERVER_STATUS_AUTOCOMMIT == 0 {
		replies, err := pl.app.query("COMMIT")
		if err != nil {
			return o, err
		}
		o.add(pl.facets(replies, sessions.Step{}))
		pl.before = sessions.Step{}
	}
	s := pl.other
	if way == sessions.ElsewhereSeen {
		s = pl.seen
	}
	for text := range strings.SplitSeq(text, ";\n") {
		replies, err := s.query(text)
		if err != nil {
			return o, err
		}
		o.sent++
		for i := range replies {
			if e := replies[i].err; e != nil {
				o.add([]facet{{"elsewhere", fmt.Sprintf("%d %s", e.Code, pl.text(e.Message))}})
				o.errors++
			}
		}
		o.replies++
	}
	return o, nil
}

func (o *outcome) add(more []facet) {
	o.facets = append(o.facets, more...)
	for _, f := range more {
		if strings.HasSuffix(f.name, "results") {
			n, _ := strconv.Atoi(f.value) // facets wrote it
			o.replies += n
		}
		if strings.HasSuffix(f.name, "error") {
			o.errors++
		}
	}
}

// indexFlags say how a statement was executed, which is not the same for what a proxy makes of it.
const indexFlags = mysql.SERVER_STATUS_NO_GOOD_INDEX_USED | mysql.SERVER_STATUS_NO_INDEX_USED

// facets are what an application sees of the replies to a step.
func (pl *player) facets(replies []reply, s sessions.Step) []facet {
	var all []facet
	for i, r := range replies {
		add := func(name string, value any) {
			all = append(all, facet{fmt.Sprintf("result %d: %s", i, name), fmt.Sprint(value)})
		}
		if r.err != nil {
			message := ""
			if r.err.Code != mysql.ER_PARSE_ERROR || !s.Has(sessions.Quotes) {
				message = pl.text(r.err.Message)
			}
			add("error", fmt.Sprintf("%d (%s) %s", r.err.Code, r.err.State, message))
			continue
		}
		add("affected rows", r.affected)
		if !s.Has(sessions.Skips) {
			add("insert id", pl.text(strconv.FormatUint(r.insertID, 10)))
		}
		add("status", fmt.Sprintf("%#04x", r.status&^indexFlags))
		if !s.Has(sessions.Placed) {
			add("warnings", r.warnings)
			add("info", r.info)
		}
		if r.hasRows {
			add("rows", pl.rows(r.rows))
		}
		for _, f := range r.prepared {
			add(f.name, pl.text(f.value))
		}
		if r.prepared == nil {
			pl.status = r.status
		}
	}
	return append(all, facet{"results", strconv.Itoa(len(replies))})
}

func (pl *player) rows(rows [][]string) string {
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(pl.text(strings.Join(row, " | ")) + "\n")
	}
	return b.String()
}

var numberInText = regexp.MustCompile(`\d+`)

// text makes a text of two sides comparable: schemas have one name, and ids are numbered as they appear.
func (pl *player) text(s string) string {
	return numberInText.ReplaceAllStringFunc(strings.ReplaceAll(s, pl.side.Schema, "{db}"), func(digits string) string {
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || n < sessions.GeneratedFrom || n > 1<<31 {
			return digits
		}
		label := pl.labels[digits]
		if label == "" {
			label = fmt.Sprintf("#%d", len(pl.labels))
			pl.labels[digits] = label
		}
		return label
	})
}

// contents adds what stands in all tables.
func (pl *player) contents(o *outcome) error {
	query := func(text string) ([][]string, error) {
		replies, err := pl.other.query(text)
		if err == nil && replies[0].err != nil {
			err = replies[0].err
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		return replies[0].rows, nil
	}
	tables, err := query("SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA IN ('" + pl.side.Schema + "', '" + pl.side.Schema + "b') ORDER BY 1")
	if err != nil {
		return err
	}
	for _, table := range tables {
		rows, err := query("SELECT * FROM " + table[0])
		if err != nil {
			return err
		}
		o.facets = append(o.facets, facet{"contents of " + pl.text(table[0]), pl.rows(rows)})
	}
	return nil
}
