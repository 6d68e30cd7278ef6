package access

import (
	"sync"
	"time"
)

// Rates know how many ids users had. The zero value is ready.
type Rates struct {
	mu    sync.Mutex
	users map[string]*allowance
}

// allowance is what a user may have without a wait. It grows by his rate up to what comes in a
// second.
type allowance struct {
	left float64
	at   time.Time
}

// Take counts n ids as the user's, or returns how long he has to wait until he may ask. He may take
// more than there is, and waits then until that is paid back: so he can have many ids at once, and
// no more than his rate over time.
func (u *Users) Take(user *User, n uint64) (wait time.Duration) {
	if u == nil || user.Rate == 0 {
		return 0
	}
	r := u.ratesOf(user)
	r.mu.Lock()
	defer r.mu.Unlock()
	now, rate := time.Now(), float64(user.Rate)
	a := r.users[user.Name]
	if a == nil {
		if r.users == nil {
			r.users = map[string]*allowance{}
		}
		a = &allowance{left: rate}
		r.users[user.Name] = a
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

// GiveBack counts n ids as the user's no more: he did not get them.
func (u *Users) GiveBack(user *User, n uint64) {
	if u == nil {
		return
	}
	r := u.ratesOf(user)
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.users[user.Name]; a != nil {
		a.left += float64(n)
	}
}
