package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"idproxy/integration/harness"
	"idproxy/integration/process"
	"idproxy/integration/servers"
)

// target is a way to the server.
type target struct {
	name    string
	addr    string
	injects bool             // fills ids
	proc    *process.Process // nil for the direct way
}

// names of targets, as tables show them.
const (
	nameDirect  = "direct"
	nameRelay   = "relay"
	nameHAProxy = "HAProxy"
	nameIDProxy = "idproxy"
	nameThreads = "goroutines"
	nameScraped = "scraped"
	nameBeside  = "other build"
)

// startTargets builds and starts everything that stands before the server at upstream. Their files
// are in dir. The caller stops what is returned, also when there is an error.
func startTargets(ctx context.Context, dir, upstream string, variants []variant) (targets []*target, err error) {
	targets = []*target{{name: nameDirect, addr: upstream}}
	starts := []func(context.Context, string, string) (*target, error){startHAProxy, startRelay}
	for _, v := range variants {
		starts = append(starts, v.start)
	}
	for _, start := range starts {
		t, err := start(ctx, dir, upstream)
		if err != nil {
			return targets, err
		}
		if t != nil {
			targets = append(targets, t)
		}
	}
	return targets, nil
}

const stopGrace = 20 * time.Second

func stopTargets(targets []*target) error {
	var err error
	for _, t := range targets {
		switch {
		case t.proc == nil:
		case t.injects:
			err = errors.Join(err, t.proc.Stop(stopGrace))
		default: // the others do not end well on a signal
			err = errors.Join(err, t.proc.Kill())
		}
	}
	return err
}

func startRelay(ctx context.Context, dir, upstream string) (*target, error) {
	program, err := harness.BuildOther("idproxy/integration/bench/plainrelay")
	if err != nil {
		return nil, err
	}
	return startListening(ctx, &target{name: nameRelay}, dir, func(addr string) process.Spec {
		return process.Spec{Path: program, Args: []string{addr, upstream}}
	})
}

// haproxyConfig relays TCP and does nothing else; its other settings are its defaults.
const haproxyConfig = `global
  maxconn 8000
  nbthread 2
defaults
  mode tcp
  maxconn 8000
  timeout connect 10s
  timeout client 1h
  timeout server 1h
listen bench
  bind %s
  server mariadb %s
`

// startHAProxy returns nil when HAProxy is not installed.
func startHAProxy(ctx context.Context, dir, upstream string) (*target, error) {
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/haproxy")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: HAProxy is not installed and is left out")
		return nil, nil
	}
	path := filepath.Join(dir, "haproxy.cfg")
	return startListening(ctx, &target{name: nameHAProxy}, dir, func(addr string) process.Spec {
		// A file that cannot be written shows in HAProxy's own message.
		_ = os.WriteFile(path, fmt.Appendf(nil, haproxyConfig, addr, upstream), 0o600)
		return process.Spec{Path: program, Args: []string{"-db", "-f", path}}
	})
}

// startListening starts a program on a port that nobody listens on, and waits until it listens.
func startListening(ctx context.Context, t *target, dir string, spec func(addr string) process.Spec) (*target, error) {
	var err error
	if t.addr, err = servers.FreeAddr(); err != nil {
		return nil, err
	}
	s := spec(t.addr)
	s.Log = filepath.Join(dir, t.name+".log")
	if t.proc, err = process.Start(s); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	err = t.proc.Poll(ctx, func() bool {
		c, err := dial(t.addr)
		return err == nil && c.close() == nil
	})
	if err != nil {
		return nil, errors.Join(err, t.proc.Kill())
	}
	return t, nil
}
