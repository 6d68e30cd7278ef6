package app

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
)

// settle is how long files of TLS are left alone after a change: a certificate and its key are two.
const settle = time.Second

// rereading reads files of TLS again, when they change and when it is told to.
type rereading struct {
	log     *slog.Logger
	files   tlsconfig.Files
	renewed func([]tlsconfig.Reading) // is told what is in force since
	inForce func() *config.Config

	accounts []account
}

// account is that of a listener.
type account struct {
	listener string
	server   *upstream.Server
}

// passwords gives accounts the passwords of a configuration.
func (r *rereading) passwords(cfg *config.Config) {
	for _, a := range r.accounts {
		for i := range cfg.Listeners {
			if l := &cfg.Listeners[i]; l.Name == a.listener && l.Account != nil {
				a.server.SetPassword(l.Account.Password)
			}
		}
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

// onChange reads them when they change, until ctx is done.
func (r *rereading) onChange(ctx context.Context) {
	folders := r.files.Folders()
	if len(folders) == 0 {
		return
	}
	changes, err := fsnotify.NewWatcher()
	for _, folder := range folders {
		if err == nil {
			err = changes.Add(folder)
		}
	}
	if err != nil {
		r.log.Warn("nobody watches whether certificates change: they are read again at SIGHUP alone", "error.message", err)
	}
	if changes == nil {
		return
	}
	defer changes.Close()
	settled := time.NewTimer(settle)
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes.Events:
			settled.Reset(settle)
		case err := <-changes.Errors:
			r.log.Warn("changes of certificates may have been missed", "error.message", err)
			settled.Reset(settle)
		case <-settled.C:
			r.now()
		}
	}
}
