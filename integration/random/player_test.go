package random

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/sessions"
	"idproxy/integration/wireclient"
)

// outcome is what a step of a session showed.
type outcome struct {
	facets                []wireclient.Facet
	sent, replies, errors int
}

// differing is the first step that differs, or -1. The contents at the end count as a step behind
// the last.
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
	app, other, seen *wireclient.Session // the session, and those that change tables elsewhere
	labels           map[string]string   // of ids, in the order in which they appeared
	status           uint16              // what the server said last
	cached           map[string]bool     // statements that are prepared
	before           sessions.Step       // in the session itself
	otherText        bool                // it got an error that may be another
}

// play runs a session in a new schema.
func play(s sessions.Session, pl *player) (all []outcome, err error) {
	pl.labels, pl.cached, pl.status = map[string]string{}, map[string]bool{}, mysql.SERVER_STATUS_AUTOCOMMIT
	for _, c := range []struct {
		to   **wireclient.Session
		addr string
	}{{&pl.other, pl.direct}, {&pl.seen, pl.addr}, {&pl.app, pl.addr}} {
		files := func(c *client.Conn) error { return c.SetCapability(mysql.CLIENT_LOCAL_FILES) }
		if *c.to, err = wireclient.Dial(c.addr, "", files); err != nil {
			return nil, err
		}
		defer (*c.to).Close()
	}
	if err := pl.begin(s.World); err != nil {
		return nil, err
	}
	for i, step := range s.Steps {
		o, err := pl.step(step)
		if err != nil {
			return append(all, outcome{facets: []wireclient.Facet{{Name: wireclient.LostConnection, Value: err.Error()}}}), nil
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
	const mode = "SET sql_mode='STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'" // an ALTER that adds AUTO_INCREMENT leaves 0 as it is
	texts := []string{mode}
	for _, name := range []string{db + "b", db} {
		texts = append(texts, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
	}
	texts = append(texts, "USE "+db)
	for _, text := range append(texts, world...) {
		if err := pl.make(pl.side.Fit(text)); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	for _, s := range []*wireclient.Session{pl.app, pl.other} {
		if err := again(s, "USE "+db); err != nil {
			return fmt.Errorf("USE %s: %w", db, err)
		}
	}
	// MariaDB's new session can have the error of one that is gone, which was seen directly and proxied. A
	// statement with a table takes it away.
	if err := again(pl.app, "SELECT 1 FROM information_schema.SCHEMATA LIMIT 0"); err != nil {
		return err
	}
	for _, text := range []string{mode, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"} {
		if _, err := pl.other.Query(text); err != nil {
			return err
		}
	}
	return nil
}

// make runs a statement that makes a part of the world.
func (pl *player) make(text string) error { return again(pl.seen, text) }

// again runs a statement until it has not waited too long, or three times more. InnoDB keeps figures of all tables in one,
// and on a busy machine whoever drops tables may wait there for longer than it allows.
func again(s *wireclient.Session, text string) error {
	for left := 3; ; left-- {
		replies, err := s.Query(text)
		switch {
		case err != nil:
			return err
		case replies[0].Err == nil:
			return nil
		case replies[0].Err.Code != mysql.ER_LOCK_WAIT_TIMEOUT || left == 0:
			return replies[0].Err
		}
	}
}

// looksBack finds what leaves the diagnostics of the statement before: MariaDB's SELECT without a table does.
var looksBack = regexp.MustCompile(`^(SHOW |SELECT (LAST_INSERT_ID|@@))`)

// step does what a step says.
func (pl *player) step(s sessions.Step) (o outcome, err error) {
	if s.Has(sessions.Counts) && pl.before.Has(sessions.Asks) || s.Has(sessions.Warnings) && (pl.before.Has(sessions.Placed) || pl.otherText) {
		return o, nil
	}
	text := pl.side.Fit(s.Text)
	o.sent = 1
	var replies []wireclient.Reply
	switch s.Way {
	case sessions.AsText:
		pl.app.File = s.File
		replies, err = pl.app.Query(text)
	case sessions.AsCached:
		replies, err = pl.execute(text, s.Args)
	case sessions.Elsewhere, sessions.ElsewhereSeen:
		return pl.elsewhere(s.Way, text)
	case sessions.Reset:
		replies, err = pl.begins(pl.app.ResetConnection())
	case sessions.ChangeUser:
		replies, err = pl.begins(pl.app.ChangeLogin(text))
	case sessions.InitDB:
		if err = pl.app.Send(mysql.COM_INIT_DB, []byte(text)); err == nil {
			replies, err = pl.app.Results()
		}
	case sessions.SplitTexts:
		replies, err = pl.option(0)
	case sessions.SplitNoTexts:
		replies, err = pl.option(1)
	case sessions.CloseStatement:
		for name := range pl.cached {
			if _, err := pl.app.CloseStatement(name); err != nil {
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
			replies[i].Warnings = 0 // of the statement before
		}
	}
	o.add(pl.facets(replies, s))
	if looksBack.MatchString(text) { // what it shows of the step before, the one behind it may show again
		s.Traits |= pl.before.Traits & (sessions.Asks | sessions.Placed)
	}
	pl.before, pl.otherText = s, false
	for _, r := range replies {
		pl.otherText = pl.otherText || r.Err != nil && r.Err.Code == mysql.ER_PARSE_ERROR && s.Has(sessions.Quotes)
	}
	if n := len(replies); n > 0 && replies[n-1].Err != nil && s.Has(sessions.Several) {
		// An INSERT that fails behind its first row leaves natively the id of a row that is not there.
		_, err = pl.app.Query("SET last_insert_id=99999983")
	}
	return o, err
}

// begins is behind what ends all that a session has. MariaDB's character set is not the same each
// time then.
func (pl *player) begins(replies []wireclient.Reply, err error) ([]wireclient.Reply, error) {
	clear(pl.cached)
	if err != nil {
		return nil, err
	}
	more, err := pl.app.Query("SET NAMES utf8mb4")
	return append(replies, more...), err
}

// option sends COM_SET_OPTION, whose reply is an EOF.
func (pl *player) option(option byte) ([]wireclient.Reply, error) {
	if err := pl.app.Send(mysql.COM_SET_OPTION, []byte{option, 0}); err != nil {
		return nil, err
	}
	p, err := pl.app.Conn.ReadPacket()
	switch {
	case err != nil:
		return nil, err
	case p[0] == mysql.ERR_HEADER:
		return []wireclient.Reply{{Err: wireclient.ParseERR(p)}}, nil
	}
	return []wireclient.Reply{wireclient.ParseEOF(p)}, nil
}

// execute executes a statement, which it prepares if need be.
func (pl *player) execute(text string, values []any) ([]wireclient.Reply, error) {
	var all []wireclient.Reply
	if !pl.cached[text] {
		replies, err := pl.app.Prepare(text, text)
		if err != nil || replies[0].Err != nil {
			return replies, err
		}
		pl.cached[text], all = true, replies
	}
	var e wireclient.Execution
	for i := range pl.app.Statements[text].Params {
		a := wireclient.Null(mysql.MYSQL_TYPE_NULL)
		if i < len(values) {
			a = bind(values[i])
		}
		e.Args = append(e.Args, a)
	}
	replies, err := pl.app.Execute(text, e)
	return append(all, replies...), err
}

func bind(value any) wireclient.Argument {
	switch v := value.(type) {
	case int64:
		return wireclient.Long(v)
	case float64:
		return wireclient.Double(v)
	case string:
		return wireclient.Varchar(v)
	case []byte:
		return wireclient.InPieces(mysql.MYSQL_TYPE_BLOB, string(v))
	}
	return wireclient.Null(mysql.MYSQL_TYPE_NULL)
}

// elsewhere runs statements on another connection. A transaction that would keep them waiting ends
// first.
func (pl *player) elsewhere(way sessions.Way, text string) (o outcome, err error) {
	if pl.status&mysql.SERVER_STATUS_IN_TRANS != 0 || pl.status&mysql.SERVER_STATUS_AUTOCOMMIT == 0 {
		replies, err := pl.app.Query("COMMIT")
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
		replies, err := s.Query(text)
		if err != nil {
			return o, err
		}
		o.sent++
		for i := range replies {
			if e := replies[i].Err; e != nil {
				o.add([]wireclient.Facet{{Name: "elsewhere", Value: fmt.Sprintf("%d %s", e.Code, pl.text(e.Message))}})
				o.errors++
			}
		}
		o.replies++
	}
	return o, nil
}

func (o *outcome) add(more []wireclient.Facet) {
	o.facets = append(o.facets, more...)
	for _, f := range more {
		if strings.HasSuffix(f.Name, "results") {
			n, _ := strconv.Atoi(f.Value) // facets wrote it
			o.replies += n
		}
		if strings.HasSuffix(f.Name, "error") {
			o.errors++
		}
	}
}

// indexFlags say how a statement was executed, which is not the same for what a proxy makes of it.
const indexFlags = mysql.SERVER_STATUS_NO_GOOD_INDEX_USED | mysql.SERVER_STATUS_NO_INDEX_USED

// facets are what an application sees of the replies to a step.
func (pl *player) facets(replies []wireclient.Reply, s sessions.Step) []wireclient.Facet {
	var all []wireclient.Facet
	for i, r := range replies {
		add := func(name string, value any) {
			all = append(all, wireclient.Facet{Name: fmt.Sprintf("result %d: %s", i, name), Value: fmt.Sprint(value)})
		}
		if r.Err != nil {
			message := ""
			if r.Err.Code != mysql.ER_PARSE_ERROR || !s.Has(sessions.Quotes) {
				message = pl.text(r.Err.Message)
			}
			add("error", fmt.Sprintf("%d (%s) %s", r.Err.Code, r.Err.State, message))
			continue
		}
		add("affected rows", r.Affected)
		if !s.Has(sessions.Skips) {
			add("insert id", pl.text(strconv.FormatUint(r.InsertID, 10)))
		}
		add("status", fmt.Sprintf("%#04x", r.Status&^indexFlags))
		if !s.Has(sessions.Placed) {
			add("warnings", r.Warnings)
			add("info", r.Info)
		}
		if r.HasRows {
			add("rows", pl.rows(r.Rows))
		}
		for _, f := range r.Prepared {
			add(f.Name, pl.text(f.Value))
		}
		if r.Prepared == nil {
			pl.status = r.Status
		}
	}
	return append(all, wireclient.Facet{Name: "results", Value: strconv.Itoa(len(replies))})
}

func (pl *player) rows(rows [][]string) string {
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(pl.text(strings.Join(row, " | ")) + "\n")
	}
	return b.String()
}

var numberInText = regexp.MustCompile(`\d+`)

// text makes a text of two sides comparable: schemas have one name, and ids are numbered as they
// appear.
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
		replies, err := pl.other.Query(text)
		if err == nil && replies[0].Err != nil {
			err = replies[0].Err
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		return replies[0].Rows, nil
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
		o.facets = append(o.facets, wireclient.Facet{Name: "contents of " + pl.text(table[0]), Value: pl.rows(rows)})
	}
	return nil
}
