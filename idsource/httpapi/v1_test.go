package httpapi

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"idproxy/idsource/access"
	"idproxy/integration/assert"
)

// given is the answer of POST /v1/ids.
type given struct {
	Key    string `json:"key"`
	Ranges []struct {
		First, Last string
	} `json:"ranges"`
	IDs []string `json:"ids"`
}

// numbers lists the ids, where they are numbers.
func (g *given) numbers(t testing.TB) (all []uint64) {
	t.Helper()
	number := func(text string) uint64 {
		n, err := strconv.ParseUint(text, 10, 64)
		assert.NoError(t, err)
		return n
	}
	for _, r := range g.Ranges {
		for id := number(r.First); id <= number(r.Last); id++ {
			all = append(all, id)
		}
	}
	for _, text := range g.IDs {
		all = append(all, number(text))
	}
	return all
}

// TestGive asks each kind of source for one id and for several.
func TestGive(t *testing.T) {
	w := newWorld(t, Config{})
	give := func(body string) given {
		t.Helper()
		a := w.ask(t, "POST", "/v1/ids", body, "Content-Type", "application/json; charset=utf-8")
		assert.MustTrue(t, a.status == http.StatusOK, "%s: %d %s", body, a.status, a.body)
		return in[given](t, a)
	}
	assert.Equal(t, "one id", fmt.Sprint(give(`{"key":"orders"}`)), "{orders [{1 1}] []}")
	assert.Equal(t, "a million", fmt.Sprint(give(`{"key":"orders","n":1000000}`)), "{orders [{2 1000001}] []}")
	for n, body := range map[int]string{1: `{"key":"events"}`, 5000: `{"key":"events","n":5000}`} {
		ids := give(body)
		seen := map[uint64]bool{}
		for _, id := range ids.numbers(t) {
			assert.MustTrue(t, id>>12&1023 == 3 && !seen[id], "snowflake %d is of another worker, or came twice", id)
			seen[id] = true
		}
		assert.True(t, len(seen) == n, "%s: %d ids", body, len(seen))
	}
	for key, form := range map[string]string{"links": "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$", "docs": "^[0-9a-f]{24}$"} {
		ids, want := give(fmt.Sprintf(`{"key":%q,"n":65536}`, key)).IDs, regexp.MustCompile(form)
		for i, id := range ids {
			if !want.MatchString(id) || i > 0 && id <= ids[i-1] {
				t.Fatalf("%s %d is %q behind %q", key, i, id, ids[i-1])
			}
		}
		assert.True(t, len(ids) == 65536, "%s: %d ids", key, len(ids))
	}
	assert.Equal(t, "above 2^63", fmt.Sprint(give(`{"key":"last","n":2}`)), fmt.Sprintf("{last [{%d %d}] []}", uint64(math.MaxInt64+10), uint64(math.MaxInt64+11)))
}

// TestGiveRefused: each problem has its status and type, and says what to do. Nothing is drawn.
func TestGiveRefused(t *testing.T) {
	w := newWorld(t, Config{MaxN: 5000})
	few := &counter{}
	w.sources["few"] = few
	for _, tt := range []struct {
		name, body string
		status     int
		word, want string
	}{
		{"no body", "", 400, "bad-request", "EOF"},
		{"no JSON", "key=few", 400, "bad-request", `send {"key": "order_id", "n": 100}`},
		{"a list", `["few"]`, 400, "bad-request", "cannot unmarshal array"},
		{"two values", `{"key":"few"} {"key":"few"}`, 400, "bad-request", "more than one value"},
		{"no key", `{"n":3}`, 400, "bad-request", `"key" is missing`},
		{"a wrong word", `{"key":"few","count":3}`, 400, "bad-request", `unknown field "count"`},
		{"none", `{"key":"few","n":0}`, 400, "bad-request", `"n" is 0`},
		{"fewer than none", `{"key":"few","n":-1}`, 400, "bad-request", "number -1"},
		{"a part", `{"key":"few","n":1.5}`, 400, "bad-request", "number 1.5"},
		{"a text", `{"key":"few","n":"3"}`, 400, "bad-request", "string"},
		{"more than 64 bits", `{"key":"few","n":18446744073709551616}`, 400, "bad-request", "number 18446744073709551616"},
		{"all there are", `{"key":"few","n":18446744073709551615}`, 400, "too-many", "ask for at most 5000"},
		{"too many", `{"key":"few","n":5001}`, 400, "too-many", "5001 ids"},
		{"a large body", `{"key":"few"` + strings.Repeat(" ", 4096) + "}", 413, "body-too-large", "4096 bytes"},
		{"an unknown key", `{"key":"fwe"}`, 404, "unknown-key", `no key "fwe"`},
		{"a long key", `{"key":"` + strings.Repeat("x", 300) + `"}`, 404, "unknown-key", strings.Repeat("x", 100) + `"...`},
		{"a store that is away", `{"key":"broken"}`, 503, "no-ids", `id source "broken": store not available: the log of idproxy says why, reference`},
		{"a source that ended", `{"key":"spent"}`, 503, "no-ids", "exhausted"},
	} {
		a := w.ask(t, "POST", "/v1/ids", tt.body)
		p := problemIn(t, a)
		assert.True(t, a.status == tt.status && p.Type == typePrefix+tt.word && strings.Contains(p.Detail, tt.want), "%s: %d %s, want %d %s with %q", tt.name, a.status, a.body, tt.status, tt.word, tt.want)
		again := a.header.Get("Retry-After")
		assert.True(t, (again == "1") == (tt.name == "a store that is away"), "%s: Retry-After %q", tt.name, again)
		assert.True(t, !strings.Contains(a.body, "10.9.8.7"), "%s: the address of a store is told: %s", tt.name, a.body)
	}
	w.ask(t, "POST", "/v1/ids", `{"key":"few"}`, "Content-Type", "application/x-www-form-urlencoded").is(t, "a form", 415, "")
	assert.Equal(t, "ids were drawn for requests that were refused", few.drawn.Load(), 0)
	assert.Equal(t, "a configured bound of 2^62", newWorld(t, Config{MaxN: 1 << 62}).cfg.MaxN, MaxN)
	w = newWorld(t, Config{})
	w.ask(t, "POST", "/v1/ids", `{"key":"links","n":65537}`).is(t, "a list that is too long", 400, "at most 65536")
	w.ask(t, "POST", "/v1/ids", `{"key":"orders","n":1000001}`).is(t, "more than a million", 400, "at most 1000000")
}

// TestMethods: only what asks for an id draws one. HEAD would draw one and not show it.
func TestMethods(t *testing.T) {
	w := newWorld(t, Config{})
	few := &counter{}
	w.sources["few"] = few
	for _, path := range []string{"/v1/ids", "/v1/decode", "/v1/openapi.json", "/api/segment/get/few", "/tinyid/id/nextId?bizType=few"} {
		for _, method := range []string{"HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"} {
			a := w.ask(t, method, path, `{"key":"few"}`)
			assert.True(t, a.status == 405 && a.header.Get("Allow") != "", "%s %s: %d, allowed are %q", method, path, a.status, a.header.Get("Allow"))
		}
	}
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/id", "/v1/ids/", "/api/", "/api/segment/get/", "/api/cache", "/tinyid/id/", "/tinyid/id/Simple", "/tinyid/id/nextIdSimpleSimple", "//v1/ids"} {
		a := w.ask(t, "GET", path, "")
		assert.True(t, problemIn(t, a).Type == typePrefix+"no-such-path" && a.status == 404, "%s: %d %s", path, a.status, a.body)
	}
	assert.Equal(t, "ids were drawn", few.drawn.Load(), 0)
}

// TestDecode: what an id tells, to whom may ask for its key.
func TestDecode(t *testing.T) {
	w := newWorld(t, Config{Users: access.NewUsers(access.User{Name: "ann", Secret: access.DigestOf("of-ann"), Keys: []string{"orders", "broken"}})})
	for _, tt := range []struct {
		query  string
		status int
		want   string
	}{
		{"?key=orders&id=77", 200, `{"key":"orders","kind":"segment","id":"77","next":"500","reserved":true}`},
		{"?key=orders&id=500", 200, `"reserved":false`},
		{"?key=orders&id=x", 400, "cannot be taken apart: it is no number"},
		{"?key=orders", 400, "key or id is missing"},
		{"?id=4", 400, "key or id is missing"},
		{"?key=docs&id=4", 403, "no right"},
		{"?key=broken&id=4", 503, "is not known: away"},
	} {
		w.ask(t, "GET", "/v1/decode"+tt.query, "", "Authorization", "bearer of-ann").is(t, tt.query, tt.status, tt.want)
	}
	w.ask(t, "GET", "/v1/decode?key=orders&id=77", "").is(t, "without a token", 401, "")
}

// TestDescription: each answer of the description came in some test, or is named here, and the
// check itself finds what is wrong.
func TestDescription(t *testing.T) {
	w := newWorld(t, Config{})
	a := w.ask(t, "GET", "/v1/openapi.json", "")
	assert.True(t, json.Valid([]byte(a.body)) && strings.Contains(a.body, `"openapi": "3.1.1"`), "%d %.100s", a.status, a.body)
	good := w.ask(t, "POST", "/v1/ids", `{"key":"orders"}`)
	for name, spoil := range map[string]func(a *answer){
		"a number that is no text":   func(a *answer) { a.body = `{"key":"orders","ranges":[{"first":1,"last":"1"}]}` },
		"a field that is missing":    func(a *answer) { a.body = `{"key":"orders"}` },
		"a field too many":           func(a *answer) { a.body = strings.Replace(a.body, "{", `{"more":1,`, 1) },
		"another status":             func(a *answer) { a.status = 201 },
		"another type":               func(a *answer) { a.header.Set("Content-Type", "text/html") },
		"a Retry-After":              func(a *answer) { a.header.Set("Retry-After", "1") },
		"no JSON":                    func(a *answer) { a.body = "1" + a.body },
		"a problem of another path":  func(a *answer) { *a = w.ask(t, "GET", "/none", "") },
		"a problem that is unwanted": func(a *answer) { *a = w.ask(t, "GET", "/none", ""); a.status = 503 },
	} {
		bad := answer{good.status, good.header.Clone(), good.body}
		spoil(&bad)
		assert.Fails(t, name+" is not found", w.schema.check("POST", "/v1/ids", bad), "")
	}
}
