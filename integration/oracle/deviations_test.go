package oracle

import (
	"regexp"
	"slices"
	"strings"

	"idproxy/integration/wireclient"
)

// asks says whether the proxy has to ask which rows of a statement went in, and so what stands
// behind the statement is no longer what the server knows of it.
func (fam *family) asks(kindOfIDs ids, rows string) bool {
	all, none := !strings.ContainsAny(rows, "SUN"), !strings.ContainsAny(rows, "IU")
	switch {
	case !fam.ignore && !fam.update:
		return false
	case fam.update && fam.returns != nil:
		return kindOfIDs != explicitID
	case fam.update && len(rows) > 1:
		return fam.found || fam.ignore && !none || !all && strings.Contains(rows, "I")
	}
	return len(rows) > 1 && !all && !none && kindOfIDs != explicitID
}

// countsOfQuestion are the statements that see that a question was asked, each with the deviation
// that they show then. SHOW WARNINGS does not.
var countsOfQuestion = map[string]*deviation{
	"SELECT ROW_COUNT()":     countOfQuestion("-1"),
	"SHOW COUNT(*) WARNINGS": countOfQuestion("0"),
	"SHOW WARNINGS LIMIT 1":  countOfQuestion(""),
}

func countOfQuestion(value string) *deviation {
	return &deviation{
		name: "counts of a question",
		reason: "which of several rows an INSERT IGNORE or ON DUPLICATE KEY UPDATE put in is asked behind it: ROW_COUNT() and the number of " +
			"warnings are then those of the question",
		rows: &value,
		when: func(native []wireclient.Facet) bool {
			return !slices.Contains(native, wireclient.Facet{Name: "result 0: rows", Value: value})
		},
	}
}

// foundByQuestion is what FOUND_ROWS() tells behind an INSERT in front of which something was
// asked.
var foundByQuestion = &deviation{
	name:   "found rows of a question",
	reason: "what is not known of a session or a table is asked in front of an INSERT: FOUND_ROWS() behind one that fails is of the question",
	expectFacet: func(f wireclient.Facet) wireclient.Facet {
		if f.Name == "result 0: rows" {
			f.Value = "1"
		}
		return f
	},
}

// skippedID is what INSERT IGNORE natively tells of a row that was looked at last and skipped, when
// none got a generated id.
var skippedID = &deviation{
	name: "insert id of a skipped row",
	reason: "where every row that was to get an id was skipped, but another went in, the OK packet natively shows the id that the last one " +
		"would have had; the proxy shows 0",
	expect: func(v string) string {
		if v == unnamed {
			return "0"
		}
		return v
	},
	when: func(native []wireclient.Facet) bool {
		return slices.Contains(native, wireclient.Facet{Name: "result 0: insert id", Value: unnamed})
	},
}

// deviation is the one that an example may show.
func (w *writer) deviation(sql, rows string) *deviation {
	named := false // natively by a row that went in
	for i, outcome := range rows {
		named = named || outcome == 'I' && (w.kinds[i] != explicitID || i == len(rows)-1)
	}
	switch fam := w.family; {
	case !w.several:
		return nil
	case fam.ignore && !fam.update:
		return skippedID
	case fam.update && fam.returns == nil && !named && w.trigger == updateTrigger:
		return hiddenUpdate
	case fam.update && !fam.ownID && fam.returns == nil && !named && readsLastID.MatchString(sql):
		return unnamedUpdate
	}
	return nil
}

// readsLastID finds what would read the id of an updated row.
var readsLastID = regexp.MustCompile(`(?i)last_insert_id|identity`)

// unnamedUpdate is what the proxy tells of rows that were updated by a statement whose rows read
// the last insert id.
var unnamedUpdate = &deviation{
	name: "update that reads the last insert id",
	reason: "the rows of such an INSERT ... ON DUPLICATE KEY UPDATE would read the id of the row updated before them if the proxy had the " +
		"server tell it; so the OK packet names no updated row",
	insertID:  "0",
	plainOnly: true,
	when: func(native []wireclient.Facet) bool {
		return !slices.Contains(native, wireclient.Facet{Name: "result 0: insert id", Value: "0"})
	},
}

// hiddenUpdate is what the proxy tells of rows that were updated under a trigger.
var hiddenUpdate = &deviation{
	name: "update that a trigger hides",
	reason: "a trigger takes away what the server would tell of a row that was updated; behind several rows the proxy does not ask for it, and " +
		"the OK packet names no updated row",
	insertID:  "0",
	plainOnly: true,
	when: func(native []wireclient.Facet) bool {
		return !slices.Contains(native, wireclient.Facet{Name: "result 0: insert id", Value: "0"})
	},
}

// noDefault is what a column without AUTO_INCREMENT makes of DEFAULT where 0 is a value.
var noDefault = &deviation{
	name:      "zero by default",
	reason:    "under NO_AUTO_VALUE_ON_ZERO a native column stores 0 for DEFAULT; one without AUTO_INCREMENT has no default, and the server says so",
	fails:     "1364 (HY000)",
	plainOnly: true,
}

// warningOfID is that of an id that is no number and generates: the proxy puts the generated one in
// its place.
func warningOfID() *deviation {
	return &deviation{
		name:   "warning of an id that is no number",
		reason: "where '' or 'abc' as an id generates with a warning, the proxy puts the id in its place, and the server has nothing to warn of",
		expectFacet: func(f wireclient.Facet) wireclient.Facet {
			switch {
			case f.Name == "result 0: warnings":
				f.Value = "0"
			case f.Name == "result 0: rows":
				f.Value = ""
			case f.Name == "result 0: info":
				f.Value = strings.Replace(f.Value, "Warnings: 1", "Warnings: 0", 1)
			}
			return f
		},
	}
}

// notAnAssignment is := in the SET form, beside an expression for the id.
var notAnAssignment = &deviation{
	name:    "not an assignment",
	reason:  "in the SET form := is another =, and is taken for an assignment to a variable that the expression may read",
	refused: "expression for a generated column in a statement that sets what it reads",
}

// cutID is what INSERT IGNORE makes of an id with a number at its beginning.
var cutID = &deviation{
	name:      "id that IGNORE cuts short",
	reason:    "INSERT IGNORE takes 12 for '12x' as an id; the proxy does not read that number and tells none",
	insertID:  "0",
	plainOnly: true,
}

// delayedTrigger is what becomes of DELAYED where the server does not heed it.
var delayedTrigger = &deviation{
	name:   "DELAYED behind a trigger",
	reason: "MariaDB runs INSERT DELAYED into a table with a trigger as a plain INSERT; the proxy takes it for delayed, and tells no id",
	expectFacet: func(f wireclient.Facet) wireclient.Facet {
		switch {
		case f.Name == "result 0: insert id":
			f.Value = "0"
		case f.Name == "result 0: rows":
			f.Value = "slow{seed}"
		}
		return f
	},
	when: func(native []wireclient.Facet) bool {
		return slices.ContainsFunc(native, func(f wireclient.Facet) bool { return f.Value == "slow{in|3}" })
	},
}

// knownFailures is what the proxy is known to get wrong, by name. To be emptied.
var knownFailures = map[string]func(f *form, sql string) bool{
	// An AFTER UPDATE trigger, and CLIENT_FOUND_ROWS: a row that stays as it is is taken for one that
	// went in.
	"found row that a trigger hides": func(f *form, _ string) bool { return f.trigger == updateTrigger && f.found && f.rows == "N" },
}

// knownFailure says whether a step is one of them.
func (st *step) knownFailure() bool {
	for _, match := range knownFailures {
		if st.form != nil && match(st.form, st.sql) {
			return true
		}
	}
	return st.known
}
