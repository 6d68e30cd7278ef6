package access

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// notePrefix is what the names of notes begin with that keep a user each.
const notePrefix = "user:"

// NoteOf is the name of the note that keeps a user.
func NoteOf(name string) string { return notePrefix + name }

// IsNote reports whether a note of that name keeps a user.
func IsNote(name string) bool { return strings.HasPrefix(name, notePrefix) }

// kept is a user as a note keeps him.
type kept struct {
	Secret string   `json:"sha256"` // of the secret, hexadecimal
	Keys   []string `json:"sources,omitempty"`
	Most   uint64   `json:"most,omitempty"`
	Rate   uint64   `json:"rate,omitempty"`
	Create bool     `json:"create,omitempty"`
	Set    bool     `json:"set,omitempty"`
}

// Note is the text of the note that keeps the user, without his name.
func (u *User) Note() string {
	text, _ := json.Marshal(kept{hex.EncodeToString(u.Secret[:]), u.Keys, u.Most, u.Rate, u.Create, u.Set}) // it has no values that cannot be written
	return string(text)
}

// OfNotes returns the users that notes keep, by their names, and an error for each that cannot be
// read: he is none.
func OfNotes(notes map[string]string) (users []User, errs []error) {
	for note, text := range notes {
		name, ok := strings.CutPrefix(note, notePrefix)
		if !ok {
			continue
		}
		var k kept
		err := json.Unmarshal([]byte(text), &k)
		secret, notHex := hex.DecodeString(k.Secret)
		u := User{Name: name, Keys: k.Keys, Most: k.Most, Rate: k.Rate, Create: k.Create, Set: k.Set, Shared: true}
		if err != nil || notHex != nil || copy(u.Secret[:], secret) != len(u.Secret) || len(secret) != len(u.Secret) {
			errs = append(errs, fmt.Errorf("user %q cannot be read: remove him, and add him again", name))
			continue
		}
		users = append(users, u)
	}
	slices.SortFunc(users, func(a, b User) int { return strings.Compare(a.Name, b.Name) })
	return users, errs
}
