package proxy

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"idproxy/inside"
	"idproxy/proxy/decide"
)

// notices are what the log of a server has of statements that rules concern, and of logins. All
// sessions share them.
type notices struct {
	inside.Log

	mu   sync.Mutex
	seen map[decide.Sighting]int // what rules that observe would do, for the end
}

// maxSightings bounds the kinds of statements that are told apart.
const maxSightings = 1000

func newNotices() *notices { return &notices{seen: map[decide.Sighting]int{}} }

// observe counts a sighting.
func (n *notices) observe(s decide.Sighting) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.seen[s]; !ok && len(n.seen) >= maxSightings {
		s = decide.Sighting{Rule: s.Rule, What: "more kinds of statements than are told apart"}
	}
	n.seen[s]++
}

// summary logs what rules that observe have seen, the most frequent first.
func (n *notices) summary(log *slog.Logger) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.SortedFunc(maps.Keys(n.seen), func(a, b decide.Sighting) int {
		if d := n.seen[b] - n.seen[a]; d != 0 {
			return d
		}
		return strings.Compare(a.Rule+a.Table+a.What+a.Statement, b.Rule+b.Table+b.What+b.Statement)
	})
	for _, s := range all {
		log.Info("observed in all", "rule", s.Rule, "db.collection.name", s.Table, "what", s.What, "db.query.text", s.Statement, "count", n.seen[s])
	}
}
