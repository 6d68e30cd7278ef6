package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// stopGrace is how long idproxy may take to let its sessions go.
const stopGrace = 35 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) != 1 {
		return errors.New("usage: demo IDPROXY (see `make run`)")
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("idproxy-%d-", os.Getpid()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := &demo{program: args[0], dir: dir, out: out}
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.start(ctx); err != nil {
		return interrupted(ctx, err)
	}
	if err := d.show(ctx); err != nil {
		return interrupted(ctx, err)
	}
	return d.wait(ctx)
}

// interrupted turns what failed because of a Ctrl-C into no error at all.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// demo is everything that runs.
type demo struct {
	program string // the built idproxy
	dir     string // configuration, id store, log
	out     io.Writer
	site    site
	proxy   *harness.Proxy
	second  *harness.Proxy // in front of the first shard, for events
}

// start brings up the servers, their tables, the pool of worker numbers and idproxy.
func (d *demo) start(ctx context.Context) (err error) {
	if d.site, err = openSite(ctx, d.out); err != nil {
		return err
	}
	for _, s := range d.site.shards {
		if err := d.site.createTables(ctx, s); err != nil {
			return err
		}
	}
	// Without TLS the clients of MySQL and MariaDB of today want options that others do not know.
	if err := servers.WriteCertificates(d.dir); err != nil {
		return err
	}
	d.site.certificates = d.dir
	config, err := d.site.config()
	if err != nil {
		return err
	}
	if err := d.addWorkers(ctx, config); err != nil {
		return err
	}
	if d.proxy, err = d.launch(ctx, d.dir, config); err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	for i, addr := range d.proxy.Addrs() {
		d.site.shards[i].listen = addr
		d.say("idproxy listens on %s for %s", addr, d.site.shards[i].name)
	}
	return nil
}

// password is the variable that the configuration names.
func (d *demo) password() string { return passwordVariable + "=" + d.site.password }

// wait returns when ctx ends, or with an error when idproxy does.
func (d *demo) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		fmt.Fprintln(d.out)
		d.say("stopping")
		return nil
	case <-d.proxy.Done():
		return fmt.Errorf("idproxy ended; end of its log:\n%s", d.proxy.LogTail(20))
	case <-d.second.Done():
		return fmt.Errorf("the second idproxy ended; end of its log:\n%s", d.second.LogTail(20))
	}
}

// stop ends idproxy first, so that it can give back unused ids and its worker number, then the
// servers. What it made in servers that are not its own stays.
func (d *demo) stop() error {
	var err error
	for _, p := range []*harness.Proxy{d.second, d.proxy} {
		if p != nil {
			err = errors.Join(err, p.Stop(stopGrace))
		}
	}
	for _, sh := range d.site.shards {
		if sh.touched && sh.server == nil {
			d.say("database %s stays on %s; to remove it: DROP DATABASE %[1]s", d.site.schema, sh.upstream)
		}
	}
	return errors.Join(err, d.site.stop())
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, "demo: "+format+"\n", args...) }
