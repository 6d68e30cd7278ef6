package limit

import (
	"container/list"
	"sync"
	"sync/atomic"
)

// Logins are the sessions that have not logged in, the oldest first. The zero value is ready.
type Logins struct {
	mu    sync.Mutex // guards all below, and the places of logins
	order list.List  // of *Login
}

// Login is one of them.
type Login struct {
	// Awaited is set while its client, and not the server, has to say something.
	Awaited atomic.Bool
	// End ends it; it does not wait.
	End   func()
	place *list.Element // nil: it is over
}

// Begin adds a login, of which there may be most; 0: any number. Above that the oldest one ends whose
// client is awaited. Where none is, the server is what all wait for: Begin reports false.
func (l *Logins) Begin(login *Login, most int) (began bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if most > 0 && l.order.Len() >= most {
		oldest := l.awaited()
		if oldest == nil {
			return false
		}
		l.over(oldest)
		oldest.End()
	}
	login.place = l.order.PushBack(login)
	return true
}

func (l *Logins) awaited() *Login {
	for e := l.order.Front(); e != nil; e = e.Next() {
		if login := e.Value.(*Login); login.Awaited.Load() {
			return login
		}
	}
	return nil
}

// Over takes a login away, if it is there.
func (l *Logins) Over(login *Login) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over(login)
}

func (l *Logins) over(login *Login) {
	if login.place != nil {
		l.order.Remove(login.place)
		login.place = nil
	}
}
