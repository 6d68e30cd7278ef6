package oracle

import (
	"fmt"
	"strings"
)

var (
	verbs = []string{
		"INSERT INTO", "INSERT", "insert into", "INSERT LOW_PRIORITY INTO", "INSERT HIGH_PRIORITY INTO", "INSERT LOW_PRIORITY",
		"REPLACE INTO", "REPLACE", "Replace LOW_PRIORITY INTO",
	}
	// layouts are column lists; N is the table's name, I the id.
	layouts  = []string{"", "I,a,parent", "a,I,parent", "a,parent,I", "`I`,a,`parent`", "N.I,N.a,N.parent", "a, parent", "A,ID,PARENT"}
	values   = []string{"VALUES", "VALUE", "values"}
	patterns = []string{"G", "E", "GGG", "GGE", "GEG", "EGG", "EEG", "EGE", "GEE", "EEE"}
	parents  = []string{
		"7", "LAST_INSERT_ID()", "last_insert_id( )", "@@identity", "@@SESSION.last_insert_id", "(SELECT LAST_INSERT_ID())",
		"LAST_INSERT_ID()+0", "NULL", "-7", "DEFAULT", "GREATEST(1,LAST_INSERT_ID())",
	}
	gaps = []string{" ", " ", "  ", "\n", "/* a, (b) */", " -- it's\n", " # \"x\n", "\t/**/ "}
)

// generateForms returns statements that each put rows into a table with a rule: every pattern of
// generated and explicit ids with every column list, and of the rest (verb, spelling, names,
// comments, what reads the last insert id) another choice each time. The same at every run.
func generateForms(m formMode) []string {
	f := newFormer(m, "VALUES")
	var all []string
	for range m.rounds {
		for _, pattern := range patterns {
			for _, layout := range layouts {
				if layout == "a, parent" && strings.Contains(pattern, "E") {
					continue // an id that is not there cannot be explicit
				}
				all = append(all, f.form(pattern, layout))
			}
		}
	}
	return all
}

func (f *former) form(pattern, layout string) string {
	table := f.pick(tableNames[:3])
	gap := func() string { return " " }
	if f.IntN(3) == 0 {
		gap = func() string { return f.pick(gaps) }
	}
	var b strings.Builder
	name := f.table(table)
	fmt.Fprintf(&b, "%s%s%s", strings.ReplaceAll(f.pick(verbs), " ", gap()+" "), gap()+" ", name)
	order := layout
	if layout == "" {
		order = map[string]string{"t": "I,a,parent,u,f,n,c", "mid": "a,I,parent,u,f,n,c", "tail": "a,parent,u,f,n,c,I"}[table]
	} else {
		columns := strings.Split(strings.ReplaceAll(layout, "`", f.quoteMark()), ",")
		for i, c := range columns {
			if strings.Trim(c, "N.`\"") == "I" {
				c = strings.Replace(c, "I", "id", 1)
			}
			columns[i] = strings.Replace(c, "N.", name+".", 1)
		}
		fmt.Fprintf(&b, "%s(%s)", gap(), strings.Join(columns, gap()+","+gap()))
	}
	b.WriteString(gap() + " " + f.pick(values) + gap())
	for i, kind := range pattern {
		if kind == 'E' && strings.Contains(pattern[:i], "G") {
			kind = 'L'
		}
		if i > 0 {
			b.WriteString(gap() + "," + gap())
		}
		f.serial++
		b.WriteString("(" + gap() + strings.Join(f.tuple(order, kind), gap()+","+gap()) + gap() + ")")
	}
	b.WriteString(f.pick([]string{"", "", "", ";", " ; ", " /* end */", " -- end"}))
	return b.String()
}

// tuple returns the values for columns in this order.
func (f *former) tuple(order string, kind rune) []string {
	var tuple []string
	for c := range strings.SplitSeq(strings.ToLower(order), ",") {
		c = strings.Trim(c[strings.LastIndex(c, ".")+1:], " `")
		switch c {
		case "i", "id":
			tuple = append(tuple, f.id(kind))
		case "a":
			tuple = append(tuple, f.content())
		case "parent":
			tuple = append(tuple, f.pick(parents))
		default:
			tuple = append(tuple, "NULL")
		}
	}
	return tuple
}

// id returns a spelling of an id that is generated (G), explicit (E), or explicit and not below
// zero (L: later than a generated one).
func (f *former) id(kind rune) string {
	n := 100 + f.serial
	switch kind {
	case 'L':
		return f.pick([]string{fmt.Sprint(n), fmt.Sprintf("'%d'", n), fmt.Sprintf("+%d", n), fmt.Sprintf("00%d", n)})
	case 'E':
		return f.pick([]string{fmt.Sprint(n), fmt.Sprint(n), fmt.Sprintf("'%d'", n), fmt.Sprintf("+%d", n), fmt.Sprintf("-%d", n), fmt.Sprintf("00%d", n)})
	}
	if f.nullGenerates {
		return f.pick([]string{"NULL", "null"})
	}
	return f.pick([]string{"NULL", "null", "Null", "0", "'0'", "DEFAULT", "default"})
}

// table returns a spelling of a table's name.
func (f *former) table(name string) string {
	q := f.quote
	if f.ignoreSpace {
		return q(name)
	}
	return f.pick([]string{
		name, name, q(name), "{db}." + name, q("{db}") + "." + q(name), "{db}." + q(name), "`{db}`.`" + name + "`",
	})
}
