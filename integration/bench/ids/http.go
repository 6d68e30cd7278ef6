package ids

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"idproxy/idsource/access"
	"idproxy/idsource/httpapi"
	"idproxy/idsource/segment"
)

// asking is one way to ask for ids over HTTP.
type asking struct {
	name        string
	request     string
	ids         int // of one answer
	connections int
	ahead       int // requests that are sent before their answers are read
}

// single is the request of a client of Leaf.
const single = "GET /api/segment/get/ids HTTP/1.1\r\nHost: ids\r\nAuthorization: Bearer 0123456789abcdef\r\n\r\n"

func batchOf(n int) string {
	body := fmt.Sprintf(`{"key":"ids","n":%d}`, n)
	return fmt.Sprintf("POST /v1/ids HTTP/1.1\r\nHost: ids\r\nAuthorization: Bearer 0123456789abcdef\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// overHTTP measures a server of ids over HTTP with clients in the same process: both share the
// processors, and CPU is that of both.
func overHTTP(ctx context.Context, out io.Writer, length time.Duration) (err error) {
	fmt.Fprint(out, "\n### Ids over HTTP/1.1, server and clients on the same processors\n\n| request | connections | ahead | requests/s | ids/s | CPU µs/request | p50 | p99 |\n|---|---:|---:|---:|---:|---:|---:|---:|\n")
	source, err := segment.New(segment.Config{Name: "ids", Store: &store{delay: fetch}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close(ctx)) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := httpapi.New(httpapi.Config{
		Lookup: func(string) (httpapi.Source, bool) { return source, true },
		Users:  access.NewUsers(access.User{Name: "bench", Secret: access.DigestOf("0123456789abcdef")}),
	})
	serving, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(serving, l) }()
	defer func() {
		end()
		err = errors.Join(err, <-ended)
	}()
	for _, a := range []asking{
		{"one id, as Leaf", single, 1, 1, 1},
		{"one id, as Leaf", single, 1, 64, 1},
		{"one id, as Leaf", single, 1, 8, 16},
		{"one id, POST", batchOf(1), 1, 64, 1},
		{"100 ids, POST", batchOf(100), 100, 64, 1},
		{"1,000,000 ids, POST", batchOf(1_000_000), 1_000_000, 64, 1},
	} {
		if err := a.measure(ctx, out, l.Addr().String(), length); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

// measure asks for a while, after a tenth of it that does not count.
func (a asking) measure(ctx context.Context, out io.Writer, addr string, length time.Duration) error {
	if _, _, err := a.ask(ctx, addr, length/10); err != nil {
		return err
	}
	cpu := processTime()
	seen, took, err := a.ask(ctx, addr, length)
	cpu = processTime() - cpu
	if err != nil {
		return err
	}
	requests := float64(seen.count * uint64(a.ahead))
	fmt.Fprintf(out, "| %s | %d | %d | %.0f | %.0f | %.1f | %v | %v |\n", a.name, a.connections, a.ahead, requests/took.Seconds(),
		requests*float64(a.ids)/took.Seconds(), float64(cpu.Microseconds())/requests, seen.quantile(0.5), seen.quantile(0.99))
	return nil
}

// ask returns how long each round of requests took.
func (a asking) ask(ctx context.Context, addr string, length time.Duration) (seen histogram, took time.Duration, err error) {
	each, failed := make([]histogram, a.connections), make([]error, a.connections)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range a.connections {
		wg.Go(func() { failed[i] = a.client(ctx, addr, began.Add(length), &each[i]) })
	}
	wg.Wait()
	took = time.Since(began)
	for i := range each {
		seen.join(&each[i])
	}
	return seen, took, errors.Join(failed...)
}

// client asks over one connection until its time is up.
func (a asking) client(ctx context.Context, addr string, until time.Time, seen *histogram) (err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	round, r := bytes.Repeat([]byte(a.request), a.ahead), bufio.NewReader(conn)
	for now := time.Now(); now.Before(until); {
		if _, err := conn.Write(round); err != nil {
			return err
		}
		for range a.ahead {
			if err := readAnswer(r); err != nil {
				return err
			}
		}
		before := now
		now = time.Now()
		seen.add(now.Sub(before))
	}
	return nil
}

// readAnswer reads one answer, which must be a success.
func readAnswer(r *bufio.Reader) error {
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
