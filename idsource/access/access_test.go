package access

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/integration/assert"
)

// TestUsers: who is known by what, and what is left of it when others are the users.
func TestUsers(t *testing.T) {
	u := NewUsers(User{Name: "ann", Secret: DigestOf("of-ann"), Keys: []string{"orders", "app:*"}}, User{Name: "bob", Secret: DigestOf("of-bob")})
	for _, tt := range []struct {
		name, secret string
		known        bool
	}{{"ann", "of-ann", true}, {"ann", "of-bob", false}, {"bob", "of-ann", false}, {"none", "of-ann", false}, {"", "", false}, {"ann", "", false}} {
		got := u.Named(tt.name, tt.secret)
		assert.True(t, (got != nil) == tt.known && (!tt.known || got.Name == tt.name), "%s with %q: %v", tt.name, tt.secret, got)
	}
	ann, bob := u.Bearing("of-ann"), u.Bearing("of-bob")
	assert.MustTrue(t, ann != nil && ann.Name == "ann" && bob != nil && u.Bearing("of-") == nil && u.Bearing("") == nil, "by tokens: %v, %v", ann, bob)
	for key, want := range map[string]bool{"orders": true, "app:x": true, "order": false, "orders2": false} {
		assert.True(t, ann.May(key) == want && bob.May(key), "may ask for %s: ann %v, bob %v", key, ann.May(key), bob.May(key))
	}
	assert.True(t, u.Still(ann) == ann, "ann is no longer ann")
	u.Replace([]User{{Name: "ann", Secret: DigestOf("of-ann"), Most: 7}, {Name: "bob", Secret: DigestOf("another")}})
	now := u.Still(ann)
	assert.True(t, now != nil && now.Most == 7, "ann has other rights, and is %v", now)
	assert.Equal(t, "bob, who has another secret,", u.Still(bob), nil)
	u.Replace(nil)
	assert.True(t, u.Still(ann) == nil && u.Bearing("of-ann") == nil && u.Named("ann", "of-ann") == nil, "ann is still there")
}

// TestRate: a user has no more than his rate over time, and what was not given does not count.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewUsers()
		u := &User{Name: "u", Rate: 100}
		had := uint64(0)
		ask := func(n uint64) (wait time.Duration) {
			if wait = r.Take(u, n); wait == 0 {
				had += n
			}
			return wait
		}
		for range 10 {
			wait := ask(10)
			assert.MustTrue(t, wait <= 0, "the first second's ids have to wait for %v", wait)
		}
		assert.Equal(t, "one more has to wait for", ask(1), 10*time.Millisecond)
		assert.LessOrEqual(t, "another user has to wait for", r.Take(&User{Name: "other", Rate: 100}, 5000), 0)
		assert.LessOrEqual(t, "one without a rate has to wait for", r.Take(&User{Name: "free"}, 1<<40), 0)
		time.Sleep(10 * time.Millisecond)
		wait := ask(1000)
		assert.True(t, wait <= 0, "many at once have to wait for %v", wait) // more than a second's: he pays for it afterwards
		assert.Equal(t, "behind them one has to wait for", ask(1), 10*time.Second)
		r.GiveBack(u, 1000)
		had -= 1000
		assert.LessOrEqual(t, "behind ids that were not given one has to wait for", ask(1), 0)
		for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
			ask(7)
		}
		assert.True(t, had >= 60*100 && had <= 61*100+10, "%d ids in a minute at 100 in a second", had)
	})
}

// TestSharedRate: a user of a store has one rate with two servers, and others have one with each.
func TestSharedRate(t *testing.T) {
	var rates Rates
	redis, http := Sharing(&rates), Sharing(&rates)
	for _, shared := range []bool{false, true} {
		u := &User{Name: "u", Rate: 10, Shared: shared}
		assert.LessOrEqual(t, fmt.Sprintf("shared %t: the first have to wait for", shared), redis.Take(u, 10), 0)
		wait := http.Take(u, 10)
		assert.True(t, wait > 0 == shared, "shared %t: those of the other server have to wait for %v", shared, wait)
		redis.GiveBack(u, 10)
		wait = http.Take(u, 10)
		assert.True(t, !shared || wait <= 0, "behind ids that were not given he has to wait for %v", wait)
	}
}

// TestNotes: a user is the same when he comes from the store, and one that cannot be read is none.
func TestNotes(t *testing.T) {
	ann := User{Name: "ann", Secret: DigestOf("of-ann"), Keys: []string{"a", "b:*"}, Most: 5, Rate: 7, Create: true, Set: true, Shared: true}
	bob := User{Name: "b:ob", Secret: DigestOf("of-bob"), Shared: true}
	notes := map[string]string{NoteOf("ann"): ann.Note(), NoteOf("b:ob"): bob.Note(), "created": "x"}
	for name, text := range map[string]string{"text": "x", "empty": "{}", "short": `{"sha256":"00"}`, "long": `{"sha256":"` + strings.Repeat("00", 33) + `"}`, "no hex": `{"sha256":"` + strings.Repeat("x", 64) + `"}`} {
		notes[NoteOf(name)] = text
	}
	users, errs := OfNotes(notes)
	assert.True(t, reflect.DeepEqual(users, []User{ann, bob}) && len(errs) == 5, "%+v, %v", users, errs)
	assert.True(t, !strings.Contains(ann.Note(), "of-ann"), "the secret is in %s", ann.Note())
}
