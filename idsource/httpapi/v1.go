package httpapi

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"idproxy/inside"
)

//go:embed openapi.json
var openAPI []byte

// Decoded is what an id tells. Numbers that may be above 2^53 are text, as everywhere in V1.
type Decoded struct {
	Key        string     `json:"key"`
	Kind       string     `json:"kind"` // segment, snowflake, uuidv7, objectid
	ID         string     `json:"id"`
	Time       *time.Time `json:"time,omitempty"`
	Datacenter *uint64    `json:"datacenter,omitempty"`
	Worker     *uint64    `json:"worker,omitempty"`
	Sequence   *uint64    `json:"sequence,omitempty"`
	Counter    *uint64    `json:"counter,omitempty"`  // of a UUID or ObjectId
	Process    string     `json:"process,omitempty"`  // of an ObjectId, hexadecimal
	Random     string     `json:"random,omitempty"`   // of a UUID, hexadecimal
	Number     string     `json:"number,omitempty"`   // of a scrambled id: its place in the series
	Next       string     `json:"next,omitempty"`     // of a segment: the lowest id, or number, that is not reserved
	Reserved   *bool      `json:"reserved,omitempty"` // of a segment: whether the id, or its number, is below
}

// KindSegment is the Kind of ids whose key has a position.
const KindSegment = "segment"

// v1 answers in the way of this server. Ids are text whatever they are: JavaScript and others read
// numbers of JSON up to 2^53 exactly, and a series that has ids of two types from some day on is
// worse than one of text from the first.
func (s *Server) v1(w http.ResponseWriter, r *http.Request) int {
	var p *problem
	switch r.URL.Path {
	case "/v1/ids":
		if p = only(w, r, http.MethodPost); p == nil {
			p = s.give(w, r)
		}
	case "/v1/decode":
		if p = only(w, r, http.MethodGet); p == nil {
			p = s.decode(w, r)
		}
	case "/v1/openapi.json":
		if p = only(w, r, http.MethodGet); p == nil {
			w.Header()["Content-Type"] = jsonText
			_, _ = w.Write(openAPI) // the client may be gone
		}
	default:
		p = noPath(r.URL.Path)
	}
	if p != nil {
		return p.write(w)
	}
	return http.StatusOK
}

// give answers with ids: one range of a segment, a list of any other source.
func (s *Server) give(w http.ResponseWriter, r *http.Request) *problem {
	q, p := readQuestion(w, r)
	if p != nil {
		return p
	}
	d, p := s.draw(r, q)
	if p != nil {
		return p
	}
	w.Header()["Content-Type"] = jsonText
	key, _ := json.Marshal(q.key) // a string has no error
	open := `{"key":` + string(key)
	if d.words != nil {
		d.writeList(w, open+`,"ids":[`, `"`, "]}\n")
		return nil
	}
	b := strconv.AppendUint(append(make([]byte, 0, 128), open+`,"ranges":[{"first":"`...), d.first, 10)
	b = append(strconv.AppendUint(append(b, `","last":"`...), d.greatest(), 10), "\"}]}\n"...)
	_, _ = w.Write(b) // the client may be gone: a gap
	return nil
}

// readQuestion reads the body of POST /v1/ids.
func readQuestion(w http.ResponseWriter, r *http.Request) (*request, *problem) {
	if c := r.Header.Get("Content-Type"); c != "" {
		if t, _, err := mime.ParseMediaType(c); err != nil || t != "application/json" {
			return nil, notJSON(c)
		}
	}
	q := struct {
		Key string `json:"key"`
		N   uint64 `json:"n"`
	}{N: 1}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	err := dec.Decode(&q)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.Join(errors.New("more than one value"), more)
		}
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, tooLarge()
	}
	switch {
	case err != nil:
		return nil, badRequest(`the body is no question for ids: %v; send {"key": "order_id", "n": 100}`, err)
	case q.Key == "":
		return nil, badRequest(`"key" is missing or empty: send {"key": "order_id", "n": 100}`)
	case q.N == 0:
		return nil, badRequest(`"n" is 0: ask for at least one id, or leave it out for one`)
	}
	return &request{token: bearer(r), key: q.Key, n: q.N}, nil
}

// decode says what an id tells, to those who may ask for its key.
func (s *Server) decode(w http.ResponseWriter, r *http.Request) *problem {
	query := r.URL.Query()
	q, id := &request{token: bearer(r), key: query.Get("key")}, query.Get("id")
	if q.key == "" || id == "" {
		return badRequest("key or id is missing: ask for /v1/decode?key=KEY&id=ID")
	}
	u, _, p := s.source(r, q)
	if p != nil {
		return p
	}
	d, err := s.cfg.Decode(q.key, id)
	if err != nil {
		return badRequest("id %s of key %s cannot be taken apart: %v", shown(id), shown(q.key), err)
	}
	if d.Kind == KindSegment {
		if wait := s.cfg.Users.Take(u, 1); wait > 0 { // the store is asked
			return tooFast(u.Name, u.Rate, wait)
		}
		next, err := s.cfg.Position(r.Context(), q.key)
		if err != nil {
			s.kept.Note(s.cfg.Logger, err, "key", q.key, "user.name", u.Name, "client.address", r.RemoteAddr)
			text, _ := inside.Text(err)
			return noPosition(q.key, text)
		}
		n, err := strconv.ParseUint(cmp.Or(d.Number, d.ID), 10, 64)
		reserved := err == nil && n < next
		d.Next, d.Reserved = strconv.FormatUint(next, 10), &reserved
	}
	w.Header()["Content-Type"] = jsonText
	_ = json.NewEncoder(w).Encode(d) // the client may be gone
	return nil
}
