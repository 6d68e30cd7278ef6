package monitor

import (
	"fmt"
	"slices"
	"time"
)

// How long the ids in memory, or the right to a worker number, must last while the store
// does not answer. Below that a process is not ready: a load balancer that asks every few seconds
// then sends its clients elsewhere before the first INSERT fails.
// A right to a worker number lasts for six to eight seconds in all.
const (
	readyMargin = Milliseconds(10 * time.Second)
	fenceMargin = Milliseconds(4 * time.Second)
)

// Readiness says whether a load balancer may send clients.
type Readiness struct {
	Ready     bool            `json:"ready"`
	Listeners []ListenerReady `json:"listeners"`
}

// ListenerReady says the same of one listener.
type ListenerReady struct {
	Name     string   `json:"name"`
	Ready    bool     `json:"ready"`
	Problems []string `json:"problems,omitempty"` // why it is not
	// Findings are what keeps some tables from their first id, while sessions of others go on.
	Findings []string `json:"findings,omitempty"`
	// outline says the same without addresses, accounts and what servers and stores said.
	outline []string
}

func (l *ListenerReady) add(outline, problem string) {
	l.outline, l.Problems = append(l.outline, outline), append(l.Problems, problem)
}

// Outline returns what everybody may read: which listeners and sources have a problem, and no more.
func (r Readiness) Outline() Readiness {
	listeners := make([]ListenerReady, 0, len(r.Listeners))
	for _, l := range r.Listeners {
		l.Problems, l.Findings = l.outline, nil
		listeners = append(listeners, l)
	}
	r.Listeners = listeners
	return r
}

// Ready looks at all listeners, or at one where a name is given. It is ready where all of them
// are. An unknown name is an error.
func (s *State) Ready(listener string) (Readiness, error) {
	r := Readiness{Ready: true, Listeners: []ListenerReady{}}
	for i := range s.Listeners {
		if l := &s.Listeners[i]; listener == "" || l.Name == listener {
			one := s.listenerReady(l)
			r.Ready = r.Ready && one.Ready
			r.Listeners = append(r.Listeners, one)
		}
	}
	if listener != "" && len(r.Listeners) == 0 {
		return r, fmt.Errorf("there is no listener %q", listener)
	}
	return r, nil
}

func (s *State) listenerReady(l *Listener) ListenerReady {
	one := ListenerReady{Name: l.Name}
	if s.Draining {
		one.add("idproxy drains", "idproxy drains")
	}
	if s.Files.Full() {
		one.add("it has no room for a session", fmt.Sprintf("%d of %d files are open: raise LimitNOFILE, or lower limits.sessions", s.Files.Open, s.Files.Limit))
	}
	if l.Problem != "" {
		one.add("its server does not answer", l.serverProblem())
	}
	s.addAccounts(&one, l)
	for _, u := range l.Unbegun {
		one.Findings = append(one.Findings, fmt.Sprintf("column %s gets no first id from source %s: %s", u.Column, u.Source, u.Problem))
	}
	for i := range s.Sources {
		source := &s.Sources[i]
		if !slices.Contains(l.Sources, source.Name) {
			continue
		}
		if problem := source.unready(); problem != "" {
			one.add("source "+source.Name+" has no ids, or not for long", "source "+source.Name+": "+problem)
		}
	}
	for i := range s.Switches {
		w := &s.Switches[i]
		if w.State == SwitchUnknown && slices.Contains(l.Modes, w.Name) {
			one.add("switch "+w.Name+" is not known", "switch "+w.Name+" is not known: store "+w.Store+": "+w.Problem)
		}
	}
	one.Ready = len(one.Problems) == 0
	return one
}

// addAccounts tells where an account cannot ask a server. What only the first id of a table takes is no
// reason to send clients away from the tables that have one.
func (s *State) addAccounts(one *ListenerReady, l *Listener) {
	for i := range l.Servers {
		server := &l.Servers[i]
		switch problem := l.denied(server); {
		case problem == "" || server.Problem != "" || !s.compares(l):
		case server.Used && l.Begun == 0:
			one.add("its account cannot ask its server", problem)
		default:
			one.Findings = append(one.Findings, problem)
		}
	}
	if l.Begun > 0 {
		return
	}
	// A series that was never used begins above the tables of all listeners.
	for i := range s.Listeners {
		other := &s.Listeners[i]
		if other.Name == l.Name || !slices.ContainsFunc(l.Unbegun, func(u Unbegun) bool { return slices.Contains(other.Sources, u.Source) }) {
			continue
		}
		outline := "listener " + other.Name + " keeps its first ids back"
		if other.Problem != "" {
			one.add(outline, "listener "+other.Name+", above whose tables its ids begin: "+other.serverProblem())
		}
		for j := range other.Servers {
			if problem := other.denied(&other.Servers[j]); problem != "" && other.Servers[j].Used {
				one.add(outline, "listener "+other.Name+", above whose tables its ids begin: "+problem)
			}
		}
	}
}

// denied says that the account cannot ask a server; "" when it can.
func (l *Listener) denied(server *Standing) string {
	if server.Denied == "" {
		return ""
	}
	return fmt.Sprintf("account %s cannot ask server %s for MAX(id), and no table gets a first id without: %s", l.Account, server.Address, server.Denied)
}

// compares reports whether a rule of the listener fills columns that are compared with their source
// before the first id.
func (s *State) compares(l *Listener) bool {
	numbers := func(o Source) bool { return o.Segment != nil || o.Snowflake != nil || o.Order != nil }
	return slices.ContainsFunc(s.Rules, func(r Rule) bool {
		on := len(r.Listeners) == 0 || slices.Contains(r.Listeners, l.Name)
		return on && r.Mode != ModeObserve && slices.ContainsFunc(s.Sources, func(o Source) bool { return o.Name == r.Source && numbers(o) })
	})
}

// unready says why a source gives no ids now, or soon; "" when it does.
func (s *Source) unready() string {
	switch g, f := s.Segment, s.Snowflake; {
	case s.Problem != "" && s.Failing != "" && s.Store != "":
		return "store " + s.Store + ": " + s.Problem
	case s.Problem != "" || s.Failing == "":
		return s.Problem
	case g != nil && (g.Left == 0 || g.Lasts != nil && *g.Lasts < readyMargin):
		return fmt.Sprintf("%d ids are left in memory and store %s does not answer: %s", g.Left, s.Store, s.Failing)
	case f != nil && f.Fence < fenceMargin:
		return fmt.Sprintf("its worker number ends in %.0f s and store %s does not answer: %s", max(f.Fence, 0).Seconds(), s.Store, s.Failing)
	}
	return ""
}
