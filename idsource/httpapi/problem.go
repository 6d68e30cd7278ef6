package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"idproxy/idsource"
)

// problem is an error as RFC 9457 has it. Its type stays as it is; its detail is for people.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	retry time.Duration // when the same request may work; 0: that is not known
}

// typePrefix is in front of the last word of each type.
const typePrefix = "urn:idproxy:problem:"

func newProblem(word, title string, status int, format string, args ...any) *problem {
	return &problem{Type: typePrefix + word, Title: title, Status: status, Detail: fmt.Sprintf(format, args...)}
}

// Error is the detail.
func (p *problem) Error() string { return p.Detail }

// write answers with the problem and returns its status.
func (p *problem) write(w http.ResponseWriter) int {
	p.headers(w)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone
	return p.Status
}

// headers sets those that go with the problem, whatever the body is.
func (p *problem) headers(w http.ResponseWriter) {
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(p.retry.Seconds()), 'f', 0, 64))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="ids"`)
	}
}

// shown is a text of the client's, short enough to be answered.
func shown(text string) string {
	const most = 100
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}

func foreignPage() *problem {
	return newProblem("foreign-page", "Asked by a page of another site", http.StatusForbidden,
		"a browser asks for ids on behalf of a page of another site: have the page ask its own server, and that one idproxy")
}

func noPath(path string) *problem {
	return newProblem("no-such-path", "No such path", http.StatusNotFound,
		"nothing is at %s: GET /v1/openapi.json describes all paths", shown(path))
}

func wrongMethod(method string, want []string) *problem {
	return newProblem("wrong-method", "Wrong method", http.StatusMethodNotAllowed,
		"%s is not understood here: use %s", shown(method), strings.Join(want, " or "))
}

func badRequest(format string, args ...any) *problem {
	return newProblem("bad-request", "Bad request", http.StatusBadRequest, format, args...)
}

func tooLarge() *problem {
	return newProblem("body-too-large", "Body too large", http.StatusRequestEntityTooLarge,
		"the body is larger than %d bytes: ask for one key in one request", maxBody)
}

func notJSON(contentType string) *problem {
	return newProblem("not-json", "Not JSON", http.StatusUnsupportedMediaType,
		"the body is said to be %s: send JSON, with Content-Type: application/json", shown(contentType))
}

func noToken(given string) *problem {
	what := "the token is wrong"
	if given == "" {
		what = "there is no token"
	}
	return newProblem("no-token", "No token", http.StatusUnauthorized,
		"%s: send that of a user of ids.http as Authorization: Bearer TOKEN", what)
}

func notAllowed(user, key string) *problem {
	return newProblem("not-allowed", "Not allowed", http.StatusForbidden,
		"user %s has no right to the key %s: add the key to the sources of the user, in ids.http or by idproxy user add --replace", shown(user), shown(key))
}

func noKey(key string) *problem {
	return newProblem("unknown-key", "Unknown key", http.StatusNotFound,
		"there is no id source and no key %s with such ids: idproxy source list names all, and a key that is new in a store is found within a minute", shown(key))
}

func tooMany(key string, n, most uint64) *problem {
	return newProblem("too-many", "Too many ids", http.StatusBadRequest,
		"%d ids of key %s are more than one request may get: ask for at most %d", n, shown(key), most)
}

func tooManyOfSource(text string) *problem {
	return newProblem("too-many", "Too many ids", http.StatusBadRequest, "%s: ask for fewer", text)
}

func tooManyListed(n uint64) *problem {
	return newProblem("too-many", "Too many ids", http.StatusBadRequest, "%d ids were asked for, and this source lists %d at most: its ids are not consecutive", n, maxListed)
}

func tooHigh(key string, id uint64) *problem {
	return newProblem("too-high", "Id too high", http.StatusServiceUnavailable,
		"id %d of key %s is above 2^63-1, the greatest number of this protocol: use POST /v1/ids, which has ids as text", id, shown(key))
}

func tooFast(user string, rate uint64, wait time.Duration) *problem {
	p := newProblem("too-fast", "Too fast", http.StatusTooManyRequests,
		"user %s has taken the %d ids a second that are configured as rate: wait for %v", shown(user), rate, wait.Round(time.Millisecond))
	p.retry = wait
	return p
}

// noIDs is that a source has no ids now. Where that may pass by itself, the client is told to try
// again.
func noIDs(err error, text string) *problem {
	p := newProblem("no-ids", "No ids now", http.StatusServiceUnavailable, "%s", text)
	for _, passing := range []error{idsource.NotReady, idsource.StoreDown, idsource.Fenced} {
		if errors.Is(err, passing) {
			p.retry = time.Second
		}
	}
	return p
}

func busy() *problem {
	p := newProblem("no-ids", "No ids now", http.StatusServiceUnavailable, "other clients are being sent %d ids in lists already: ask again, or for fewer", maxLists)
	p.retry = time.Second
	return p
}

func noPosition(key, text string) *problem {
	p := newProblem("no-position", "Position not known", http.StatusServiceUnavailable, "where key %s stands is not known: %s", shown(key), text)
	p.retry = time.Second
	return p
}
