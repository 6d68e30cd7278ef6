package servers

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// TestClock moves the clocks of running servers and asks them for the time. This is the control of
// tests that move one.
func TestClock(t *testing.T) {
	for _, name := range []string{"MariaDB", "MySQL", "Redis"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := assert.Of(NewClock()).Must(t)
			t.Cleanup(func() { assert.NoError(t, clock.Close()) })
			now := clockOf(t, name, clock)
			for _, by := range []time.Duration{0, time.Hour, 2 * time.Second, -time.Hour, -1500 * time.Millisecond, 0} {
				clock.Ahead(by)
				before := time.Now().Add(by).Truncate(time.Millisecond)
				got := now()
				after := time.Now().Add(by)
				assert.True(t, !got.Before(before) && !got.After(after), "ahead by %v it is %v, want %v to %v", by, got, before, after)
			}
		})
	}
}

// clockOf starts a server and returns what asks it for the time.
func clockOf(t *testing.T, name string, clock *Clock) func() time.Time {
	t.Helper()
	if name == "Redis" {
		r := assert.Of(StartRedisClock(t.Context(), clock)).Must(t)
		t.Cleanup(func() { _ = r.Stop() })
		return func() time.Time {
			answer := assert.Of(r.Do("EVAL", `"return(redis.call('TIME')[1]..'.'..redis.call('TIME')[2])"`, "0")).Must(t)
			seconds, micro, _ := strings.Cut(answer, ".")
			return time.Unix(number(t, seconds), number(t, micro)*1000)
		}
	}
	kind := MariaDB
	if name == "MySQL" {
		kind = MySQL
	}
	db := open(t, start(t, kind, Options{Clock: clock}).Config(""))
	return func() time.Time {
		return time.UnixMilli(number(t, query(t, db, "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)")))
	}
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	n := assert.Of(strconv.ParseInt(text, 10, 64)).Must(t)
	return n
}
