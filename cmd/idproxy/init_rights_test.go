package main

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestInitGrantsKeepRights: the printed statements take no right away from the account that has them in
// the form in which people write them.
func TestInitGrantsKeepRights(t *testing.T) {
	t.Setenv("INIT_PASSWORD", "a secret of it")
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		name := harness.Database(t, server) + "_x"
		root := harness.Open(t, server.Config(""), "")
		exec := func(all ...string) {
			for _, sql := range all {
				harness.MustExec(t, root, sql)
			}
		}
		t.Cleanup(func() { exec("DROP USER IF EXISTS owner@'%'", "DROP DATABASE "+name) })
		exec("CREATE DATABASE "+name, "CREATE TABLE "+name+".t (id INT AUTO_INCREMENT PRIMARY KEY, a INT)",
			"CREATE TABLE "+name+".only_unique (n INT NOT NULL UNIQUE)",
			"CREATE USER owner@'%' IDENTIFIED BY 'a secret of it'", "GRANT ALL ON "+name+".* TO owner@'%'")
		got := runWith(t, "", "init", "--server", "a="+server.Addr, "--account", "owner", "--password-env", "INIT_PASSWORD", "-")
		assert.MustTrue(t, got.status == statusFine, "%+v", got)
		holds(t, "a key that is unique alone", got.err, name+".only_unique: no AUTO_INCREMENT column and no primary key")
		run := 0
		for line := range strings.Lines(got.err) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "GRANT ") {
				exec(line)
				run++
			}
		}
		assert.True(t, run >= 2, "%d statements in %s", run, got.err)
		may := func() error {
			c := server.Config(name)
			c.User, c.Passwd = "owner", "a secret of it"
			_, err := harness.Open(t, c, "").Exec("UPDATE t SET a = 1")
			return err
		}
		assert.NoError(t, may(), "after the statements")
		exec("GRANT SELECT ON `" + strings.ReplaceAll(name, "_", `\_`) + "`.* TO owner@'%'")
		assert.Fails(t, "a grant of the other form takes no right away on this server: nothing was tested", may(), "")
	})
}

// TestInitUnlikeServers: a table has one series, be its name in capitals on one server alone, and none
// where an account may not see whether another server has it.
func TestInitUnlikeServers(t *testing.T) {
	t.Setenv("INIT_PASSWORD", "a secret of it")
	folds := harness.StartServer(t, servers.MariaDB, servers.Options{LowerCase: 1})
	plain := harness.MariaDB(t)
	name := harness.Database(t, plain)
	open := func(s *servers.Server) *sql.DB { return harness.Open(t, s.Config(""), "") }
	t.Cleanup(func() {
		for _, sql := range []string{"DROP USER half@'%'", "DROP DATABASE " + name + "Shop"} {
			harness.MustExec(t, open(plain), sql)
		}
	})
	for _, s := range []*servers.Server{plain, folds} {
		for _, sql := range []string{
			"CREATE DATABASE " + name + "Shop", "CREATE TABLE " + name + "Shop.Orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
			"CREATE USER half@'%' IDENTIFIED BY 'a secret of it'", "GRANT SELECT ON " + name + "Shop.* TO half@'%'",
		} {
			harness.MustExec(t, open(s), sql)
		}
	}
	harness.MustExec(t, open(folds), "INSERT INTO "+name+"Shop.orders (id) VALUES (200000), (200001)")
	args := []string{"init", "--server", "plain=" + plain.Addr, "--server", "folds=" + folds.Addr, "--account", "half", "--password-env", "INIT_PASSWORD"}
	path := filepath.Join(t.TempDir(), "idproxy.yaml")
	if got := runWith(t, "", append(args, path)...); got.status != statusFine {
		t.Fatalf("%+v", got)
	}
	cfg := assert.Of(config.Load(path)).Must(t)
	assert.MustTrue(t, len(cfg.Rules) == 1 && cfg.Rules[0].Table == "Orders" && cfg.Rules[0].Listeners == nil, "rules %+v", cfg.Rules)
	checked := runWith(t, "", "check", "--online", "--config", path)
	assert.True(t, checked.status == statusFine, "check --online: %+v", checked)
	text := assert.Of(os.ReadFile(path)).Must(t)
	p := harness.StartProxy(t, strings.NewReplacer(`"127.0.0.1:3307"`, "127.0.0.1:0", `"127.0.0.1:3308"`, "127.0.0.1:0").Replace(string(text)))
	for i, s := range []*servers.Server{plain, folds} {
		db := harness.Open(t, s.Config(name+"Shop"), p.Addr([]string{"plain", "folds"}[i]))
		id, err := harness.MustExec(t, db, "INSERT INTO "+[]string{"Orders", "oRDERS"}[i]+" (a) VALUES (1)").LastInsertId()
		assert.True(t, err == nil && id == 500_000+int64(i), "server %d: id %d, %v", i, id, err)
	}

	harness.MustExec(t, open(folds), "REVOKE SELECT ON "+name+"Shop.* FROM half@'%'")
	got := runWith(t, "", append(args, "-")...)
	assert.Equal(t, "status", got.status, statusFinding)
	holds(t, "what is hidden on one server", got.err, fmt.Sprintf("left out: %sShop.Orders: folds may have it, too, and account 'half'@'%%' cannot see that: GRANT SELECT ON `%[1]sShop`.* TO 'half'@'%%' there", name))
}

// TestInitIsInterrupted: someone at a terminal may leave at each question, and sees what is typed again.
func TestInitIsInterrupted(t *testing.T) {
	program := assert.Of(harness.BuildPlain()).Must(t)
	for _, question := range []struct {
		args []string
		asks string
	}{{nil, "Server of shard0"}, {[]string{"--server", "127.0.0.1:1", "--account", "a"}, "Password of account"}} {
		c := exec.CommandContext(t.Context(), program, append([]string{"init"}, append(question.args, filepath.Join(t.TempDir(), "x.yaml"))...)...)
		tty := assert.Of(pty.Start(c)).Must(t)
		defer tty.Close()
		var screen strings.Builder
		for buffer := make([]byte, 4096); !strings.Contains(screen.String(), question.asks); {
			n, err := tty.Read(buffer)
			screen.Write(buffer[:n])
			assert.MustTrue(t, err == nil, "it asks nothing: %v, %q", err, &screen)
		}
		assert.Of(tty.Write([]byte{3})).Must(t)
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%q: it does not end", question.asks)
		}
		state, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
		assert.True(t, err == nil && state.Lflag&unix.ECHO != 0, "%q: what is typed is not seen any more: %v", question.asks, err)
		assert.True(t, c.ProcessState.ExitCode() == statusFinding, "%q: it ended by %v", question.asks, c.ProcessState)
	}
}
