package idsources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"idproxy/integration/harness"
	"idproxy/integration/process"
	"idproxy/integration/servers"
)

// server gives ids to programs.
type server struct {
	name string
	addr string
	pids []int // whose processor time its answers take
}

// world is all servers that are compared: a Redis, an idproxy with a series of its own, and two more
// that share one in one order.
type world struct {
	dir     string
	program string
	redis   *servers.Redis
	etcd    *servers.Etcd
	proxies []*harness.Proxy
}

// startWorld starts them. They are stopped also when there is an error.
func startWorld(ctx context.Context, dir string) (w *world, err error) {
	w = &world{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.stop())
		}
	}()
	if w.program, err = harness.BuildPlain(); err != nil {
		return w, err
	}
	if w.redis, err = servers.StartRedis(ctx); err != nil {
		return w, err
	}
	if w.etcd, err = servers.StartEtcd(ctx); err != nil {
		return w, err
	}
	const alone = "sources: {ids: {segment: {}}}\nids: {redis: {listen: 127.0.0.1:0}, http: {listen: 127.0.0.1:0}}\n"
	if err = w.start(ctx, alone, w.create); err != nil {
		return w, err
	}
	for before := w.create; len(w.proxies) < 3; before = nil {
		among, err := servers.FreeAddr()
		if err != nil {
			return w, err
		}
		ordered := fmt.Sprintf("stores: {raft: {etcd: {endpoints: [%q]}}}\nsources: {ids: {segment: {store: raft, order: global}}}\n"+
			"order: {listen: %q, token: nobody else knows it}\nids: {redis: {listen: 127.0.0.1:0}}\n", w.etcd.Addr, among)
		if err := w.start(ctx, ordered, before); err != nil {
			return w, err
		}
	}
	return w, nil
}

// start starts an idproxy. What is to be done before is, if there is anything.
func (w *world) start(ctx context.Context, config string, before func(context.Context, harness.Spec) error) error {
	// No MySQL server is asked for anything.
	spec := harness.Spec{Config: "listeners: [{listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]\n" + config, Dir: filepath.Join(w.dir, fmt.Sprint(len(w.proxies)))}
	if err := os.Mkdir(spec.Dir, 0o700); err != nil {
		return err
	}
	if before != nil {
		if err := before(ctx, spec); err != nil {
			return err
		}
	}
	p, err := harness.Launch(ctx, w.program, spec)
	if err == nil {
		w.proxies = append(w.proxies, p)
	}
	return err
}

// create makes the series of an idproxy.
func (w *world) create(ctx context.Context, spec harness.Spec) error {
	path := filepath.Join(spec.Dir, "create.yaml")
	if err := os.WriteFile(path, []byte(spec.Config), 0o600); err != nil {
		return err
	}
	create := exec.CommandContext(ctx, w.program, "source", "create", "ids", "1", "--config", path)
	create.Dir = spec.Dir
	if out, err := create.CombinedOutput(); err != nil {
		return fmt.Errorf("idproxy source create: %w: %s", err, out)
	}
	return nil
}

func (w *world) stop() (err error) {
	for _, p := range w.proxies {
		err = errors.Join(err, p.Stop(20*time.Second))
	}
	if w.etcd != nil {
		err = errors.Join(err, w.etcd.Stop())
	}
	if w.redis != nil {
		err = errors.Join(err, w.redis.Stop())
	}
	return err
}

// over returns an idproxy as what it is over a protocol, "redis" or "http".
func (w *world) over(ctx context.Context, proxy int, protocol, name string, pids ...int) (s server, err error) {
	p := w.proxies[proxy]
	listening := regexp.MustCompile(`msg="ids over ` + protocol + `" listen=(\S+)`)
	err = p.Poll(ctx, func() bool { return listening.MatchString(p.Log()) })
	if err != nil {
		return s, err
	}
	return server{name, listening.FindStringSubmatch(p.Log())[1], append(pids, p.PID())}, nil
}

// leader waits until one of the proxies leads, and returns its place.
func (w *world) leader(ctx context.Context) (lead int, err error) {
	err = w.proxies[1].Poll(ctx, func() bool {
		lead = slices.IndexFunc(w.proxies, func(p *harness.Proxy) bool {
			log := p.Log()
			return strings.LastIndex(log, `msg="this process leads"`) > strings.LastIndex(log, `msg="another process leads"`)
		})
		return lead >= 0
	})
	return lead, err
}

// overNetwork compares what ids cost that programs ask for, beside INCR of a Redis.
func overNetwork(ctx context.Context, out io.Writer, p Plan) (err error) {
	dir, err := os.MkdirTemp("", fmt.Sprintf("idproxy-%d-", os.Getpid()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := startWorld(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	all, err := w.askings(ctx)
	if err != nil {
		return err
	}
	for round := range p.Rounds {
		for i := range all {
			a := all[(i+round)%len(all)]
			if err := a.measure(ctx, p.Each); err != nil {
				return fmt.Errorf("%s, %s: %w", a.server.name, a.name, err)
			}
		}
	}
	fmt.Fprint(out, "\n### Ids for programs, beside a Redis\n\n| server | request | connections | ahead | ids/s | CPU µs/request | to Redis | p50 | p99 |\n|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
	for _, a := range all {
		a.write(out)
	}
	return nil
}

// askings are the ways to ask. Those of one request over one number of connections are compared with
// that of the Redis, which comes first.
func (w *world) askings(ctx context.Context) (all []*asking, err error) {
	lead, err := w.leader(ctx)
	if err != nil {
		return nil, err
	}
	follower := 3 - lead // of 1 and 2
	overRedis, err1 := w.over(ctx, 0, "redis", "idproxy")
	overHTTP, err2 := w.over(ctx, 0, "http", "idproxy")
	leads, err3 := w.over(ctx, lead, "redis", "idproxy, one order: the leader")
	passes, err4 := w.over(ctx, follower, "redis", "idproxy, one order: another one, and the leader", w.proxies[lead].PID())
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	for _, many := range []struct{ connections, ahead int }{{1, 1}, {64, 1}, {8, 100}} {
		first := len(all)
		for _, s := range []server{{"Redis", w.redis.Addr, []int{w.redis.PID()}}, overRedis, leads, passes} {
			all = append(all, &asking{server: s, question: incr, connections: many.connections, ahead: many.ahead})
			all[len(all)-1].redis = all[first]
		}
		http := &asking{server: overHTTP, question: single, connections: many.connections, ahead: min(many.ahead, 16)}
		if http.ahead == many.ahead {
			http.redis = all[first]
		}
		all = append(all, http)
	}
	for _, q := range []question{batchOf(1), batchOf(100), batchOf(1_000_000)} {
		all = append(all, &asking{server: overHTTP, question: q, connections: 64, ahead: 1})
	}
	return append(all, &asking{server: overRedis, question: incrBy, connections: 64, ahead: 1}), nil
}

// measure asks for a while, after a tenth of it that does not count.
func (a *asking) measure(ctx context.Context, length time.Duration) error {
	if _, err := a.ask(ctx, length/10); err != nil {
		return err
	}
	before, err := a.server.cpu()
	if err != nil {
		return err
	}
	took, err := a.ask(ctx, length)
	if err != nil {
		return err
	}
	after, err := a.server.cpu()
	requests := float64(took.times.count * uint64(a.ahead))
	a.times.join(&took.times)
	a.perSecond = append(a.perSecond, requests*float64(a.ids)/took.time.Seconds())
	a.cpu = append(a.cpu, float64((after-before).Nanoseconds())/1000/requests)
	return err
}

// cpu is the processor time that the server has taken.
func (s server) cpu() (sum time.Duration, err error) {
	for _, pid := range s.pids {
		one, err := process.CPU(pid)
		if err != nil {
			return sum, err
		}
		sum += one
	}
	return sum, nil
}

// write writes a line of the table: medians over the rounds.
func (a *asking) write(out io.Writer) {
	toRedis := ""
	if a.redis != nil {
		var ratio []float64
		for i, cpu := range a.cpu {
			ratio = append(ratio, cpu/a.redis.cpu[i])
		}
		toRedis = fmt.Sprintf("%.2f", median(ratio))
	}
	fmt.Fprintf(out, "| %s | %s | %d | %d | %.0f | %.1f | %s | %v | %v |\n", a.server.name, a.name, a.connections, a.ahead,
		median(a.perSecond), median(a.cpu), toRedis, a.times.quantile(0.5), a.times.quantile(0.99))
}

func median(of []float64) float64 { return slices.Sorted(slices.Values(of))[len(of)/2] }
