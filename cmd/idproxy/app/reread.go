package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
)

// pace is when files of TLS are read again.
type pace struct {
	settle   time.Duration // behind a change they are left alone: a certificate and its key are two
	patience time.Duration // behind the first of many changes a further one no longer holds them up
	often    time.Duration // they are read whether a change was seen or not
}

// usual is that of a program.
var usual = pace{settle: time.Second, patience: 10 * time.Second, often: time.Minute}

// rereading reads files of TLS again, when they change and when it is told to.
type rereading struct {
	log     *slog.Logger
	files   tlsconfig.Files
	renewed func([]tlsconfig.Reading) // is told what is in force since
	inForce func() *config.Config

	more chan struct{} // holds a token when there are files that nobody watches yet

	accounts []account // a reload's
}

// account is what one of the servers behind a listener is asked with.
type account struct {
	made   *config.Listener
	server *upstream.Server
}

// logins has accounts log in as a configuration says, where their listener has the same servers as when
// they were made.
func (r *rereading) logins(cfg *config.Config) {
	for _, a := range r.accounts {
		if l := cfg.Listener(a.made.Name); l != nil && l.Account != nil && slices.Equal(l.Servers(), a.made.Servers()) {
			a.server.LogIn(*l.Account)
		}
	}
}

// take has the files and accounts of others, and no more those of sections that are changed.
func (r *rereading) take(fresh *rereading, changed func(section string) bool) {
	r.files.Take(&fresh.files, changed)
	r.accounts = append(slices.DeleteFunc(r.accounts, func(a account) bool { return a.server.Closed() }), fresh.accounts...)
	select {
	case r.more <- struct{}{}:
	default: // it is about to be looked at
	}
}

// end gives up what was made and is not needed, or not any more.
func (r *rereading) end() {
	for _, a := range r.accounts {
		_ = a.server.Close() // nobody asks it
	}
}

// now reads them, and says what came of it.
func (r *rereading) now() {
	readings := r.files.Again()
	for _, one := range readings {
		if one.Err != nil {
			r.log.Error("certificates not read again, the old ones stay in force", "section", one.Section, "error.message", one.Err)
		} else {
			r.log.Info("certificates read again", "section", one.Section)
		}
	}
	r.renewed(slices.DeleteFunc(readings, func(one tlsconfig.Reading) bool { return one.Err != nil }))
}

// onChange reads them when they change, and each now and then, until ctx is done.
func (r *rereading) onChange(ctx context.Context, p pace) {
	for len(r.files.Folders()) == 0 { // a reload may bring some
		select {
		case <-ctx.Done():
			return
		case <-r.more:
		}
	}
	w := watching{rereading: r}
	var events <-chan fsnotify.Event
	var missed <-chan error
	if w.changes, w.err = fsnotify.NewWatcher(); w.err == nil {
		defer w.changes.Close()
		events, missed = w.changes.Events, w.changes.Errors
	}
	w.add()
	settled, late := time.NewTimer(p.settle), time.NewTicker(p.often)
	defer settled.Stop()
	defer late.Stop()
	var first time.Time // of the changes that were not looked at yet
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.more:
			w.add()
			continue
		case <-late.C:
			w.add()
			r.now()
			continue
		case <-settled.C:
			first = time.Time{}
			w.add()
			r.now()
			continue
		case <-events:
		case err := <-missed:
			w.overflow.Do(func() { r.log.Warn("changes of certificates may have been missed", "error.message", err) })
		}
		if first.IsZero() {
			first = time.Now()
		}
		if time.Since(first) < p.patience {
			settled.Reset(p.settle)
		}
	}
}

// watching is the watch over the folders that have the files.
type watching struct {
	*rereading
	changes  *fsnotify.Watcher
	err      error // why there is no watch at all
	said     string
	overflow sync.Once
}

// add watches the folders that are there now: the watch of one that was replaced is over. What stays
// unwatched is said once.
func (w *watching) add() {
	err := w.err
	if err == nil {
		for _, folder := range w.files.Folders() {
			if one := w.changes.Add(folder); one != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", folder, one))
			}
		}
	}
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != "" && said != w.said {
		w.log.Warn("nobody watches whether certificates change: they are read again each minute and at SIGHUP", "error.message", err)
	}
	w.said = said
}
