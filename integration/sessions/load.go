package sessions

import (
	"fmt"
	"slices"
	"strings"
)

// load loads a file. Its lines have all fields that the statement reads: idproxy breaks a file off
// that ends in front of an id.
func (g *generator) load() {
	t := g.any()
	if g.packet && !(g.hides && t.ruled) {
		return
	}
	columns := g.some(t)
	named := slices.Contains(columns, "id")
	traits := Inserts | Several | Asks | Skips
	if named { // nothing in an id's place is warned of natively only
		traits |= Placed
	}
	text := "LOAD DATA LOCAL INFILE 'f' "
	if !named && g.one(4) { // natively 1062 for an explicit id behind a generated one
		text += "REPLACE "
	} else {
		text += g.pick("", "", "IGNORE ")
	}
	text += "INTO TABLE " + g.name(t) + g.pick("", "", " CHARACTER SET utf8mb4", " CHARACTER SET latin1")
	separator, quote, end := "\t", "", "\n"
	if g.one(2) {
		separator, end = ",", g.pick("\n", ";")
		text += " FIELDS TERMINATED BY ','"
		if quote = g.pick("", "*"); quote != "" {
			text += " OPTIONALLY ENCLOSED BY '*'"
		}
		if end == ";" {
			text += " LINES TERMINATED BY ';'"
		}
	}
	text += " (" + strings.Join(columns, ",") + ")"
	switch {
	case !slices.Contains(columns, "ref") && g.one(5):
		text += " SET ref = LAST_INSERT_ID()"
	case !slices.Contains(columns, "n") && g.one(5):
		text += " SET n = " + g.pick("3", "n + 1")
	}
	var file strings.Builder
	for range 1 + g.IntN(4) {
		for i, c := range columns {
			if i > 0 {
				file.WriteString(separator)
			}
			value := g.field(c)
			if quote != "" && value != `\N` && g.one(3) {
				value = quote + value + quote
			}
			file.WriteString(value)
		}
		file.WriteString(end)
	}
	g.add(Step{Way: AsText, Text: text, File: file.String(), Traits: traits})
}

// field is a column's value in a file.
func (g *generator) field(column string) string {
	g.serial++
	switch column {
	case "id":
		return g.pick(`\N`, "0", "0", fmt.Sprint(g.explicit()), fmt.Sprint(g.explicit()))
	case "u":
		return g.pick(`\N`, fmt.Sprint(1+g.IntN(30)), fmt.Sprint(1000+g.serial), fmt.Sprint(1000+g.serial))
	case "a", "b", "y":
		return g.pick("x", `\N`, "", "it's", "\xc3\xa9", fmt.Sprint("f", g.serial), fmt.Sprint("f", g.serial))
	}
	return g.pick(fmt.Sprint(g.IntN(100)), fmt.Sprint(g.IntN(10)), "40000", `\N`, "no number", "3")
}
