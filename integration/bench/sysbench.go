package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"idproxy/integration/process"
	"idproxy/integration/servers"
)

// sysbench is a client that is libmariadb, which turns multi-statements on. Debian's package has
// this name.
type sysbench struct {
	program string
	dir     string // of its script, and of the texts that it sends
}

//go:embed sysbench.lua
var sysbenchScript []byte

// newSysbench returns nil when sysbench is not installed.
func newSysbench(dir string) (*sysbench, error) {
	program, err := exec.LookPath("sysbench")
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: sysbench is not installed and is left out")
		return nil, nil
	}
	s := &sysbench{program, dir}
	return s, os.WriteFile(s.script(), sysbenchScript, 0o600)
}

func (s *sysbench) script() string { return filepath.Join(s.dir, "sysbench.lua") }

// sysbenchStatement is a statement that sysbench sends. INSERTs go to BLACKHOLE tables, so that the
// server takes little.
type sysbenchStatement struct {
	name     string
	query    func(table string, client int) string
	prepared bool
	fillable bool
	pace     int // how many of them are sent in place of a second's load
}

var sysbenchStatements = []sysbenchStatement{
	{name: "INSERT of one row", query: insertOf(1, rowKinds[0].note), fillable: true, pace: 10_000},
	{name: "INSERT of one row, prepared", query: preparedInsert, prepared: true, fillable: true, pace: 10_000},
	{name: "INSERT of 100 rows, 25 kB", query: insertOf(100, rowKinds[0].note), fillable: true, pace: 2_000},
	{name: "SELECT of one row by its key", query: pointSelect, pace: 10_000},
}

// run has sysbench send as many statements as stand for d. A login, the first statements, and the
// end are not counted.
func (s *sysbench) run(ctx context.Context, st sysbenchStatement, w way, connections int, d time.Duration) (sample, error) {
	table := filledTable
	switch {
	case w.fills:
		table = ruledNothing
	case st.fillable:
		table = plainNothing
	}
	text := filepath.Join(s.dir, "statement.sql")
	if err := os.WriteFile(text, []byte(st.query(table, 1)), 0o600); err != nil {
		return sample{}, err
	}
	host, port, err := net.SplitHostPort(w.target.addr)
	if err != nil {
		return sample{}, err
	}
	clock := int32(0)
	if w.target.proc != nil {
		clock = process.Clock(w.target.proc.PID())
	}
	statements := max(connections, int(d.Seconds()*float64(st.pace)))
	cmd := exec.CommandContext(ctx, s.program, s.script(),
		"--db-driver=mysql", "--mysql-host="+host, "--mysql-port="+port,
		"--mysql-user="+servers.AppUser, "--mysql-password="+servers.AppPassword, "--mysql-db="+schema,
		"--threads="+strconv.Itoa(connections), "--events="+strconv.Itoa(statements), "--time=0", "--histogram=on",
		"--statement="+text, "--prepared="+strconv.FormatBool(st.prepared), "--note="+rowKinds[0].note, fmt.Sprintf("--clock=%d", clock),
		"run")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("%w\n%s", err, out)
	}
	return parseSysbench(string(out))
}

var (
	// histogramLine is how long some statements took, in milliseconds, and how many they were.
	histogramLine = regexp.MustCompile(`(?m)^ *([0-9.]+) \|\**\s+([0-9]+)$`)
	cpuLine       = regexp.MustCompile(`(?m)^processor time: ([0-9]+) ns$`)
)

// parseSysbench reads what sysbench and its script have written.
func parseSysbench(out string) (s sample, err error) {
	m := cpuLine.FindStringSubmatch(out)
	lines := histogramLine.FindAllStringSubmatch(out, -1)
	if m == nil || lines == nil {
		return s, errors.New("sysbench has not said how long statements took:\n" + strings.TrimSpace(out))
	}
	ns, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return s, err
	}
	s.cpu = time.Duration(ns)
	var lasted []time.Duration
	for _, line := range lines {
		ms, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			return s, err
		}
		n, err := strconv.Atoi(line[2])
		if err != nil {
			return s, err
		}
		for range n {
			lasted = append(lasted, time.Duration(ms*1e6))
		}
	}
	s.statements, s.p50, s.p99 = len(lasted), percentile(lasted, 50), percentile(lasted, 99)
	return s, nil
}
