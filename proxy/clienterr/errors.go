// Package clienterr makes every error that a client sees from idproxy itself.
package clienterr

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/inside"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// New makes an error. Numbers are those of servers: client libraries have 2000 to 2999 to
// themselves, and libmariadb takes a packet with such a number for a malformed one.
func New(code uint16, state, format string, args ...any) *mysql.MyError {
	return &mysql.MyError{Code: code, State: state, Message: fmt.Sprintf(format, args...)}
}

// Payload returns the payload of an ERR packet.
func Payload(e *mysql.MyError) []byte {
	return wire.AppendERR(nil, 0, e)[wire.HeaderLen:]
}

// Unreachable stands for the greeting that a server did not send. As in what
// servers say themselves in its place, there is no SQL state in it: the client has
// not said yet that it speaks protocol 4.1, and MySQL's own would show the state as
// text. Drivers that go by the number know this one as 08S01.
func Unreachable(upstream string, cause error) *mysql.MyError {
	text, _ := inside.Text(cause)
	return New(mysql.ER_BAD_HOST_ERROR, "", "Can't connect to MySQL server on '%s' through idproxy: %s", upstream, text)
}

// TooManySessions says that limits.sessions is reached.
func TooManySessions(limit int) *mysql.MyError {
	return New(mysql.ER_CON_COUNT_ERROR, "", "Too many connections: idproxy serves %d sessions at most (limits.sessions)", limit)
}

// ListenerFull says that a listener has its number of sessions.
func ListenerFull(limit int) *mysql.MyError {
	return New(mysql.ER_CON_COUNT_ERROR, "", "Too many connections: idproxy serves %d sessions at most on this listener (its limits.sessions)", limit)
}

// NetworkFull says that the network of a client has its number of sessions.
func NetworkFull(network string, limit int) *mysql.MyError {
	return New(mysql.ER_CON_COUNT_ERROR, "", "Too many connections: idproxy serves %d sessions at most from %s (limits.sessions_per_network): close some, or have the limit raised", limit, network)
}

// UserFull says that a user has their number of sessions.
func UserFull(user string, limit int) *mysql.MyError {
	return New(mysql.ER_TOO_MANY_USER_CONNECTIONS, "42000", "User %s already has more than 'max_user_connections' active connections: idproxy serves %d at most on this listener (limits.sessions_per_user): close some, or have the limit raised", user, limit)
}

// TooManyLogins says that limits.logins is reached, and all of them wait for their servers.
func TooManyLogins(limit int) *mysql.MyError {
	return New(mysql.ER_CON_COUNT_ERROR, "", "Too many connections: %d logins wait for their servers, which is limits.logins of idproxy: connect again later", limit)
}

// NotAllowed refuses a client for where it comes from.
func NotAllowed(client string) *mysql.MyError {
	return New(mysql.ER_HOST_NOT_PRIVILEGED, "", "Host '%s' is not allowed to connect to this idproxy (allow of the listener)", client)
}

// TimedOut says that a session ends because its client was silent for too long.
func TimedOut(key string, after time.Duration, mariaDB bool) *mysql.MyError {
	const text = "by idproxy: no command came for %v (limits.%s); what was not committed is rolled back"
	if mariaDB {
		return New(1927, "70100", "Connection was killed "+text, after, key) // ER_CONNECTION_KILLED
	}
	return New(4031, "HY000", "The client was disconnected because of inactivity "+text, after, key)
}

// NoRoom says that held statements of all sessions have the memory that they may have.
func NoRoom(limit int) *mysql.MyError {
	return New(mysql.ER_OUT_OF_RESOURCES, "HY000", "Out of memory for held statements: those of all sessions may take %d bytes (limits.held of idproxy), and this one finds no room; nothing was sent: try again later, split it, or have the limit raised", limit)
}

// Draining says that no new sessions are taken.
func Draining() *mysql.MyError {
	return New(mysql.ER_SERVER_SHUTDOWN, "08S01", "Server shutdown in progress: this idproxy drains and takes no new sessions, connect to another one")
}

// Handshake says that the login could not be read.
func Handshake(cause error) *mysql.MyError {
	return New(mysql.ER_HANDSHAKE_ERROR, "08S01", "Bad handshake: %v", cause)
}

// UpstreamTLS says why there is no TLS to the server.
func UpstreamTLS(upstream string, cause error) *mysql.MyError {
	return New(mysql.ER_HANDSHAKE_ERROR, "08S01", "TLS connection error between idproxy and MySQL server on '%s': %v", upstream, cause)
}

// TLSRequired refuses a client without TLS, whether it was offered or not.
func TLSRequired(offered bool) *mysql.MyError {
	then := "connect with TLS"
	if !offered {
		then = "and none is offered, because upstream_tls.mode is as_client and the server has none: give the server a certificate, or set upstream_tls.mode to preferred"
	}
	return New(3159, "HY000", "Connections using insecure transport are prohibited: idproxy's tls.mode is required; %s", then)
}

// NoUpstreamTLS stands for the greeting of a server that has no TLS where that is required.
func NoUpstreamTLS(upstream string) *mysql.MyError {
	return New(mysql.ER_HANDSHAKE_ERROR, "", "idproxy's upstream_tls.mode is required, and MySQL server on '%s' offers no TLS: give the server a certificate, or set upstream_tls.mode to preferred", upstream)
}

// Exposed refuses a login whose password came over TLS and would go on in clear.
func Exposed() *mysql.MyError {
	return New(mysql.ER_ACCESS_DENIED_ERROR, "28000", "Access denied: the account's plugin sends the password itself, and idproxy does not send on in clear what came over TLS; give its connection to the server TLS (upstream_tls.mode: required)")
}

// CompressionLevel refuses a client whose level of compression there is not.
func CompressionLevel(cause error) *mysql.MyError {
	return New(3923, "HY000", "Invalid compression level for the connection: %v", cause)
}

// Compressed ends a session whose client's compressed packets cannot be read.
func Compressed(code uint16, cause error) *mysql.MyError {
	return New(code, "08S01", "Connection ends: %v", cause)
}

// Bridge says why a login between a secure and an insecure side cannot go on.
func Bridge(cause error) *mysql.MyError {
	return New(mysql.ER_ACCESS_DENIED_ERROR, "28000", "Access denied: idproxy cannot pass the password on between a secure and an insecure connection: %v", cause)
}

// Untimely refuses a login whose server does not wait for the password that it asked for.
func Untimely(packet []byte) *mysql.MyError {
	return Bridge(fmt.Errorf("the server sent a packet (its first byte is 0x%x) while the client's password was on its way; look for what changes bytes between idproxy and the server", packet[:min(len(packet), 1)]))
}

// OutOfIDs says that the source of a rule gave no ids. Nothing was sent to
// the server.
func OutOfIDs(rule *rule.Rule, cause error) error {
	text, reference := inside.Text(cause)
	if reference == "" {
		reason := noIDs
		if tooNarrow(cause) {
			reason = tooGreat
		}
		return &Refusal{Reason: reason, Rule: rule, Why: cause.Error(), Cause: cause, MyError: outOfIDs(rule, cause.Error())}
	}
	return KeptError{outOfIDs(rule, text), rule, cause}
}

// Cause returns what OutOfIDs was given, and any other error as it is.
func Cause(err error) error {
	if kept, ok := errors.AsType[KeptError](err); ok {
		return kept.Cause
	}
	if refused, ok := errors.AsType[*Refusal](err); ok && refused.Cause != nil {
		return refused.Cause
	}
	return err
}

// Unmoved says that the source of a rule is not moved past an id that the statement brings, which
// the error quotes.
func Unmoved(rule *rule.Rule, cause error) error { return quoting{OutOfIDs(rule, cause), ""} }

// quoting is an error that quotes a value of the statement.
type quoting struct {
	error
	logged string // what the log has in its place; empty: its text without numbers
}

// Unwrap is for errors.Is and errors.As.
func (q quoting) Unwrap() error { return q.error }

// Logged is what the log has of an error: its text as the client is told, without values of the
// statement.
func Logged(err error, told *mysql.MyError) string {
	q, quotes := errors.AsType[quoting](err)
	switch {
	case quotes && q.logged != "":
		return q.logged
	case quotes:
		return inside.WithoutNumbers(told.Message)
	}
	return told.Message
}

// tooNarrow reports whether the source gave an id, and the column cannot hold it.
func tooNarrow(cause error) bool {
	_, is := errors.AsType[*rule.TooGreatError](cause)
	return is
}

func outOfIDs(rule *rule.Rule, text string) *mysql.MyError {
	return New(mysql.ER_AUTOINC_READ_FAILED, "HY000", "Failed to read auto-increment value for %s: %s", rule, text)
}

// KeptError is an error with a cause that the client is not told all of.
type KeptError struct {
	*mysql.MyError
	rule  *rule.Rule
	Cause error
}

// Unwrap returns what the client is told.
func (e KeptError) Unwrap() error { return e.MyError }

// RowsComing gives up on an INSERT ... SELECT.
func RowsComing(table string, tries int) *mysql.MyError {
	return New(mysql.ER_CHECKREAD, "HY000", "Record has changed since last read in table '%s': in each of %d tries the SELECT of INSERT ... SELECT gave more rows than had been counted just before; no row was inserted, try again", table, tries)
}

// HalfDone says that rows of an INSERT ... SELECT are in the table.
func HalfDone(table string) *mysql.MyError {
	return New(mysql.ER_CHECKREAD, "HY000", "Record has changed since last read in table '%s': the SELECT of INSERT ... SELECT gave more rows than had been counted just before, and the table's engine has become one that does not take rows back: some were inserted", table)
}

// Refusal is an error by which a rule refuses a statement.
type Refusal struct {
	*mysql.MyError
	Reason rule.Reason
	Rule   *rule.Rule // nil: which one it would be is not known
	Form   string     // of the statement, for which it gets no ids; empty: its form is fine
	Why    string     // in the words of somebody who knows the statement and the rule; empty: the form says it
	Cause  error      // of a source that gave no ids; nil elsewhere
}

// Unwrap returns what the client is told.
func (e *Refusal) Unwrap() error { return e.MyError }

// Unsupported says that a form of INSERT on a table with a rule is not
// filled, and that nothing was sent to the server.
func Unsupported(rule *rule.Rule, t rewriter.Name, form string) *Refusal {
	return &Refusal{Reason: otherForm, Rule: rule, Form: form, MyError: New(mysql.ER_NOT_SUPPORTED_YET, "42000", "This version of idproxy doesn't yet support '%s' on table %s with rule %s: it would go in without an id; nothing was sent (unsupported: forward in the rule lets it pass)", form, t.Table, rule)}
}

// StoresZero says why a statement is not forwarded although its rule would
// let it pass without an id.
func StoresZero(rule *rule.Rule, t rewriter.Name, form, why string) *Refusal {
	stored := "0"
	if rule.IDs.Wide() {
		stored = "an empty value"
	}
	stores := fmt.Sprintf("the server would store %s in column %s, which has no default, for %s", stored, rule.Column, why)
	return &Refusal{Reason: wouldStoreZero, Rule: rule, Form: form, Why: stores, MyError: New(mysql.ER_NOT_SUPPORTED_YET, "42000", "idproxy does not forward '%s' on table %s: %s (rule %s, unsupported: forward); nothing was sent", form, t.Table, stores, rule)}
}

// Unprepared is what a server says to an execution of the statement
// prepared last when that PREPARE failed.
func Unprepared() *mysql.MyError {
	return New(mysql.ER_UNKNOWN_STMT_HANDLER, "HY000", "Unknown prepared statement handler (last) given to EXECUTE: idproxy refused to prepare it")
}

// UnpreparedName is the same for a name.
func UnpreparedName(name string) *mysql.MyError {
	return New(mysql.ER_UNKNOWN_STMT_HANDLER, "HY000", "Unknown prepared statement handler (%s) given to EXECUTE: idproxy refused to prepare it", name)
}

// TooManyNames says that the session has too many statements by name.
func TooManyNames(most int) *mysql.MyError {
	return New(mysql.ER_MAX_PREPARED_STMT_COUNT_REACHED, "42000", "Can't create more than max_prepared_stmt_count statements (idproxy keeps at most %d of a session by name)", most)
}

// ReadLate says that the text of a statement prepared in SQL was not read.
func ReadLate() *Refusal {
	return Undecided(errors.New("no table had a rule when it was prepared, and its text was not read: prepare it again"))
}

// Miscounted refuses a statement whose parameters the server counts in another way.
func Miscounted(rule *rule.Rule, table string) *Refusal {
	return &Refusal{Reason: miscounted, Rule: rule, Why: "the server counts other parameters", MyError: New(mysql.ER_NOT_SUPPORTED_YET, "42000", "idproxy and the server count other parameters in the prepared INSERT into %s with rule %s, so its ids have no certain place; nothing was sent", table, rule)}
}

// Packet is a server's answer to an execution that ends too early or brings
// no types.
func Packet(cause error, mariaDB bool, command string) *mysql.MyError {
	if errors.Is(cause, wire.ErrUntyped) {
		return Arguments(command)
	}
	end := "."
	if mariaDB {
		end = ""
	}
	return New(mysql.ER_MALFORMED_PACKET, "HY000", "Malformed communication packet%s", end)
}

// Arguments is a server's answer to wrong arguments of a command.
func Arguments(command string) *mysql.MyError {
	return New(mysql.ER_WRONG_ARGUMENTS, "HY000", "Incorrect arguments to %s", command)
}

// LongID refuses an id that is too long.
func LongID(rule *rule.Rule, most int) *Refusal {
	return &Refusal{Reason: longID, Rule: rule, Why: "an id that is too long", MyError: New(mysql.ER_NOT_SUPPORTED_YET, "42000", "idproxy does not take an id of more than %d bytes for column %s of rule %s; nothing was sent", most, rule.Column, rule)}
}

// NoBulk is what MariaDB 10.11 says to a bulk execution with flags that it
// does not know, and of a statement without parameters.
func NoBulk() *mysql.MyError {
	return New(mysql.ER_UNSUPPORTED_PS, "HY000", "This command is not supported in the prepared statement protocol yet")
}

// TooManyParameters is a server's own error, for parameters that it would
// have had room for but for those of the ids.
func TooManyParameters(table string) *mysql.MyError {
	return New(mysql.ER_PS_MANY_PARAM, "HY000", "Prepared statement contains too many placeholders: idproxy adds one for each id of %s and needs room for them below 65536; prepare fewer rows", table)
}

// Explicit refuses an explicit id, as explicit: reject says.
func Explicit(rule *rule.Rule) *Refusal {
	return &Refusal{Reason: explicitID, Rule: rule, Why: "explicit: reject, and the statement gives " + rule.Column + " a value of its own", MyError: New(mysql.ER_NOT_SUPPORTED_YET, "42000", "idproxy rule %s says explicit: reject, and the statement gives column %s a value of its own; nothing was sent", rule, rule.Column)}
}

// OtherShard refuses a row whose key is of another shard than the listener's.
func OtherShard(rule *rule.Rule, key string, gene uint16) error {
	g := rule.Gene
	why := fmt.Sprintf("the key in column %s is of shard %d of %d, and listener %s is for shard %d", g.Column, g.Shard.Of(gene), 1<<g.Shard.Bits, g.Shard.Listener, g.Shard.Value)
	refusal := &Refusal{Reason: otherShard, Rule: rule, Why: why, MyError: New(mysql.ER_NOT_SUPPORTED_YET, "42000",
		"idproxy does not take a row with key %s here: its gene (%s) is %d, which is of shard %d of %d, and listener %s is for shard %d (rule %s); nothing was sent: connect to the listener of that shard",
		key, g.String(), gene, g.Shard.Of(gene), 1<<g.Shard.Bits, g.Shard.Listener, g.Shard.Value, rule)}
	return quoting{refusal, fmt.Sprintf("idproxy does not take a row of another shard: %s (rule %s); nothing was sent", why, rule)}
}

// NoNumber refuses an explicit id that no source can be moved past.
func NoNumber(rule *rule.Rule) *Refusal {
	return &Refusal{Reason: noNumber, Rule: rule, Why: "explicit: advance, and the statement gives " + rule.Column + " a value that is no whole number", MyError: New(mysql.ER_NOT_SUPPORTED_YET, "42000", "idproxy rule %s says explicit: advance, and the statement gives column %s a value that is no whole number the source could be moved past; nothing was sent", rule, rule.Column)}
}

// BelowZero refuses an id below zero for an unsigned column.
func BelowZero(rule *rule.Rule) *Refusal {
	return &Refusal{Reason: belowZero, Rule: rule, Why: "an id below zero for column " + rule.Column + ", which is unsigned: the server would store 0", MyError: New(mysql.ER_NOT_SUPPORTED_YET, "42000", "idproxy does not pass on an id below zero for column %s of rule %s: it is unsigned, and the server would store 0; nothing was sent", rule.Column, rule)}
}

// NoColumn says that a table lacks the column of a rule.
func NoColumn(rule *rule.Rule, table string) *Refusal {
	return &Refusal{Reason: noColumn, Rule: rule, Why: "the table has no column " + rule.Column, MyError: New(mysql.ER_BAD_FIELD_ERROR, "42S22", "Unknown column '%s' in table %s, which idproxy rule %s names; correct the rule's column", rule.Column, table, rule)}
}

// ColumnType says that a column cannot hold the ids of its source.
func ColumnType(rule *rule.Rule, table string, column rule.Column) *Refusal {
	why := "the type of column " + rule.Column + " cannot hold generated ids exactly"
	if rule.IDs.Wide() {
		why = fmt.Sprintf("column %s has the type %s, which cannot hold the ids of source %s (%s can)", rule.Column, column.Type, rule.Source, rule.IDs.Columns())
	}
	return &Refusal{Reason: columnType, Rule: rule, Why: why, MyError: outOfIDs(rule, fmt.Sprintf("column %s of table %s has the type %s, which cannot hold the ids of source %s exactly (%s can)",
		rule.Column, table, column.Type, rule.Source, rule.IDs.Columns()))}
}

// Facts passes on why the server would not describe a table.
func Facts(rule *rule.Rule, table string, cause *mysql.MyError) *mysql.MyError {
	return New(cause.Code, cause.State, "%s (idproxy asks for the columns of %s, because rule %s names it: the user needs SELECT on them)", cause.Message, table, rule)
}

// DeniedNote is added to the server's own error 1143.
func DeniedNote(table string) string {
	return " (idproxy writes the generated columns of " + table + " by name: the user needs INSERT on them, and UPDATE for ON DUPLICATE KEY UPDATE)"
}

// TooLarge says that a packet is too large with its ids.
func TooLarge(n int, what string, limit uint64) *mysql.MyError {
	return New(mysql.ER_NET_PACKET_TOO_LARGE, "08S01", "Got a packet bigger than '%s' bytes: %d bytes with ids, %d allowed; nothing was sent", what, n, limit)
}

// HeldTooLarge says that a command is larger than limits.statement.
func HeldTooLarge(limit int) *mysql.MyError {
	return New(mysql.ER_NET_PACKET_TOO_LARGE, "08S01", "Got a packet bigger than idproxy's limits.statement of %d bytes; a statement that may need ids is held whole, nothing was sent", limit)
}

// Undecided says why it could not be decided on a statement.
func Undecided(cause error) *Refusal {
	return &Refusal{Reason: undecided, Why: cause.Error(), MyError: New(mysql.ER_NOT_SUPPORTED_YET, "42000", "idproxy could not decide whether the statement needs ids: %v; nothing was sent", cause)}
}

// BrokenOff says that a LOAD DATA was broken off behind rows of its file.
func BrokenOff(cause *mysql.MyError, rows int) *mysql.MyError {
	why := strings.TrimSuffix(cause.Message, "; nothing was sent")
	return New(cause.Code, cause.State, "%s; idproxy broke off LOAD DATA behind %d ids: the server rolled it back, but for tables without transactions, and the connection is closed", why, rows)
}

// The reasons by names that no parameter hides.
const (
	noIDs          = rule.NoIDs
	otherForm      = rule.OtherForm
	wouldStoreZero = rule.WouldStoreZero
	explicitID     = rule.ExplicitID
	noNumber       = rule.NoNumber
	belowZero      = rule.BelowZero
	longID         = rule.LongID
	noColumn       = rule.NoColumn
	columnType     = rule.ColumnType
	undecided      = rule.Undecided
	miscounted     = rule.Miscounted
	tooGreat       = rule.TooGreat
	otherShard     = rule.OtherShard
)

// ReasonOf returns why an error refuses a statement, and the rule that does; nil: it is not known,
// or no single one.
func ReasonOf(err error) (rule.Reason, *rule.Rule) {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal.Reason, refusal.Rule
	}
	if kept, ok := errors.AsType[KeptError](err); ok {
		return rule.NoIDs, kept.rule
	}
	e, ours := errors.AsType[*mysql.MyError](err)
	if !ours {
		return rule.Undecided, nil
	}
	switch e.Code {
	case mysql.ER_AUTOINC_READ_FAILED:
		return rule.NoIDs, nil
	case mysql.ER_CHECKREAD:
		return rule.RowsComing, nil
	case mysql.ER_NET_PACKET_TOO_LARGE:
		return rule.TooLarge, nil
	}
	return rule.OtherReason, nil
}

// Explained says why an error refuses a statement, in the words of explain. It quotes nothing that
// the statement says of its rows, and nothing that a server said, for a server quotes statements.
func Explained(err error) string {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		why := refusal.Said()
		if q, quotes := errors.AsType[quoting](err); quotes && q.logged == "" {
			why = inside.WithoutNumbers(why)
		}
		if refusal.Rule == nil {
			return why
		}
		return "rule " + refusal.Rule.String() + ": " + why
	}
	if kept, ok := errors.AsType[KeptError](err); ok {
		_, reference := inside.Text(kept.Cause)
		return "rule " + kept.rule.String() + ": its source gave no ids; the log says why, reference " + reference
	}
	switch why, _ := ReasonOf(err); why {
	case rule.TooLarge:
		return "it is too large with its ids, or to be held in memory"
	case rule.RowsComing:
		return "rows came again and again while those of its query were counted"
	case rule.Undecided:
		return "what it writes to could not be found out"
	}
	e, _ := errors.AsType[*mysql.MyError](err)
	return fmt.Sprintf("error %d, whose text may quote the statement", e.Code)
}

// Said words why the statement is refused.
func (e *Refusal) Said() string {
	switch {
	case e.Form == "":
		return e.Why
	case e.Why == "":
		return NotFilled(e.Form)
	}
	return NotFilled(e.Form) + ", and " + e.Why
}

// NotFilled words why a statement gets no ids: a form that is named, or the place behind which it
// is not understood.
func NotFilled(form string) string {
	for _, defect := range []string{"not understood", "no column list", "more than one"} {
		if strings.HasPrefix(form, defect) {
			return form
		}
	}
	if form == "LOAD DATA without LOCAL" {
		return "it can't be filled: the server reads the file itself; use LOAD DATA LOCAL INFILE"
	}
	return "it can't be filled: " + form
}

// From turns any error into one for a client.
func From(err error) *mysql.MyError {
	if e, ok := errors.AsType[*mysql.MyError](err); ok {
		return e
	}
	return Undecided(err).MyError
}
