package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // for the connection that makes and empties tables

	"idproxy/integration/bench/idsources"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	plan    plan
	ids     idsources.Plan
	onlyIDs bool
	noIdle  bool
	profile bool
	scraped bool
	beside  string
}

func parse(args []string) (o options, err error) {
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	rounds := set.Int("rounds", 15, "`number` of interleaved rounds; 0: only idle sessions")
	seconds := set.Float64("seconds", 0.15, "`length` of one measurement of one way")
	quick := set.Bool("quick", false, "two rounds of 0.1 seconds at 8 connections, without idle sessions")
	only := set.String("only", "", "measure statements whose name contains `text`, and nothing else")
	connections := set.String("connections", "1,8,32", "`numbers` of connections")
	set.BoolVar(&o.onlyIDs, "ids", false, "measure the id sources, which needs no server, and nothing else")
	set.BoolVar(&o.noIdle, "no-idle", false, "leave idle sessions out")
	set.BoolVar(&o.profile, "profile", false, "profile idproxy and the relay by perf, and measure nothing else")
	set.BoolVar(&o.scraped, "scraped", false, "measure idproxy once more, with an admin listener whose metrics are asked for each second")
	set.StringVar(&o.beside, "beside", "", "measure another build of idproxy, too: the path of its `program`")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if *quick {
		*rounds, *seconds, *connections, o.noIdle = 2, 0.1, "8", true
	}
	if *rounds < 0 || *seconds <= 0 || set.NArg() > 0 {
		return o, errors.New("-rounds must not be below 0, -seconds must be above, and there are no other arguments")
	}
	o.plan.connections, err = numbers(*connections)
	if err != nil {
		return o, err
	}
	each := time.Duration(*seconds * float64(time.Second))
	o.plan.rounds, o.plan.each, o.plan.only = *rounds, each, *only
	o.ids = idsources.Plan{Rounds: *rounds, Each: each / 4, AtCap: 10 * each, Switch: 5 * each * time.Duration(*rounds)}
	return o, nil
}

// numbers reads positive numbers with commas between them.
func numbers(list string) (all []int, err error) {
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-connections=%s: want numbers above 0, with commas between them", list)
		}
		all = append(all, n)
	}
	return all, nil
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, harness.RemoveBuilds()) }()
	if o.onlyIDs && o.plan.rounds > 0 {
		describeMachine(out, "none")
		return idsources.Run(ctx, out, o.ids)
	}
	if err := raiseFileLimit(4 * idleSessions); err != nil {
		return err
	}
	server, err := servers.StartMariaDB(ctx, servers.Options{
		NoTLS: true,
		Args: []string{
			"--max-connections=6000", "--innodb-flush-log-at-trx-commit=0", "--performance-schema=OFF",
			"--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G", "--thread-cache-size=64", "--table-open-cache=8000",
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return withServer(ctx, server, o, out)
}

// withServer runs what was asked for against a server that is up.
func withServer(ctx context.Context, server *servers.Server, o options, out io.Writer) (err error) {
	db, err := sql.Open("mysql", server.DSN(""))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if err := createTables(ctx, db); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("idproxy-%d-", os.Getpid()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	variants, err := variants(o.scraped, o.beside)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	targets, err := startTargets(ctx, dir, server.Addr, variants)
	defer func() {
		cancel() // who scrapes stops first
		err = errors.Join(err, stopTargets(targets))
	}()
	if err != nil {
		return err
	}
	sysbench, err := newSysbench(dir)
	if err != nil {
		return err
	}
	b := &bench{db: db, targets: targets, sysbench: sysbench}
	if o.profile {
		return b.profile(ctx, out, profiler{dir: dir, only: o.plan.only})
	}
	describeMachine(out, version(ctx, db))
	if o.plan.rounds > 0 {
		cells := b.cells(o.plan)
		if err := b.measure(ctx, cells, o.plan); err != nil {
			return err
		}
		report(out, cells, targets)
		if o.plan.only == "" {
			if err := errors.Join(rewriting(out), idsources.Run(ctx, out, o.ids)); err != nil {
				return err
			}
		}
		fmt.Fprintf(out, "\nLoad average at the end: %s\n", loadAverage())
	}
	if o.noIdle || o.plan.only != "" {
		return nil
	}
	if err := b.idleCPU(ctx, out); err != nil {
		return err
	}
	return idle(ctx, out, server.Addr)
}

// version asks the server for its version.
func version(ctx context.Context, db *sql.DB) (text string) {
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&text); err != nil {
		return err.Error() // only a remark
	}
	return text
}

// describeMachine writes what the figures depend on.
func describeMachine(out io.Writer, server string) {
	fmt.Fprintf(out, "%s, %d processors, Linux %s, %s, MariaDB %s. Load average before: %s\n", cpuModel(), runtime.NumCPU(),
		firstLine("/proc/sys/kernel/osrelease"), runtime.Version(), server, loadAverage())
}

// firstLine returns the first line of a file, empty when it cannot be read.
func firstLine(path string) string {
	text, _ := os.ReadFile(path) // only a remark
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

func loadAverage() string {
	fields := strings.Fields(firstLine("/proc/loadavg"))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // only a remark
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
