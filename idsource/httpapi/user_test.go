package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/access"
	"idproxy/integration/assert"
)

// TestUsers: who may ask for what, over each family of paths.
func TestUsers(t *testing.T) {
	few := &counter{}
	w := newWorld(t, Config{MaxN: 500, Users: access.NewUsers(
		access.User{Name: "all", Secret: access.DigestOf("of-all")},
		access.User{Name: "some", Secret: access.DigestOf("of-some"), Keys: []string{"f?w", "ord*"}, Most: 3},
		access.User{Name: "bold", Secret: access.DigestOf("of-bold"), Most: 5000},
	)})
	w.sources["few"] = few
	for _, tt := range []struct {
		header, key string
		n           string
		status      int
		want        string
	}{
		{"Bearer of-all", "few", "500", 200, "first"},
		{"bearer of-all", "events", "1", 200, "ids"}, // the scheme's case does not matter, RFC 9110
		{"Bearer of-some", "few", "3", 200, "first"},
		{"Bearer of-some", "few", "4", 400, "at most 3"},
		{"Bearer of-bold", "few", "501", 400, "at most 500"},
		{"Bearer of-some", "orders", "1", 200, "first"},
		{"Bearer of-some", "events", "1", 403, `user \"some\" has no right to the key \"events\": add`},
		{"Bearer of-some", "none", "1", 403, "no right"}, // and not whether there is one
		{"Bearer of-none", "few", "1", 401, "the token is wrong"},
		{"Bearer of-al", "few", "1", 401, "the token is wrong"},
		{"Bearer of-all ", "few", "1", 401, "the token is wrong"},
		{"Basic b2YtYWxs", "few", "1", 401, "there is no token"},
		{"", "few", "1", 401, "there is no token: send that of a user"},
		{"Bearer ", "few", "1", 401, "there is no token"},
	} {
		before := few.drawn.Load()
		a := w.ask(t, "POST", "/v1/ids", `{"key":"`+tt.key+`","n":`+tt.n+`}`, "Authorization", tt.header)
		assert.True(t, a.status == tt.status && strings.Contains(a.body, tt.want), "%q, %s of %s: %d %s, want %d %s", tt.header, tt.n, tt.key, a.status, a.body, tt.status, tt.want)
		assert.True(t, (a.header.Get("WWW-Authenticate") != "") == (tt.status == 401), "%q: WWW-Authenticate %q", tt.header, a.header.Get("WWW-Authenticate"))
		assert.True(t, a.status == http.StatusOK || few.drawn.Load() == before, "%q, %s of %s: ids were drawn", tt.header, tt.n, tt.key)
	}
	for path, want := range map[string]int{"/api/segment/get/few": 401, "/api/snowflake/get/events": 401, "/v1/decode?key=few&id=1": 401, "/v1/openapi.json": 200} {
		assert.Equal(t, path+" without a token", w.ask(t, "GET", path, "").status, want)
	}
	assert.Equal(t, "Leaf, a key that the user has no right to", w.ask(t, "GET", "/api/segment/get/events", "", "Authorization", "Bearer of-some").status, 403)
}

// TestForeignPages: no page of another site can have a browser take ids.
func TestForeignPages(t *testing.T) {
	w := newWorld(t, Config{})
	few := &counter{}
	w.sources["few"] = few
	for _, site := range []string{"cross-site", "same-site"} {
		for _, path := range []string{"/api/segment/get/few", "/tinyid/id/nextId?bizType=few", "/v1/openapi.json"} {
			w.ask(t, "GET", path, "", "Sec-Fetch-Site", site).is(t, path+", "+site, 403, "foreign-page")
		}
	}
	assert.Equal(t, "ids were drawn", few.drawn.Load(), 0)
	for _, site := range []string{"same-origin", "none"} { // a page of this host, and somebody who types the address
		assert.Equal(t, site, w.ask(t, "GET", "/api/segment/get/few", "", "Sec-Fetch-Site", site).status, 200)
	}
}

// hangsUp ends the request that it is asked for, as a client that hangs up does.
type hangsUp struct {
	counter
	end context.CancelFunc
}

func (h *hangsUp) Range(context.Context, uint64) (uint64, error) {
	h.end()
	return 0, context.Canceled
}

// TestHangUp: ids that a client did not wait for are his: whether they were drawn is not known.
func TestHangUp(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	s := New(Config{
		Lookup: func(string) (Source, bool) { return &hangsUp{end: end}, true },
		Users:  access.NewUsers(access.User{Name: "slow", Secret: access.DigestOf("of-slow"), Rate: 10}),
	})
	ask := func(ctx context.Context) int {
		r := httptest.NewRequestWithContext(ctx, "GET", "/api/segment/get/x", nil)
		r.Header.Set("Authorization", "Bearer of-slow")
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		return rec.Code
	}
	for range 10 {
		ask(ctx)
	}
	assert.Equal(t, "behind ten hang-ups: status", ask(t.Context()), http.StatusTooManyRequests)
}

// apart is a Source whose ids are not consecutive.
type apart struct{ counter }

func (*apart) Range(context.Context, uint64) (uint64, error) {
	return 0, idsource.NewError("apart", idsource.Apart, nil, "")
}

// TestLists: ids that are not consecutive come in lists, of which all clients together get so many at a
// time.
func TestLists(t *testing.T) {
	w := newWorld(t, Config{})
	w.sources["apart"] = &apart{}
	w.ask(t, "POST", "/v1/ids", `{"key": "apart", "n": 3}`).is(t, "a list", http.StatusOK, `["0","1","2"]`)
	w.ask(t, "POST", "/v1/ids", fmt.Sprintf(`{"key": "apart", "n": %d}`, maxListed+1)).is(t, "a long list", http.StatusBadRequest, "lists 65536 at most")
	settled := func(want int64) {
		t.Helper()
		assert.Until(t, fmt.Sprintf("%d ids in lists are on their way", want), func() bool { return w.listed.Load() == want })
	}
	settled(0)
	w.listed.Add(maxLists - 5)
	w.ask(t, "POST", "/v1/ids", `{"key": "apart", "n": 6}`).is(t, "beside other lists", http.StatusServiceUnavailable, "ids in lists already")
	for range 3 {
		settled(maxLists - 5)
		w.ask(t, "POST", "/v1/ids", `{"key": "apart", "n": 5}`).is(t, "one that has room", http.StatusOK, "")
	}
}

// TestRate: a user gets a second's ids at once and the others at his rate, whatever the paths; one who
// took more waits until they are paid for. Others do not wait for him.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{Server: New(Config{
			Users:  access.NewUsers(access.User{Name: "slow", Secret: access.DigestOf("of-slow"), Rate: 10}, access.User{Name: "fast", Secret: access.DigestOf("of-fast")}),
			Lookup: func(string) (Source, bool) { return &counter{}, true },
		}), schema: describe(t)}
		ask := func(user string) (a answer) {
			return w.ask(t, "GET", "/api/segment/get/few", "", "Authorization", "Bearer of-"+user)
		}
		burst := func() (n int) {
			for ask("slow").status == 200 {
				n++
			}
			return n
		}
		n := burst()
		assert.True(t, n == 10, "%d at once, want a second's", n)
		a := ask("slow")
		assert.True(t, a.status == 429 && a.header.Get("Retry-After") == "1" && strings.Contains(a.body, "10 ids a second"), "beyond the rate: %d %s, Retry-After %s", a.status, a.body, a.header.Get("Retry-After"))
		assert.Equal(t, "another user", ask("fast").status, 200)
		time.Sleep(time.Second)
		assert.Equal(t, "after a second", burst(), 10)
		time.Sleep(time.Hour)
		assert.Equal(t, "after an hour: what was not taken is lost", burst(), 10)
		time.Sleep(2 * time.Second)
		w.ask(t, "POST", "/v1/ids", `{"key":"few","n":1000}`, "Authorization", "Bearer of-slow").is(t, "many at once", 200, "")
		a = ask("slow")
		assert.True(t, a.status == 429 && a.header.Get("Retry-After") == "100", "behind many at once: %d, Retry-After %s, want 100", a.status, a.header.Get("Retry-After"))
		time.Sleep(100 * time.Second)
		ask("slow").is(t, "when that is paid", 200, "")
		burst()
		simple := w.ask(t, "GET", "/tinyid/id/nextIdSimple?bizType=few&batchSize=2&token=of-slow", "")
		assert.True(t, simple.status == 200 && simple.body == "", "as tinyid: %d %q", simple.status, simple.body)
	})
}
