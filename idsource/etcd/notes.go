package etcd

import (
	"context"
	"fmt"
	"strings"
	"time"

	client "go.etcd.io/etcd/client/v3"

	"idproxy/idsource"
)

// notePrefix is what the keys of notes begin with.
const notePrefix = "/idproxy/note/"

const (
	readTime    = 5 * time.Second  // of all notes
	listenPause = time.Second      // before the next try, when a watch has ended
	listenAgain = 10 * time.Second // notes are read again although nothing was heard
)

// Notes are keys of their own.
type Notes struct{ *Store }

var _ idsource.Notes = Notes{}

// Notes returns the notes of the store.
func (s *Store) Notes() Notes { return Notes{s} }

// All implements idsource.Notes.
func (n Notes) All(ctx context.Context) (map[string]string, error) {
	all, _, err := n.read(ctx)
	return all, err
}

func (n Notes) read(ctx context.Context) (all map[string]string, revision int64, err error) {
	r, err := try(ctx, n.Store, func(ctx context.Context) (*client.GetResponse, error) {
		return n.c.Get(ctx, notePrefix, client.WithPrefix())
	})
	if err != nil {
		return nil, 0, n.wrap(err)
	}
	all = map[string]string{}
	for _, kv := range r.Kvs {
		all[strings.TrimPrefix(string(kv.Key), notePrefix)] = string(kv.Value)
	}
	return all, r.Header.Revision, nil
}

// Write implements idsource.Notes. It may be asked twice, which writes the same.
func (n Notes) Write(ctx context.Context, name, text string) error {
	_, err := try(ctx, n.Store, func(ctx context.Context) (struct{}, error) {
		var err error
		if text == "" {
			_, err = n.c.Delete(ctx, notePrefix+name)
		} else {
			_, err = n.c.Put(ctx, notePrefix+name, text)
		}
		return struct{}{}, err
	})
	if err != nil {
		return n.wrap(fmt.Errorf("note %q: %w", name, err))
	}
	return nil
}

// Watch implements idsource.Notes.
func (n Notes) Watch(ctx context.Context, heard func(map[string]string), failed func(error)) {
	for ctx.Err() == nil {
		reading, cancel := context.WithTimeout(ctx, readTime)
		all, revision, err := n.read(reading)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			heard(all)
			n.change(ctx, revision)
			continue
		}
		failed(err)
		select {
		case <-ctx.Done():
		case <-time.After(listenPause):
		}
	}
}

// change waits until a note is changed behind a revision, or it cannot be told.
func (n Notes) change(ctx context.Context, revision int64) {
	ctx, cancel := context.WithTimeout(client.WithRequireLeader(ctx), listenAgain)
	defer cancel()
	changes := n.c.Watch(ctx, notePrefix, client.WithPrefix(), client.WithRev(revision+1))
	r, ok := <-changes
	if ok && r.Err() == nil || ctx.Err() != nil {
		return
	}
	select { // no leader, or the revision is gone
	case <-ctx.Done():
	case <-time.After(listenPause):
	}
}
