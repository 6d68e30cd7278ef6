package app

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"idproxy/config"
	"idproxy/idsource/access"
)

// sharedUsers are users of a store, which all processes have, beside those that the configuration
// gives to each of its servers.
type sharedUsers struct {
	in     string // the store; empty: there are none
	log    *slog.Logger
	served []server
	rates  access.Rates  // of users of the store
	known  chan struct{} // closed when they were heard of, or could not be; nil: there are none
	once   sync.Once
}

// learned closes known.
func (s *sharedUsers) learned() { s.once.Do(func() { close(s.known) }) }

// server is the users of one server.
type server struct {
	own []access.User
	all *access.Users
}

// of returns the users of a server that has some of its own; nil where nobody is asked who he is.
func (s *sharedUsers) of(own []access.User) *access.Users {
	if s.in == "" && len(own) == 0 {
		return nil
	}
	all := access.Sharing(&s.rates, own...)
	s.served = append(s.served, server{own, all})
	return all
}

// heard has the users be those of the notes of their store. One of the configuration counts where both
// have his name.
func (s *sharedUsers) heard(notes map[string]string) {
	shared, errs := access.OfNotes(notes)
	for _, err := range errs {
		s.log.Warn("a user of a store is not served", "store", s.in, "error.message", err)
	}
	for _, one := range s.served {
		others := slices.DeleteFunc(slices.Clone(shared), func(u access.User) bool {
			return slices.ContainsFunc(one.own, func(own access.User) bool { return own.Name == u.Name })
		})
		one.all.Replace(slices.Concat(one.own, others))
	}
	s.log.Info("users of a store are served", "store", s.in, "users", len(shared))
}

// watched are the stores whose notes concern the ids of other programs.
func (s *idServer) watched(ids *config.IDs) (stores []string) {
	if ids.UsersIn != "" {
		stores = append(stores, ids.UsersIn)
	}
	if r := ids.Redis; r != nil && r.CreateIn != "" && r.CreateIn != ids.UsersIn {
		stores = append(stores, r.CreateIn)
	}
	return stores
}

// watch hears of users and of new keys until ctx ends. What was heard stays while the store does not
// answer.
func (s *idServer) watch(ctx context.Context, in string) {
	var told time.Time
	var before map[string]string
	s.registry.Watch(ctx, in, func(notes map[string]string) {
		if in == s.users.in && !sameUsers(before, notes) {
			s.users.heard(notes)
			before = notes
			s.users.learned()
		}
	}, func(err error) {
		if now := time.Now(); now.Sub(told) > time.Minute {
			told = now
			s.log.Warn("a store does not say which users and keys are new: they stay as they are until it does", "store", in, "error.message", err)
		}
		if in == s.users.in {
			s.users.learned()
		}
	})
}

// sameUsers reports whether the notes have the same users.
func sameUsers(before, now map[string]string) bool {
	if before == nil {
		return false
	}
	users := func(notes map[string]string) map[string]string {
		only := map[string]string{}
		for name, text := range notes {
			if access.IsNote(name) {
				only[name] = text
			}
		}
		return only
	}
	return maps.Equal(users(before), users(now))
}
