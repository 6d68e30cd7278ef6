package main

import (
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/width"
	"idproxy/proxy/wire"
)

// TestRun does all of it once, too briefly for figures: every workload works on every way.
func TestRun(t *testing.T) {
	var out strings.Builder
	only := width.Of("INSERT of one row", "") // of all statements
	assert.Must(t, run(t.Context(), []string{"-rounds=1", "-seconds=0.005", "-connections=8", "-no-idle", "-only=" + only}, &out))
	assert.True(t, only != "" || strings.Contains(out.String(), "### An id of a source\n"), "the id sources are not measured")
	processor, latency, found := strings.Cut(out.String(), "### How long statements take at 8 connections\n")
	assert.MustTrue(t, found, "no table of how long statements take in:\n%s", &out)
	statements := map[string]bool{} // whether ids can be filled
	for _, w := range workloads {
		statements[w.name] = w.injected
	}
	if _, err := exec.LookPath("sysbench"); err == nil { // else run has said so
		for _, s := range sysbenchStatements {
			statements["sysbench: "+s.name] = s.fillable
		}
	}
	maps.DeleteFunc(statements, func(name string, _ bool) bool { return !strings.Contains(name, only) })
	line := regexp.MustCompile(`(?m)^\| (.*) \| 8 \|(.*)$`)
	for table, cell := range map[string]*regexp.Regexp{
		processor: regexp.MustCompile(`[0-9] us \|`),
		latency:   regexp.MustCompile(`[0-9] / [0-9]+(, [0-9.]+)? \|`),
	} {
		seen := map[string]int{}
		for _, m := range line.FindAllStringSubmatch(table, -1) {
			seen[m[1]] = len(cell.FindAllString(m[2], -1))
		}
		for name, fillable := range statements {
			want := 3 // the relay, and two engines that forward; HAProxy may be missing
			if fillable {
				want = 5
			}
			assert.True(t, seen[name] >= want, "%s: figures of %d ways, want %d at least:\n%s", name, seen[name], want, table)
		}
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-connections=1,64"})
	assert.True(t, err == nil && slices.Equal(o.plan.connections, []int{1, 64}) && !o.noIdle, "parse() = %+v, %v, want 1 and 64 connections, and idle sessions", o, err)
	o, err = parse([]string{"-quick"})
	assert.True(t, err == nil && slices.Equal(o.plan.connections, []int{8}) && o.noIdle && o.plan.rounds == 2, "parse(-quick) = %+v, %v, want two rounds at 8 connections", o, err)
	for _, bad := range []string{"-connections=", "-connections=8,0", "-connections=x", "-rounds=-1", "-seconds=0", "more"} {
		assert.Of(parse([]string{bad})).Fails(t, "parse("+bad+") goes well", "")
	}
}

// TestScan gives replies whole and byte by byte.
func TestScan(t *testing.T) {
	packet := func(seq byte, payload string) string { return string(wire.AppendPacket(nil, seq, []byte(payload))) }
	ok := packet(1, "\x00\x01\x00\x02\x00\x00\x00")
	column := packet(2, "\x03def\x00\x00\x00\x01a\x00\x0c\x3f\x00\x14\x00\x00\x00\x08\x00\x00\x00\x00\x00")
	eof := packet(4, "\xfe\x00\x00\x02\x00\x00\x00")
	failed := string(wire.AppendERR(nil, 1, &mysql.MyError{Code: 1064, State: "42000", Message: "bad"}))
	tests := []struct{ name, in, wantErr string }{
		{name: "OK", in: ok},
		{name: "error", in: failed, wantErr: "bad"},
		{name: "no rows", in: packet(1, "\x01") + column + eof},
		{name: "row that starts like an OK", in: packet(1, "\x01") + column + packet(3, "\x00") + packet(4, "\x01x") + eof},
		{name: "error behind rows", in: packet(1, "\x01") + column + packet(3, "\x01x") + failed, wantErr: "bad"},
	}
	for _, tt := range tests {
		for _, step := range []int{len(tt.in), 1} {
			c := &client{}
			var done bool
			var err error
			for i := 0; i < len(tt.in); i += step {
				assert.True(t, !done && err == nil, "%s, %d bytes at a time: done = %v, err = %v after %d of %d bytes", tt.name, step, done, err, i, len(tt.in))
				c.buf = append(c.buf, tt.in[i:i+step]...)
				c.w += step
				done, err = c.scan()
			}
			message := ""
			if err != nil {
				message = err.Error()
			}
			assert.True(t, done && message == tt.wantErr, "%s, %d bytes at a time: done = %v, err = %v, want true, %q", tt.name, step, done, err, tt.wantErr)
		}
	}
}

func TestRatio(t *testing.T) {
	round := func(microseconds int) sample {
		return sample{statements: 1000, cpu: time.Duration(microseconds) * time.Millisecond}
	}
	// The machine is twice as slow in the second round, for both.
	got := ratioOf([]sample{round(11), round(24), round(14)}, []sample{round(10), round(20), round(10)}, sample.cpuPerStatement)
	assert.Equal(t, "ratioOf()", got, (spread{1.2, 1.1, 1.4}))
	assert.Equal(t, "spreadOf()", spreadOf([]float64{9, 1, 2, 3, 4, 5, 6, 7}), (spread{4.5, 3, 6}))
}

func TestParseSysbench(t *testing.T) {
	const histogram = `processor time: 1500000 ns
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.043 |***                                      98
       0.044 |****************************************  1
      12.052 |                                         1
`
	got, err := parseSysbench(histogram)
	want := sample{statements: 100, p50: 43 * time.Microsecond, p99: 12052 * time.Microsecond, cpu: 1500 * time.Microsecond}
	assert.True(t, err == nil && got == want, "parseSysbench() = %+v, %v, want %+v", got, err, want)
	assert.Of(parseSysbench("FATAL: no\n")).Fails(t, "an output without figures was read", "")
}

func TestParseProfile(t *testing.T) {
	p := parseProfile(`
    70.00%     0.00%  [.] idproxy/proxy/eventloop.write
    55.00%     0.00%  [k] __x64_sys_sendto
    54.00%     1.00%  [k] __sys_sendto
    50.00%    59.00%  [k] tcp_sendmsg
    20.00%    20.00%  [.] runtime.findRunnable
     5.00%     5.00%  [.] internal/runtime/syscall/linux.Syscall6
     0.30%     0.00%  [.] net/http.(*conn).serve
    15.00%    15.00%  [.] idproxy/rewriter.(*scanner).skim
`)
	assert.True(t, p.kernel == 60 && p.runtime == 25 && p.program == 15 && p.calls[groupOf("sendto")] == 55 && p.scrapes == 0.3 && p.functions[0].name == "runtime.findRunnable", "parseProfile() = %+v", p)
}

func TestMedianAndPercentile(t *testing.T) {
	for _, tt := range []struct {
		in   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		assert.Equal(t, fmt.Sprintf("median(%v)", tt.in), median(tt.in), tt.want)
	}
	var sorted []time.Duration
	for i := range 200 {
		sorted = append(sorted, time.Duration(i))
	}
	for p, want := range map[int]time.Duration{0: 0, 50: 100, 99: 198, 100: 199} {
		assert.Equal(t, fmt.Sprintf("percentile(%d)", p), percentile(sorted, p), want)
	}
}

// Rewriting is measured without a server.
func TestRewriting(t *testing.T) {
	var out strings.Builder
	assert.Must(t, rewriting(&out))
	t.Log(out.String())
	assert.Equal(t, "lines without allocations", strings.Count(out.String(), "| 0 |\n"), 3)
}
