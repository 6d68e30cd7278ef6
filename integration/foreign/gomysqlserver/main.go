// Command gomysqlserver serves a database in memory, shop, by go-mysql-server, at the address that its
// argument names. Tests build and start it.
package main

import (
	"log"
	"os"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
)

func main() {
	shop := memory.NewDatabase("shop")
	shop.EnablePrimaryKeyIndexes()
	provider := memory.NewDBProvider(shop)
	s, err := server.NewServer(
		server.Config{Protocol: "tcp", Address: os.Args[1]}, sqle.NewDefault(provider), sql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(s.Start())
}
