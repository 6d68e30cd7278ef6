package main

import (
	"fmt"
	"strings"
)

// mixed is the note of a row of 160 bytes: words, blanks and two doubled quotes.
var mixed = "It''s a gift: " + strings.Repeat("please wrap it. ", 7)

// rowKind is what the long text of a row is made of, as SQL writes it: it decides how fast an INSERT
// can be read.
type rowKind struct{ name, note string }

// noteSize is about how long they are, so that a row takes 250 bytes.
const noteSize = 210

var rowKinds = []rowKind{
	{"digits", noteOf("83868641912-28773972837-")}, // as sysbench's own tables have them
	{"letters", noteOf("lorem ipsum dolor sit amet ")},
	{"backslashes", noteOf(`{\"user\":\"lorem ipsum\",\"n\":1}`)},
	{"quotes", noteOf("it''s o''clock, said the customer ")},
	{"multi-byte text", noteOf("größer als 日本語 und ")},
}

func noteOf(part string) string { return strings.Repeat(part, noteSize/len(part)) }

// insertOf makes INSERTs of rows with a note.
func insertOf(rows int, note string) func(string, int) string {
	return func(table string, client int) string {
		tuple := fmt.Sprintf("(%d, 'waiting', 199.99, '%s')", 100_000+client, note)
		return fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", table, columns, strings.Repeat(", "+tuple, rows)[2:])
	}
}

// insert makes statements of some 230 bytes for one row, and 160 for each further one.
func insert(rows int) func(string, int) string { return insertOf(rows, mixed) }

func pointSelect(table string, client int) string {
	return fmt.Sprintf("SELECT id, %s FROM %s WHERE id = %d", columns, table, 1+client*97)
}

func fullSelect(table string, _ int) string {
	return fmt.Sprintf("SELECT id, %s FROM %s", columns, table)
}

func preparedInsert(table string, _ int) string {
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES (?, ?, ?, ?)", table, columns)
}

// insertArguments are the values of insert.
func insertArguments(client int) []argument {
	return []argument{number(100_000 + client), text("waiting"), text("199.99"), text(strings.ReplaceAll(mixed, "''", "'"))}
}

func preparedSelect(table string, _ int) string {
	return fmt.Sprintf("SELECT id, %s FROM %s WHERE id = ?", columns, table)
}

func selectArguments(client int) []argument { return []argument{number(1 + client*97)} }
