package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/idsource/objectid"
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
	"idproxy/idsource/uuid"
	"idproxy/integration/assert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter is a segment that counts, and notes how many ids were drawn.
type counter struct {
	next, drawn atomic.Uint64
	err         error
}

func (c *counter) Fill(_ context.Context, ids []uint64, stride uint64) error {
	if c.err != nil {
		return c.err
	}
	n := uint64(len(ids)) * stride
	c.drawn.Add(n)
	first := c.next.Add(n) - n
	for i := range ids {
		ids[i] = first + uint64(i)*stride
	}
	return nil
}

func (c *counter) Range(ctx context.Context, n uint64) (uint64, error) {
	var one [1]uint64
	err := c.Fill(ctx, one[:], n)
	return one[0], err
}

// scattered is a Source of numbers without ranges.
type scattered struct{ Source }

func (scattered) Scrambled() {}

// texts is a Source of ids that are text.
type texts struct {
	Source
	text func(id [2]uint64) string
}

func (t texts) Text(id [2]uint64) string { return t.text(id) }

// realSources makes one source of each kind, the numbers of which are kept in files.
func realSources(t *testing.T) map[string]Source {
	t.Helper()
	st := assert.Of(file.New(file.Config{Dir: t.TempDir() + "/ids"})).Must(t)
	assert.Must(t, st.Open(t.Context(), "orders", 1, 0))
	orders, err1 := segment.New(segment.Config{Name: "orders", Store: st, Step: 100, MaxStep: 100})
	events, err2 := snowflake.New(snowflake.Config{Name: "events", Fences: st, Worker: 3})
	assert.Must(t, errors.Join(err1, err2))
	t.Cleanup(func() {
		ctx := context.Background() // that of the test is done
		assert.NoError(t, errors.Join(orders.Close(ctx), events.Close(ctx), st.Close()))
	})
	return map[string]Source{"orders": orders, "events": events, "links": texts{uuid.New(), func(id [2]uint64) string { return uuid.ID(id).String() }}, "docs": texts{objectid.New(), func(id [2]uint64) string { return objectid.ID(id).String() }}}
}

// world is a server with the description that its answers are held to.
type world struct {
	*Server
	sources map[string]Source
	schema  *description
}

// newWorld makes a server of real sources, of one that has no ids, and of one that ends.
func newWorld(t *testing.T, c Config) *world {
	t.Helper()
	w := &world{sources: realSources(t), schema: describe(t)}
	w.sources["broken"] = &counter{err: idsource.NewError("broken", idsource.StoreDown, errors.New("dial tcp 10.9.8.7:3306: refused"), "see to the store")}
	w.sources["spent"] = &counter{err: idsource.NewError("spent", idsource.Exhausted, nil, "")}
	last := &counter{}
	last.next.Store(math.MaxInt64 + 10)
	w.sources["last"] = last
	c.Lookup = func(key string) (Source, bool) {
		src, ok := w.sources[key]
		return src, ok
	}
	if c.Decode == nil {
		c.Decode = func(key, id string) (*Decoded, error) {
			if id == "x" {
				return nil, errors.New("it is no number")
			}
			return &Decoded{Key: key, Kind: KindSegment, ID: id}, nil
		}
	}
	if c.Position == nil {
		c.Position = func(_ context.Context, key string) (uint64, error) {
			if key == "broken" {
				return 0, errors.New("away")
			}
			return 500, nil
		}
	}
	w.Server = New(c)
	return w
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
}

// is reports another status, or a body that lacks a word.
func (a answer) is(t testing.TB, what string, status int, word string) {
	t.Helper()
	assert.True(t, a.status == status && strings.Contains(a.body, word), "%s: %d %s, want %d %s", what, a.status, a.body, status, word)
}

// ask sends a request and holds the answer to the description.
func (w *world) ask(t *testing.T, method, target, body string, headers ...string) answer {
	t.Helper()
	ctx, end := context.WithCancel(t.Context()) // a server ends it with the request
	defer end()
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	a := answer{rec.Code, rec.Result().Header, rec.Body.String()}
	assert.NoError(t, w.schema.check(method, r.URL.Path, a), method, target, a.body)
	if a.status == http.StatusOK {
		assert.NoError(t, w.schema.asked(method, r.URL, r.Header.Get("Content-Type"), body), method, target, "is answered, and its", body)
	}
	assert.Equal(t, method+" "+target+": Cache-Control, without which a cache could give an id twice", a.header.Get("Cache-Control"), "no-store")
	return a
}

// description is the OpenAPI document.
type description struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	doc      map[string]any
	seen     map[string]bool // method, path and status of answers that were held to it
}

func describe(t testing.TB) *description {
	t.Helper()
	doc := assert.Of(jsonschema.UnmarshalJSON(strings.NewReader(string(openAPI)))).Must(t)
	d := &description{compiler: jsonschema.NewCompiler(), doc: doc.(map[string]any), seen: map[string]bool{}}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	assert.Must(t, d.compiler.AddResource("openapi.json", doc))
	return d
}

// get follows a path of keys, and what the values refer to. It returns where the value stands.
func (d *description) get(keys ...string) (value map[string]any, pointer string) {
	value, pointer = d.doc, "#"
	for _, key := range keys {
		next, ok := value[key].(map[string]any)
		if !ok {
			return nil, ""
		}
		value, pointer = next, pointer+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		if ref, ok := value["$ref"].(string); ok {
			value, pointer = d.doc, ref
			for _, key := range strings.Split(ref, "/")[1:] {
				value = value[key].(map[string]any)
			}
		}
	}
	return value, pointer
}

// described is the path of the document for one of a request, "" where there is none.
func (d *description) described(path string) string {
	paths, _ := d.get("paths")
	for p := range paths {
		before, _, isPattern := strings.Cut(p, "{key}")
		if p == path || isPattern && strings.HasPrefix(path, before) && len(path) > len(before) {
			return p
		}
	}
	return ""
}

// check says what of an answer is not as described.
func (d *description) check(method, path string, a answer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, contentType := d.described(path), a.header.Get("Content-Type")
	if at == "" {
		if a.status != http.StatusNotFound && a.status != http.StatusForbidden {
			return fmt.Errorf("status %d of a path that is not described", a.status)
		}
		return d.fits("#/components/schemas/Problem", a.body)
	}
	status := fmt.Sprint(a.status)
	method = strings.ToLower(method)
	if operations, _ := d.get("paths", at); operations[method] == nil {
		for other := range operations { // its answers to wrong methods are those of the path
			method = other
		}
		if a.status != http.StatusMethodNotAllowed && a.status != http.StatusForbidden {
			return fmt.Errorf("status %d for a method that is not described", a.status)
		}
	}
	response, _ := d.get("paths", at, method, "responses", status)
	if response == nil {
		return fmt.Errorf("status %s is not described", status)
	}
	d.seen[method+" "+at+" "+status] = true
	if headers, ok := response["headers"].(map[string]any); ok {
		for name, h := range headers {
			if h.(map[string]any)["required"] == true && a.header.Get(name) == "" {
				return fmt.Errorf("there is no %s", name)
			}
		}
	} else if a.header.Get("Retry-After") != "" {
		return errors.New("the Retry-After is not described")
	}
	content := response["content"].(map[string]any)
	if content[contentType] == nil {
		return fmt.Errorf("Content-Type %q is not described, %q are", contentType, slices.Collect(maps.Keys(content)))
	}
	if strings.HasPrefix(contentType, "text/plain") {
		text, _ := json.Marshal(a.body) //nolint:errchkjson // a string
		a.body = string(text)
	}
	_, pointer := d.get("paths", at, method, "responses", status)
	return d.fits(pointer+"/content/"+strings.ReplaceAll(contentType, "/", "~1")+"/schema", a.body)
}

const form = "application/x-www-form-urlencoded"

// asked says what of a request is not described: a name in the query or in a form, or a body.
func (d *description) asked(method string, u *url.URL, contentType, body string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := []string{"paths", d.described(u.Path), strings.ToLower(method)}
	operation, _ := d.get(keys...)
	known := map[string]bool{"token": strings.HasPrefix(u.Path, tinyPrefix)} // it is a security scheme
	parameters, _ := operation["parameters"].([]any)
	for _, p := range parameters {
		known[p.(map[string]any)["name"].(string)] = true
	}
	for name := range u.Query() {
		if !known[name] {
			return fmt.Errorf("parameter %q is not described", name)
		}
	}
	if body == "" {
		return nil
	}
	contentType, _, err := mime.ParseMediaType(cmp.Or(contentType, "application/json"))
	if err != nil {
		return err
	}
	_, pointer := d.get(append(keys, "requestBody", "content", contentType, "schema")...)
	if pointer == "" {
		return fmt.Errorf("body of type %s is not described", contentType)
	}
	if contentType != form {
		return d.fits(pointer, body)
	}
	described, _ := d.get(append(keys, "requestBody", "content", contentType, "schema", "properties")...)
	fields, err := url.ParseQuery(body)
	for name := range fields {
		if described[name] == nil {
			return fmt.Errorf("field %q is not described", name)
		}
	}
	return err
}

func (d *description) fits(pointer, body string) error {
	schema, err := d.compiler.Compile("openapi.json" + pointer)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// problemIn reads a problem.
func problemIn(t *testing.T, a answer) problem {
	t.Helper()
	var p problem
	assert.NoError(t, json.Unmarshal([]byte(a.body), &p), a.body)
	assert.True(t, p.Status == a.status, "status %d, and the body says %d", a.status, p.Status)
	return p
}

// in reads JSON.
func in[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	assert.NoError(t, json.Unmarshal([]byte(a.body), &v), a.body)
	return v
}

// readAll reads a body to its end.
func readAll(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	assert.Must(t, errors.Join(err, r.Body.Close()))
	return string(b)
}

// newLog is a log as the program writes it.
func newLog(to io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }

// patience is what no answer takes.
const patience = 30 * time.Second

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
		err := schema.check(method, r.URL.Path, a)
		assert.True(t, err == nil, "%v: %d %s", err, a.status, a.body)
		n := few.drawn.Load()
		assert.True(t, n <= most && (n <= 0 || a.status == http.StatusOK && a.body != ""), "%d ids were drawn, and the answer is %d %q", n, a.status, a.body)
	})
}
