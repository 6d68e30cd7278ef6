package httpapi

import (
	"net/http"
	"strings"

	"idproxy/idsource/access"
)

// bearer is the token of a request, empty where it has none (RFC 6750).
func bearer(r *http.Request) string {
	const scheme = "Bearer "
	if a := r.Header["Authorization"]; len(a) > 0 && len(a[0]) > len(scheme) && strings.EqualFold(a[0][:len(scheme)], scheme) {
		return a[0][len(scheme):]
	}
	return ""
}

// anybody asks where no token is asked for.
var anybody = &access.User{}

// userOf returns the user of a token; nil: there is none.
func (s *Server) userOf(token string) *access.User {
	if s.cfg.Users == nil {
		return anybody
	}
	return s.cfg.Users.Bearing(token)
}

// most is how many ids a request of the user gets at most.
func (s *Server) most(u *access.User) uint64 {
	if u.Most > 0 {
		return min(u.Most, s.cfg.MaxN)
	}
	return s.cfg.MaxN
}
