package parity

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// variants are the ways in which a server can be spoken to.
func variants(kind servers.Kind) []replay.Variant {
	all := []replay.Variant{
		{Name: "oldest", Cfg: replay.Config{}},
		{Name: "no EOF", Cfg: replay.Config{Caps: replay.DeprecateEOF}},
		{Name: "tracking", Cfg: replay.Config{Caps: replay.SessionTrack}},
		{Name: "no EOF, tracking", Cfg: replay.Config{Caps: replay.SessionTrack | replay.DeprecateEOF}},
	}
	if kind == servers.MariaDB {
		return append(all,
			replay.Variant{Name: "MariaDB's own", Cfg: replay.Config{Caps: replay.MariaAll | replay.DeprecateEOF | replay.SessionTrack, Without: replay.LongFlag}},
			replay.Variant{Name: "MariaDB's own with EOF", Cfg: replay.Config{Caps: replay.MariaAll, Without: replay.LongFlag}})
	}
	return append(all,
		replay.Variant{Name: "attributes", Cfg: replay.Config{Caps: replay.Attributes | replay.DeprecateEOF | replay.SessionTrack}},
		replay.Variant{Name: "attributes with EOF", Cfg: replay.Config{Caps: replay.Attributes}},
		replay.Variant{Name: "optional metadata with EOF", Cfg: replay.Config{Caps: replay.OptionalMeta}},
		replay.Variant{Name: "optional metadata", Cfg: replay.Config{Caps: replay.Attributes | replay.OptionalMeta | replay.DeprecateEOF}})
}

func TestParity(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		p := replay.NewParity(t, server)
		changeUserAccounts(t, server)
		for _, v := range variants(server.Kind) {
			for _, s := range replay.SmallSessions {
				p.Compare(t, s, v)
			}
		}
	})
}

// TestParityOfPieces sends sessions in pieces that cut packets and their headers anywhere.
func TestParityOfPieces(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		random := rand.New(rand.NewPCG(1, 2)) // the same pieces every time
		p := replay.NewParity(t, server)
		changeUserAccounts(t, server)
		for _, v := range []replay.Variant{
			{Name: "random pieces", Cfg: replay.Config{Caps: replay.DeprecateEOF | replay.Attributes, Cut: func(n int) int { return 1 + random.IntN(n) }}},
			{Name: "headers apart", Cfg: replay.Config{Caps: replay.SessionTrack, Cut: func(n int) int { return min(n, 4) }}},
			{Name: "single bytes", Cfg: replay.Config{Caps: replay.DeprecateEOF, Cut: func(int) int { return 1 }}},
		} {
			for _, s := range replay.SmallSessions {
				if s.Name != "text" && s.Name != "long data" || v.Name == "random pieces" { // hundred thousands of bytes
					p.Compare(t, s, v)
				}
			}
		}
	})
}

func TestParityOfLargePackets(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		p := replay.NewParityWith(t, server, harness.Spec{Plain: true})
		variants := []replay.Variant{
			{Name: "EOF", Cfg: replay.Config{Without: uint64(mysql.CLIENT_MULTI_STATEMENTS)}},
			{Name: "no EOF", Cfg: replay.Config{Caps: replay.DeprecateEOF | replay.Attributes}, Held: true},
		}
		if one := int(server.Kind); !width.Matrix() { // each server has one of them
			variants = variants[one : one+1]
		}
		for _, v := range variants {
			for _, s := range []replay.Session{
				{Name: "10,000 rows", Run: replay.ManyRowsSession},
				{Name: "big rows", Run: replay.BigRowSession},
				{Name: "big requests", Run: replay.BigRequestSession},
				{Name: "big infile", Run: replay.BigInfileSession},
				{Name: "failed infile", Run: replay.FailedInfileSession},
			} {
				p.Compare(t, s, v)
			}
		}
	})
}

// TestParityWithoutMetadata runs sessions that ask the server to leave column definitions out.
func TestParityWithoutMetadata(t *testing.T) {
	p := replay.NewParity(t, harness.MySQL(t))
	for _, caps := range []uint64{replay.OptionalMeta, replay.OptionalMeta | replay.DeprecateEOF, replay.OptionalMeta | replay.Attributes | replay.DeprecateEOF} {
		p.Compare(t, replay.Session{Name: "no metadata", Run: func(c *replay.Conn) {
			c.Must("SET resultset_metadata = NONE", "SELECT 1, 'two'", "SELECT 1; SELECT 2, 3")
			st, err := c.Prepare("SELECT ?, 'x'")
			replay.Check(err)
			replay.Check(c.Execute(st, 0, replay.WithTypes, replay.Long(5)))
			c.Must("SET resultset_metadata = FULL", "SELECT 1, 'two'")
			replay.Check(c.Execute(st, 0, replay.WithTypes, replay.Long(6)))
		}}, replay.Variant{Name: "optional metadata", Cfg: replay.Config{Caps: caps}})
	}
}

// TestProgressPackets watches an ALTER TABLE of which MariaDB reports the progress. How often it
// does is its own affair, so the packets are followed rather than compared.
func TestProgressPackets(t *testing.T) {
	t.Parallel()
	p := replay.NewParity(t, harness.MariaDB(t))
	cfg := p.Config(replay.Variant{Cfg: replay.Config{Caps: replay.MariaAll | replay.DeprecateEOF, Without: replay.LongFlag}})
	for _, listener := range []string{"", "plain", "ruled"} {
		if listener != "" {
			cfg.Addr = p.Proxy.Addr(listener)
		}
		err := replay.Do(func() {
			c := replay.Login(cfg)
			defer c.Close()
			c.Must("DROP TABLE IF EXISTS p_progress", "CREATE TABLE p_progress (a INT, b CHAR(200)) ENGINE=Aria TRANSACTIONAL=0",
				"INSERT INTO p_progress SELECT seq, REPEAT('x', 200) FROM seq_1_to_300000",
				"SET progress_report_time = 1, max_statement_time = 0", "ALTER TABLE p_progress ADD KEY (b), ADD KEY (a), FORCE",
				"OPTIMIZE TABLE p_progress", "SELECT COUNT(*) FROM p_progress", "DROP TABLE p_progress")
			if c.Progress == 0 {
				replay.Fail("no progress packet came")
			}
		})
		assert.NoError(t, err, fmt.Sprintf("listener %q", listener))
	}
}

// TestCompressionIsNotOffered: what is compressed could not be read, so neither server's
// compression may be offered.
func TestCompressionIsNotOffered(t *testing.T) {
	compression := uint64(mysql.CLIENT_COMPRESS | mysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM)
	for _, server := range harness.Servers(t) {
		p := replay.NewParity(t, server)
		if err := replay.Do(func() {
			cfg := p.Config(replay.Variant{})
			direct := replay.Dial(cfg)
			defer direct.Close()
			direct.Login()
			cfg.Addr = p.Proxy.Addr("plain")
			proxied := replay.Dial(cfg)
			defer proxied.Close()
			proxied.Login()
			hidden := direct.Greeting.Caps &^ proxied.Greeting.Caps
			if hidden&^(compression|uint64(mysql.CLIENT_SSL)) != 0 || proxied.Greeting.Caps&compression != 0 {
				replay.Fail("greeting hides %#x, offers %#x", hidden, proxied.Greeting.Caps)
			}
			if !strings.HasSuffix(direct.Greeting.Version, proxied.Greeting.Version) {
				replay.Fail("version %q, want %q", proxied.Greeting.Version, direct.Greeting.Version)
			}
		}); err != nil {
			t.Errorf("%s: %v", server.Kind, err)
		}
	}
}

// changeUserAccounts makes the accounts that changeUserSession changes to, with the password
// "second".
func changeUserAccounts(t *testing.T, server *servers.Server) {
	t.Helper()
	db := harness.Open(t, server.Config(""), "")
	identified := "IDENTIFIED BY 'second'"
	accounts := map[string]string{"p_second": identified, "p_none": "", "p_third": identified}
	if server.Kind == servers.MariaDB {
		accounts["p_third"] = "IDENTIFIED VIA ed25519 USING PASSWORD('second')"
	}
	for user, how := range accounts {
		for _, text := range []string{"CREATE USER IF NOT EXISTS " + user + " " + how, "GRANT ALL ON *.* TO " + user} {
			assert.Of(db.Exec(text)).Must(t)
		}
		if how == "" || server.Kind == servers.MariaDB {
			continue
		}
		assert.Must(t, replay.Do(func() { replay.Login(replay.Config{Addr: server.Addr, User: user, Password: "second"}).Close() }))
	}
}

func TestMain(m *testing.M) { harness.Main(m) }
