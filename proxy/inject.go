package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/idsource"
	"idproxy/inside"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// maxRounds bounds what is asked for one piece of a text: settings, and for each
// table its columns and greatest id. It is far above what a text of ordinary
// size needs.
const maxRounds = 1000

// statements are those that no session needs now. An idle session keeps none:
// after an INSERT of many rows one takes far more memory than the session.
var statements = sync.Pool{New: func() any { return new(decide.Statement) }}

// statement decides on a held command and does what was decided. An error ends
// the session; what is wrong with the statement is answered to the client.
func (s *session) statement(packet []byte) error {
	s.held = statements.Get().(*decide.Statement)
	s.held.Read(packet, s.requests.Arrival(packet))
	if s.held.Prefix[0] == mysql.COM_STMT_PREPARE {
		s.requests.Last = &protocol.Stmt{Kind: decide.Refusal{MyError: clienterr.Unprepared()}} // unless it is sent
	}
	began, form := time.Now(), stats.FormOf(s.held.Prefix[0])
	s.outcome, s.trace = stats.Forwarded, s.chosen()
	text := s.held.Text
	defer func() {
		s.l.stats.Decided(time.Since(began))
		s.stats.Commands.Add(s.outcome, form)
		if s.lags {
			s.lags = false
			s.at.tables.Withdraw(rule.NewList(nil))
		}
	}()
	c := command{s, s.held}
	err := c.settleOption()
	if err == nil {
		err = c.decide()
	}
	if err == nil {
		err = s.ReadAsNow()
	}
	if err == nil {
		err = c.dropLong()
	}
	if err == nil {
		s.trace.decided(s.held, text, s.outcome, form, began)
	}
	s.giveRoom(s.held)
	if len(packet) <= decide.SmallText {
		s.held.Forget()
		statements.Put(s.held)
	}
	s.held = nil
	return err
}

// settleOption waits for the reply to a COM_SET_OPTION: whether the server takes it is
// not known before, and it says where a text is cut.
func (s command) settleOption() error {
	if s.st.Prefix[0] != mysql.COM_QUERY || !s.c.MayTurn() {
		return nil
	}
	err := s.quiet()
	s.st.Multi = s.c.Splits()
	return err
}

// dropLong drops the long data of an execution that was refused here: every
// execution drops it, and the next one must not find what was meant for this.
func (s command) dropLong() error {
	e := s.st.Prepared
	if e == nil || s.st.Prepares() {
		return nil
	}
	atServer := e.Long.Sent != nil
	e.Long = protocol.LongData{}
	if !atServer {
		return nil
	}
	s.c.Addressed(e, s.st.Payload())
	defer s.askFor(stats.Release)()
	reset := append([]byte{mysql.COM_STMT_RESET}, s.st.Payload()[1:5]...)
	_, err := s.ask(wire.AppendPacket(nil, 0, reset), protocol.ReplyOne)
	return err
}

// decide decides on a statement piece by piece, and sends them.
func (s command) decide() error {
	for {
		if shown, done, err := s.showKept(); shown {
			if done || err != nil {
				return err
			}
			continue
		}
		if shown, done, err := s.showLastID(); shown || err != nil {
			if done || err != nil {
				return err
			}
			continue
		}
		live := s.l.srv.live.Load()
		err := s.decided()
		s.report(&s.st.Found)
		if err == nil {
			if !s.c.MariaDB && !s.at.plain.Load() {
				s.st.KeepInsertID()
			}
			expected, at, err := s.st.Order.Draw(s.session)
			if err != nil {
				if s.replaced(live, err) {
					continue
				}
				if again, err := s.refuseAt(at, err); !again {
					return err
				}
				continue
			}
			if done, err := s.execute(expected); done || err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, errServerGone) || errors.Is(err, errClientGone) {
			return err
		}
		if s.replaced(live, err) {
			continue
		}
		if errors.Is(err, errUnsound) {
			s.st.Prepared = nil
			end, rest := s.first()
			if done, err := s.sendAsIs(s.st.AsSQL(), end, rest); done || err != nil {
				return err
			}
			continue
		}
		if again, err := s.refuseAt(len(s.st.Spans)-1, err); !again {
			return err
		}
	}
}

// decided decides on the next piece of a statement, and asks what that takes.
func (s command) decided() error {
	defer s.st.Found.Note(&s.c)
	for range maxRounds {
		missing, err := s.at.decider.Decide(s.st, s.c.Snapshot(s.st.Executes))
		if err != nil || missing == nil {
			return err
		}
		if err := (learner{s}).learn(missing); err != nil {
			return err
		}
	}
	return clienterr.Undecided(errors.New("too many questions to the server"))
}

// refuseAt answers for the i-th statement of the piece, as a server does: those
// in front of it run first.
func (s command) refuseAt(i int, cause error) (again bool, err error) {
	if i > 0 && s.st.Until == 0 {
		s.st.Until = i
		return true, nil
	}
	e := s.Told(cause)
	if e.Code == mysql.ER_NOT_SUPPORTED_YET {
		if taken, done, err := s.object(e); taken || err != nil {
			return !done && err == nil, err
		}
		s.l.srv.Stats.Refused.Add(1)
	}
	return false, s.refuse(cause, e)
}

// learn finds out what a decision waits for.
func (s learner) learn(n decide.Need) error {
	s.up.Handoff()
	began, why := time.Now(), questionOf(n)
	if why == stats.Quiet { // nothing is asked, and it takes time as well
		defer func() { s.l.stats.Questions[why].Add(time.Since(began)) }()
	}
	defer s.askFor(why)()
	err := s.find(n)
	s.trace.learned(why, began, err)
	return err
}

func (s learner) find(n decide.Need) error {
	switch n := n.(type) {
	case decide.NeedQuiet:
		return s.quiet()
	case decide.NeedRenewal:
		return s.renew(n.Of, n.Alike)
	case decide.NeedReading:
		return s.readAs(n.Own, string(n.Text), true)
	case decide.NeedProbe:
		return s.probe()
	case decide.NeedTable:
		return s.describe(n.Table, n.Key)
	case decide.NeedMax:
		return s.admit(n.Column)
	case decide.NeedValues:
		return s.evaluate(n)
	case decide.NeedSource:
		return s.askSource(n.SQL)
	case decide.NeedName:
		return s.Asker().LearnName(n.Name)
	case decide.NeedCharset:
		return s.learnCharset()
	case decide.NeedOwner:
		return s.findOwner(n.Key)
	case decide.NeedEngine:
		return decide.FindEngine(s.Asker(), n.Table, n.Facts)
	case decide.NeedAsked:
		return s.takeAsked(n.Part)
	case decide.NeedSound:
		return s.findSound(n.Part)
	case decide.NeedExact:
		return s.findExact(n)
	case decide.NeedCount:
		return s.count(n)
	}
	return clienterr.Undecided(fmt.Errorf("nobody can find out %T", n))
}

// ColumnOn names schema.table.column for sources: where there are several listeners
// the name of the table does not tell.
func ColumnOn(listener, column string) string { return column + " of listener " + listener }

// admit compares the greatest id in a column with its source, and remembers where it could not.
func (s learner) admit(f *decide.Filling) error {
	err := s.compare(f)
	switch {
	case err == nil:
		s.at.tables.Admit(f.Admission())
	case s.ctx.Err() == nil && !errors.Is(err, errServerGone): // else it says nothing of the column
		s.at.tables.Fail(f.Admission(), clienterr.Cause(err))
	}
	return err
}

func (s learner) compare(f *decide.Filling) error {
	column := ColumnOn(s.l.Name, f.Name+"."+f.Rule.Column)
	if err := s.mayLag(); err != nil {
		return clienterr.OutOfIDs(f.Rule, fmt.Errorf("cannot compare source %s with MAX(%s): %w", f.Rule.Source, column, err))
	}
	greatest, err := s.greatest(f.Table, f.Column, f.Rule.Last)
	if err != nil {
		return clienterr.OutOfIDs(f.Rule, fmt.Errorf("cannot compare source %s with MAX(%s): %w", f.Rule.Source, column, inside.Mark(err)))
	}
	from, err := s.IDsOf(f.Rule, f.Column, f.Table, f.Facts)
	if err != nil {
		return err
	}
	if err := from.Admit(s.ctx.Detached(), column, greatest); err != nil {
		return clienterr.OutOfIDs(f.Rule, err)
	}
	if scattered, ok := from.Scattered(); ok {
		if err := s.admitScattered(f, scattered, column); err != nil {
			return err
		}
	}
	return nil
}

// errLags is why a server is not asked for MAX(id) that takes no writes.
var errLags = errors.New("the server is read-only, so it may lag behind the one that takes writes, and where ids begin is asked of that one: " +
	"connect again when it takes writes, or give the listener an account and writable: true")

// mayLag asks one of several servers, before the greatest id of a column, whether it takes writes: one
// that does not may yet get rows from the one that does. With an account the others are asked where a
// series begins, and what is found here is asked anew for the next statement. Without one there is
// nobody else to ask. A server that is no MySQL is none that replicates another, and is not asked.
func (s learner) mayLag() error {
	if !s.l.choice.Several() && !s.l.Writable || s.at.plain.Load() {
		return nil
	}
	account := s.at.byAccount()
	if account == nil {
		readOnly, err := s.Asker().ReadOnly()
		if err == nil && readOnly {
			return errLags
		}
		return inside.Mark(err)
	}
	readOnly, err := account.ReadOnly(s.ctx.Detached())
	s.lags = s.lags || readOnly
	return inside.Mark(err)
}

// admitScattered looks whether a column holds ids that its source has yet to give. One that is found
// may have been given meanwhile: it tells something when the source still has it to give.
func (s learner) admitScattered(f *decide.Filling, of idsource.Scattered, column string) error {
	var held uint64
	for {
		ids, err := of.Unissued(s.ctx.Detached())
		switch {
		case err != nil:
			return clienterr.OutOfIDs(f.Rule, err)
		case held > 0 && slices.Contains(ids, held):
			return clienterr.OutOfIDs(f.Rule, of.Holds(column, held))
		case len(ids) == 0:
			return nil
		}
		held, err = s.ofColumn(f.Table,
			func() (uint64, error) { return s.Asker().Held(f.Table, f.Column, ids) },
			func(ctx context.Context, account Questions, schema, table string) (uint64, error) {
				return account.Held(ctx, schema, table, f.Column, ids)
			})
		if err != nil {
			return clienterr.OutOfIDs(f.Rule, fmt.Errorf("cannot look for ids of source %s in %s: %w", f.Rule.Source, column, inside.Mark(err)))
		}
		if held == 0 {
			return nil
		}
	}
}

// greatest returns the greatest id in a column up to last, 0 when there is none above 0.
func (s learner) greatest(t rewriter.Name, column rule.Column, last uint64) (uint64, error) {
	return s.ofColumn(t, func() (uint64, error) { return s.Asker().Greatest(t, column, last) },
		func(ctx context.Context, account Questions, schema, table string) (uint64, error) {
			return account.Greatest(ctx, schema, table, column, last)
		})
}

// ofColumn asks for the greatest of some ids of a column, 0 when there is none. The listener's
// account sees what other transactions have committed, the session what its own has written: in an
// open one both are asked.
func (s learner) ofColumn(t rewriter.Name, bySession func() (uint64, error), byAccount func(ctx context.Context, account Questions, schema, table string) (uint64, error)) (uint64, error) {
	account := s.at.byAccount()
	if account == nil {
		return bySession()
	}
	began := time.Now()
	n, err := byAccount(s.ctx.Detached(), account, string(t.Schema), string(t.Table))
	s.l.stats.Questions[stats.Greatest].Add(time.Since(began))
	if errors.Is(err, ErrLocked) {
		return bySession()
	}
	if now := s.c.Vars(); err != nil || !now.InTrans {
		return n, err
	}
	own, err := bySession()
	if _, refused := errors.AsType[*mysql.MyError](err); refused { // the client may have no right to read
		return n, nil
	}
	return max(n, own), err
}
