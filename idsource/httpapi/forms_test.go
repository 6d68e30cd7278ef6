package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"idproxy/idsource/access"
	"idproxy/integration/assert"
)

// TestLeaf: ids as text, and errors as Leaf's clients know them.
func TestLeaf(t *testing.T) {
	w := newWorld(t, Config{})
	for _, tt := range []struct {
		path   string
		status int
		want   string // part of the body
	}{
		{"/api/segment/get/orders", 200, "1"},
		{"/api/segment/get/orders", 200, "2"},
		{"/api/segment/get/none", 500, `"message":"Result{id=-2, status=EXCEPTION}","path":"/api/segment/get/none"`},
		{"/api/segment/get/events", 500, "Result{id=-2, status=EXCEPTION}"}, // no segment: a program may count on small numbers
		{"/api/snowflake/get/orders", 500, "Result{id=-2, status=EXCEPTION}"},
		{"/api/segment/get/links", 500, "Result{id=-2, status=EXCEPTION}"},
		{"/api/snowflake/get/docs", 500, "Result{id=-2, status=EXCEPTION}"},
		{"/api/segment/get/broken", 500, "Result{id=-3, status=EXCEPTION}"},
		{"/api/segment/get/last", 500, `above 2^63-1`},
		{"/api/snowflake/get", 404, "no-such-path"},
	} {
		a := w.ask(t, "GET", tt.path, "")
		assert.True(t, a.status == tt.status && strings.Contains(a.body, tt.want) && (tt.status != 200 || a.body == tt.want), "%s: %d %s, want %d %s", tt.path, a.status, a.body, tt.status, tt.want)
		assert.True(t, a.status != 500 || strings.Contains(a.body, `"exception":"com.sankuai.inf.leaf.server.exception.LeafServerException"`) && !strings.Contains(a.body, "10.9.8.7"), "%s: %s", tt.path, a.body)
	}
	a := w.ask(t, "POST", "/api/snowflake/get/events", "")
	assert.True(t, a.status == http.StatusOK && len(a.body) >= 15, "a snowflake: %d %s", a.status, a.body)
	a = w.ask(t, "GET", "/api/snowflake/get/events", "", "Accept", "application/json, application/*+json")
	assert.True(t, a.status == http.StatusOK && a.header.Get("Content-Type") == "application/json", "for those who read JSON alone: %d %s %s", a.status, a.header.Get("Content-Type"), a.body)
	w.sources["hidden"] = scattered{&counter{}}
	for path, want := range map[string]int{"/api/segment/get/hidden": 200, "/api/snowflake/get/hidden": 500, "/tinyid/id/nextSegmentIdSimple?bizType=hidden&token=": 200} {
		a := w.ask(t, "GET", path, "")
		assert.True(t, a.status == want && (!strings.Contains(path, "Simple") || a.body == ""), "%s of scrambled ids: %d %s", path, a.status, a.body)
	}
	w.sources["a b/c"] = &counter{}
	assert.Equal(t, "a key with marks", w.ask(t, "GET", "/api/segment/get/a%20b%2Fc", "").body, "0")
}

// tinyClient makes ids as tinyid's Java client does (SegmentId.init and nextId, HttpSegmentIdServiceImpl).
type tinyClient struct{ current, loading, most, delta, remainder int64 }

// read reads the answer of nextSegmentIdSimple.
func (c *tinyClient) read(t *testing.T, text string) {
	t.Helper()
	n, err := fmt.Sscanf(text, "%d,%d,%d,%d,%d", &c.current, &c.loading, &c.most, &c.delta, &c.remainder)
	assert.MustTrue(t, n == 5 && err == nil, "%q: %v", text, err)
	if c.current%c.delta == c.remainder {
		return
	}
	for range c.delta + 1 {
		if c.current++; c.current%c.delta == c.remainder {
			c.current -= c.delta
			return
		}
	}
}

// next returns false when the segment is used up.
func (c *tinyClient) next() (id int64, ok bool) {
	c.current += c.delta
	return c.current, c.current <= c.most
}

// TestTinySegment: the ids that a client of tinyid makes of segments are those that were drawn for it,
// all of them and no other; INSERTs and other clients get others. As a control, a client that takes one
// more than a segment has is found out.
func TestTinySegment(t *testing.T) {
	w := newWorld(t, Config{TinyIDStep: 250})
	use := func(more int64) (twice int) {
		seen := map[int64]bool{}
		note := func(id int64) {
			if seen[id] {
				twice++
			}
			seen[id] = true
		}
		for range 20 {
			var c tinyClient
			c.read(t, w.ask(t, "POST", "/tinyid/id/nextSegmentIdSimple?token=any&bizType=orders", "").body)
			assert.Equal(t, fmt.Sprintf("%+v: it asks for the next segment at", c), c.loading, c.most-250+50)
			c.most += more
			for n := 0; ; n++ {
				id, ok := c.next()
				if !ok {
					assert.Equal(t, "ids of a segment of 250", n, 250+int(more))
					break
				}
				note(id)
			}
			for _, id := range in[struct{ Data []int64 }](t, w.ask(t, "GET", "/tinyid/id/nextId?bizType=orders&batchSize=250", "")).Data {
				note(id)
			}
		}
		return twice
	}
	assert.Equal(t, "ids came twice", use(0), 0)
	assert.Greater(t, "the control: ids that came twice", use(1), 0)
}

// TestTinyForms: each form of answer, as tinyid's server has it.
func TestTinyForms(t *testing.T) {
	w := newWorld(t, Config{TinyIDStep: 10, MaxN: 5, Users: access.NewUsers(access.User{Name: "ann", Secret: access.DigestOf("of-ann"), Keys: []string{"few", "zero", "ev*", "last", "broken"}}, access.User{Name: "bob", Secret: access.DigestOf("of-bob")})})
	few := &counter{}
	few.next.Store(7)
	w.sources["few"], w.sources["zero"] = few, &counter{}
	w.cfg.MaxN = 20
	for _, tt := range []struct {
		path, query, want string
	}{
		{"nextId", "bizType=few", `{"data":[7],"code":200,"message":""}`},
		{"nextId", "bizType=few&batchSize=3", `{"data":[8,9,10],"code":200,"message":""}`},
		{"nextId", "bizType=few&batchSize=1000", `{"data":[11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30],"code":200,"message":""}`},
		{"nextId", "bizType=few&batchSize=0", `{"data":[],"code":200,"message":""}`},
		{"nextId", "bizType=few&batchSize=-4", `{"data":[],"code":200,"message":""}`},
		{"nextIdSimple", "bizType=few", "31"},
		{"nextIdSimple", "bizType=few&batchSize=2", "32,33"},
		{"nextIdSimple", "bizType=few&batchSize=0", ""},
		{"nextSegmentId", "bizType=few", `{"data":{"maxId":43,"loadingId":35,"currentId":33,"delta":1,"remainder":0},"code":200,"message":""}` + "\n"},
		{"nextSegmentIdSimple", "bizType=few", "43,45,53,1,0"},
		{"nextSegmentIdSimple", "bizType=zero", "0,2,9,1,0"}, // id 0 is left out
		{"nextIdSimple", "bizType=few&token=wrong", ""},
		{"nextSegmentIdSimple", "bizType=links", ""}, // he has no right to it
		{"nextSegmentIdSimple", "bizType=events", ""},
		{"nextIdSimple", "bizType=last", ""},
	} {
		if !strings.Contains(tt.query, "token=") {
			tt.query += "&token=of-ann"
		}
		a := w.ask(t, "GET", "/tinyid/id/"+tt.path+"?"+tt.query, "")
		assert.True(t, a.status == http.StatusOK && a.body == tt.want, "%s?%s: %d %s, want %s", tt.path, tt.query, a.status, a.body, tt.want)
	}
	assert.Equal(t, "ids were drawn", few.drawn.Load(), 47)
	for query, want := range map[string]string{
		"token=wrong&bizType=few":      `"code":5,"message":"token is error: the token is wrong`,
		"bizType=few":                  `"code":5,"message":"token is error: there is no token`,
		"token=of-ann&bizType=links":   `"code":5,"message":"token is error: user \"ann\" has no right to the key \"links\"`,
		"token=of-ann&bizType=evident": `"code":6,"message":"there is no id source and no key \"evident\"`,
		"token=of-ann&bizType=broken":  `"code":6,"message":"id source \"broken\": store not available: the log of idproxy says why`,
		"token=of-bob&bizType=links":   `"code":6,"message":"there is no id source and no key \"links\" with such ids`,
	} {
		for _, path := range []string{"nextId", "nextSegmentId"} {
			a := w.ask(t, "GET", "/tinyid/id/"+path+"?"+query, "")
			assert.True(t, a.status == 200 && strings.HasPrefix(a.body, `{"data":null,`+want), "%s?%s: %d %s, want %s", path, query, a.status, a.body, want)
		}
	}
	ids := w.ask(t, "POST", "/tinyid/id/nextIdSimple", "bizType=few&batchSize=2&token=of-bob", "Content-Type", form)
	assert.Equal(t, fmt.Sprintf("a form: %d", ids.status), ids.body, "54,55")
	segment := w.ask(t, "POST", "/tinyid/id/nextSegmentIdSimple", "bizType=zero&token=of-ann", "Content-Type", form)
	assert.True(t, strings.HasSuffix(segment.body, ",1,0"), "a form for a segment: %d %s", segment.status, segment.body)
	header := w.ask(t, "GET", "/tinyid/id/nextIdSimple?bizType=few", "", "Authorization", "Bearer of-ann")
	assert.Equal(t, fmt.Sprintf("a token in the header: %d", header.status), header.body, "56")
	for _, query := range []string{"batchSize=x", "batchSize=2147483648", "batchSize=1.0", "%zz"} {
		w.ask(t, "GET", "/tinyid/id/nextId?bizType=few&token=of-ann&"+query, "").is(t, query, http.StatusBadRequest, "")
	}
}

// TestJavaClients sends what clients of Leaf and tinyid send, byte for byte, and reads what they read.
//
// tinyid's own client (TinyIdHttpUtils.post) is HttpURLConnection of the JDK, whose bytes were taken
// down from OpenJDK 17. Leaf has no client of its own; its users ask with RestTemplate of Spring,
// for a Long or a String, which have these headers.
func TestJavaClients(t *testing.T) {
	w := newWorld(t, Config{TinyIDStep: 100, Users: access.NewUsers(access.User{Name: "ann", Secret: access.DigestOf("of-ann")})})
	addr, _ := w.serve(t)
	open := newWorld(t, Config{})
	leaf, _ := open.serve(t)
	jdk := "Cache-Control: no-cache\r\nPragma: no-cache\r\nUser-Agent: Java/17.0.15\r\nHost: ids:8080\r\nAccept: text/html, image/gif, image/jpeg, */*; q=0.2\r\n" +
		"Connection: keep-alive\r\nContent-type: application/x-www-form-urlencoded\r\nContent-Length: 0\r\n\r\n"
	spring := func(accept string) string {
		return "Accept: " + accept + "\r\nUser-Agent: Java/17.0.15\r\nHost: ids:8080\r\nConnection: keep-alive\r\n\r\n"
	}
	for _, tt := range []struct {
		name, addr, request string
		media, want         string
	}{
		{"tinyid's client", addr, "POST /tinyid/id/nextSegmentIdSimple?token=of-ann&bizType=orders HTTP/1.1\r\n" + jdk, "text/plain", "0,20,100,1,0"},
		{"tinyid's client, the next segment", addr, "POST /tinyid/id/nextSegmentIdSimple?token=of-ann&bizType=orders HTTP/1.1\r\n" + jdk, "text/plain", "100,120,200,1,0"},
		{"tinyid's client with a wrong token: it takes an empty text for no segment", addr, "POST /tinyid/id/nextSegmentIdSimple?token=none&bizType=orders HTTP/1.1\r\n" + jdk, "text/plain", ""},
		{"RestTemplate for a Long", leaf, "GET /api/segment/get/orders HTTP/1.1\r\n" + spring("application/json, application/*+json"), "application/json", "1"},
		{"RestTemplate for a String", leaf, "GET /api/segment/get/orders HTTP/1.1\r\n" + spring("text/plain, application/json, application/*+json, */*"), "text/plain", "2"},
		{"curl", leaf, "GET /api/segment/get/orders HTTP/1.1\r\n" + spring("*/*"), "text/plain", "3"},
	} {
		c := assert.Of(net.Dial("tcp", tt.addr)).Must(t)
		assert.Of(io.WriteString(c, tt.request)).Must(t)
		a := assert.Of(http.ReadResponse(bufio.NewReader(c), nil)).Must(t)
		body, err := io.ReadAll(a.Body)
		assert.NoError(t, err)
		media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
		assert.True(t, a.StatusCode == http.StatusOK && media == tt.media && string(body) == tt.want, "%s: %s, %s %q; want %s %q", tt.name, a.Status, media, body, tt.media, tt.want)
		_ = c.Close()
	}
}
