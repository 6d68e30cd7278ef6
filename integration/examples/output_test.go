package examples

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	aLoadError = regexp.MustCompile(`(?m)^ +\d+ ERROR .*\n`) // what clients of a killed proxy saw
	aSnowflake = regexp.MustCompile(`\b\d{15,}\b`)
	aCount     = regexp.MustCompile(`\b\d+ (INSERTs done|rows on|connections were refused)`)
	aFailure   = regexp.MustCompile(`done, \d+ failed`)
	aLine      = regexp.MustCompile(`-{2,}`)
	aSpace     = regexp.MustCompile(` +`)
	aCell      = regexp.MustCompile(`\| \d+ (\|)`)
)

// steady is an output without what differs between two runs, and without the width of columns.
// Cells of tables are left out too where ids are not the same in each run.
func steady(output string, cells bool) string {
	text := aLoadError.ReplaceAllString(output, "")
	text = aSnowflake.ReplaceAllString(text, "ID")
	text = aCount.ReplaceAllString(text, "N $1")
	text = aFailure.ReplaceAllString(text, "done, N failed")
	text = aSpace.ReplaceAllString(aLine.ReplaceAllString(text, "-"), " ")
	if !cells {
		text = aCell.ReplaceAllString(text, "| N $1")
	}
	return strings.TrimSpace(text)
}

// rowsBehind are the rows of the table that an output has behind a text, without its head.
func rowsBehind(output, text string) (rows [][]string) {
	_, rest, _ := strings.Cut(output, text)
	for line := range strings.Lines(rest) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "|"):
			var row []string
			for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
				row = append(row, strings.TrimSpace(cell))
			}
			rows = append(rows, row)
		case !strings.HasPrefix(line, "+") && len(rows) > 0:
			return rows[1:]
		}
	}
	return rows
}

// numbers are all that an expression with one group finds.
func numbers(output, expression string) (all []int) {
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(output, -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		all = append(all, n)
	}
	return all
}

// A check finds what is wrong with the output of an example. offender is a change of the output
// that it must find: an old text and a new one.
type check struct {
	faults   func(output string) []string
	offender [2]string
}

// unique says that rows are there, as many as clients were told of and more, and no id twice.
func unique() check {
	return check{func(output string) (faults []string) {
		inserted := 0
		for _, n := range numbers(output, `(\d+) INSERTs done`) {
			inserted += n
		}
		rows := numbers(output, `(\d+) rows on`)
		if len(rows) != 1 || inserted == 0 || rows[0] < inserted {
			faults = append(faults, fmt.Sprintf("%d rows, and %d INSERTs done", rows, inserted))
		}
		if !strings.Contains(output, ", 0 ids come twice") {
			faults = append(faults, "ids come twice")
		}
		return faults
	}, [2]string{", 0 ids come twice", ", 1 ids come twice"}}
}

// failed says that in each round of clients no more statements failed than may have been under way.
func failed(most ...int) check {
	return check{func(output string) []string {
		got := numbers(output, `done, (\d+) failed`)
		if len(got) != len(most) {
			return []string{fmt.Sprintf("%d rounds, want %d", len(got), len(most))}
		}
		for i, n := range got {
			if n > most[i] {
				return []string{fmt.Sprintf("%d failed in round %d, want %d at most", n, i, most[i])}
			}
		}
		return nil
	}, [2]string{" failed", "9 failed"}}
}

// refused says in which rounds of clients connections were refused.
func refused(want ...bool) check {
	return check{func(output string) []string {
		var got []bool
		for _, n := range numbers(output, `(\d+) connections were refused`) {
			got = append(got, n > 0)
		}
		if !slices.Equal(got, want) {
			return []string{fmt.Sprintf("refused %v, want %v", got, want)}
		}
		return nil
	}, [2]string{"\n0 connections", "\n1 connections"}}
}

// ascending says that the first cells behind some text, of all places where it is, go up.
func ascending(text, old, now string) check {
	return check{func(output string) []string {
		var got []int
		for part := output; strings.Contains(part, text); _, part, _ = strings.Cut(part, text) {
			n, err := strconv.Atoi(rowsBehind(part, text)[0][0])
			if err != nil {
				return []string{err.Error()}
			}
			got = append(got, n)
		}
		if len(got) < 2 || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			return []string{fmt.Sprintf("%s: %d", text, got)}
		}
		return nil
	}, [2]string{old, now}}
}
