package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"idproxy/integration/harness"
)

// The last worker number is workers-1. Each idproxy holds one and keeps a spare one.
const workers = 8

// addWorkers fills the pool of worker numbers. Where rows of an earlier pool are in the tables it
// is not said to be new: it rests until the ids that its forgotten holders may have made lie in the
// past.
func (d *demo) addWorkers(ctx context.Context, config string) error {
	path := filepath.Join(d.dir, "idproxy.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil { // serve gets the same
		return err
	}
	args := []string{"worker", "add", strconv.Itoa(workers), "--new-pool"}
	used, err := d.site.holdsRows(ctx, "events")
	if err != nil {
		return err
	}
	if used {
		args = args[:3]
		d.say("events has rows of an earlier run: the new pool of worker numbers rests for some 15 s")
	}
	return d.command(ctx, append(args, "--config", path)...)
}

// command runs a command of idproxy as a person would.
func (d *demo) command(ctx context.Context, args ...string) error {
	variable := d.password()
	if !d.site.private() {
		variable = passwordVariable + "=..."
	}
	fmt.Fprintf(d.out, "\n$ %s %s %s\n", variable, d.program, strings.Join(args, " "))
	cmd := d.idproxy(ctx, args...)
	cmd.Stdout, cmd.Stderr = d.out, d.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", d.program, args[0], err)
	}
	return nil
}

func (d *demo) idproxy(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.program, args...)
	cmd.Env = append(os.Environ(), d.password())
	return cmd
}

// showWorkers starts a second idproxy in front of the first shard, which gets another worker
// number, kills it and starts it again, which gets the same one.
func (d *demo) showWorkers(ctx context.Context, client string) error {
	d.say("worker numbers of events come from Redis on %s: a second idproxy gets another one", d.site.redis.Addr)
	listen, err := listenAddr(3317)
	if err != nil {
		return err
	}
	if err := d.startSecond(ctx, listen); err != nil {
		return err
	}
	first := d.site.shards[0]
	beside := &shard{name: first.name, listen: d.second.Addrs()[0]}
	d.say("it listens on %s for %s", beside.listen, first.name)
	before, err := d.insertEvent(ctx, client, beside, "hal logged in")
	if err != nil {
		return err
	}
	if err := d.command(ctx, "worker", "list", "--config", d.proxy.ConfigPath); err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	d.say("kill -9 of the second idproxy, and a new start: it takes up its number again")
	if err := d.second.Kill(); err != nil {
		return err
	}
	if err := d.startSecond(ctx, beside.listen); err != nil {
		return err
	}
	after, err := d.insertEvent(ctx, client, beside, "hal paid")
	if err != nil {
		return err
	}
	other, err := d.workerOf(ctx, "ada logged in")
	if err != nil {
		return err
	}
	fmt.Fprintln(d.out)
	d.say("ids of the first idproxy have worker number %d, of the second %d, and %d after its restart", other, before, after)
	if before == other || after != before {
		return errors.New("worker numbers are not as they should be")
	}
	return d.showTable(ctx, "events", "what")
}

// startSecond starts the second idproxy, in its folder and on an address, and waits until it has a
// worker number.
func (d *demo) startSecond(ctx context.Context, listen string) (err error) {
	dir := filepath.Join(d.dir, "second")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	d.second, err = d.launch(ctx, dir, d.site.secondConfig(listen))
	return err
}

// launch starts an idproxy that has a worker number when launch returns.
func (d *demo) launch(ctx context.Context, dir, config string) (*harness.Proxy, error) {
	// What an earlier start wrote would be taken for what this one does.
	if err := os.RemoveAll(filepath.Join(dir, "idproxy.log")); err != nil {
		return nil, err
	}
	p, err := harness.Launch(ctx, d.program, harness.Spec{Config: config, Dir: dir, Env: []string{d.password()}})
	if err != nil {
		return nil, err
	}
	err = p.Poll(ctx, func() bool {
		log := p.Log()
		return strings.Contains(log, "id source holds its worker number") || strings.Contains(log, "worker number taken up again")
	})
	if err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// insertEvent inserts a row and returns the worker number in its id.
func (d *demo) insertEvent(ctx context.Context, client string, sh *shard, what string) (worker int, err error) {
	if err := d.insert(ctx, client, sh, fmt.Sprintf("INSERT INTO events (what) VALUES ('%s')", what)); err != nil {
		return 0, err
	}
	return d.workerOf(ctx, what)
}

// workerOf returns the worker number in the id of the newest such event on the first shard.
func (d *demo) workerOf(ctx context.Context, what string) (int, error) {
	rows, err := d.site.rows(ctx, d.site.shards[0], "events", "what")
	if err != nil {
		return 0, err
	}
	for _, r := range slices.Backward(rows) { // they ascend
		if r.text == what {
			return d.worker(ctx, r.id)
		}
	}
	return 0, fmt.Errorf("%s has no event %q", d.site.shards[0].name, what)
}

// worker takes an id apart.
func (d *demo) worker(ctx context.Context, id int64) (int, error) {
	out, err := d.idproxy(ctx, "decode", "event_id", strconv.FormatInt(id, 10), "--json", "--config", d.proxy.ConfigPath).Output()
	if err != nil {
		return 0, fmt.Errorf("decode %d: %w", id, err)
	}
	var parts struct{ Worker int }
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&parts); err != nil {
		return 0, fmt.Errorf("decode %d: %q: %w", id, out, err)
	}
	return parts.Worker, nil
}
