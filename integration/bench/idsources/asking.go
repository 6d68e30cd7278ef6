package idsources

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// question asks for ids over some protocol.
type question struct {
	name   string
	text   string
	ids    int // of one answer
	answer func(*bufio.Reader) error
}

var (
	incr   = question{"INCR", "*2\r\n$4\r\nINCR\r\n$3\r\nids\r\n", 1, number}
	incrBy = question{"INCRBY 1000", "*3\r\n$6\r\nINCRBY\r\n$3\r\nids\r\n$4\r\n1000\r\n", 1000, number}
	single = question{"HTTP as Leaf's", "GET /api/segment/get/ids HTTP/1.1\r\nHost: ids\r\n\r\n", 1, document} // as a client of Leaf asks
)

// batchOf asks for n ids in idproxy's own way.
func batchOf(n int) question {
	body := fmt.Sprintf(`{"key":"ids","n":%d}`, n)
	return question{
		fmt.Sprintf("HTTP POST of %d", n),
		fmt.Sprintf("POST /v1/ids HTTP/1.1\r\nHost: ids\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body), n, document,
	}
}

// asking is a way to ask, and what was measured of it.
type asking struct {
	server server
	question
	connections int
	ahead       int     // questions that are sent before their answers are read
	redis       *asking // what it is compared with; nil: nothing

	times          histogram // of all rounds
	perSecond, cpu []float64 // by round: ids a second, microseconds of the server for a question
}

// asked is what asking for a while brought.
type asked struct {
	times histogram // of questions that were sent together
	time  time.Duration
}

// ask asks for a while.
func (a *asking) ask(ctx context.Context, length time.Duration) (all asked, err error) {
	each, failed := make([]histogram, a.connections), make([]error, a.connections)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range a.connections {
		wg.Go(func() { failed[i] = a.client(ctx, began.Add(length), &each[i]) })
	}
	wg.Wait()
	all.time = time.Since(began)
	for i := range each {
		all.times.join(&each[i])
	}
	return all, errors.Join(failed...)
}

// client asks over one connection until its time is up.
func (a *asking) client(ctx context.Context, until time.Time, times *histogram) (err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", a.server.addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	round, r := bytes.Repeat([]byte(a.text), a.ahead), bufio.NewReader(conn)
	for now, more := time.Now(), true; more; more = now.Before(until) {
		if _, err := conn.Write(round); err != nil {
			return err
		}
		for range a.ahead {
			if err := a.answer(r); err != nil {
				return err
			}
		}
		before := now
		now = time.Now()
		times.add(now.Sub(before))
	}
	return nil
}

// number reads an integer of the Redis protocol.
func number(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err == nil && line[0] != ':' {
		err = fmt.Errorf("answer %q", line)
	}
	return err
}

// document reads an answer of HTTP, which must be a success.
func document(r *bufio.Reader) error {
	length := -1
	for first := true; ; first = false {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("answer %q", line)
		}
		if text, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(text))); err != nil {
				return err
			}
		}
		if len(line) == 2 {
			break
		}
	}
	if length < 0 {
		return errors.New("an answer without a length")
	}
	_, err := r.Discard(length)
	return err
}
