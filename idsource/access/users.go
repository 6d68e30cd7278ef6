package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync/atomic"

	"idproxy/pattern"
)

// Digest is what is kept of a password or token: its SHA-256.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a password or token.
func DigestOf(secret string) Digest { return sha256.Sum256([]byte(secret)) }

// User is who may ask.
type User struct {
	Name   string
	Secret Digest   // of his password or token
	Keys   []string // with * and ? for any characters and for one; empty: all
	Most   uint64   // ids at once; 0: as many as the server gives
	Rate   uint64   // ids a second; 0: as many as there are
	Create bool     // may create keys that he may ask for
	Set    bool     // may move keys up that he may ask for
	Shared bool     // he is a user of several servers: a store has him

	of *set
}

// May reports whether the user may ask for a key.
func (u *User) May(key string) bool {
	for _, k := range u.Keys {
		if pattern.Match(k, key, false) {
			return true
		}
	}
	return len(u.Keys) == 0
}

// set is users that do not change.
type set struct{ users []User }

// Users are those who may ask. They are safe for concurrent use. A nil Users is for servers that ask
// nobody who he is.
type Users struct {
	now    atomic.Pointer[set]
	rates  Rates
	shared *Rates // of users who are those of other servers, too; nil: there are none
}

// Sharing returns users of whom those that are shared count what they had with those of other Users.
func Sharing(rates *Rates, users ...User) *Users {
	u := NewUsers(users...)
	u.shared = rates
	return u
}

// ratesOf returns where it is counted what a user had.
func (u *Users) ratesOf(user *User) *Rates {
	if user.Shared && u.shared != nil {
		return u.shared
	}
	return &u.rates
}

// NewUsers returns some users, whom Replace may change.
func NewUsers(users ...User) *Users {
	u := &Users{}
	u.Replace(users)
	return u
}

// Replace has others be the users. What a user of the same name has taken counts on.
func (u *Users) Replace(users []User) {
	s := &set{users: make([]User, len(users))}
	for i, one := range users {
		one.of = s
		s.users[i] = one
	}
	u.now.Store(s)
}

// Len is how many there are.
func (u *Users) Len() int {
	if u == nil {
		return 0
	}
	return len(u.now.Load().users)
}

// find returns the user that is meant; nil: there is none. All are compared, so that an answer tells
// nothing but yes or no.
func (s *set) find(is func(*User) int) (found *User) {
	for i := range s.users {
		if is(&s.users[i]) == 1 {
			found = &s.users[i]
		}
	}
	return found
}

// Named returns the user of a name and a password; nil: there is none.
func (u *Users) Named(name, password string) *User {
	given, who := DigestOf(password), DigestOf(name)
	return u.now.Load().find(func(one *User) int {
		name := DigestOf(one.Name)
		return subtle.ConstantTimeCompare(name[:], who[:]) & subtle.ConstantTimeCompare(one.Secret[:], given[:])
	})
}

// Bearing returns the user of a token; nil: there is none.
func (u *Users) Bearing(token string) *User {
	given := DigestOf(token)
	return u.now.Load().find(func(one *User) int { return subtle.ConstantTimeCompare(one.Secret[:], given[:]) })
}

// Still returns what a user who logged in is by now; nil: he is gone, or has another secret.
func (u *Users) Still(user *User) *User {
	s := u.now.Load()
	if user.of == s {
		return user
	}
	for i := range s.users {
		if one := &s.users[i]; one.Name == user.Name && one.Secret == user.Secret {
			return one
		}
	}
	return nil
}
