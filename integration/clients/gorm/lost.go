package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/go-sql-driver/mysql"
)

// runLost loses a connection of a pool of one, and fails to make another.
func runLost(config *mysql.Config) error {
	db, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, _, err := insert(db, "INSERT INTO orders (g) VALUES ('lose me')"); err != nil {
		showError("lost", err)
	}
	key, _, err := insert(db, "INSERT INTO orders (g) VALUES ('again')")
	if errors.Is(err, mysql.ErrInvalidConn) { // its end may arrive a moment behind the error
		key, _, err = insert(db, "INSERT INTO orders (g) VALUES ('again')")
	}
	if err != nil {
		return err
	}
	fmt.Printf("again key=%d\n", key)
	config.Addr = os.Getenv("CLIENT_HOST") + ":" + os.Getenv("CLIENT_PORT_DOWN")
	down, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		return err
	}
	defer down.Close()
	showError("connect", down.Ping())
	return nil
}

func showError(what string, err error) {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		fmt.Println(what, e.Number, string(e.SQLState[:]), e.Message)
		return
	}
	fmt.Println(what, err)
}
