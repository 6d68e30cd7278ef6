// Command gorm inserts by database/sql and by GORM, over github.com/go-sql-driver/mysql.
//
//	gorm LIBRARY PARAMETERS       sql, orm or lost, and the parameters of the driver's DSN
//
// See package clients for what it is told and prints.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

func main() {
	config, err := mysql.ParseDSN("tcp(" + os.Getenv("CLIENT_HOST") + ":" + os.Getenv("CLIENT_PORT") + ")/?" + os.Args[2])
	if err == nil {
		config.User, config.Passwd, config.DBName = os.Getenv("CLIENT_USER"), os.Getenv("CLIENT_PASSWORD"), os.Getenv("CLIENT_DATABASE")
		switch os.Args[1] {
		case "orm":
			err = runORM(config)
		case "lost":
			err = runLost(config)
		default:
			err = runSQL(config)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// scenario is one idiom. It prints lines that start with its name.
type scenario struct {
	name string
	run  func(g string) error
}

// run runs all scenarios; one that fails reports its error.
func run(scenarios []scenario) {
	for _, s := range scenarios {
		if err := s.run(s.name); err != nil {
			fmt.Printf("%s error=%s\n", s.name, code(err))
		}
	}
}

// code is the server's error number.
func code(err error) string {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return fmt.Sprint(e.Number)
	}
	return fmt.Sprintf("%q", err)
}

func runSQL(config *mysql.Config) error {
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	c := client{sql.OpenDB(connector)}
	defer c.db.Close()
	c.db.SetMaxOpenConns(1)
	var version string
	if err := c.db.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	run([]scenario{
		{"single", c.single},
		{"batch", c.batch},
		{"repeated", c.repeated},
		{"commit", c.commit},
		{"rollback", c.rollback},
		{"upsert", c.upsert},
		{"failed", c.failed},
		{"explicit", c.explicit},
		{"zero", c.zero},
		{"plain", c.plain},
	})
	if strings.Contains(version, "MariaDB") {
		run([]scenario{{"returning", c.returning}})
	}
	return nil
}
