package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/config"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/rule"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestDescribe describes a table with and without TLS, one that is not there, and for a caller
// that is gone.
func TestDescribe(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			name := harness.Database(t, server)
			root := server.Config(name)
			root.User, root.Passwd = servers.RootUser, servers.RootPassword
			db := harness.Open(t, root, "")
			if _, err := db.Exec("CREATE TABLE `t ``größe` (id INT UNSIGNED PRIMARY KEY, d DECIMAL(5) NOT NULL DEFAULT 7)"); err != nil {
				t.Fatal(err)
			}
			for _, mode := range []string{config.TLSAsClient, config.TLSRequired, config.TLSDisabled} {
				l := &config.Listener{
					Name: "a", Upstream: config.Addr{Network: "tcp", Address: server.Addr}, UpstreamTLS: config.UpstreamTLS{Mode: mode},
					Account: &config.Account{User: "app", Password: "app"},
				}
				u, err := OpenAlone(l)
				if err != nil {
					t.Fatal(err)
				}
				defer u.Close()
				for range 2 { // the second time over the connection of the first
					table, err := u.Describe(t.Context(), name, "t `größe", []*rule.Rule{{Column: "d"}})
					if err != nil {
						t.Fatalf("%v: %v", mode, err)
					}
					id, d := table.Find("id"), table.Find("d")
					if id == nil || id.Max != 1<<32-1 || !id.Primary || d == nil || d.Max != 99999 || d.Own == "" || !d.NotNull {
						t.Errorf("%v: %+v, %+v", mode, id, d)
					}
				}
				_, err = u.Describe(t.Context(), name, "nothing", nil)
				if e, ok := errors.AsType[*driver.MySQLError](err); !ok || e.Number != 1146 {
					t.Errorf("%v: no such table: %v", mode, err)
				}
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := u.Describe(gone, name, "t `größe", nil); err == nil {
					t.Errorf("%v: described for a caller that is gone", mode)
				}
				if _, err := u.Describe(t.Context(), name, "t `größe", nil); err != nil {
					t.Errorf("%v: behind that: %v", mode, err)
				}
			}
		})
	}
}

// TestAddressMoves has an address lead to another server, as a name does after a failover, while the
// one before goes on: questions go there, too, though the pool is never idle.
func TestAddressMoves(t *testing.T) {
	all := harness.Servers(t)
	const schema = "moves"
	for i, s := range all[:2] {
		root := s.Config("")
		root.User, root.Passwd = servers.RootUser, servers.RootPassword
		db := harness.Open(t, root, "")
		for _, text := range []string{
			"CREATE DATABASE " + schema, "CREATE TABLE " + schema + ".t (id BIGINT PRIMARY KEY)",
			fmt.Sprintf("INSERT INTO %s.t VALUES (%d)", schema, i+1),
		} {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() { _, _ = db.Exec("DROP DATABASE " + schema) })
	}
	var to atomic.Value
	to.Store(all[0].Addr)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to.Load().(string))
			if err != nil {
				from.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, from); server.Close() }()
			go func() { _, _ = io.Copy(from, server); from.Close() }()
		}
	}()
	u, err := OpenAlone(&config.Listener{
		Name: "a", Upstream: config.Addr{Network: "tcp", Address: ln.Addr().String()}, UpstreamTLS: config.UpstreamTLS{Mode: config.TLSDisabled},
		Account: &config.Account{User: servers.RootUser, Password: servers.RootPassword},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	greatest := func() uint64 {
		n, err := u.Greatest(t.Context(), schema, "t", rule.Column{Name: "id"})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := greatest(); n != 1 {
		t.Fatalf("MAX(id) = %d, want 1", n)
	}
	to.Store(all[1].Addr)
	for moved := time.Now(); greatest() != 2; time.Sleep(100 * time.Millisecond) {
		if time.Since(moved) > 6*staysFor {
			t.Fatal("the server before is still asked")
		}
	}
}
