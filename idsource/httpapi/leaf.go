package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	leafPrefix    = "/api/"
	leafSegment   = leafPrefix + "segment/get/"
	leafSnowflake = leafPrefix + "snowflake/get/"
)

// What Leaf's Result has in place of an id (SegmentIDGenImpl).
const (
	leafNoKey = -2
	leafNoIDs = -3
)

// leaf answers as LeafController does: the id as text, or status 500 with what Spring Boot 1.5 says
// of an exception. Differences: the last word of a path of snowflake is a key here, and not ignored;
// a service that is switched off is an error, where Leaf answers 0 each time; the error has a detail
// beside what Leaf says; tokens, rates and paths that are none are problems as in V1, as Leaf has none.
func (s *Server) leaf(w http.ResponseWriter, r *http.Request) int {
	q := request{token: bearer(r), n: 1, kind: series}
	key, ok := strings.CutPrefix(r.URL.Path, leafSegment)
	if !ok {
		key, ok = strings.CutPrefix(r.URL.Path, leafSnowflake)
		q.kind = composite
	}
	if !ok || key == "" {
		return noPath(r.URL.Path).write(w)
	}
	if p := only(w, r, http.MethodGet, http.MethodPost); p != nil {
		return p.write(w)
	}
	q.key = key
	d, p := s.draw(r, &q)
	if p != nil {
		return p.writeLeaf(w, r)
	}
	w.Header()["Content-Type"] = plainText
	if wantsJSON(r) {
		w.Header()["Content-Type"] = jsonText
	}
	var room [20]byte
	_, _ = w.Write(d.append(room[:0], 0)) // the client may be gone: a gap
	return http.StatusOK
}

// wantsJSON reports whether the client reads JSON and no plain text, as Spring's RestTemplate does that
// wants a number. Leaf's String goes out as whatever is asked for, and an id is JSON as it is.
func wantsJSON(r *http.Request) bool {
	accept := strings.Join(r.Header["Accept"], ",")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/plain")
}

// writeLeaf answers as Leaf does where Leaf knows such a problem.
func (p *problem) writeLeaf(w http.ResponseWriter, r *http.Request) int {
	result := leafNoIDs
	switch p.Status {
	case http.StatusServiceUnavailable:
	case http.StatusNotFound:
		result = leafNoKey
	default:
		return p.write(w)
	}
	p.headers(w)
	w.Header()["Content-Type"] = jsonText
	w.WriteHeader(http.StatusInternalServerError)
	_ = json.NewEncoder(w).Encode(struct {
		Timestamp int64  `json:"timestamp"` // Unix milliseconds
		Status    int    `json:"status"`
		Error     string `json:"error"`
		Exception string `json:"exception"`
		Message   string `json:"message"`
		Path      string `json:"path"`
		Detail    string `json:"detail"` // not Leaf's
	}{
		time.Now().UnixMilli(), http.StatusInternalServerError, http.StatusText(http.StatusInternalServerError),
		"com.sankuai.inf.leaf.server.exception.LeafServerException", "Result{id=" + strconv.Itoa(result) + ", status=EXCEPTION}",
		r.URL.Path, p.Detail,
	}) // the client may be gone
	return p.Status
}
