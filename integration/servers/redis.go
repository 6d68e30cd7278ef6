package servers

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"idproxy/integration/process"
)

// Redis is one private Redis server, or a Sentinel.
type Redis struct {
	Addr string      // host:port, the same after Restart
	Dir  string      // its folder, with data and log
	TLS  *tls.Config // how it is spoken to; nil: without TLS

	args  []string
	clock *Clock // nil: the host's
	bus   string // port of a cluster's nodes among themselves
	conf  string // of a Sentinel
	proc  *process.Process
}

// StartRedis starts a Redis server without data that keeps none, and waits until it answers. args
// are added to its own, e.g. "--appendonly", "yes".
func StartRedis(ctx context.Context, args ...string) (*Redis, error) {
	return startRedis(ctx, &Redis{args: args})
}

// StartRedisClock is StartRedis with another clock than the host's.
func StartRedisClock(ctx context.Context, c *Clock, args ...string) (*Redis, error) {
	return startRedis(ctx, &Redis{clock: c, args: args})
}

func startRedis(ctx context.Context, r *Redis) (*Redis, error) {
	dir, err := runDir()
	if err != nil {
		return nil, err
	}
	r.Dir = dir
	if r.TLS != nil {
		if r.TLS, err = clientTLS(dir); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	var failed error
	for range 3 { // another program may take the port first
		if r.Addr, err = FreeAddr(); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		if failed = r.Start(ctx); failed == nil {
			return r, nil
		}
	}
	return nil, errors.Join(failed, os.RemoveAll(dir))
}

func findRedis() (string, error) {
	program, err := lookPath("redis-server")
	if err == nil {
		return program, nil
	}
	tools, err := toolsDir()
	if err != nil {
		return "", err
	}
	program = filepath.Join(tools, "redis/redis-server")
	if _, err := os.Stat(program); err != nil {
		return "", fmt.Errorf("find Redis: %w\nrun: scripts/install-servers.sh redis", err)
	}
	return program, nil
}

// Start starts the server again, on the same port and data, after Kill.
func (r *Redis) Start(ctx context.Context) error {
	program, err := findRedis()
	if err != nil {
		return err
	}
	args, err := r.arguments()
	if err != nil {
		return err
	}
	r.proc, err = process.Start(process.Spec{Path: program, Args: args, Env: r.clock.env(), Log: filepath.Join(r.Dir, "server.log")})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := r.proc.Poll(ctx, func() bool { _, err := r.Do("PING"); return err == nil }); err != nil {
		return errors.Join(fmt.Errorf("start Redis: %w", err), r.proc.Kill())
	}
	return nil
}

func (r *Redis) dial() (net.Conn, error) {
	d := &net.Dialer{Timeout: time.Second}
	if r.TLS != nil {
		return tls.DialWithDialer(d, "tcp", r.Addr, r.TLS)
	}
	return d.Dial("tcp", r.Addr)
}

// Do sends one command without blanks in its words and returns the answer when that is one line or
// one text; of other answers the first line.
func (r *Redis) Do(words ...string) (string, error) {
	conn, err := r.dial()
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", strings.Join(words, " ")); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	switch {
	case err != nil:
		return "", err
	case line[0] == '-':
		return "", fmt.Errorf("redis %s: %s", words[0], strings.TrimSpace(line[1:]))
	case line[0] == '$' && line[1] != '-':
		line, err = in.ReadString('\n')
	}
	return strings.TrimRight(line, "\r\n"), err
}

// PID is the number of its process.
func (r *Redis) PID() int { return r.proc.PID() }

// Kill ends the server with SIGKILL.
func (r *Redis) Kill() error { return r.proc.Kill() }

// Signal sends sig to the server.
func (r *Redis) Signal(sig syscall.Signal) error { return r.proc.Signal(sig) }

// Log is what the server has printed so far.
func (r *Redis) Log() string { return r.proc.Log() }

// Stop ends the server and removes its folder.
func (r *Redis) Stop() error { return errors.Join(r.proc.Kill(), os.RemoveAll(r.Dir)) }
