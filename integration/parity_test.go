package integration_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

const (
	deprecateEOF = uint64(mysql.CLIENT_DEPRECATE_EOF)
	sessionTrack = uint64(mysql.CLIENT_SESSION_TRACK)
	attributes   = uint64(mysql.CLIENT_QUERY_ATTRIBUTES)
	optionalMeta = uint64(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA)
	mariaAll     = mariaExtendedMetadata | mariaCacheMetadata | mariaProgress
	longFlag     = uint64(mysql.CLIENT_LONG_PASSWORD)
)

// variants are the ways in which a server can be spoken to.
func variants(kind servers.Kind) []variant {
	all := []variant{
		{name: "oldest", cfg: rawConfig{}},
		{name: "no EOF", cfg: rawConfig{caps: deprecateEOF}},
		{name: "tracking", cfg: rawConfig{caps: sessionTrack}},
		{name: "no EOF, tracking", cfg: rawConfig{caps: sessionTrack | deprecateEOF}},
	}
	if kind == servers.MariaDB {
		return append(all,
			variant{name: "MariaDB's own", cfg: rawConfig{caps: mariaAll | deprecateEOF | sessionTrack, without: longFlag}},
			variant{name: "MariaDB's own with EOF", cfg: rawConfig{caps: mariaAll, without: longFlag}})
	}
	return append(all,
		variant{name: "attributes", cfg: rawConfig{caps: attributes | deprecateEOF | sessionTrack}},
		variant{name: "attributes with EOF", cfg: rawConfig{caps: attributes}},
		variant{name: "optional metadata with EOF", cfg: rawConfig{caps: optionalMeta}},
		variant{name: "optional metadata", cfg: rawConfig{caps: attributes | optionalMeta | deprecateEOF}})
}

func TestParity(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			t.Parallel()
			p := newParity(t, server)
			changeUserAccounts(t, server)
			for _, v := range variants(server.Kind) {
				for _, s := range smallSessions {
					p.compare(t, s, v)
				}
			}
		})
	}
}

// TestParityOfPieces sends sessions in pieces that cut packets and their headers anywhere.
func TestParityOfPieces(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, 2)) // the same pieces every time
			p := newParity(t, server)
			changeUserAccounts(t, server)
			for _, v := range []variant{
				{name: "random pieces", cfg: rawConfig{caps: deprecateEOF | attributes, cut: func(n int) int { return 1 + random.IntN(n) }}},
				{name: "headers apart", cfg: rawConfig{caps: sessionTrack, cut: func(n int) int { return min(n, 4) }}},
				{name: "single bytes", cfg: rawConfig{caps: deprecateEOF, cut: func(int) int { return 1 }}},
			} {
				for _, s := range smallSessions {
					if s.name != "text" && s.name != "long data" || v.name == "random pieces" { // hundred thousands of bytes
						p.compare(t, s, v)
					}
				}
			}
		})
	}
}

func TestParityOfLargePackets(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			t.Parallel()
			p := newParityWith(t, server, harness.Spec{Plain: true})
			multi := uint64(mysql.CLIENT_MULTI_STATEMENTS)
			for _, v := range []variant{
				{name: "EOF", cfg: rawConfig{without: multi}},
				{name: "no EOF", cfg: rawConfig{caps: deprecateEOF | attributes}, held: true},
			} {
				for _, s := range []session{
					{"10,000 rows", manyRowsSession},
					{"big rows", bigRowSession},
					{"big requests", bigRequestSession},
					{"big infile", bigInfileSession},
					{"failed infile", failedInfileSession},
				} {
					p.compare(t, s, v)
				}
			}
		})
	}
}

// TestParityWithoutMetadata runs sessions that ask the server to leave column definitions out.
func TestParityWithoutMetadata(t *testing.T) {
	p := newParity(t, harness.MySQL(t))
	for _, caps := range []uint64{optionalMeta, optionalMeta | deprecateEOF, optionalMeta | attributes | deprecateEOF} {
		p.compare(t, session{"no metadata", func(c *rawConn) {
			c.must("SET resultset_metadata = NONE", "SELECT 1, 'two'", "SELECT 1; SELECT 2, 3")
			st, err := c.prepare("SELECT ?, 'x'")
			check(err)
			check(c.execute(st, 0, true, long(5)))
			c.must("SET resultset_metadata = FULL", "SELECT 1, 'two'")
			check(c.execute(st, 0, true, long(6)))
		}}, variant{name: "optional metadata", cfg: rawConfig{caps: caps}})
	}
}

// TestProgressPackets watches an ALTER TABLE of which MariaDB reports the progress. How often it does is its own
// affair, so the packets are followed rather than compared.
func TestProgressPackets(t *testing.T) {
	t.Parallel()
	p := newParity(t, harness.MariaDB(t))
	cfg := p.config(variant{cfg: rawConfig{caps: mariaAll | deprecateEOF, without: longFlag}})
	for _, listener := range []string{"", "plain", "ruled"} {
		if listener != "" {
			cfg.addr = p.proxy.Addr(listener)
		}
		err := rawDo(func() {
			c := loginRaw(cfg)
			defer c.close()
			c.must("DROP TABLE IF EXISTS p_progress", "CREATE TABLE p_progress (a INT, b CHAR(200)) ENGINE=Aria TRANSACTIONAL=0",
				"INSERT INTO p_progress SELECT seq, REPEAT('x', 200) FROM seq_1_to_300000",
				"SET progress_report_time = 1, max_statement_time = 0", "ALTER TABLE p_progress ADD KEY (b), ADD KEY (a), FORCE",
				"OPTIMIZE TABLE p_progress", "SELECT COUNT(*) FROM p_progress", "DROP TABLE p_progress")
			if c.progress == 0 {
				fail("no progress packet came")
			}
		})
		if err != nil {
			t.Errorf("listener %q: %v", listener, err)
		}
	}
}

// TestCompressionIsNotOffered: what is compressed could not be read, so neither server's compression may be offered.
func TestCompressionIsNotOffered(t *testing.T) {
	compression := uint64(mysql.CLIENT_COMPRESS | mysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM)
	for _, server := range harness.Servers(t) {
		p := newParity(t, server)
		if err := rawDo(func() {
			cfg := p.config(variant{})
			direct := dialRaw(cfg)
			defer direct.close()
			direct.login()
			cfg.addr = p.proxy.Addr("plain")
			proxied := dialRaw(cfg)
			defer proxied.close()
			proxied.login()
			hidden := direct.greeting.caps &^ proxied.greeting.caps
			if hidden&^(compression|uint64(mysql.CLIENT_SSL)) != 0 || proxied.greeting.caps&compression != 0 {
				fail("greeting hides %#x, offers %#x", hidden, proxied.greeting.caps)
			}
			if !strings.HasSuffix(direct.greeting.version, proxied.greeting.version) {
				fail("version %q, want %q", proxied.greeting.version, direct.greeting.version)
			}
		}); err != nil {
			t.Errorf("%s: %v", server.Kind, err)
		}
	}
}

// changeUserAccounts makes the accounts that changeUserSession changes to, with the password "second".
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
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		if how == "" || server.Kind == servers.MariaDB {
			continue
		}
		cfg := rawConfig{addr: server.Addr, user: user, password: "second"} // fills the server's password cache
		if err := rawDo(func() { loginRaw(cfg).close() }); err != nil {
			t.Fatal(err)
		}
	}
}

func changeUserSession(c *rawConn) {
	c.must("SET @kept = 1", "SET SESSION sql_mode = 'ANSI_QUOTES'")
	for _, user := range []string{"p_second", "p_third", "p_none"} {
		password := map[string]string{"p_none": ""}[user]
		if user != "p_none" {
			password = "second"
		}
		check(c.changeUser(user, password, c.schema))
		c.must("SELECT CURRENT_USER(), @kept, DATABASE(), @@sql_mode")
	}
	check(c.changeUser("p_second", "second", ""))
	c.must("SELECT DATABASE()")
	if c.caps&(deprecateEOF|sessionTrack) != deprecateEOF {
		return // MariaDB takes a second to refuse, so once is enough
	}
	// It ends the session on MySQL and may be repeated on MariaDB.
	wantCode(c.changeUser("p_second", "wrong", c.schema), 1045)
	c.ended = !c.mariaDB()
}
