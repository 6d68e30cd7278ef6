package observability

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// terminal is what a program has written to a terminal: it follows the cursor and keeps the text.
type terminal struct {
	mu   sync.Mutex
	rows [][]rune
	x, y int
	rest string // the beginning of an escape sequence, or of a character
}

func newTerminal(width, height int) *terminal {
	s := &terminal{}
	s.resize(width, height)
	return s
}

func (s *terminal) resize(width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = make([][]rune, height)
	for y := range s.rows {
		s.rows[y] = []rune(strings.Repeat(" ", width))
	}
}

// sequence matches an escape sequence: of a cursor or colour, of a title, or of a character set.
var sequence = regexp.MustCompile(`^\x1b(?:\[([?>0-9;]*)([@-~])|\][^\a\x1b]*(?:\a|\x1b\\)|[()].|[=>78M])`)

// Write implements io.Writer.
func (s *terminal) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.rest + string(b)
	for text != "" {
		if m := sequence.FindStringSubmatch(text); m != nil {
			s.obey(m[2], m[1])
			text = text[len(m[0]):]
			continue
		}
		if text[0] == '\x1b' || !utf8.FullRuneInString(text) {
			break
		}
		r, n := utf8.DecodeRuneInString(text)
		text = text[n:]
		switch {
		case r == '\r':
			s.x = 0
		case r == '\n':
			s.y++
		case r >= ' ':
			if s.y < len(s.rows) && s.x < len(s.rows[s.y]) {
				s.rows[s.y][s.x] = r
			}
			s.x++
		}
	}
	s.rest = text
	return len(b), nil
}

func (s *terminal) obey(command, parameters string) {
	switch command {
	case "H":
		row, column, _ := strings.Cut(parameters, ";")
		s.y, _ = strconv.Atoi(row)
		s.x, _ = strconv.Atoi(column)
		s.y, s.x = max(s.y-1, 0), max(s.x-1, 0)
	case "J":
		for _, row := range s.rows {
			copy(row, []rune(strings.Repeat(" ", len(row))))
		}
	}
}

// String returns what is seen.
func (s *terminal) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, row := range s.rows {
		lines = append(lines, strings.TrimRight(string(row), " "))
	}
	return strings.Join(lines, "\n")
}

// until waits for the screen to show what all the expressions match.
func (s *terminal) until(t *testing.T, wanted ...string) {
	t.Helper()
	assert.Until(t, fmt.Sprintf("it shows %q", wanted), func() bool {
		seen := s.String()
		return !slices.ContainsFunc(wanted, func(w string) bool { return !regexp.MustCompile("(?m)" + w).MatchString(seen) })
	}, s.String)
}

// TestTop watches a running idproxy in a terminal of 80 by 24 while rows go in, closes a session,
// and sees the process go and another one come.
func TestTop(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	dir := t.TempDir()
	spec := harness.Spec{Dir: dir, MayFail: true, Config: harness.OneListener(server.Addr) + fmt.Sprintf(
		"admin: {socket: \"unix:admin.sock\"}\nsources: {ids: {segment: {}}}\nrules: [{table: %s.t, column: id, source: ids, explicit: reject}]\n", db)}
	p := harness.Start(t, spec)
	pool := harness.Open(t, server.Config(db), p.Addr("a"))
	harness.MustExec(t, pool, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")

	program := assert.Of(harness.Build()).Must(t)
	out, err := exec.CommandContext(t.Context(), program, "top", "--admin", "unix:"+filepath.Join(dir, "admin.sock")).CombinedOutput()
	assert.True(t, err != nil && strings.Contains(string(out), "top needs a terminal"), "without a terminal: %v: %s", err, out)
	screen, tty, end := runTop(t, program, "", "--admin", "unix:"+filepath.Join(dir, "admin.sock"))
	press := func(keys string) {
		t.Helper()
		assert.Of(tty.WriteString(keys)).Must(t)
	}
	screen.until(t, "LISTENER +SESS +STMT/S", "^a +1 .* ready$", "q quit")
	picture := func(name string) {
		if to := os.Getenv("IDPROXY_PICTURES"); to != "" {
			assert.Must(t, os.WriteFile(filepath.Join(to, name+".txt"), []byte(screen.String()+"\n"), 0o600))
		}
	}

	loading, stop := context.WithCancel(t.Context())
	var rows sync.WaitGroup
	defer rows.Wait()
	defer stop()
	rows.Go(func() {
		for loading.Err() == nil {
			_, _ = pool.ExecContext(loading, "INSERT INTO t (a) VALUES (1),(2),(3)") // it fails when its session is closed, and goes on
		}
	})
	const some = `[1-9][0-9.]*k?`
	screen.until(t, "^a +1 +"+some+" +"+some+" +0 +0 ", "ids/s "+some, "filled/s "+some)
	picture("listeners")
	press("2")
	screen.until(t, "^ids +segment +"+some)
	picture("sources")
	press("3")
	screen.until(t, "^"+db+`\.t\.id +ids +enforce +`+some)
	_, err = pool.ExecContext(t.Context(), "INSERT INTO t VALUES (4711,2)")
	harness.WantError(t, err, 1235, "reject")
	screen.until(t, "1 explicit_id$")
	press("5")
	const refused = "1 +(0|-|[0-9.]+) +explicit_id .* app "
	screen.until(t, refused)
	press("\r")
	screen.until(t, "STATEMENT +INSERT INTO t VALUES", "ERROR +1235")
	assert.True(t, !strings.Contains(screen.String(), "4711"), "a value is shown:\n%s", screen)
	press("\x1b")
	screen.until(t, refused) // an escape is one when nothing follows it
	press("6")
	screen.until(t, "INFO +listening")

	press("4")
	screen.until(t, "USER +CLIENT +STATE", "app +127.0.0.1:[0-9]+ +(busy|deciding|idle) +"+some)
	picture("sessions")
	press("k")
	screen.until(t, "Close session [0-9]+ of app")
	press("y")
	screen.until(t, "session [0-9]+ of app from 127.0.0.1:[0-9]+ is closed")
	assert.NoError(t, p.Poll(t.Context(), func() bool { return strings.Contains(p.Log(), "closed by an operator") }), "the log does not say who closed the session")

	screen.resize(120, 40)
	assert.Must(t, pty.Setsize(tty, &pty.Winsize{Rows: 40, Cols: 120}))
	press("1")
	screen.until(t, "LISTENER", `\A(.*\n){39}.*q quit`) // in the last line
	stop()
	rows.Wait()
	assert.Must(t, p.Kill())
	screen.until(t, "NO ANSWER, figures are of", "^a ")
	harness.Start(t, spec)
	screen.until(t, "ready at", "^a +0 .* ready$", "up [0-9]+s")
	press("q")
	end()
}

// runTop runs idproxy top in a terminal of 80 by 24, with one more variable in its environment. end
// waits for it to end.
func runTop(t *testing.T, program, env string, args ...string) (screen *terminal, tty *os.File, end func()) {
	t.Helper()
	top := exec.CommandContext(t.Context(), program, append([]string{"top", "--interval", "200ms"}, args...)...)
	top.Env = append(os.Environ(), "TERM=xterm-256color", env, "IDPROXY_ADMIN_TOKEN=s3cret")
	tty = assert.Of(pty.StartWithSize(top, &pty.Winsize{Rows: 24, Cols: 80})).Must(t)
	t.Cleanup(func() { tty.Close() })
	screen = newTerminal(80, 24)
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 64<<10)
		for {
			n, err := tty.Read(buffer)
			_, _ = screen.Write(buffer[:n]) // it takes all
			if err != nil {                 // EIO, when the program has ended
				return
			}
		}
	}()
	return screen, tty, func() {
		t.Helper()
		assert.NoError(t, top.Wait(), "it ends with")
		<-read
	}
}

// TestAdminOverTLS asks an admin listener with TLS and a token, as another host does. A certificate
// that is not trusted is refused.
func TestAdminOverTLS(t *testing.T) {
	server := harness.MariaDB(t)
	dir := t.TempDir()
	harness.WriteCertificate(t, dir, 90*24*time.Hour)
	p := harness.Start(t, harness.Spec{Dir: dir, Config: harness.OneListener(server.Addr) +
		"admin: {listen: 127.0.0.1:0, token: s3cret, tls: {cert: server.pem, key: server.key}}\n"})
	address := "https://" + regexp.MustCompile(`msg=admin listen=(\S+)`).FindStringSubmatch(p.Log())[1]
	program := assert.Of(harness.Build()).Must(t)
	trusted := "SSL_CERT_FILE=" + filepath.Join(dir, "server.pem")
	for _, tt := range []struct{ env, token, address, want string }{
		{trusted, "s3cret", address, "LISTENER"},
		{trusted, "s3cret", address + "/", "LISTENER"},
		{trusted, "guessed", address, "the token is missing or wrong"},
		{"", "s3cret", address, "certificate signed by unknown authority"},
		{trusted, "s3cret", strings.Replace(address, "127.0.0.1", "localhost", 1), "not valid for any names, but wanted to match localhost"},
		{trusted, "s3cret", "https://127.0.0.1", "an address is host:port, https://host:port or unix:/path"},
		{trusted, "s3cret", "ftp://127.0.0.1:1", "an address is host:port, https://host:port or unix:/path"},
	} {
		status := exec.CommandContext(t.Context(), program, "status", "--admin", tt.address)
		status.Env = append(os.Environ(), tt.env, "IDPROXY_ADMIN_TOKEN="+tt.token)
		out, err := status.CombinedOutput()
		assert.True(t, (err == nil) == (tt.want == "LISTENER") && regexp.MustCompile(tt.want).Match(out), "%+v: %v\n%s", tt, err, out)
	}
	screen, tty, end := runTop(t, program, trusted, "--admin", address)
	screen.until(t, "LISTENER +SESS +STMT/S", "^a +0 .* ready$", "ready at")
	assert.Of(tty.WriteString("q")).Must(t)
	end()
}
