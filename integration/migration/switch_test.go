package migration

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/cmd/idproxy/switches"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/monitor"
)

// patience is for what takes a second on a machine without other work.
const patience = assert.Patience

// watched is a proxy and its admin listener.
type watched struct {
	*harness.Proxy
	admin  *monitor.Client
	socket string // of the admin listener
}

// startProxy starts a proxy with an admin socket.
func startProxy(t *testing.T, text string) watched {
	t.Helper()
	return startProxyIn(t, t.TempDir(), text)
}

func startProxyIn(t *testing.T, dir, text string) watched {
	t.Helper()
	p := harness.Start(t, harness.Spec{Dir: dir, Config: text + adminIn(dir)})
	return watched{p, monitor.NewClient("unix", dir+"/admin.sock", "", nil), "unix:" + dir + "/admin.sock"}
}

// adminIn is the section of an admin socket in a folder.
func adminIn(dir string) string { return "admin: {socket: unix:" + dir + "/admin.sock}\n" }

// stands waits until a proxy has a switch in some state.
func (w watched) stands(t *testing.T, state string) monitor.Switch {
	t.Helper()
	var s monitor.State
	var err error
	assert.Until(t, "the switch is at "+state, func() bool {
		s, err = w.admin.State(t.Context())
		return err == nil && len(s.Switches) == 1 && s.Switches[0].State == state
	}, func() string { return fmt.Sprint(s.Switches, err) })
	return s.Switches[0]
}

// setSwitch turns the switch in a store.
func setSwitch(t *testing.T, notes idsource.Notes, state string) switches.Switch {
	t.Helper()
	return assert.Of(switches.Set(t.Context(), notes, "migration", state, "test", 0)).Must(t)
}

func insertOne(t *testing.T, db *sql.DB) int64 {
	t.Helper()
	return assert.Of(harness.MustExec(t, db, "INSERT INTO t (a) VALUES (1)").LastInsertId()).Must(t)
}

// TestSwitch: two proxies that share a store turn together, and say so; a switch that was never turned
// observes. In a wide run the store is of each kind that processes can share.
func TestSwitch(t *testing.T) {
	t.Parallel()
	server := harness.MySQL(t)
	stores := map[string]string{"MySQL": fmt.Sprintf("mysql: {dsn: %q}", harness.StoreDSN(server, harness.Database(t, server)))}
	if width.Matrix() {
		other := harness.MariaDB(t)
		stores["MariaDB"] = fmt.Sprintf("mysql: {dsn: %q}", harness.StoreDSN(other, harness.Database(t, other)))
		cluster := assert.Of(servers.StartEtcd(t.Context())).Must(t)
		t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
		stores["etcd"] = fmt.Sprintf("etcd: {endpoints: [%q]}", cluster.Addr)
	}
	for name, text := range stores {
		t.Run(name, func(t *testing.T) { turnTwo(t, server, text) })
	}
}

// turnTwo turns the switch of two proxies to and fro.
func turnTwo(t *testing.T, server *servers.Server, kept string) {
	shop := harness.Database(t, server)
	db := harness.Open(t, server.Config(shop), "")
	harness.MustExec(t, db, "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 1000000")
	text := harness.OneListener(server.Addr) + fmt.Sprintf(`
stores: {main: {%s}}
sources: {ids: {segment: {store: main, start: 5000, last: 999999}}}
rules: [{table: %s.t, column: id, source: ids, mode: {switch: migration}}]
`, kept, shop)
	a, b := startProxy(t, text), startProxy(t, text)
	throughA, throughB := harness.Open(t, server.Config(shop), a.Addr("a")), harness.Open(t, server.Config(shop), b.Addr("a"))
	a.stands(t, switches.Observe)
	b.stands(t, switches.Observe)
	for i, through := range []*sql.DB{throughA, throughB} {
		assert.Equal(t, "the id while proxies observe", insertOne(t, through), int64(1000000+i))
	}
	cfg := assert.Of(config.Load(a.ConfigPath)).Must(t)
	stores := store.Opened{}
	defer stores.Close()
	st := assert.Of(stores.Get(cfg.Store("main"))).Must(t)
	turn := func(state string) {
		t.Helper()
		said := setSwitch(t, st.Notes, state)
		one, other := a.stands(t, state), b.stands(t, state)
		assert.True(t, one.Version == said.Version && other.Version == said.Version, "versions %d and %d, not %d", one.Version, other.Version, said.Version)
		t.Logf("%s: the proxies turned %v apart", state, one.Since.Sub(other.Since).Abs())
	}
	turn(switches.Prepare)
	assert.Equal(t, "the id while proxies prepare", insertOne(t, throughA), 1000002)
	turn(switches.Enforce)
	assert.Equal(t, "the id of one proxy that enforces", insertOne(t, throughA), 5000)
	assert.Equal(t, "the id of the other proxy that enforces", insertOne(t, throughB), 6000)
	turn(switches.Observe)
	assert.Equal(t, "the id when both observe again", insertOne(t, throughB), 1000003)
}

// TestSwitchTurnsDuringStart: a switch that turns all the time does so between a start's first look and its
// watch, too. It is no data race, which the harness looks for, and the start ends where the switch stands.
func TestSwitchTurnsDuringStart(t *testing.T) {
	t.Parallel()
	server := harness.MySQL(t)
	dir := t.TempDir()
	st := assert.Of(file.New(file.Config{Dir: filepath.Join(dir, "ids")})).Must(t)
	defer st.Close()
	text := harness.OneListener(server.Addr) + `
stores: {main: {file: {dir: ids}}}
sources: {ids: {segment: {store: main}}}
rules: [{table: no.such, column: id, source: ids, mode: {switch: migration}}]
`
	for range 6 {
		started, turned := make(chan struct{}), make(chan switches.Switch)
		go func() {
			for n := 0; ; n++ {
				state := [...]string{switches.Prepare, switches.Enforce}[n%2]
				said, err := switches.Set(t.Context(), st.Notes(), "migration", state, "test", 0)
				assert.NoError(t, err)
				select {
				case <-started:
					turned <- said
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		p := startProxyIn(t, dir, text)
		close(started)
		said := <-turned
		assert.Until(t, "the proxy hears of the last turn", func() bool { return p.stands(t, said.State).Version == said.Version })
		assert.NoError(t, p.Stop(patience))
	}
}

// TestSwitchIsLost: what a switch said last stays in force while its store does not say it, or says
// less; a proxy that starts then refuses what it cannot know.
func TestSwitchIsLost(t *testing.T) {
	t.Parallel()
	server := harness.MySQL(t)
	shop := harness.Database(t, server)
	db := harness.Open(t, server.Config(shop), "")
	harness.MustExec(t, db, "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 1000000")
	text := harness.OneListener(server.Addr) + fmt.Sprintf(`
stores: {main: {file: {dir: ids}}}
sources: {ids: {segment: {store: main, start: 5000, last: 999999}}}
rules: [{table: %s.t, column: id, source: ids, mode: {switch: migration}}]
`, shop)
	p := startProxy(t, text)
	through := harness.Open(t, server.Config(shop), p.Addr("a"))
	path := filepath.Join(p.Dir, "ids")
	st := assert.Of(file.New(file.Config{Dir: path})).Must(t)
	defer st.Close()
	notes := filepath.Join(path, "notes")
	p.stands(t, switches.Observe)
	setSwitch(t, st.Notes(), switches.Observe)
	before := assert.Of(os.ReadFile(notes)).Must(t)
	setSwitch(t, st.Notes(), switches.Enforce)
	p.stands(t, switches.Enforce)
	for word, content := range map[string][]byte{"damaged": []byte("none"), "went back": before} {
		assert.Must(t, os.WriteFile(notes, content, 0o600))
		assert.Until(t, "the switch is "+word, func() bool { return strings.Contains(p.stands(t, switches.Enforce).Problem, word) })
		id := insertOne(t, through)
		assert.True(t, id >= 5000 && id <= 5001, "%s: id %d", word, id)
	}
	assert.Must(t, os.WriteFile(notes, []byte("none"), 0o600))
	other := startProxy(t, strings.Replace(text, "dir: ids", "dir: "+path, 1))
	late := harness.Open(t, server.Config(shop), other.Addr("a"))
	_, err := late.Exec("INSERT INTO t (a) VALUES (1)")
	harness.WantError(t, err, 1467, "not ready", "switch migration")
	s := assert.Of(other.admin.State(t.Context())).Must(t)
	ready, err := s.Ready("")
	assert.True(t, err == nil && !ready.Ready && s.Rules[0].Mode == "unknown", "it is ready, or its mode known: %+v, %v, %+v", ready, err, s.Rules)
	assert.Must(t, os.WriteFile(notes, before, 0o600))
	other.stands(t, switches.Observe)
	assert.Equal(t, "the id where the switch is heard of", insertOne(t, late), 1000000)
}

// TestCountersMeet: an INSERT around a proxy that gives ids takes one of them, unless the server's own
// counter was lifted above them all. A series that was never used begins below rows that lie above its
// last id; without that bound it begins above them.
func TestCountersMeet(t *testing.T) {
	t.Parallel()
	server := harness.MySQL(t)
	shop := harness.Database(t, server)
	db := harness.Open(t, server.Config(shop), "")
	p := harness.StartProxy(t, harness.OneListener(server.Addr)+fmt.Sprintf(`
sources: {ids: {segment: {key: "{table}", start: 5000, last: 999999}}, bounded: {segment: {last: 999999}}, ended: {segment: {start: 10, last: 12}}, unbounded: {segment: {}}}
rules: [{table: %[1]s.ended, column: id, source: ended}, {table: %[1]s.bounded, column: id, source: bounded}, {table: %[1]s.unbounded, column: id, source: unbounded}, {table: %[1]s.*, column: id, source: ids}]
`, shop))
	through := harness.Open(t, server.Config(shop), p.Addr("a"))
	for _, name := range []string{"meets", "lifted", "bounded", "unbounded", "ended"} {
		harness.MustExec(t, db, "CREATE TABLE "+name+" (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
	}
	harness.MustExec(t, db, "ALTER TABLE lifted AUTO_INCREMENT = 1000000")
	// A series that has come to its last id gives no other.
	harness.MustExec(t, db, "ALTER TABLE ended AUTO_INCREMENT = 13")
	for want := int64(10); want <= 12; want++ {
		assert.Of(harness.MustExec(t, through, "INSERT INTO ended (a) VALUES (1)").LastInsertId()).Equal(t, "id", want)
	}
	for range 3 {
		_, err := through.Exec("INSERT INTO ended (a) VALUES (1)")
		harness.WantError(t, err, 1467)
	}
	for _, name := range []string{"meets", "lifted"} {
		insert := "INSERT INTO " + name + " (a) VALUES (1)"
		harness.MustExec(t, through, insert)
		harness.MustExec(t, db, insert)
		if _, err := through.Exec(insert); name == "lifted" {
			assert.NoError(t, err)
		} else {
			harness.WantError(t, err, 1062)
		}
	}
	for name, want := range map[string]int64{"bounded": 71, "unbounded": 1000001} {
		harness.MustExec(t, db, "INSERT INTO "+name+" (id) VALUES (70), (1000000)")
		assert.Of(harness.MustExec(t, through, "INSERT INTO "+name+" (a) VALUES (1)").LastInsertId()).Equal(t, name+": id", want)
	}
}

// TestCountersOutliveServer: a counter that was lifted stays where it is when its server is killed, on
// tables in parts and of MyISAM, too, and where auto_increment_increment is not 1.
func TestCountersOutliveServer(t *testing.T) {
	width.Wide(t, "it starts servers of its own")
	t.Parallel()
	const band = 1_000_000_000
	for name, start := range map[string]func() (*servers.Server, error){
		"MariaDB": func() (*servers.Server, error) { return servers.StartMariaDB(t.Context(), servers.Options{}) },
		"MariaDB 11.8": func() (*servers.Server, error) {
			return servers.StartMariaDB(t.Context(), servers.Options{Newer: true})
		},
		"MySQL": func() (*servers.Server, error) { return servers.StartMySQL(t.Context(), servers.Options{}) },
	} {
		s := assert.Of(start()).Must(t)
		tables := map[string]string{"plain": "", "parts": " PARTITION BY HASH (id) PARTITIONS 4", "isam": " ENGINE=MyISAM"}
		db := harness.Open(t, s.Config(""), "")
		harness.MustExec(t, db, "CREATE DATABASE shop")
		for table, more := range tables {
			harness.MustExec(t, db, "CREATE TABLE shop."+table+" (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"+more,
				"INSERT INTO shop."+table+" (a) VALUES (1), (2), (3)", "ALTER TABLE shop."+table+" AUTO_INCREMENT = 1000000000")
		}
		for range 2 { // the second time without a row above
			assert.Must(t, s.Kill())
			assert.Must(t, s.Start(t.Context()))
			harness.MustExec(t, harness.Open(t, s.Config(""), ""), "SET GLOBAL auto_increment_increment = 3, GLOBAL auto_increment_offset = 2")
			db := harness.Open(t, s.Config("shop"), "")
			for table := range tables {
				id, err := harness.MustExec(t, db, "INSERT INTO "+table+" (a) VALUES (4)").LastInsertId()
				assert.True(t, err == nil && id >= band && id <= band+100, "%s: id %d of %s, %v", name, id, table, err)
				harness.MustExec(t, db, "DELETE FROM "+table+" WHERE a = 4")
			}
		}
		assert.NoError(t, s.Stop())
	}
}
