package monitor

import (
	"strconv"
	"time"
)

// Program is what is watched. Its methods are called from many goroutines, and never block on a
// server or a store.
type Program interface {
	// State returns what the program does now.
	State() State
	// ConfigText returns the configuration in force as YAML, with stars for secrets.
	ConfigText() []byte
	// Sessions returns the open sessions, in no order.
	Sessions() []Session
	// CloseSession cuts a session. It reports false when there is none of that number.
	CloseSession(id uint64) bool
	// Drain lets all sessions go and takes no new ones, until Resume.
	Drain()
	// Resume takes that back. The error says why it cannot be.
	Resume() error
	// Reload puts the program's file in force as it is now, and says what changed in the words of its
	// keys. The error says why nothing did.
	Reload() (changes []string, err error)
	// Preview says what Reload would change now. The error says why it would change nothing.
	Preview() (changes []string, err error)
	// Upgrade has a successor serve in the program's place. The error says why none does.
	Upgrade() error
}

// Milliseconds is a duration that JSON has as a number of milliseconds.
type Milliseconds time.Duration

// MarshalJSON implements json.Marshaler.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(m)/float64(time.Millisecond), 'f', -1, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Milliseconds) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseFloat(string(text), 64)
	*m = Milliseconds(n * float64(time.Millisecond))
	return err
}

// Seconds returns the duration as Prometheus has it.
func (m Milliseconds) Seconds() float64 { return time.Duration(m).Seconds() }

// State is what a program does at a moment. Counters start at 0 with the process.
type State struct {
	Time     time.Time `json:"time"`
	Instance string    `json:"instance"` // names the process
	Version  string    `json:"version"`
	Started  time.Time `json:"started"`
	Draining bool      `json:"draining"` // it lets its sessions go
	// Predecessor says that a process in whose place this one came has sessions yet.
	Predecessor bool       `json:"predecessor"`
	HeldBytes   int64      `json:"held_bytes"` // of memory, for statements that sessions hold
	Phase       string     `json:"phase"`      // how far it is in that, one of Phases
	Config      Config     `json:"config"`
	Listeners   []Listener `json:"listeners"`
	Sources     []Source   `json:"sources"`
	Rules       []Rule     `json:"rules"`
	// Refused counts the statements that were refused by no single rule.
	Refused []Reason `json:"refused"`
	Stores  []Store  `json:"stores"`
	// Switches are those that modes of rules are turned by.
	Switches []Switch `json:"switches"`
	// Certificates are the files of certificates that the configuration names, as they were when they
	// were read.
	Certificates []Certificate `json:"certificates"`
	Files        Files         `json:"open_files"`
}

// Drained is the phase in which no session is left.
const Drained = "drained"

// Phases are the words for how far a program is in letting its sessions go, in their order.
func Phases() []string { return []string{"serving", "unready", "closing", Drained} }

// Config is the configuration in force.
type Config struct {
	File    string    `json:"file"`
	SHA256  string    `json:"sha256"` // of the file's bytes
	Loaded  time.Time `json:"loaded"`
	Reloads uint64    `json:"reloads"`
	Failed  uint64    `json:"reloads_failed"`
	Problem string    `json:"problem,omitempty"` // why the last reload failed; empty: it did not
}

// Listener is an address that clients connect to.
type Listener struct {
	Name     string `json:"name"`
	Listen   string `json:"listen"`
	Upstream string `json:"upstream"` // the server that new sessions go to
	// Servers are all that they could go to, in the order in which they are preferred.
	Servers []Standing `json:"servers"`
	// Account is the user that the servers are asked as; empty: clients' sessions ask.
	Account string `json:"account,omitempty"`
	// Begun is how many columns of Upstream were compared with their sources: their tables have ids
	// without the account.
	Begun int `json:"columns_begun"`
	// Unbegun are those that could not be when it was tried last, in the last hour.
	Unbegun []Unbegun `json:"columns_unbegun"`
	// Switches is how often Upstream became another one.
	Switches uint64 `json:"server_switches"`
	// Sources are the names of those that the listener's rules fill from.
	Sources []string `json:"sources"`
	// Modes are the names of the switches that turn the modes of the listener's rules.
	Modes []string `json:"mode_switches"`
	// Problem says why no server can be used; empty: one can.
	Problem    string      `json:"problem,omitempty"`
	Sessions   uint64      `json:"sessions"`       // open, logged in
	States     []Doing     `json:"session_states"` // of all that are open, by what they do
	LoggingIn  uint64      `json:"logging_in"`     // open, not logged in yet
	Accepted   uint64      `json:"sessions_total"` // since the start
	Silent     uint64      `json:"login_timeouts"` // of those, the ones that ended because their login took too long
	Limited    []Limited   `json:"limited"`        // by limits that were reached at least once
	FromClient uint64      `json:"bytes_from_client"`
	FromServer uint64      `json:"bytes_from_server"`
	Statements []Statement `json:"statements"` // those that were counted at least once
	// Held is how many commands were decided on, and HeldTime how long that took in all.
	Held      uint64       `json:"held_count"`
	HeldTime  Milliseconds `json:"held_ms"`
	Questions []Question   `json:"hidden_questions"`
	Errors    []Error      `json:"errors"`
}

// Unbegun is why the table of a column gets no first id.
type Unbegun struct {
	Column  string    `json:"column"` // schema.table.column
	Source  string    `json:"source"`
	Problem string    `json:"problem"`
	At      time.Time `json:"at"`
}

// Doing counts the sessions that do the same.
type Doing struct {
	State string `json:"state"` // as Session has it
	Count uint64 `json:"count"`
}

// Limited counts what one limit refused or closed.
type Limited struct {
	Limit string `json:"limit"` // its key
	Count uint64 `json:"count"`
}

// serverProblem names the server whose problem it is; of several, each has said its own.
func (l *Listener) serverProblem() string {
	if len(l.Servers) > 1 {
		return "no server can be used: " + l.Problem
	}
	return "server " + l.Upstream + ": " + l.Problem
}

// Standing is how one of the servers behind a listener stands.
type Standing struct {
	Address string `json:"address"`
	Used    bool   `json:"used"`              // new sessions go to it
	Problem string `json:"problem,omitempty"` // why they cannot; empty: they can
	// Denied says why the listener's account cannot ask the server, which answers; empty: it can.
	Denied string `json:"account_problem,omitempty"`
	// ReadOnly is the Problem of a server that answers.
	ReadOnly bool `json:"read_only"`
}

// KindFilled is the Kind of statements that were given ids, KindRefused of those answered with an error
// of idproxy.
const (
	KindFilled  = "filled"
	KindRefused = "refused"
)

// Statement counts what became of commands of one form. A text of several statements counts once.
type Statement struct {
	Kind  string `json:"kind"` // forwarded, filled, observed, refused, unseen
	Form  string `json:"form"` // query, prepare, execute, other
	Count uint64 `json:"count"`
}

// Question counts the questions that clients do not see.
type Question struct {
	Kind  string       `json:"kind"` // settings, columns, greatest, count, ...
	Count uint64       `json:"count"`
	Time  Milliseconds `json:"took_ms"` // that sessions waited for the answers, in all
}

// Error counts the errors that clients saw.
type Error struct {
	Code  string `json:"code"` // the server's number, or "other" once there are too many
	Side  string `json:"side"` // server, or idproxy
	Count uint64 `json:"count"`
}

// Source is where ids come from. Exactly one of Segment and Snowflake is set where the ids are
// numbers, none where they are not.
type Source struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"` // segment, snowflake, uuidv7, objectid
	Store  string `json:"store,omitempty"`
	Issued uint64 `json:"ids_issued"`
	// Problem says why there are no ids now; empty: there are.
	Problem string `json:"problem,omitempty"`
	// Failing says why the store does not answer, while what is in memory goes on being used.
	Failing   string     `json:"failing,omitempty"`
	Segment   *Segment   `json:"segment,omitempty"`
	Order     *Order     `json:"order,omitempty"`
	Snowflake *Snowflake `json:"snowflake,omitempty"`
}

// Segment is where a source of ranges stands. Of a source with a series for each table, it is that
// of the series that runs dry first.
type Segment struct {
	Series    int           `json:"series"`
	Left      uint64        `json:"ids_left"`           // in memory, of the series that has the fewest seconds left
	Lasts     *Milliseconds `json:"lasts_ms,omitempty"` // until it runs dry at the present rate; nil: no ids are drawn
	PerSecond float64       `json:"ids_per_second"`
	RangeSize uint64        `json:"range_size"` // of the newest range
	Fetches   uint64        `json:"fetches"`
	Failed    uint64        `json:"fetches_failed"`
	// Half of the last fetches took FetchHalf at most, and 99 of 100 FetchMost; nil: there was none.
	FetchHalf *Milliseconds `json:"fetch_p50_ms,omitempty"`
	FetchMost *Milliseconds `json:"fetch_p99_ms,omitempty"`
	YearsLeft *float64      `json:"years_left,omitempty"` // until the greatest id as fast as all processes take them; nil: none are taken
}

// Order is who gives the ids of a source whose ids are in one order over all processes.
type Order struct {
	Leads  bool   `json:"leads"`            // this process does
	Leader string `json:"leader,omitempty"` // where the process that does is asked; empty: none does, as far as is known
	Term   int64  `json:"term"`             // grows with each change of who does
	Passed uint64 `json:"ids_passed"`       // that another process gave to this one
}

// Snowflake is where a source of composed ids stands.
type Snowflake struct {
	Worker *uint64      `json:"worker,omitempty"` // nil: it has none now
	Fence  Milliseconds `json:"fence_ms"`         // until the right to make ids ends, unless it is renewed
	Ahead  Milliseconds `json:"ahead_ms"`         // of the clock
	Swaps  uint64       `json:"swaps"`            // worker numbers taken after the first
	Ends   time.Time    `json:"ends"`             // when the layout runs out of timestamps
}

// Rule is a rule of the configuration, and what it came to.
type Rule struct {
	Table     string   `json:"table"`
	Column    string   `json:"column"`
	Source    string   `json:"source"`
	Mode      string   `json:"mode"`             // enforce, ModeObserve, unknown
	Switch    string   `json:"switch,omitempty"` // that Mode is turned by; empty: it is configured
	Listeners []string `json:"listeners"`
	IDs       uint64   `json:"ids"`      // drawn for it
	Observed  uint64   `json:"observed"` // statements
	Refused   []Reason `json:"refused"`  // those that came up
}

// ModeObserve is the Mode of a rule that fills nothing.
const ModeObserve = "observe"

// SwitchUnknown is the State of a switch whose store has not answered since the start.
const SwitchUnknown = "unknown"

// Switch is what turns the modes of rules, as this program last heard of it.
type Switch struct {
	Name    string    `json:"name"`
	Store   string    `json:"store"`
	State   string    `json:"state"`             // observe, prepare, enforce; unknown: nobody has said it yet
	Version uint64    `json:"version"`           // grows with each turn; 0: it was never turned
	Since   time.Time `json:"since"`             // when this program put the state in force
	Problem string    `json:"problem,omitempty"` // why the store does not say it now; what it said last is in force
}

// Reason counts the statements that were refused for one reason of a closed set.
type Reason struct {
	Reason string `json:"reason"`
	Count  uint64 `json:"count"`
}

// Store is where sources keep their state.
type Store struct {
	Name    string       `json:"name"`
	Kind    string       `json:"kind"` // mysql, etcd, zookeeper, redis, file
	Up      bool         `json:"up"`
	Took    Milliseconds `json:"took_ms"` // the last answer took
	Slow    bool         `json:"slow"`    // and this one and the one before took long
	Problem string       `json:"problem,omitempty"`
	Class   string       `json:"problem_class,omitempty"` // denied, timeout, unreachable, other
	// Since is when it began to be up or down.
	Since time.Time `json:"since"`
}

// Certificate is a file of certificates.
type Certificate struct {
	Name string    `json:"name"` // of the key that names it: listeners.shard0.tls.cert
	File string    `json:"file"`
	Ends time.Time `json:"ends"` // a certificate, or one of its chain; of CAs the last one
}

// Session is one client.
type Session struct {
	ID         uint64    `json:"id"`
	Listener   string    `json:"listener"`
	Client     string    `json:"client"`
	User       string    `json:"user"`
	Thread     uint32    `json:"thread"` // its number at the server
	State      string    `json:"state"`  // login, idle, busy, deciding
	Started    time.Time `json:"started"`
	FromClient uint64    `json:"bytes_from_client"`
	FromServer uint64    `json:"bytes_from_server"`
	Statements uint64    `json:"statements"`
}

// Files are the descriptors of the process.
type Files struct {
	Open  uint64 `json:"open"`
	Limit uint64 `json:"limit"`
}

// Full reports whether they do not suffice for one more session, which takes two.
func (f Files) Full() bool { return f.Limit > 0 && f.Open+2 > f.Limit }
