package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// schema holds the tables of the benchmark. Their names have the same length, and so have the
// statements on them.
const (
	schema       = "bench"
	plainTable   = "plainly" // AUTO_INCREMENT, no rule
	ruledTable   = "ordered" // no AUTO_INCREMENT, a rule on its id
	filledTable  = "fetched" // resultRows rows
	plainNothing = "nothing" // as plainTable, in BLACKHOLE, which keeps no rows
	ruledNothing = "nowhere" // as ruledTable, in BLACKHOLE
	resultRows   = 10_000
	columns      = "customer, status, amount, note"
)

// createTables makes the schema on an empty server.
func createTables(ctx context.Context, db *sql.DB) error {
	statements := []string{"INSTALL SONAME 'ha_blackhole'", "CREATE DATABASE " + schema}
	for _, table := range []struct{ name, attribute, engine string }{
		{plainTable, "AUTO_INCREMENT", "InnoDB"},
		{ruledTable, "", "InnoDB"},
		{filledTable, "", "InnoDB"},
		{plainNothing, "AUTO_INCREMENT", "BLACKHOLE"},
		{ruledNothing, "", "BLACKHOLE"},
	} {
		statements = append(statements, fmt.Sprintf(`CREATE TABLE %s.%s (id BIGINT UNSIGNED NOT NULL %s PRIMARY KEY,
			customer INT NOT NULL, status VARCHAR(16) NOT NULL, amount DECIMAL(10,2) NOT NULL, note VARCHAR(300) NOT NULL)
			ENGINE=%s CHARACTER SET utf8mb4`, schema, table.name, table.attribute, table.engine))
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
