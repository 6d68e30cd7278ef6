package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
)

// inserts are the statements for each shard, by its number; further shards get the last ones. No id
// is in them.
var inserts = [][]string{
	{
		"INSERT INTO orders (customer, amount) VALUES ('ada', 12.50), ('bob', 7.20), ('cyd', 99.00); SELECT LAST_INSERT_ID()",
		"INSERT INTO orders VALUES (NULL, 'dan', 3.10)",
		"INSERT INTO events (what) VALUES ('ada logged in'), ('ada paid')",
	},
	{
		"INSERT INTO orders (customer, amount) VALUES ('eve', 41.00), ('fay', 8.80); SELECT LAST_INSERT_ID()",
		"INSERT INTO orders (id, customer, amount) VALUES (DEFAULT, 'gus', 15.00)",
		"INSERT INTO events (what) VALUES ('eve logged in')",
	},
}

// show inserts rows through idproxy and prints what each shard holds.
func (d *demo) show(ctx context.Context) error {
	client, err := findClient()
	if err != nil {
		return err
	}
	for i, sh := range d.site.shards {
		for _, text := range inserts[min(i, len(inserts)-1)] {
			if err := d.insert(ctx, client, sh, text); err != nil {
				return err
			}
		}
	}
	for _, table := range []struct{ name, column string }{{"orders", "customer"}, {"events", "what"}} {
		if err := d.showTable(ctx, table.name, table.column); err != nil {
			return err
		}
	}
	if err := d.showWorkers(ctx, client); err != nil {
		return err
	}
	d.showHowToConnect(client)
	return nil
}

// findClient finds the command-line client; Debian's package has it under both names.
func findClient() (string, error) {
	for _, name := range []string{"mysql", "mariadb"} {
		if _, err := exec.LookPath(name); err == nil {
			return name, nil
		}
	}
	return "", errors.New("no command-line client: run scripts/install-servers.sh client")
}

// insert runs a statement through a shard's listener, as a person would.
func (d *demo) insert(ctx context.Context, client string, sh *shard, text string) error {
	host, port, err := net.SplitHostPort(sh.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\n$ %s -t -e \"%s\"\n", d.connect(client, host, port), text)
	cmd := exec.CommandContext(ctx, client, "--protocol=tcp", "-h", host, "-P", port, "-u", d.site.user, "-t", "-e", text, d.site.schema)
	cmd.Env = append(os.Environ(), "MYSQL_PWD="+d.site.password)
	cmd.Stdout, cmd.Stderr = d.out, d.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("insert through %s: %w; end of idproxy's log:\n%s", sh.listen, err, d.proxy.LogTail(10))
	}
	return nil
}

// connect is the command by which a person connects. It has the password of a private server, which
// is known to all; for any other it asks.
func (d *demo) connect(client, host, port string) string {
	password := " -p"
	switch {
	case d.site.password == "":
		password = ""
	case d.site.private():
		password = " -p" + d.site.password
	}
	return fmt.Sprintf("%s -h %s -P %s -u %s%s %s", client, host, port, d.site.user, password, d.site.schema)
}

// holdsRows says whether any shard has rows in a table.
func (s *site) holdsRows(ctx context.Context, table string) (bool, error) {
	for _, sh := range s.shards {
		db, err := s.open(sh, s.schema)
		if err != nil {
			return false, err
		}
		var some bool
		err = db.QueryRowContext(ctx, "SELECT EXISTS (SELECT * FROM "+table+")").Scan(&some)
		if err := errors.Join(err, db.Close()); err != nil || some {
			return some, err
		}
	}
	return false, nil
}

// showTable prints a table of every shard, side by side, read from the servers themselves, and
// fails when an id is there twice or a shard has none.
func (d *demo) showTable(ctx context.Context, table, column string) error {
	seen, count := map[int64]bool{}, 0
	columns := make([][]string, len(d.site.shards))
	for i, sh := range d.site.shards {
		rows, err := d.site.rows(ctx, sh, table, column)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("%s has no %s", sh.name, table)
		}
		columns[i] = []string{fmt.Sprintf("%s.%s on %s", d.site.schema, table, sh.name)}
		for _, r := range rows {
			seen[r.id], count = true, count+1
			columns[i] = append(columns[i], fmt.Sprintf("%d  %s", r.id, r.text))
		}
	}
	fmt.Fprint(d.out, sideBySide(columns))
	d.say("%d rows in %s, %d different ids", count, table, len(seen))
	if len(seen) != count {
		return fmt.Errorf("%d ids of %s were given twice", count-len(seen), table)
	}
	return nil
}

// sideBySide sets columns of lines next to each other.
func sideBySide(columns [][]string) string {
	var lines []string
	for _, column := range columns {
		start := 0 // where this column begins: behind the longest line so far
		for _, line := range lines {
			start = max(start, len(line)+3)
		}
		for i, text := range column {
			if i == len(lines) {
				lines = append(lines, "")
			}
			lines[i] += strings.Repeat(" ", max(0, start-len(lines[i]))) + text
		}
	}
	return "\n  " + strings.Join(lines, "\n  ") + "\n\n"
}

type row struct {
	id   int64
	text string
}

// rows reads a table of one shard; the newest when there are many.
func (s *site) rows(ctx context.Context, sh *shard, table, column string) (all []row, err error) {
	db, err := s.open(sh, s.schema)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	result, err := db.QueryContext(ctx, fmt.Sprintf("SELECT id, %s FROM %s ORDER BY id DESC LIMIT 20", column, table))
	if err != nil {
		return nil, fmt.Errorf("read %s on %s: %w", table, sh.upstream, err)
	}
	defer result.Close()
	for result.Next() {
		var r row
		if err := result.Scan(&r.id, &r.text); err != nil {
			return nil, err
		}
		all = append([]row{r}, all...)
	}
	return all, result.Err()
}

func (d *demo) showHowToConnect(client string) {
	fmt.Fprintf(d.out, "\nConnect and insert rows of your own, without ids:\n\n")
	for _, sh := range d.site.shards {
		host, port, _ := net.SplitHostPort(sh.listen) // insert has split it before
		fmt.Fprintf(d.out, "  %s\n", d.connect(client, host, port))
	}
	fmt.Fprintf(d.out, "\nThe configuration is %s, the log beside it. Ctrl-C stops everything.\n", d.proxy.ConfigPath)
}
