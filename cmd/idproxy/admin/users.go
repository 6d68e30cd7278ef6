package admin

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/access"
)

// User is who may ask for ids, as the store keeps him.
type User struct {
	Name    string   `json:"name"`
	Sources []string `json:"sources,omitempty"` // absent: all
	Most    uint64   `json:"most,omitempty"`    // ids at once; absent: as many as each server gives
	Rate    uint64   `json:"rate,omitempty"`    // ids a second; absent: as many as there are
	Create  bool     `json:"create"`
	Set     bool     `json:"set"`
}

// UserList is all of them.
type UserList struct {
	Users []User `json:"users"`
}

// NewUser is a user who was added, with what he shows from now on. It is kept nowhere.
type NewUser struct {
	User   User   `json:"user"`
	Secret string `json:"secret"` // password and token
}

// RemovedUser is one who may ask no more.
type RemovedUser struct {
	Name string `json:"name"`
}

// Users is where a configuration keeps users.
type Users struct {
	notes  idsource.Notes
	stores store.Opened
}

// OpenUsers opens the store of ids.users_in.
func OpenUsers(cfg *config.Config) (*Users, error) {
	if cfg.IDs == nil || cfg.IDs.UsersIn == "" {
		return nil, fmt.Errorf("%s names no store for users: add users_in to ids", cfg.Path)
	}
	u := &Users{stores: store.Opened{}}
	st, err := u.stores.Get(cfg.Store(cfg.IDs.UsersIn))
	if err != nil {
		return nil, err
	}
	u.notes = st.Notes
	return u, nil
}

// Close closes the store.
func (u *Users) Close() { u.stores.Close() }

// List returns all users, by their names.
func (u *Users) List(ctx context.Context) (*UserList, error) {
	all, err := u.all(ctx)
	if err != nil {
		return nil, err
	}
	users, errs := access.OfNotes(all)
	list := &UserList{Users: []User{}}
	for _, one := range users {
		list.Users = append(list.Users, User{one.Name, one.Keys, one.Most, one.Rate, one.Create, one.Set})
	}
	return list, errors.Join(errs...)
}

func (u *Users) all(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	return u.notes.All(ctx)
}

// userName is what a user may be called: in logs, and in AUTH.
var userName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// Add adds a user with a secret of his own. Of one who is there it changes the rights and the secret,
// if that is asked for.
func (u *Users) Add(ctx context.Context, add User, replace bool) (*NewUser, error) {
	if !userName.MatchString(add.Name) {
		return nil, fmt.Errorf("%w: %q is not a name: use up to 64 letters, digits, \"_\", \"-\" and \".\", starting with a letter or digit", ErrUsage, add.Name)
	}
	all, err := u.all(ctx)
	if err != nil {
		return nil, err
	}
	if _, there := all[access.NoteOf(add.Name)]; there && !replace {
		return nil, fmt.Errorf("there is a user %s already: add --replace to give him other rights and another secret", add.Name)
	}
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	secret := hex.EncodeToString(b)
	user := access.User{Secret: access.DigestOf(secret), Keys: add.Sources, Most: add.Most, Rate: add.Rate, Create: add.Create, Set: add.Set}
	if err := u.write(ctx, add.Name, user.Note()); err != nil {
		return nil, err
	}
	return &NewUser{add, secret}, nil
}

// Remove takes a user away.
func (u *Users) Remove(ctx context.Context, name string) (*RemovedUser, error) {
	all, err := u.all(ctx)
	if err != nil {
		return nil, err
	}
	if _, there := all[access.NoteOf(name)]; !there {
		return nil, fmt.Errorf("the store has no user %q", name)
	}
	return &RemovedUser{name}, u.write(ctx, name, "")
}

func (u *Users) write(ctx context.Context, name, text string) error {
	ctx, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	return u.notes.Write(ctx, access.NoteOf(name), text)
}
