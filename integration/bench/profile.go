package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// profileConnections is the load under which profiles are taken.
const profileConnections = 8

// profile writes where idproxy, and the relay beside it, spend their time, workload by workload. It needs perf and the
// right to use it.
func (b *bench) profile(ctx context.Context, w io.Writer, dir string) error {
	if _, err := exec.LookPath("perf"); err != nil {
		return fmt.Errorf("profile: %w (Debian's package linux-perf)", err)
	}
	for _, work := range workloads {
		for _, t := range b.targets {
			if t.name != nameRelay && t.name != nameIDProxy {
				continue
			}
			text, err := b.profileOf(ctx, work, t, filepath.Join(dir, "perf.data"))
			if err != nil {
				return fmt.Errorf("profile of %s, %s: %w", t.name, work.name, err)
			}
			fmt.Fprintf(w, "\n### %s, %s, %d connections\n\n%s", t.name, work.name, profileConnections, text)
		}
	}
	return nil
}

// profileOf samples a target's processor clock under load; the kernel's part is left in, as it is most of a relay.
func (b *bench) profileOf(ctx context.Context, work workload, t *target, file string) (text []byte, err error) {
	const each = 4 * time.Second
	record := exec.CommandContext(ctx, "perf", "record", "-q", "-e", "cpu-clock", "-F", "2000", "-p", strconv.Itoa(t.proc.PID()),
		"-o", file, "--", "sleep", fmt.Sprint(each.Seconds()))
	record.Stderr = os.Stderr
	if err := record.Start(); err != nil {
		return nil, err
	}
	c := &cell{workload: work, connections: profileConnections}
	_, err = b.sample(ctx, c, t, each)
	if werr := record.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, "perf", "report", "-i", file, "--stdio", "-g", "none", "--sort", "symbol",
		"--percent-limit", "0.6").Output()
}
