package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	driver "github.com/go-sql-driver/mysql"
)

// schemaVersion is what the tables of this program are like. A program that
// finds a higher one touches nothing: it would not know what the rows mean.
const schemaVersion = "1"

const (
	// Binary collation: keys that differ by case or accent are different keys.
	createSegments = "CREATE TABLE IF NOT EXISTS idproxy_segment (" +
		"biz_tag VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, " +
		"max_id BIGINT UNSIGNED NOT NULL, " +
		"step INT NOT NULL, " +
		"description VARCHAR(256) DEFAULT NULL, " +
		"update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP" +
		") ENGINE=InnoDB"
	// What the tables are, and in a group which of its servers this is.
	createStore = "CREATE TABLE IF NOT EXISTS idproxy_store (" +
		"name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, " +
		"value VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL) ENGINE=InnoDB"
	// createMarks: where the other servers of a group were seen to stand.
	createMarks = "CREATE TABLE IF NOT EXISTS idproxy_mark (" +
		"biz_tag VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, " +
		"server INT UNSIGNED NOT NULL, " +
		"next_id BIGINT UNSIGNED NOT NULL, " +
		"PRIMARY KEY (biz_tag, server)) ENGINE=InnoDB"
	// How series are tuned; what is 0 or empty is as the configuration says.
	createSeries = "CREATE TABLE IF NOT EXISTS idproxy_series (" +
		"biz_tag VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, " +
		"step BIGINT UNSIGNED NOT NULL DEFAULT 0, " +
		"max_step BIGINT UNSIGNED NOT NULL DEFAULT 0, " +
		"step_policy VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '') ENGINE=InnoDB"
	// Who took which range. A range that begins where another one did was taken after all of that was given back.
	createTaken = "CREATE TABLE IF NOT EXISTS idproxy_taken (" +
		"biz_tag VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, " +
		"lo BIGINT UNSIGNED NOT NULL, " +
		"hi BIGINT UNSIGNED NOT NULL, " +
		"taken DATETIME(6) NOT NULL, " +
		"taken_by VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, " +
		"PRIMARY KEY (biz_tag, lo)) ENGINE=InnoDB"
	insertFact = "INSERT IGNORE INTO idproxy_store (name, value) VALUES (?, ?)"
	selectAll  = "SELECT name, value FROM idproxy_store"
)

// The names of facts in idproxy_store.
const (
	factVersion = "version"
	factGroup   = "group"   // a random name that all servers of a group have
	factServers = "servers" // how many they are
	factServer  = "server"  // which of them this is, from 0
	factBlock   = "block"   // ids per block
	factReady   = "ready"   // the group has been formed
)

// querier is what queries go to: a pool or one connection.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// create makes the tables unless they are there.
func create(ctx context.Context, db querier) error {
	for _, table := range []string{createStore, createSegments, createMarks} {
		if _, err := db.ExecContext(ctx, table); err != nil {
			return fmt.Errorf("create the tables: %w", err)
		}
	}
	_, err := db.ExecContext(ctx, insertFact, factVersion, schemaVersion)
	return err
}

// facts reads idproxy_store; there are none where there is no such table.
func facts(ctx context.Context, db querier) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, selectAll)
	if noTable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err below says it
	known := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		known[name] = value
	}
	return known, rows.Err()
}

// wrongVersion says why tables with these facts are not touched.
func wrongVersion(known map[string]string) error {
	if v, ok := known[factVersion]; ok && v != schemaVersion {
		return fmt.Errorf("its tables are of version %s, this program knows version %s: use a newer program", v, schemaVersion)
	}
	return nil
}

// alone says why a store of one server does not use tables with these facts.
func alone(known map[string]string) error {
	if err := wrongVersion(known); err != nil {
		return err
	}
	if n, ok := known[factServers]; ok {
		return fmt.Errorf("the server is number %s of a group of %s: name all of them under dsns", known[factServer], n)
	}
	return nil
}

// errNoSuchTable is the server's number for a table that does not exist.
const errNoSuchTable = 1146

func noTable(err error) bool {
	e, ok := errors.AsType[*driver.MySQLError](err)
	return ok && e.Number == errNoSuchTable
}

// variables is what SHOW VARIABLES or SHOW STATUS answers.
func variables(ctx context.Context, db querier, query string) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err below says it
	all := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		all[name] = value
	}
	return all, rows.Err()
}
