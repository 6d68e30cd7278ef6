package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"

	"idproxy/pattern"
)

// User is who may ask, and for what.
type User struct {
	Name  string
	Token string
	Keys  []string // with the wildcards * and ?; empty: all
	MaxN  uint64   // most ids of one request; default that of Config
	Rate  uint64   // ids a second; 0: as fast as they come
}

// user is a User as the server keeps him.
type user struct {
	User
	token [sha256.Size]byte
	pace  pace
}

func usersOf(all []User) []user {
	users := make([]user, len(all))
	for i, u := range all {
		users[i].User, users[i].token = u, sha256.Sum256([]byte(u.Token))
	}
	return users
}

// bearer is the token of a request, empty where it has none (RFC 6750).
func bearer(r *http.Request) string {
	const scheme = "Bearer "
	if a := r.Header["Authorization"]; len(a) > 0 && len(a[0]) > len(scheme) && strings.EqualFold(a[0][:len(scheme)], scheme) {
		return a[0][len(scheme):]
	}
	return ""
}

// userOf returns the user of a token; false: there is none. Without users everybody is one. All
// tokens are compared, and in the same time, so that an answer tells nothing but yes or no.
func (s *Server) userOf(token string) (found *user, ok bool) {
	if len(s.users) == 0 {
		return &user{}, true
	}
	given := sha256.Sum256([]byte(token))
	for i := range s.users {
		if subtle.ConstantTimeCompare(given[:], s.users[i].token[:]) == 1 {
			found = &s.users[i]
		}
	}
	return found, found != nil
}

// may says whether the user may ask for a key.
func (u *user) may(key string) bool {
	for _, k := range u.Keys {
		if pattern.Match(k, key, false) {
			return true
		}
	}
	return len(u.Keys) == 0
}

// most is how many ids a request of the user gets at most.
func (s *Server) most(u *user) uint64 {
	if u.MaxN > 0 {
		return min(u.MaxN, s.cfg.MaxN)
	}
	return s.cfg.MaxN
}

// pace holds a user to so many ids a second. Who took more at once than a second's has to wait
// until they are paid for.
type pace struct {
	mu   sync.Mutex
	paid time.Time // until then all is taken
}

// take takes n ids, or says how long to wait before the next try.
func (p *pace) take(n, perSecond uint64) (wait time.Duration) {
	if perSecond == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if wait = p.paid.Sub(now); wait > 0 {
		return wait
	}
	if idle := now.Add(-time.Second); p.paid.Before(idle) {
		p.paid = idle
	}
	p.paid = p.paid.Add(time.Duration(float64(n) / float64(perSecond) * float64(time.Second)))
	return 0
}
