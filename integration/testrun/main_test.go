package main

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
)

func TestSummarize(t *testing.T) {
	const good = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"output","Package":"p","Test":"TestA/on_MySQL","Output":"    a_test.go:12: compared: 3 steps, 40 facets, seed 7\n"}
{"Action":"pass","Package":"p","Test":"TestA/on_MySQL/sub"}
{"Action":"pass","Package":"p","Test":"TestA/on_MySQL"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"measured:     1.5s     2.5s\n"}
{"Action":"pass","Package":"p","Elapsed":9}
`
	tests := []struct {
		name, in string
		want     string // in what is printed
		wantOK   bool
	}{
		{"all pass", good, "\n1 passed, 0 failed, 0 skipped\n", true},
		{"what was compared", good, "1 tests     1.5s     2.5s  1 cases, 1 on MySQL, 40 facets, 3 steps, seed 7\n", true},
		{"what two packages compared", good + strings.ReplaceAll(good, `"p"`, `"q"`), "\ncompared: 2 cases, 2 on MySQL, 80 facets, 6 steps, seed 7\n", true},
		{"slow tests", good + `{"Action":"pass","Package":"p","Test":"TestS","Elapsed":7}
{"Action":"pass","Package":"p","Test":"TestT","Elapsed":80}
`, "  80.0s p TestT\n   7.0s p TestS\ncompared: 3 cases, 1 on MySQL, 40 facets, 3 steps, seed 7\n3 passed, 0 failed, 0 skipped\n", true},
		{"nothing ran", `{"Action":"pass","Package":"p"}` + "\n", "0 passed, 0 failed, 0 skipped\n", false},
		{
			"a test fails", good + `{"Action":"output","Package":"q","Test":"TestB","Output":"got 1\n"}
{"Action":"fail","Package":"q","Test":"TestB"}
{"Action":"fail","Package":"q"}
`, "1 packages failed\n1 passed, 1 failed, 0 skipped\n", false,
		},
		{"its output is shown", `{"Action":"output","Package":"q","Test":"TestB","Output":"got 1\n"}
{"Action":"fail","Package":"q","Test":"TestB"}
`, "got 1\n", false},
		{"its first words are shown last", `{"Action":"output","Package":"q","Test":"TestB","Output":"=== RUN TestB\n"}
{"Action":"output","Package":"q","Test":"TestB","Output":"got 1\n"}
{"Action":"output","Package":"q","Test":"TestB","Output":"proxy.go:1: log of idproxy:\nlong\n"}
{"Action":"fail","Package":"q","Test":"TestB"}
{"Action":"fail","Package":"q"}
`, "compared: 1 cases\nfailed: q TestB\n  got 1\n", false},
		{"a package does not build", good + `{"Action":"build-output","ImportPath":"q","Output":"undefined: x\n"}
{"Action":"build-fail","ImportPath":"q"}
{"Action":"fail","Package":"q","FailedBuild":"q"}
`, "undefined: x\n", false},
		{
			"parts are left out", good + `{"Action":"output","Package":"p","Test":"TestC/x","Output":"    c_test.go:3: skipped: slow; runs in: make test-matrix\n"}
{"Action":"skip","Package":"p","Test":"TestC/x"}
{"Action":"pass","Package":"p","Test":"TestC"}
{"Action":"skip","Package":"p","Test":"TestD"}
`, "1 skipped: no reason: : p TestD\n1 skipped: slow; runs in: make test-matrix: p TestC/x\n2 passed, 0 failed, 2 skipped\n", true,
		},
	}
	for _, tt := range tests {
		var out strings.Builder
		ok, err := summarize(strings.NewReader(tt.in), &out)
		assert.True(t, ok == tt.wantOK && err == nil && strings.Contains(out.String(), tt.want), "%s: summarize = %t, %v and\n%s\nwant %t and %q", tt.name, ok, err, &out, tt.wantOK, tt.want)
		assert.True(t, !tt.wantOK || !strings.Contains(out.String(), "quiet"), "%s: output of a passing test is shown:\n%s", tt.name, &out)
	}
	assert.Of(summarize(strings.NewReader("FAIL\n"), &strings.Builder{})).Fails(t, "a line that is no JSON gives no error", "")
}

// TestSlots: as many programs as there are slots have one, and the others have the next ones in the order in which they came.
func TestSlots(t *testing.T) {
	assert.Equal(t, "a function that is not inlined", startsServers, "idproxy/integration/process.Start")
	dir := t.TempDir()
	listener := assert.Of(giveSlots(dir)).Must(t)
	defer listener.Close()
	var taken []net.Conn
	for range slots {
		taken = append(taken, assert.Of(takeSlot(dir)).Must(t))
	}
	var waiting []net.Conn
	for range 3 {
		waiting = append(waiting, assert.Of(net.Dial("unix", slotsPath(dir))).Must(t))
	}
	for i, conn := range waiting {
		assert.Must(t, taken[i].Close())
		assert.Of(io.ReadFull(conn, make([]byte, 1))).Must(t)
		for _, later := range waiting[i+1:] {
			assert.Must(t, later.SetReadDeadline(time.Now().Add(time.Millisecond)))
			assert.Of(later.Read(make([]byte, 1))).Fails(t, "one more slot", "timeout")
			assert.Must(t, later.SetReadDeadline(time.Time{}))
		}
	}
}
