package pattern

import "strings"

// Index holds patterns by number, and finds those that may match a name. It looks at how the parts
// of a pattern begin and end, up to their first and from their last wildcard. So the cost of
// finding depends on how many patterns begin and end alike, not on how many there are. The zero
// value is empty. Several goroutines may find at once.
type Index struct{ root node }

// node is a place in a tree of four levels: how the schema begins, how it ends, how the
// name begins, how it ends.
type node struct {
	next    map[string]*node
	lengths []int // of the keys of next, each once
	numbers []int // of the patterns that lead here; on the last level
}

// end is behind a part without wildcards, and is no character of a name: "t1" does not
// begin "t10".
const end = "\x00"

// literal returns how a part begins and ends, in small letters: of more letters than Fold has, so
// that too many are found.
func literal(part string) (head, tail string) {
	part = strings.ToLower(part)
	first := strings.IndexAny(part, "*?")
	if first < 0 {
		return part + end, ""
	}
	return part[:first], part[strings.LastIndexAny(part, "*?")+1:]
}

// Add puts a pattern into the index. Numbers ascend.
func (x *Index) Add(t Table, number int) {
	n := &x.root
	for _, part := range []string{t.Schema, t.Name} {
		head, tail := literal(part)
		n = n.child(head).child(tail)
	}
	n.numbers = append(n.numbers, number)
}

func (n *node) child(key string) *node {
	if c := n.next[key]; c != nil {
		return c
	}
	if n.next == nil {
		n.next = map[string]*node{}
	}
	known := false
	for _, l := range n.lengths {
		known = known || l == len(key)
	}
	if !known {
		n.lengths = append(n.lengths, len(key))
	}
	c := &node{}
	n.next[key] = c
	return c
}

// Find appends the numbers of the patterns that may match a table, in no order, and of no
// others than it must: each is still to be compared. The table may be a pattern; those that
// may cover it are found then.
func (x *Index) Find(found []int, schema, name string) []int {
	schema, name = strings.ToLower(schema), strings.ToLower(name)
	x.root.find(schema, func(n *node) {
		n.find(name, func(n *node) { found = append(found, n.numbers...) })
	})
	return found
}

// find calls do for every node behind a beginning and an end of a part.
func (n *node) find(part string, do func(*node)) {
	whole := part + end
	for _, l := range n.lengths {
		if l > len(whole) {
			continue
		}
		head := n.next[whole[:l]]
		if head == nil {
			continue
		}
		for _, l := range head.lengths {
			if l > len(part) {
				continue
			}
			if tail := head.next[part[len(part)-l:]]; tail != nil {
				do(tail)
			}
		}
	}
}
