package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// compared is what the tests of a package compared.
type compared struct {
	cases  int            // tests and subtests without subtests of their own
	on     map[string]int // the same, by the server that their names have
	counts map[string]int // what they logged, by what was counted
	seeds  map[string]bool
}

func newCompared() *compared {
	return &compared{on: map[string]int{}, counts: map[string]int{}, seeds: map[string]bool{}}
}

// serverNames are the names of servers in those of tests. The first that is found counts.
var serverNames = []string{"MariaDB_11.8", "MariaDB", "MySQL"}

// addCase counts a case.
func (c *compared) addCase(test string) {
	c.cases++
	for _, name := range serverNames {
		if strings.Contains(test, name) {
			c.on[name]++
			return
		}
	}
}

var comparedLine = regexp.MustCompile(`: compared: (.*)`)

// addLine adds what a line of a test's output says was compared.
func (c *compared) addLine(line string) {
	m := comparedLine.FindStringSubmatch(line)
	if m == nil {
		return
	}
	for part := range strings.SplitSeq(m[1], ", ") {
		if seed, ok := strings.CutPrefix(part, "seed "); ok {
			c.seeds[seed] = true
			continue
		}
		number, what, _ := strings.Cut(part, " ")
		if n, err := strconv.Atoi(number); err == nil {
			c.counts[what] += n
		}
	}
}

// add adds what another package compared.
func (c *compared) add(other *compared) {
	c.cases += other.cases
	for what, n := range other.counts {
		c.counts[what] += n
	}
	for server, n := range other.on {
		c.on[server] += n
	}
	maps.Copy(c.seeds, other.seeds)
}

func (c *compared) String() string {
	parts := []string{fmt.Sprint(c.cases, " cases")}
	for _, server := range slices.Sorted(maps.Keys(c.on)) {
		parts = append(parts, fmt.Sprint(c.on[server], " on ", strings.ReplaceAll(server, "_", " ")))
	}
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		parts = append(parts, fmt.Sprint(c.counts[what], " ", what))
	}
	for _, seed := range slices.Sorted(maps.Keys(c.seeds)) {
		parts = append(parts, "seed "+seed)
	}
	return strings.Join(parts, ", ")
}
