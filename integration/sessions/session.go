package sessions

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
)

// Dialects of SQL.
const (
	MariaDB = "mariadb"
	MySQL   = "mysql"
)

// Ids from here on differ between a session direct and proxied, and are compared by the order in
// which they appear.
const (
	GeneratedFrom = 100_000_000
	keptFrom      = 50_000_000 // what a server counts from where ids are a source's
)

// Way is what is done with the text of a step.
type Way int

// Ways of a step. Those from Reset on have no text but a schema.
const (
	AsText         Way = iota // COM_QUERY
	AsCached                  // prepared, unless the session has done so with this text, and executed
	Elsewhere                 // statements of another connection, which no proxy sees
	ElsewhereSeen             // statements of another connection, through the proxy where there is one
	Reset                     // COM_RESET_CONNECTION
	ChangeUser                // COM_CHANGE_USER
	InitDB                    // COM_INIT_DB
	SplitTexts                // COM_SET_OPTION, on
	SplitNoTexts              // COM_SET_OPTION, off
	CloseStatement            // COM_STMT_CLOSE of all that are cached
)

func (w Way) String() string {
	return [...]string{"text", "cached", "elsewhere", "elsewhere, seen", "reset", "change user", "init db", "split texts", "split no texts", "close"}[w]
}

// Trait is a difference that is documented, which a step may show, or see of the one before.
type Trait int

// Traits of steps.
const (
	Several  Trait = 1 << iota // inserts rows of which a later one may fail, or a trigger behind one: LAST_INSERT_ID() is another then
	Asks                       // what stands behind it sees the counts of a question
	Counts                     // reads such counts
	Quotes                     // a syntax error quotes what the server got
	Inserts                    // may insert
	Placed                     // names no columns: what stands in an id's place is no number, maybe, and is warned of natively only
	Skips                      // may skip all rows that would get an id: natively the insert id is then that of no row
	Warnings                   // reads warnings
)

// Step is one thing that a session does.
type Step struct {
	Way    Way
	Text   string
	Args   []any // of a cached statement: nil, int64, float64, string, or []byte for long data
	Traits Trait
	File   string // of a LOAD DATA LOCAL INFILE
}

// Has says whether a step has a trait.
func (s Step) Has(t Trait) bool { return s.Traits&t != 0 }

func (s Step) String() string {
	out := fmt.Sprintf("%-15s %s", s.Way, strconv.Quote(s.Text))
	if s.Args != nil {
		out += fmt.Sprintf(" %#v", s.Args)
	}
	if s.File != "" {
		out += fmt.Sprintf(" file %q", s.File)
	}
	return out
}

// Session is what one client does, and the statements that make the schema it begins in.
type Session struct {
	World []string
	Steps []Step
}

// Side is where a session is played.
type Side struct {
	Schema  string // and another one, whose name has a b behind it
	Proxied bool
}

// placeholder finds what Fit replaces.
var placeholder = regexp.MustCompile(`\{(db|plain|kept|start \d+)\}`)

// Fit writes a text for a side. {db} is the schema. {plain} and {kept} are behind the id columns of
// tables with a rule: directly both are AUTO_INCREMENT. {start n} says where such a table begins to
// count.
func (side Side) Fit(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		switch {
		case p == "{db}":
			return side.Schema
		case p == "{plain}" && side.Proxied:
			return ""
		case p[1] == 's' && side.Proxied:
			return fmt.Sprintf("AUTO_INCREMENT=%d", keptFrom)
		case p[1] == 's':
			n, _ := strconv.Atoi(p[len("{start ") : len(p)-1]) // a number, by the expression
			return fmt.Sprintf("AUTO_INCREMENT=%d", GeneratedFrom+100_000*n)
		}
		return "AUTO_INCREMENT"
	})
}

// Kind is what sessions are drawn for.
type Kind struct {
	Dialect string
	Packet  bool // the rule says last_insert_id: packet
}

// Draw draws the session of a number. The same kind, seed and number always give the same one.
func (k Kind) Draw(seed, number uint64, steps int) Session {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, number)), dialect: k.Dialect, split: true, packet: k.Packet}
	g.zero, g.manual = g.one(3), g.one(2)
	g.hides = k.Packet && g.one(2)
	g.myISAM = g.one(2) && g.mariaDB() // MySQL warns now and then of engines that are mixed
	g.begin()
	for len(g.session.Steps) < steps {
		g.step()
	}
	return g.session
}
