package order

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds of a Line.
const (
	lineConns   = 4              // connections to the leader
	answerTime  = time.Second    // a leader that does not answer for so long is taken for gone
	idleTime    = time.Minute    // a connection that nobody needs is closed after this
	mostAtOnce  = 1 << 20        // ids that several requests share
	mostWaiting = 1 << 12        // requests that share a round trip
	replyBuffer = 4 << 10        // the server has no longer answers
	dialTime    = answerTime / 2 // of one attempt to connect
)

// LineConfig describes a Line.
type LineConfig struct {
	Dial     func(ctx context.Context, addr string) (net.Conn, error) // default: TCP
	Password string                                                   // default: nobody logs in
}

// Line asks the leader, over a few connections in the protocol of Redis. Requests that come while
// all connections wait for answers go together: of one key they are one INCRBY. All of them are under
// way then, so that any order among them is right.
type Line struct {
	cfg LineConfig

	mu    sync.Mutex
	to    Leader // whose connections there are
	queue []*question
	conns int
	idle  int           // connections that wait for work
	work  chan struct{} // has one of them look at the queue
	epoch context.Context
	end   context.CancelFunc // of all connections to addr
	wg    sync.WaitGroup
	ended bool
}

// question is one that waits for its answer. done has room for that.
type question struct {
	key  string
	span uint64 // ids to draw; 0: next is to be set
	next uint64
	done chan answer
}

type answer struct {
	first uint64
	err   error
}

// RefusedError is the leader's word that it does not do what it was asked, and why.
type RefusedError struct{ Text string }

// Error returns what the leader said.
func (e *RefusedError) Error() string { return e.Text }

// NewLine makes a Line without connections.
func NewLine(c LineConfig) *Line {
	if c.Dial == nil {
		dialer := net.Dialer{}
		c.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }
	}
	return &Line{cfg: c, work: make(chan struct{}, lineConns)}
}

// Draw has the leader draw span consecutive ids and returns the first. It waits no longer
// than until changed is closed. After an error ids may have been drawn; they are lost.
func (l *Line) Draw(ctx context.Context, to Leader, changed <-chan struct{}, key string, span uint64) (uint64, error) {
	return l.ask(ctx, to, changed, &question{key: key, span: span})
}

// Set has the leader move a series up to next. It waits as Draw does.
func (l *Line) Set(ctx context.Context, to Leader, changed <-chan struct{}, key string, next uint64) error {
	_, err := l.ask(ctx, to, changed, &question{key: key, next: next})
	return err
}

// Why a question has no answer, besides a connection that fails.
var (
	errLineClosed = errors.New("this process asks the leader no more")
	errChanged    = errors.New("who leads has changed")
	errLeadsNot   = errors.New("it leads no more, or may give no ids now")
)

func (l *Line) ask(ctx context.Context, to Leader, changed <-chan struct{}, q *question) (uint64, error) {
	q.done = make(chan answer, 1)
	if err := l.enqueue(to, q); err != nil {
		return 0, err
	}
	select {
	case a := <-q.done:
		return a.first, a.err
	case <-changed:
		return 0, errChanged
	case <-ctx.Done():
		return 0, fmt.Errorf("the leader at %s: %w", to.Addr, context.Cause(ctx))
	}
}

func (l *Line) enqueue(to Leader, q *question) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return errLineClosed
	}
	if to != l.to {
		l.drop(errChanged)
		l.to, l.conns, l.idle = to, 0, 0
		l.work = make(chan struct{}, lineConns)
		l.epoch, l.end = context.WithCancel(context.Background())
	}
	l.queue = append(l.queue, q)
	switch {
	case l.idle > 0:
		l.idle--
		l.work <- struct{}{} // there is room for all
	case l.conns < lineConns:
		l.conns++
		ctx, work := l.epoch, l.work
		l.wg.Go(func() { l.serve(ctx, to, work) })
	}
	return nil
}

// drop ends all connections. The caller holds mu.
func (l *Line) drop(err error) {
	if l.end != nil {
		l.end()
	}
	for _, q := range l.queue {
		q.done <- answer{err: err}
	}
	l.queue = nil
}

// Close ends all connections.
func (l *Line) Close() {
	l.mu.Lock()
	l.ended = true
	l.drop(errLineClosed)
	l.mu.Unlock()
	l.wg.Wait()
}

// take returns questions for one round trip; none when there are none, and the connection is idle.
func (l *Line) take(ctx context.Context) (batch []*question) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil { // the questions are for another leader
		return nil
	}
	if len(l.queue) == 0 {
		l.idle++
	}
	n := min(len(l.queue), mostWaiting)
	batch, l.queue = l.queue[:n:n], l.queue[n:]
	return batch
}

// serve is one connection, which is made when it is first needed.
func (l *Line) serve(ctx context.Context, to Leader, work <-chan struct{}) {
	c := &conn{l: l, to: to}
	defer c.close()
	stop := context.AfterFunc(ctx, c.cut)
	defer stop()
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	for {
		if batch := l.take(ctx); len(batch) > 0 {
			c.exchange(ctx, batch)
			continue
		}
		idle.Reset(idleTime)
		select {
		case <-ctx.Done():
			return
		case <-work:
		case <-idle.C:
			if l.leave(ctx) {
				return
			}
			<-work // it is on its way
		}
	}
}

// leave takes a connection out that has nothing to do.
func (l *Line) leave(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() == nil && l.idle > 0 {
		l.conns--
		l.idle--
		return true
	}
	return ctx.Err() != nil
}

// conn is a connection to the leader.
type conn struct {
	l   *Line
	to  Leader
	r   *bufio.Reader
	out []byte

	mu  sync.Mutex
	c   net.Conn // nil: there is none
	end bool
}

// cut ends the connection for good, whoever uses it.
func (c *conn) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = true
	if c.c != nil {
		_ = c.c.Close()
	}
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.c != nil {
		_ = c.c.Close()
		c.c = nil
	}
}

// open connects and logs in, unless that was done.
func (c *conn) open(ctx context.Context) error {
	if c.c != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	made, err := c.l.cfg.Dial(ctx, c.to.Addr)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.c = made
	if c.end {
		_ = made.Close()
	}
	c.mu.Unlock()
	c.r = bufio.NewReaderSize(made, replyBuffer)
	if c.l.cfg.Password == "" {
		return nil
	}
	_ = made.SetDeadline(time.Now().Add(answerTime)) // a dead connection says so at the write
	if _, err := made.Write(appendCommand(nil, "AUTH", c.to.User(), c.l.cfg.Password)); err != nil {
		return err
	}
	_, err = c.reply(0)
	if refused, ok := errors.AsType[*RefusedError](err); ok { // which is no answer of the leader
		return fmt.Errorf("another process is there than the one that leads, or it has another token: %s", refused.Text)
	}
	return err
}

// wanted is what is asked for one or several questions.
type wanted struct {
	questions []*question
	sum       uint64
}

// together puts questions for ids of one key together.
func together(batch []*question) (all []*wanted) {
	byKey := map[string]*wanted{}
	for _, q := range batch {
		w := byKey[q.key]
		if q.span == 0 || w == nil || w.sum+q.span > mostAtOnce {
			w = &wanted{}
			all = append(all, w)
			if byKey[q.key] = w; q.span == 0 {
				delete(byKey, q.key)
			}
		}
		w.questions = append(w.questions, q)
		w.sum += q.span
	}
	return all
}

// exchange asks and answers. After an error the connection is made anew.
func (c *conn) exchange(ctx context.Context, batch []*question) {
	all := together(batch)
	err := c.ask(ctx, all)
	for err == nil && len(all) > 0 {
		var n uint64
		n, err = c.reply(all[0].sum)
		if _, refused := errors.AsType[*RefusedError](err); err != nil && !refused && !errors.Is(err, errLeadsNot) {
			break
		}
		if errors.Is(err, errLeadsNot) {
			err = c.said(err)
		}
		all[0].answer(n, err)
		all, err = all[1:], nil
	}
	if err == nil {
		return
	}
	c.close()
	for _, w := range all {
		w.answer(0, c.said(err))
	}
}

// said is why the leader gave no answer.
func (c *conn) said(err error) error { return fmt.Errorf("the leader at %s: %w", c.to.Addr, err) }

func (w *wanted) answer(last uint64, err error) {
	first := last - w.sum + 1
	for _, q := range w.questions {
		q.done <- answer{first, err}
		first += q.span
	}
}

func (c *conn) ask(ctx context.Context, all []*wanted) error {
	if err := c.open(ctx); err != nil {
		c.close()
		return err
	}
	c.out = c.out[:0]
	for _, w := range all {
		q := w.questions[0]
		if q.span == 0 {
			c.out = appendCommand(c.out, "IDS.SET", q.key, strconv.FormatUint(q.next, 10))
		} else {
			c.out = appendCommand(c.out, "INCRBY", q.key, strconv.FormatUint(w.sum, 10))
		}
	}
	_ = c.c.SetDeadline(time.Now().Add(answerTime)) // a dead connection says so at the write
	_, err := c.c.Write(c.out)
	return err
}

// reply reads one answer: the last of so many ids, OK where there are none, or an error.
func (c *conn) reply(ids uint64) (last uint64, err error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	text := strings.TrimRight(string(line), "\r\n")
	if rest, failed := strings.CutPrefix(text, "-"); failed {
		if strings.HasPrefix(rest, "MOVED ") || strings.HasPrefix(rest, "CLUSTERDOWN ") {
			return 0, errLeadsNot
		}
		return 0, &RefusedError{rest}
	}
	if ids == 0 && text == "+OK" {
		return 0, nil
	}
	if rest, number := strings.CutPrefix(text, ":"); number && ids > 0 {
		if last, err = strconv.ParseUint(rest, 10, 63); err == nil && last >= ids {
			return last, nil
		}
	}
	return 0, fmt.Errorf("the answer %.40q, which is none to what was asked", text)
}

func appendCommand(b []byte, words ...string) []byte {
	b = append(strconv.AppendInt(append(b, '*'), int64(len(words)), 10), "\r\n"...)
	for _, w := range words {
		b = append(strconv.AppendInt(append(b, '$'), int64(len(w)), 10), "\r\n"...)
		b = append(append(b, w...), "\r\n"...)
	}
	return b
}
