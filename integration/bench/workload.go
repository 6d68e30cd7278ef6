package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// schema holds the tables of the benchmark. The names of the three tables have the same length, and
// so have the statements on them.
const (
	schema      = "bench"
	plainTable  = "plainly" // AUTO_INCREMENT, no rule
	ruledTable  = "ordered" // no AUTO_INCREMENT, a rule on its id
	filledTable = "fetched" // resultRows rows
	resultRows  = 10_000
	columns     = "customer, status, amount, note"
)

// workload is one kind of statement.
type workload struct {
	name  string
	query func(table string, client int) string
	// arguments makes it a prepared statement: each client prepares query once and executes it with
	// these.
	arguments func(client int) []argument
	// injected: idproxy fills the ids. Other targets have the same work done by AUTO_INCREMENT.
	injected bool
	reads    bool // from filledTable
}

var workloads = []workload{
	{name: "INSERT of one row, no rule", query: insert(1)},
	{name: "INSERT of one row, ids injected", query: insert(1), injected: true},
	{name: "INSERT of 100 rows, ids injected", query: insert(100), injected: true},
	{name: "SELECT of one row by its key", query: pointSelect, reads: true},
	{name: "SELECT of 10,000 rows", query: fullSelect, reads: true},
	{name: "prepared INSERT of one row, no rule", query: preparedInsert, arguments: insertArguments},
	{name: "prepared INSERT of one row, id injected", query: preparedInsert, arguments: insertArguments, injected: true},
	{name: "prepared SELECT of one row by its key", query: preparedSelect, arguments: selectArguments, reads: true},
}

// load has a connected client of a target send the workload's statement from now on. number tells
// clients apart.
func (w workload) load(t *target, c *client, number int) error {
	table := plainTable
	switch {
	case w.reads:
		table = filledTable
	case w.injected && t.injects:
		table = ruledTable
	}
	query := w.query(table, number)
	if w.arguments == nil {
		c.packet = wire.AppendPacket(nil, 0, append([]byte{mysql.COM_QUERY}, query...))
		return nil
	}
	statement, err := c.prepare(query)
	if err != nil {
		return fmt.Errorf("prepare %s: %w", query, err)
	}
	c.packet = wire.AppendPacket(nil, 0, execution(statement, w.arguments(number)))
	return nil
}

// insert makes statements of some 230 bytes for one row, and 160 for each further one.
func insert(rows int) func(string, int) string {
	return func(table string, client int) string {
		tuple := fmt.Sprintf("(%d, 'waiting', 199.99, '%s')", 100_000+client, "It''s a gift: "+strings.Repeat("please wrap it. ", 7))
		return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", table, columns, strings.Repeat(", "+tuple, rows)[2:])
	}
}

func pointSelect(table string, client int) string {
	return fmt.Sprintf("SELECT id, %s FROM %s WHERE id = %d", columns, table, 1+client*97)
}

func preparedInsert(table string, _ int) string {
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (?, ?, ?, ?)", table, columns)
}

// insertArguments are the values of insert.
func insertArguments(client int) []argument {
	note := "It's a gift: " + strings.Repeat("please wrap it. ", 7)
	return []argument{number(100_000 + client), text("waiting"), text("199.99"), text(note)}
}

func preparedSelect(table string, _ int) string {
	return fmt.Sprintf("SELECT id, %s FROM %s WHERE id = ?", columns, table)
}

func selectArguments(client int) []argument { return []argument{number(1 + client*97)} }

func fullSelect(table string, _ int) string {
	return fmt.Sprintf("SELECT id, %s FROM %s", columns, table)
}

// createTables makes the schema on an empty server.
func createTables(ctx context.Context, db *sql.DB) error {
	statements := []string{"CREATE DATABASE " + schema}
	for table, attribute := range map[string]string{plainTable: "AUTO_INCREMENT", ruledTable: "", filledTable: ""} {
		statements = append(statements, fmt.Sprintf(`CREATE TABLE %s.%s (id BIGINT UNSIGNED NOT NULL %s PRIMARY KEY,
			customer INT NOT NULL, status VARCHAR(16) NOT NULL, amount DECIMAL(10,2) NOT NULL, note VARCHAR(200) NOT NULL)`,
			schema, table, attribute))
	}
	note := strings.Repeat("n", 160)
	statements = append(statements, fmt.Sprintf(`INSERT INTO %s.%s SELECT seq, 100000+seq, 'waiting', 199.99, '%s'
		FROM %s.seq_1_to_%d`, schema, filledTable, note, schema, resultRows))
	return execAll(ctx, db, statements)
}

// emptyTables takes the rows away that INSERTs have left.
func emptyTables(ctx context.Context, db *sql.DB) error {
	return execAll(ctx, db, []string{"TRUNCATE " + schema + "." + plainTable, "TRUNCATE " + schema + "." + ruledTable})
}

func execAll(ctx context.Context, db *sql.DB, statements []string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.60s: %w", statement, err)
		}
	}
	return nil
}
