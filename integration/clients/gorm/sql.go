package main

import (
	"database/sql"
	"fmt"
)

// client is a pool of one connection, so that LAST_INSERT_ID() means something.
type client struct{ db *sql.DB }

// inserter is a pool or a transaction.
type inserter interface {
	Exec(query string, args ...any) (sql.Result, error)
}

// insert returns the key and the affected rows.
func insert(db inserter, query string, args ...any) (key, affected int64, err error) {
	result, err := db.Exec(query, args...)
	if err != nil {
		return 0, 0, err
	}
	if key, err = result.LastInsertId(); err != nil {
		return 0, 0, err
	}
	affected, err = result.RowsAffected()
	return key, affected, err
}

// report inserts and prints what came of it.
func (c client) report(g, query string, args ...any) error {
	key, affected, err := insert(c.db, query, args...)
	if err == nil {
		fmt.Printf("%s key=%d affected=%d\n", g, key, affected)
	}
	return err
}

func show[T any](v sql.Null[T]) string {
	if !v.Valid {
		return "NULL"
	}
	return fmt.Sprint(v.V)
}

func (c client) rows(g string) error {
	rows, err := c.db.Query("SELECT id, n, s, u FROM orders WHERE g=? ORDER BY id", g)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var n sql.Null[int64]
		var s, u sql.Null[string]
		if err := rows.Scan(&id, &n, &s, &u); err != nil {
			return err
		}
		fmt.Printf("%s row=%d/%s/%s/%s\n", g, id, show(n), show(s), show(u))
	}
	return rows.Err()
}

func (c client) last(g string) error {
	var id int64
	if err := c.db.QueryRow("SELECT LAST_INSERT_ID()").Scan(&id); err != nil {
		return err
	}
	fmt.Printf("%s last=%d\n", g, id)
	return nil
}

func (c client) single(g string) error {
	if err := c.report(g, "INSERT INTO orders (g, n, s) VALUES (?, ?, ?)", g, 1, `it's \ ü`); err != nil {
		return err
	}
	if err := c.last(g); err != nil {
		return err
	}
	if err := c.report(g, "INSERT INTO orders (g, n) VALUES ('"+g+"', 2)"); err != nil { // no values: text in every mode
		return err
	}
	return c.rows(g)
}

func (c client) batch(g string) error {
	key, affected, err := insert(c.db, "INSERT INTO orders (g, n) VALUES (?, ?), (?, ?), (?, ?)", g, 1, g, nil, g, 3)
	if err != nil {
		return err
	}
	fmt.Printf("%s keys=%d,%d,%d affected=%d\n", g, key, key+1, key+2, affected)
	return c.rows(g)
}

func (c client) repeated(g string) error {
	statement, err := c.db.Prepare("INSERT INTO orders (g, n, s) VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	defer statement.Close()
	for _, row := range [][]any{{1, "a"}, {nil, "b"}, {3, nil}, {nil, nil}, {"5", 6}, {7.0, []byte("x")}, {true, nil}} {
		result, err := statement.Exec(g, row[0], row[1])
		if err != nil {
			return err
		}
		key, err := result.LastInsertId()
		if err != nil {
			return err
		}
		fmt.Printf("%s key=%d\n", g, key)
	}
	return c.rows(g)
}

func (c client) commit(g string) error {
	tx, err := c.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	order, _, err := insert(tx, "INSERT INTO orders (g) VALUES (?)", g)
	if err != nil {
		return err
	}
	item, _, err := insert(tx, "INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)", g)
	if err != nil {
		return err
	}
	fmt.Printf("%s order=%d item=%d\n", g, order, item)
	return tx.Commit()
}

func (c client) rollback(g string) error {
	tx, err := c.db.Begin()
	if err != nil {
		return err
	}
	key, _, err := insert(tx, "INSERT INTO orders (g) VALUES (?)", g)
	if rolled := tx.Rollback(); err != nil || rolled != nil {
		return err
	}
	fmt.Printf("%s key=%d\n", g, key)
	return c.rows(g)
}

func (c client) upsert(g string) error {
	for _, n := range []int{1, 2, 2} {
		if err := c.report(g, "INSERT INTO orders (g, n, u) VALUES (?, ?, 'up') ON DUPLICATE KEY UPDATE n=VALUES(n)", g, n); err != nil {
			return err
		}
		if err := c.last(g); err != nil {
			return err
		}
	}
	for range 2 {
		if err := c.report(g, "INSERT IGNORE INTO orders (g, u) VALUES (?, 'ig')", g); err != nil {
			return err
		}
	}
	return c.rows(g)
}

func (c client) failed(g string) error {
	const query = "INSERT INTO orders (g, u) VALUES (?, 'fail')"
	parent, _, err := insert(c.db, query, g)
	if err != nil {
		return err
	}
	if _, _, err = insert(c.db, query, g); err != nil {
		fmt.Printf("%s failed=%s\n", g, code(err))
	}
	child, _, err := insert(c.db, "INSERT INTO items (order_id, s) VALUES (LAST_INSERT_ID(), ?)", g)
	fmt.Printf("%s parent=%d child=%d\n", g, parent, child)
	return err
}

func (c client) explicit(g string) error {
	if err := c.report(g, "INSERT INTO orders (id, g) VALUES (?, ?)", 42, g); err != nil {
		return err
	}
	return c.last(g)
}

func (c client) zero(g string) error {
	for _, id := range []any{nil, 0, "0", uint64(43), nil} {
		if err := c.report(g, "INSERT INTO orders (id, g) VALUES (?, ?)", id, g); err != nil {
			return err
		}
	}
	return c.rows(g)
}

func (c client) plain(g string) error {
	return c.report(g, "INSERT INTO plain (s) VALUES (?), (?)", g, g)
}

func (c client) returning(g string) error {
	rows, err := c.db.Query("INSERT INTO orders (g, n) VALUES (?, ?), (?, ?) RETURNING id, n", g, 1, g, 2)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, n int64
		if err := rows.Scan(&id, &n); err != nil {
			return err
		}
		fmt.Printf("%s row=%d/%d\n", g, id, n)
	}
	return rows.Err()
}
