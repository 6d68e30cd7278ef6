package clients

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// The series of ids, of orders and of items. Whatever a test inserts with ids of its own stays far
// below them.
const (
	nativeOrders, nativeItems   = 700_000_000, 800_000_000
	proxiedOrders, proxiedItems = 500_000_000, 600_000_000
	seriesLength                = 1_000_000
)

// series are ids that belong together, from first on, and the names that they have got.
type series struct {
	prefix string
	first  int64
	known  map[int64]string
	heads  int
}

// names replaces the ids of some series by names.
type names []*series

func newNames(orders, items int64) names {
	return names{{prefix: "K", first: orders, known: map[int64]string{}}, {prefix: "I", first: items, known: map[int64]string{}}}
}

func nativeNames() names  { return newNames(nativeOrders, nativeItems) }
func proxiedNames() names { return newNames(proxiedOrders, proxiedItems) }

var number = regexp.MustCompile(`\d+`)

// replace names the ids in a script's output. In each word the first id gets a name of its own and
// the others the first one's name with their distance, so that `keys=K3,K3+1` tells that the ids of
// a list are consecutive.
func (n names) replace(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		words := strings.Split(strings.TrimRight(line, "\r\n"), " ")
		for i, word := range words {
			for _, s := range n {
				word = s.replace(word)
			}
			words[i] = word
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (s *series) replace(word string) string {
	head := int64(0)
	return number.ReplaceAllStringFunc(word, func(digits string) string {
		id, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || id < s.first || id >= s.first+seriesLength {
			return digits
		}
		if head != 0 {
			name := fmt.Sprintf("%s%+d", s.known[head], id-head)
			if _, ok := s.known[id]; !ok {
				s.known[id] = name
			}
			return name
		}
		head = id
		if _, ok := s.known[id]; !ok {
			s.heads++
			s.known[id] = fmt.Sprintf("%s%d", s.prefix, s.heads)
		}
		return s.known[id]
	})
}

func TestNames(t *testing.T) {
	const output = "single key=500000007\nbatch keys=500000008,500000009 affected=2\n" +
		"row=500000009/500000007/600000001 row=42/NULL row=500000020\nother 700000001 7\n"
	const want = "single key=K1\nbatch keys=K2,K2+1 affected=2\n" +
		"row=K2+1/K2+1-2/I1 row=42/NULL row=K3\nother 700000001 7\n"
	assert.Equal(t, "names", proxiedNames().replace(output), want)
	another := strings.NewReplacer("500000007", "700000010", "500000008", "700000011", "500000009", "700000012", "600000001", "800000009",
		"500000020", "700000031", "700000001", "500000001").Replace(output)
	got := strings.NewReplacer("other 500000001", "other 700000001").Replace(nativeNames().replace(another))
	assert.Equal(t, "names of other ids", got, want)
	gap := strings.ReplaceAll(output, "500000009", "500000010")
	assert.True(t, proxiedNames().replace(gap) != want, "a gap in a list of ids is not found")
}
