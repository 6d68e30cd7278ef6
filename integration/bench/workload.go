package main

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// workload is one kind of statement, sent by this program's own client.
type workload struct {
	name  string
	query func(table string, client int) string
	// arguments makes it a prepared statement: each client prepares query once and executes it with
	// these.
	arguments func(client int) []argument
	// injected: idproxy fills the ids, when the target is idproxy. Other targets have the same work done
	// by AUTO_INCREMENT.
	injected bool
	reads    bool // from filledTable
	multi    bool // the client turns multi-statements on
	// only is the one number of connections it is measured at; 0: at each
	only int
}

var selectOne = workload{name: "SELECT of one row by its key", query: pointSelect, reads: true}

var workloads = append([]workload{
	{name: "INSERT of one row, prepared", query: preparedInsert, arguments: insertArguments, injected: true},
	{name: "INSERT of one row", query: insert(1), injected: true},
	{name: "INSERT of 100 rows", query: insert(100), injected: true},
	selectOne,
	{name: "SELECT of one row by its key, prepared", query: preparedSelect, arguments: selectArguments, reads: true},
	{name: "SELECT of 10,000 rows", query: fullSelect, reads: true},
	{name: "INSERT of one row, multi-statements on", query: insert(1), injected: true, multi: true, only: 8},
	{name: "INSERT of 100 rows, multi-statements on", query: insert(100), injected: true, multi: true, only: 8},
}, ofKinds()...)

// ofKinds are INSERTs of 100 rows of each kind, from clients as libmariadb and PHP make them.
func ofKinds() (all []workload) {
	for _, k := range rowKinds {
		all = append(all, workload{
			name: "INSERT of 100 rows of " + k.name + ", multi-statements on", query: insertOf(100, k.note), injected: true, multi: true, only: 8,
		})
	}
	return all
}

// at returns the numbers of connections, of those given, that the workload is measured at.
func (w workload) at(connections []int) []int {
	if w.only > 0 {
		return []int{w.only}
	}
	return connections
}

// by is the workload on one way.
func (w workload) by(way way) workload {
	w.injected = way.fills
	return w
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
