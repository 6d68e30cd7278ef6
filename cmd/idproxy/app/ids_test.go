package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"idproxy/cmd/idproxy/keys"
	"idproxy/cmd/idproxy/sources"
	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/file"
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
	cfg, err := config.Parse(filepath.Join(t.TempDir(), "idproxy.yaml"), []byte("listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]\nids: {redis: {listen: \"unix:ids\"}}\n"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	started := make(chan *idServer)
	go func() {
		s, err := serveIDs(cfg.IDs, keys.New(log, st), log)
		if err != nil {
			t.Error(err)
		}
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
		if err := s.close(); err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for the store")
	}
}
