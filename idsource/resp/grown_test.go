package resp

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/idsource/access"
	"idproxy/integration/assert"
)

// named is a source of texts, which counts.
type named struct{ counter }

func (n *named) Fill(ctx context.Context, words []uint64, _ uint64) error {
	ids := make([]uint64, len(words)/2)
	err := n.counter.Fill(ctx, ids, 1)
	for i, id := range ids {
		words[2*i], words[2*i+1] = 7, id
	}
	return err
}

func (n *named) Text(id [2]uint64) string { return fmt.Sprintf("id-%d-%d", id[0], id[1]) }

// moved is a counter that can be set.
type moved struct{ counter }

func (m *moved) Advance(_ context.Context, id uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next = max(m.next, id+1)
	return m.err
}

// TestLists asks for ids of every kind as a list.
func TestLists(t *testing.T) {
	addr, _ := newServer(t, map[string]Source{
		"a": &counter{next: 1}, "gap": &counter{gap: true}, "u": &named{counter{next: 1}}, "big": &counter{next: 1<<63 - 1},
		"down": &named{counter{err: errors.New("no answer")}},
	})
	for _, tt := range []struct{ in, want string }{
		{"IDS.NEXT a\r\nids.next a 3\r\nGET a\r\n", "*1\r\n:1\r\n*3\r\n:2\r\n:3\r\n:4\r\n$1\r\n4\r\n"},
		{"IDS.NEXT gap 2\r\n", "*2\r\n:1\r\n:3\r\n"},
		{"IDS.NEXT u 2\r\nGET u\r\n", "*2\r\n$6\r\nid-7-1\r\n$6\r\nid-7-2\r\n$6\r\nid-7-2\r\n"},
		{"INCR u\r\nINCRBY u 2\r\n", strings.Repeat("-ERR the ids of key 'u' are no numbers: ask with IDS.NEXT key [n]\r\n", 2)},
		{"IDS.NEXT u 0\r\nIDS.NEXT u -1\r\nIDS.NEXT u 4097\r\n", strings.Repeat("-ERR value is not an integer from 1 to 4096\r\n", 3)},
		{"IDS.NEXT x\r\n", "-ERR there is no id source and no key 'x'\r\n"},
		{"IDS.NEXT down 4\r\n", "-ERR no answer\r\n"},
		{"IDS.NEXT big 2\r\n", "-ERR id 9223372036854775808 is above 2^63-1, the greatest number of the protocol\r\n"},
		{"MGET a x u down\r\n", "*4\r\n$1\r\n4\r\n$-1\r\n$6\r\nid-7-2\r\n$-1\r\n"},
		{"HELLO 3 SETNAME me\r\nMGET a x\r\nCLIENT GETNAME\r\n", "...*2\r\n$1\r\n4\r\n_\r\n$2\r\nme\r\n"},
		{"MGET\r\n", "-ERR wrong number of arguments for 'mget' command\r\n"},
	} {
		got := talk(t, addr, tt.in)
		if tail, ok := strings.CutPrefix(tt.want, "..."); ok && strings.HasSuffix(got, tail) {
			continue
		}
		assert.Equal(t, tt.in, got, tt.want)
	}
	got := talk(t, addr, "IDS.NEXT a 4096\r\n")
	assert.True(t, strings.HasPrefix(got, "*4096\r\n:5\r\n:6\r\n") && strings.HasSuffix(got, ":4100\r\n"), "4096 ids: %d bytes, %.40q", len(got), got)
}

// TestTalk answers what clients ask of the server and say of themselves.
func TestTalk(t *testing.T) {
	addr, _ := newServer(t, nil)
	for _, tt := range []struct{ in, want string }{
		{"COMMAND COUNT\r\n", ":18\r\n"},
		{"COMMAND INFO INCR nothing\r\n", "*2\r\n*10\r\n$4\r\nincr\r\n:2\r\n*2\r\n+write\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n*-1\r\n"},
		{"COMMAND INFO mget\r\n", "*1\r\n*10\r\n$4\r\nmget\r\n:-2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:-1\r\n:1\r\n*0\r\n*0\r\n*0\r\n*0\r\n"},
		{"COMMAND FLY\r\n", "-ERR unknown subcommand 'FLY'\r\n"},
		{"CLIENT SETNAME me\r\nCLIENT GETNAME\r\nRESET\r\nCLIENT GETNAME\r\n", "+OK\r\n$2\r\nme\r\n+RESET\r\n$-1\r\n"},
		{"*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$3\r\na b\r\nCLIENT GETNAME\r\n", "-ERR Client names cannot contain spaces, newlines or special characters, and have at most 256 bytes.\r\n$-1\r\n"},
		{"CLIENT SETNAME " + strings.Repeat("n", 257) + "\r\n", "-ERR Client names cannot contain spaces, newlines or special characters, and have at most 256 bytes.\r\n"},
		{"HELLO 3 SETNAME \x01\r\nCLIENT GETNAME\r\n", "-ERR Client names cannot contain spaces, newlines or special characters, and have at most 256 bytes.\r\n$-1\r\n"},
		{"CLIENT SETINFO LIB-NAME x\r\nCLIENT SETINFO x y\r\nCLIENT SETINFO\r\n", "+OK\r\n-ERR Unrecognized option 'x'\r\n-ERR unknown subcommand or wrong number of arguments for 'SETINFO'\r\n"},
		{"INFO nothing\r\n", "$0\r\n\r\n"},
		{"CONFIG GET save\r\n", "*0\r\n"},
	} {
		assert.Equal(t, tt.in, talk(t, addr, tt.in), tt.want)
	}
	for in, want := range map[string]string{
		"COMMAND DOCS nothing ids.next\r\n": "*2\r\n$8\r\nids.next\r\n*6\r\n$7\r\nsummary\r\n$42\r\nReturns a list of ids of any key: key [n].\r\n$5\r\nsince\r\n",
		"COMMAND LIST\r\n":                  "*18\r\n$4\r\nauth\r\n$6\r\nclient\r\n",
		"INFO clients\r\n":                  "$47\r\n# Clients\r\nconnected_clients:",
	} {
		got := talk(t, addr, in)
		assert.True(t, strings.HasPrefix(got, want), "%q: got %q, want %q", in, got, want)
	}
	got := talk(t, addr, "HELLO 3\r\nINFO server\r\nCONFIG GET x\r\n")
	assert.True(t, strings.Contains(got, "\r\n=") && strings.Contains(got, "txt:# Server\r\nredis_version:7.0.0\r\n") && strings.HasSuffix(got, "\r\n%0\r\n"), "RESP3: %q", got)
	first, second := talk(t, addr, "CLIENT ID\r\n"), talk(t, addr, "CLIENT ID\r\nCLIENT ID\r\n")
	a, b, _ := strings.Cut(second, "\r\n")
	assert.True(t, first != second && a+"\r\n" == b && first != a, "two connections have the numbers %q and %q", first, second)
}

// TestCreateAndSet lets those create and set who may.
func TestCreateAndSet(t *testing.T) {
	var mu sync.Mutex
	sources := map[string]Source{"app:old": &moved{counter{next: 10}}, "other": &moved{counter{next: 10}}, "fixed": &counter{next: 1}, "u": &named{}}
	var out logged
	addr, _ := serve(t, Config{
		Logger: slog.New(slog.NewTextHandler(&out, nil)),
		Users: access.NewUsers(
			access.User{Name: "maker", Secret: access.DigestOf("x"), Keys: []string{"app:*"}, Create: true, Set: true},
			access.User{Name: "all", Secret: access.DigestOf("x"), Set: true},
			access.User{Name: "reader", Secret: access.DigestOf("x"), Keys: []string{"app:?ld", "*"}},
		),
		Lookup: func(key string) (Source, bool) {
			mu.Lock()
			defer mu.Unlock()
			src, ok := sources[key]
			return src, ok
		},
		Create: func(_ context.Context, key string, start, step uint64) error {
			mu.Lock()
			defer mu.Unlock()
			if sources[key] != nil {
				return fmt.Errorf("there is a key %q already", key)
			}
			sources[key] = &counter{next: start + step}
			return nil
		},
	})
	const maker, all, reader, ok = "AUTH maker x\r\n", "AUTH all x\r\n", "AUTH reader x\r\n", "+OK\r\n"
	for _, tt := range []struct{ in, want string }{
		{reader + "IDS.CREATE app:new\r\nIDS.SET app:old 5\r\nGET app:old\r\n", "-NOPERM user 'reader' has no right to create keys\r\n-NOPERM user 'reader' has no right to set keys\r\n$-1\r\n"},
		{maker + "INCR app:new\r\nIDS.CREATE app:new 500\r\nINCR app:new\r\nIDS.CREATE app:new\r\n", "-ERR there is no id source and no key 'app:new'\r\n+OK\r\n:500\r\n-ERR there is a key \"app:new\" already\r\n"},
		{maker + "IDS.CREATE app:one\r\nINCR app:one\r\n", "+OK\r\n:1\r\n"},
		{maker + "IDS.CREATE app:stepped 500 20\r\nINCR app:stepped\r\n", "+OK\r\n:520\r\n"}, // the sum tells of both
		{maker + "IDS.CREATE app:x 1 0\r\nIDS.CREATE app:x 1 y\r\n", strings.Repeat("-ERR step is not an integer from 1 to 2^63-1\r\n", 2)},
		{maker + "IDS.CREATE other:new\r\nIDS.SET other 5\r\nMGET app:old other\r\n", "-NOPERM user 'maker' has no right to the key 'other:new'\r\n" +
			strings.Repeat("-NOPERM user 'maker' has no right to the key 'other'\r\n", 2)},
		{maker + "IDS.CREATE app:x 0\r\nIDS.CREATE app:x -4\r\nIDS.CREATE app:x 9223372036854775808\r\n", strings.Repeat("-ERR start is not an integer from 1 to 2^63-1\r\n", 3)},
		{maker + "IDS.CREATE app:" + strings.Repeat("x", maxKey) + "\r\n*2\r\n$10\r\nIDS.CREATE\r\n$7\r\napp:\x00é\r\n", strings.Repeat("-ERR a key is 1 to 64 letters, digits and signs of ASCII, without spaces\r\n", 2)},
		{all + "INCR other\r\nIDS.SET other 5\r\nINCR other\r\nIDS.SET other 100\r\nINCR other\r\n", ":10\r\n+OK\r\n:11\r\n+OK\r\n:100\r\n"},
		{all + "IDS.SET other 0\r\nIDS.SET other x\r\nIDS.SET nothing 4\r\n", strings.Repeat("-ERR value is not an integer from 1 to 2^63-1\r\n", 2) + "-ERR there is no id source and no key 'nothing'\r\n"},
		{all + "IDS.SET fixed 4\r\nIDS.SET u 4\r\n", "-ERR the ids of key 'fixed' are in no order that it could be moved along\r\n-ERR the ids of key 'u' are in no order that it could be moved along\r\n"},
	} {
		assert.Equal(t, tt.in, talk(t, addr, tt.in), ok+tt.want)
	}
	text := out.String()
	assert.True(t, strings.Count(text, `msg="key created"`) == 3 && strings.Contains(text, "key=app:new user.name=maker") && strings.Count(text, `msg="key set"`) == 2, "the log has\n%s", text)
	free, _ := newServer(t, map[string]Source{"a": &moved{}})
	got, want := talk(t, free, "IDS.CREATE b\r\nIDS.SET a 4\r\n"), "-ERR no key can be created here: the configuration names no store for it (create_in)\r\n-NOPERM user '' has no right to set keys\r\n"
	assert.True(t, got == want, "without users: %q, want %q", got, want)
}

// TestGuessesLog: of one address the log has one failed login in a minute, with how many there were.
func TestGuessesLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		login, out := logins(t)
		guess := func(host string) { assert.MustTrue(t, !login(host, "wrong"), "a wrong password is right") }
		for range 59 { // each waits for 200 ms at most
			guess("10.0.0.1")
			time.Sleep(700 * time.Millisecond)
		}
		guess("10.0.0.2")
		got := strings.Count(out.String(), "\n")
		assert.True(t, got == 2, "%d lines of two addresses within a minute:\n%s", got, out.String())
		time.Sleep(time.Minute)
		guess("10.0.0.1")
		text := out.String()
		assert.True(t, strings.Count(text, "\n") == 3 && strings.Contains(text, "others=58"), "later:\n%s", text)
	})
}

// certificate makes a certificate of 127.0.0.1, and its PEM files in a folder.
func certificate(t *testing.T) (server *tls.Config, dir string) {
	t.Helper()
	key := assert.Of(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Must(t)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{{127, 0, 0, 1}}, IsCA: true, BasicConstraintsValid: true,
	}
	der := assert.Of(x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)).Must(t)
	dir = t.TempDir()
	assert.Must(t, os.WriteFile(filepath.Join(dir, "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, dir
}

// trusting is how a client speaks TLS that trusts what a folder has.
func trusting(t *testing.T, dir string) *tls.Config {
	t.Helper()
	ca := assert.Of(os.ReadFile(filepath.Join(dir, "ca.pem"))).Must(t)
	roots := x509.NewCertPool()
	assert.MustTrue(t, roots.AppendCertsFromPEM(ca), "no certificate")
	return &tls.Config{RootCAs: roots}
}

// serveTLS serves ids and names over TLS to app.
func serveTLS(t *testing.T, clients int) (addr, dir string) {
	t.Helper()
	secure, dir := certificate(t)
	sources := map[string]Source{"ids": &moved{counter{next: 7}}, "names": &named{counter{next: 1}}}
	addr, _ = serve(t, Config{
		TLS: secure, clients: clients, patience: 2 * time.Second, Users: access.NewUsers(access.User{Name: "app", Secret: access.DigestOf("secret"), Set: true}),
		Lookup: func(key string) (Source, bool) { src, ok := sources[key]; return src, ok },
	})
	return addr, dir
}

// TestTLS has clients ask over TLS: go-redis in both versions of the protocol, redis-cli and
// redis-py. Who does not trust the certificate, or speaks no TLS, gets nothing.
func TestTLS(t *testing.T) {
	addr, dir := serveTLS(t, 0)
	host, port, _ := net.SplitHostPort(addr)
	for _, version := range []int{2, 3} {
		c := redis.NewClient(&redis.Options{Addr: addr, Protocol: version, Username: "app", Password: "secret", ClientName: "go", TLSConfig: trusting(t, dir)})
		ids, err := c.Do(t.Context(), "IDS.NEXT", "ids", 2).Int64Slice()
		assert.True(t, err == nil && ids[1] == ids[0]+1, "version %d: %v, %v", version, ids, err)
		names, err := c.Do(t.Context(), "IDS.NEXT", "names", 3).StringSlice()
		assert.True(t, err == nil && len(names) == 3 && strings.HasPrefix(names[0], "id-7-"), "version %d: %q, %v", version, names, err)
		last, err := c.MGet(t.Context(), "ids", "nothing").Result()
		assert.True(t, err == nil && len(last) == 2 && last[0] == fmt.Sprint(ids[1]) && last[1] == nil, "version %d: MGET %v, %v", version, last, err)
		all, err := c.Command(t.Context()).Result()
		assert.True(t, err == nil && len(all) == 18 && all["incr"].FirstKeyPos == 1 && all["get"].ReadOnly, "version %d: COMMAND %v, %v", version, all, err)
		assert.Of(c.ClientGetName(t.Context()).Result()).Equal(t, fmt.Sprintf("version %d: the connection's name", version), "go")
		info, err := c.Info(t.Context(), "server").Result()
		assert.True(t, err == nil && strings.Contains(info, "server_name:idproxy"), "version %d: INFO %q, %v", version, info, err)
		assert.Fails(t, fmt.Sprintf("version %d: INCR of names", version), c.Incr(t.Context(), "names").Err(), "IDS.NEXT key [n]")
		assert.NoError(t, c.Close())
	}
	stranger := redis.NewClient(&redis.Options{Addr: addr, Username: "app", Password: "secret", TLSConfig: &tls.Config{}, MaxRetries: -1})
	assert.Fails(t, "a client that does not trust the certificate", stranger.Incr(t.Context(), "ids").Err(), "certificate")
	plain := redis.NewClient(&redis.Options{Addr: addr, Username: "app", Password: "secret", MaxRetries: -1})
	assert.Fails(t, "a client without TLS gets ids", plain.Incr(t.Context(), "ids").Err(), "")
	assert.NoError(t, errors.Join(stranger.Close(), plain.Close()))
	ca := filepath.Join(dir, "ca.pem")
	for _, protocol := range []string{"-2", "-3"} {
		cli := exec.CommandContext(t.Context(), "redis-cli", protocol, "-h", host, "-p", port, "--tls", "--cacert", ca, "--user", "app", "--pass", "secret", "--no-auth-warning")
		cli.Stdin = strings.NewReader("IDS.SET ids 1000\nINCR ids\nCOMMAND COUNT\nCOMMAND DOCS incr\n")
		out, err := cli.CombinedOutput()
		assert.True(t, err == nil && strings.HasPrefix(string(out), "OK\n10") && strings.Contains(string(out), "\n18\n") && strings.Contains(string(out), "Returns the next id of a key."), "redis-cli %s: %v\n%s", protocol, err, out)
	}
	python := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", `
import redis, sys
r = redis.Redis(host=sys.argv[1], port=int(sys.argv[2]), username="app", password="secret", client_name="py", ssl=True, ssl_ca_certs=sys.argv[3])
first = r.incr("ids")
assert r.incr("ids", 10) == first + 10
assert r.execute_command("IDS.NEXT", "ids", 2) == [first + 11, first + 12]
assert r.get("ids") == str(first + 12).encode()
assert r.mget("ids", "nothing") == [str(first + 12).encode(), None]
assert r.client_getname() == "py" and r.client_id() > 0
assert r.execute_command("IDS.NEXT", "names")[0].startswith(b"id-7-")
assert r.command_count() == 18 and "incr" in r.command()
assert r.info("server")["server_name"] == "idproxy"
try:
    r.incr("names")
    raise SystemExit("no error")
except redis.ResponseError as e:
    assert "IDS.NEXT" in str(e), e
with r.pipeline(transaction=False) as p:
    for _ in range(50):
        p.incr("ids")
    got = p.execute()
assert got == list(range(got[0], got[0] + 50)), got
print("fine", redis.__version__)
`, host, port, ca)
	out, err := python.CombinedOutput()
	assert.True(t, err == nil && bytes.HasPrefix(out, []byte("fine ")), "redis-py (make test installs it): %v\n%s", err, out)
}

// TestTLSHostile: clients that do not end the handshake are cut off, hold up nobody, and when there
// are too many no one waits for their handshake.
func TestTLSHostile(t *testing.T) {
	addr, dir := serveTLS(t, 3)
	var silent []net.Conn
	for i, text := range []string{"", "\x16\x03\x01\xff\xff", "INCR ids\r\n"} {
		c := assert.Of(net.Dial("tcp", addr)).Must(t)
		defer c.Close() //nolint:errcheck // the server closes it
		assert.Of(io.WriteString(c, text)).Must(t)
		if i < 2 {
			silent = append(silent, c)
		}
	}
	good := redis.NewClient(&redis.Options{Addr: addr, Username: "app", Password: "secret", TLSConfig: trusting(t, dir), MaxRetries: -1, PoolSize: 1})
	defer good.Close() //nolint:errcheck // the test is over
	assert.Until(t, "a client beside silent ones gets an id", func() bool { return good.Incr(t.Context(), "ids").Err() == nil })
	for _, c := range silent {
		assert.Must(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.Copy(io.Discard, c)
		assert.True(t, !errors.Is(err, os.ErrDeadlineExceeded), "a client that does not end the handshake is still connected")
	}
	assert.NoError(t, good.Incr(t.Context(), "ids").Err(), "the client that was there")
}

// TestRateIsTold: who has had what he may is told so, and how long to wait.
func TestRateIsTold(t *testing.T) {
	addr, _ := newServer(t, map[string]Source{"a": &counter{next: 1}, "u": &named{}}, access.User{Name: "default", Secret: access.DigestOf("x"), Rate: 2})
	got := talk(t, addr, "AUTH x\r\nINCRBY a 2\r\nIDS.NEXT u\r\nINCR a\r\nGET a\r\n")
	assert.True(t, strings.HasPrefix(got, "+OK\r\n:2\r\n-ERR user 'default' may have 2 ids in a second (rate): try again in "), "over the wire: %q", got)
	assert.True(t, strings.Count(got, "(rate)") == 2 && strings.HasSuffix(got, "$1\r\n2\r\n"), "over the wire: %q", got)
}
