package resp

import (
	"sync"
	"time"
)

// rates know how many ids users had. The zero value is ready.
type rates struct {
	mu    sync.Mutex
	users map[string]*allowance
}

// allowance is what a user may have without a wait. It grows by his rate up to what comes in a
// second. A command may take more than there is: the user waits then until that is paid back, so
// that he can have many ids at once and no more than his rate over time.
type allowance struct {
	left float64
	at   time.Time
}

// take counts n ids as the user's, or returns how long he has to wait until he may ask.
func (r *rates) take(u *User, n uint64) (wait time.Duration) {
	if u.Rate == 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now, rate := time.Now(), float64(u.Rate)
	a := r.users[u.Name]
	if a == nil {
		if r.users == nil {
			r.users = map[string]*allowance{}
		}
		a = &allowance{left: rate}
		r.users[u.Name] = a
	} else {
		a.left = min(rate, a.left+rate*now.Sub(a.at).Seconds())
	}
	a.at = now
	if a.left < 1 {
		return max(time.Millisecond, time.Duration((1-a.left)/rate*float64(time.Second))).Round(time.Millisecond)
	}
	a.left -= float64(n)
	return 0
}

// giveBack counts n ids as the user's no more.
func (r *rates) giveBack(u *User, n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.users[u.Name]; a != nil {
		a.left += float64(n)
	}
}
