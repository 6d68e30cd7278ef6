package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"idproxy/integration/assert"
)

// FuzzRequest sends any path, query and body to a server of which each answer is described: whatever
// they are, nothing is drawn beyond the bound, and nothing without an answer that says so.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"POST", "/v1/ids", `{"key":"few","n":100}`},
		{"POST", "/v1/ids", `{"key":"few","n":1e2}`},
		{"POST", "/v1/ids", `{"KEY":"few","n":null,"n":7}`},
		{"POST", "/v1/ids", `{"key":"few","n":18446744073709551615}`},
		{"POST", "/v1/ids", "\xef\xbb\xbf{}"},
		{"GET", "/v1/decode?key=few&id=7", ""},
		{"GET", "/v1/decode?key=few;id=7&%", ""},
		{"GET", "/api/segment/get/few", ""},
		{"GET", "/api/segment/get/%66ew?key=x", ""},
		{"GET", "/tinyid/id/nextId?bizType=few&batchSize=5", ""},
		{"GET", "/tinyid/id/nextIdSimple?bizType=few&batchSize=-2147483648", ""},
		{"POST", "/tinyid/id/nextSegmentIdSimple?token=0&bizType=few", "bizType=other"},
		{"POST", "/tinyid/id/nextSegmentId?bizType=few&bizType=other", ""},
		{"HEAD", "/api/segment/get/few", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	const most, step = 50, 20
	schema := describe(f)
	f.Fuzz(func(t *testing.T, method, target, body string) {
		if method == "" || strings.ContainsFunc(method, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }) {
			return // net/http answers to those
		}
		if !strings.HasPrefix(target, "/") || strings.ContainsFunc(target, func(r rune) bool { return r == ' ' || unicode.IsControl(r) || r == unicode.ReplacementChar }) {
			return
		}
		if _, err := http.NewRequest(method, target, nil); err != nil {
			return
		}
		few := &counter{}
		s := New(Config{
			MaxN: most, TinyIDStep: step,
			Lookup: func(key string) (Source, bool) { return few, key == "few" },
			Decode: func(key, id string) (*Decoded, error) { return &Decoded{Key: key, Kind: "snowflake", ID: id}, nil },
		})
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Header.Set("Content-Type", map[bool]string{true: "application/json", false: "application/x-www-form-urlencoded"}[strings.HasPrefix(body, "{")])
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		a := answer{rec.Code, rec.Result().Header, rec.Body.String()}
		if err := schema.check(method, r.URL.Path, a); err != nil {
			t.Errorf("%v: %d %s", err, a.status, a.body)
		}
		n := few.drawn.Load()
		assert.True(t, n <= most && (n <= 0 || a.status == http.StatusOK && a.body != ""), "%d ids were drawn, and the answer is %d %q", n, a.status, a.body)
	})
}
