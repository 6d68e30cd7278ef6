package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// DefaultTimeout bounds connecting, and every read and write of a connection,
// unless the DSN says otherwise.
const DefaultTimeout = 5 * time.Second

// Config says where a Store is.
type Config struct {
	DSN    string       // required: as go-sql-driver takes it, user:password@tcp(host:port)/database
	Logger *slog.Logger // default: discard
}

// database is a database of one server, reached by a pool of connections.
type database struct {
	db     *sql.DB
	where  string // names the server in errors; no account, no password
	logger *slog.Logger
	warned atomic.Bool // the server's durability was looked at

	unrecorded    atomic.Int64 // until then, in Unix nanoseconds, ranges are taken without a word of who took them
	warnedHistory atomic.Bool
}

// newDatabase checks the DSN and connects to nothing.
func newDatabase(c Config) (*database, error) {
	cfg, err := driver.ParseDSN(c.DSN)
	if err != nil {
		// The driver's text may quote what it took for an address, and with a
		// slash or an at sign out of place that is part of the password.
		return nil, errors.New("mysql store: the dsn is not of the form user:password@tcp(host:port)/database?name=value")
	}
	if cfg.DBName == "" {
		return nil, errors.New("mysql store: the dsn names no database")
	}
	if cfg.Net != "tcp" && cfg.Net != "unix" {
		return nil, errors.New("mysql store: the dsn's network is neither tcp nor unix")
	}
	harden(cfg)
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, errors.New("mysql store: the parameters of the dsn contradict each other")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(2)
	db.SetConnMaxLifetime(5 * time.Minute)
	return &database{db: db, where: fmt.Sprintf("mysql store %s(%s)/%s", cfg.Net, cfg.Addr, cfg.DBName), logger: c.Logger}, nil
}

// harden sets what the store relies on, whatever the DSN says.
func harden(cfg *driver.Config) {
	setDefault(&cfg.Timeout)
	setDefault(&cfg.ReadTimeout)
	setDefault(&cfg.WriteTimeout)
	cfg.InterpolateParams = true // otherwise every statement is prepared first: three round trips
	cfg.ClientFoundRows = false
	cfg.MultiStatements = true       // a range and who took it are one round trip
	cfg.Logger = &driver.NopLogger{} // the same errors come back to the caller
	params := maps.Clone(cfg.Params)
	if params == nil {
		params = map[string]string{}
	}
	params["autocommit"] = "1"      // a server may have it off for all
	params["completion_type"] = "0" // with CHAIN a COMMIT begins the next transaction, which nobody ends
	cfg.Params = params
}

func setDefault(d *time.Duration) {
	if *d == 0 {
		*d = DefaultTimeout
	}
}

// Where names the server and the database, without account and password.
func (s *database) Where() string { return s.where }

func (s *database) wrap(err error) error { return fmt.Errorf("%s: %w", s.where, err) }

// Close closes the connections.
func (s *database) Close() error { return s.db.Close() }

// Server is what one server of a store says of itself.
type Server struct {
	Where    string // as configured, without account and password
	Identity string // the same for whoever reaches the same database, by whatever address
	Weak     string // why a crash of its host can bring ids back; "": it cannot
}

// Servers asks what the store's server is.
func (s *database) Servers(ctx context.Context) ([]Server, error) {
	const query = "SHOW GLOBAL VARIABLES WHERE Variable_name IN " +
		"('hostname', 'port', 'datadir', 'server_uuid', 'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog')"
	v, err := variables(ctx, s.db, query)
	if err != nil {
		return nil, s.wrap(err)
	}
	var database string
	if err := s.db.QueryRowContext(ctx, "SELECT DATABASE()").Scan(&database); err != nil {
		return nil, s.wrap(err)
	}
	return []Server{{
		Where:    s.where,
		Identity: fmt.Sprintf("%s %s %s %s %s", v["hostname"], v["port"], v["datadir"], v["server_uuid"], database),
		Weak:     weakness(v),
	}}, nil
}

// weakness says which settings make a server forget commits in a crash of its host. With a
// binary log the tail of that decides, after a crash, what was committed. MariaDB's 3 syncs
// as 1 does.
func weakness(variables map[string]string) string {
	var weak []string
	if v := variables["innodb_flush_log_at_trx_commit"]; v == "0" || v == "2" {
		weak = append(weak, "innodb_flush_log_at_trx_commit is "+v)
	}
	if v := variables["sync_binlog"]; v != "1" && v != "" && variables["log_bin"] == "ON" {
		weak = append(weak, "sync_binlog is "+v)
	}
	if weak == nil {
		return ""
	}
	return strings.Join(weak, " and ") + ", not 1"
}

// WarnOfCrashes logs, once, that the server may forget what it committed.
func (s *database) WarnOfCrashes(ctx context.Context) error {
	if s.warned.Load() {
		return nil
	}
	servers, err := s.Servers(ctx)
	if err != nil {
		return err // asked again at the next call
	}
	if weak := servers[0].Weak; weak != "" && !s.warned.Swap(true) {
		s.logger.Warn("a crash of the store's host can bring ids back that were issued", "server", s.where, "reason", weak)
	}
	s.warned.Store(true)
	return nil
}
