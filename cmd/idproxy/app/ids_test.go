package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idproxy/cmd/idproxy/keys"
	"idproxy/cmd/idproxy/sources"
	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/idsource/httpapi"
	"idproxy/integration/assert"
)

// hangingStore is a store that answers when it is told to, and all the sources that there are.
type hangingStore struct {
	*file.Store
	answer chan struct{}
}

func (s *hangingStore) Stores() map[string]sources.Keyed {
	return map[string]sources.Keyed{"s": {Store: store.Store{Keys: s}}}
}

func (s *hangingStore) Named() map[string]idsource.Source { return nil }

func (s *hangingStore) Keys(context.Context) ([]string, error) {
	<-s.answer
	return nil, errors.New("too late")
}

// TestIDsStartWithoutStore: a store that does not answer does not keep the proxy from starting.
func TestIDsStartWithoutStore(t *testing.T) {
	st := &hangingStore{answer: make(chan struct{})}
	cfg := assert.Of(config.Parse(filepath.Join(t.TempDir(), "idproxy.yaml"), []byte("listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]\nids: {redis: {listen: \"unix:ids\"}}\n"), os.LookupEnv)).Must(t)
	log := slog.New(slog.DiscardHandler)
	started := make(chan *idServer)
	go func() {
		s, err := serveIDs(cfg.IDs, keys.New(log, st), log, nil, func() httpapi.Config { return httpapi.Config{} }, func() string { return "" }, net.Listen, func(context.Context) {})
		assert.NoError(t, err)
		started <- s
	}()
	select {
	case s := <-started:
		conn, err := net.Dial("unix", cfg.IDs.Redis.Listen.Address)
		if err != nil {
			t.Error(err)
		} else if err := conn.Close(); err != nil {
			t.Error(err)
		}
		close(st.answer)
		assert.NoError(t, s.close())
	case <-time.After(2 * time.Minute):
		t.Fatal("it waits for the store")
	}
}

// TestDecodeID: an id is taken apart by the source of its key, which is its name or that of its series.
func TestDecodeID(t *testing.T) {
	cfg, err := config.Parse(filepath.Join(t.TempDir(), "idproxy.yaml"), []byte(`
listeners: [{listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
sources: {order_id: {segment: {key: orders}}, event_id: {snowflake: {worker: 7}}, link_id: {uuidv7: {}}, doc_id: {objectid: {}}, hidden: {segment: {scramble: {key: 2b7e151628aed2a6abf7158809cf4f3c, bits: 53}}}}
`), os.LookupEnv)
	assert.Must(t, err)
	for _, tt := range []struct{ key, id, want string }{
		{"order_id", "77", `{"key":"order_id","kind":"segment","id":"77"}`},
		{"orders", "18446744073709551615", `{"key":"orders","kind":"segment","id":"18446744073709551615"}`},
		{"of_a_store", "077", `{"key":"of_a_store","kind":"segment","id":"77"}`},
		{"event_id", "912345678901234567", `{"key":"event_id","kind":"snowflake","id":"912345678901234567","time":"2026-11-22T14:16:00.413Z","worker":84,"sequence":2951}`},
		{"link_id", "01A1FF2832467501B5F1CD3CD7F543F1", `{"key":"link_id","kind":"uuidv7","id":"01a1ff28-3246-7501-b5f1-cd3cd7f543f1","time":"2026-11-21T17:29:46.822Z","counter":1281,"random":"35f1cd3cd7f543f1"}`},
		{"doc_id", "6740aa10aabbccddee000001", `{"key":"doc_id","kind":"objectid","id":"6740aa10aabbccddee000001","time":"2024-11-22T15:58:08Z","counter":1,"process":"aabbccddee"}`},
		{"hidden", "8930610991045064", `{"key":"hidden","kind":"segment","id":"8930610991045064","number":"2"}`},
		{"hidden", "2", "2 is no id of source hidden: its ids lie from 4503599627370496 to 9007199254740991"},
		{"of_a_store", "x", "it is no number"},
		{"order_id", "x", `"x" is not an id`},
		{"link_id", "x", `"x" is no UUID`},
		{"event_id", "9223372036854775808", "more than 63 bits"},
		{"link_id", "01a1ff28-3246-4501-b5f1-cd3cd7f543f1", "of another source"},
	} {
		got := ""
		if d, err := decodeID(cfg, tt.key, tt.id); err != nil {
			got = err.Error()
		} else if text, err := json.Marshal(d); err != nil {
			t.Error(err)
		} else {
			got = string(text)
		}
		assert.True(t, strings.Contains(got, tt.want) && !strings.HasPrefix(got, "usage") && (!strings.HasPrefix(tt.want, "{") || got == tt.want), "%s of %s: %s, want %s", tt.id, tt.key, got, tt.want)
	}
}

// TestLateRanges: a range that takes a second is a line of the log, and an event.
func TestLateRanges(t *testing.T) {
	var out bytes.Buffer
	p := New(&config.Config{Log: config.Log{Level: "info"}}, &out)
	p.watch.fetched("ids", lateRange-1)
	assert.True(t, out.Len() <= 0, "a quick one: %s", &out)
	p.watch.fetched("ids", 3*time.Second)
	events := p.watch.events.After(0)
	got := out.String()
	assert.True(t, strings.Contains(got, "source=ids duration=3s") && len(events) == 1 && events[0].Facts["source"] == "ids", "the log has %q, the events are %v", got, events)
}
