package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

const tinyPrefix = "/tinyid/id/"

// Codes of tinyid's Response (ErrorCode).
const (
	tinyOK       = 200
	tinyTokenErr = 5
	tinySysErr   = 6
)

// tinyLoading is how much of a segment a client has used when it asks for the next, in percent
// (Constants.LOADING_PERCENT).
const tinyLoading = 20

// tinySegment is tinyid's SegmentId: the ids above currentId up to maxId whose remainder by delta
// is remainder. A client makes ids of it by itself, so all of them are drawn for it; with delta 1
// they are what was drawn, and no other.
type tinySegment struct {
	MaxID     uint64 `json:"maxId"`
	LoadingID uint64 `json:"loadingId"`
	CurrentID uint64 `json:"currentId"`
	Delta     int    `json:"delta"`
	Remainder int    `json:"remainder"`
}

// tinyAnswer is tinyid's Response.
type tinyAnswer struct {
	Data    any    `json:"data"`
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// tiny answers as IdContronller does: status 200 whatever happened, and a code or an empty text
// that says so. Differences: a key is a biz_type; a segment has as many ids as is configured here, and
// delta 1; a batch is cut to what the user may have, as tinyid cuts it to batch.size.max; a rate or a
// token that is missing says so in the message; paths that are none are problems as in V1.
func (s *Server) tiny(w http.ResponseWriter, r *http.Request) int {
	word := r.URL.Path[len(tinyPrefix):]
	name, simple := strings.CutSuffix(word, "Simple")
	if name != "nextId" && name != "nextSegmentId" {
		return noPath(r.URL.Path).write(w)
	}
	if p := only(w, r, http.MethodGet, http.MethodPost); p != nil {
		return p.write(w)
	}
	q, p := readTiny(w, r)
	if p != nil {
		return p.write(w)
	}
	var d *ids
	switch {
	case name == "nextSegmentId":
		q.kind, q.n = segments, s.cfg.TinyIDStep
		fallthrough
	case q.n > 0:
		d, p = s.draw(r, q)
	default: // as many as were asked for: none
		_, _, p = s.source(r, q)
		d = &ids{words: []uint64{}}
	}
	switch {
	case p != nil:
		return p.writeTiny(w, simple)
	case name == "nextSegmentId":
		d.writeSegment(w, simple)
	case simple:
		w.Header()["Content-Type"] = plainText
		d.writeList(w, "", "", "")
	default:
		w.Header()["Content-Type"] = jsonText
		d.writeList(w, `{"data":[`, "", `],"code":200,"message":""}`)
	}
	return http.StatusOK
}

// readTiny reads what stands in the query, or in the body as a form.
func readTiny(w http.ResponseWriter, r *http.Request) (*request, *problem) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		return nil, badRequest("the query or the form cannot be read: %v", err)
	}
	q := &request{token: r.Form.Get("token"), key: r.Form.Get("bizType"), n: 1, cut: true, kind: numbers}
	if q.token == "" {
		q.token = bearer(r)
	}
	if text := r.Form.Get("batchSize"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, badRequest("batchSize %s is no whole number of 32 bits", shown(text))
		}
		q.n = uint64(max(n, 0))
	}
	return q, nil
}

// writeSegment answers with the range as a segment. Id 0 is none of tinyid's: it is left out.
func (d *ids) writeSegment(w http.ResponseWriter, simple bool) {
	below := max(d.first, 1) - 1
	one := tinySegment{MaxID: d.greatest(), CurrentID: below, LoadingID: below + d.n*tinyLoading/100, Delta: 1}
	if !simple {
		w.Header()["Content-Type"] = jsonText
		_ = json.NewEncoder(w).Encode(tinyAnswer{one, tinyOK, ""}) // the client may be gone: a gap
		return
	}
	w.Header()["Content-Type"] = plainText
	b := make([]byte, 0, 64)
	for _, n := range []uint64{one.CurrentID, one.LoadingID, one.MaxID} {
		b = append(strconv.AppendUint(b, n, 10), ',')
	}
	_, _ = w.Write(append(b, "1,0"...)) // the client may be gone: a gap
}

// writeTiny answers as tinyid does when something is wrong.
func (p *problem) writeTiny(w http.ResponseWriter, simple bool) int {
	if simple {
		w.Header()["Content-Type"] = plainText
		w.WriteHeader(http.StatusOK)
		return p.Status
	}
	answer := tinyAnswer{nil, tinySysErr, p.Detail}
	if p.Status == http.StatusUnauthorized || p.Status == http.StatusForbidden {
		answer.Code, answer.Message = tinyTokenErr, "token is error: "+p.Detail
	}
	w.Header()["Content-Type"] = jsonText
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
	return p.Status
}
