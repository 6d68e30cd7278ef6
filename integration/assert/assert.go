// Package assert says in one line what a test requires.
//
//	file := assert.Of(os.Open(name)).Must(t)
//	assert.Must(t, file.Close())
//	assert.Equal(t, "rows in orders", count(db), 3)
//	assert.Until(t, "the proxy is ready", ready, proxy.Log)
//
// What has Must in its name, and Until, end the test when they fail. The others report the failure,
// and the test goes on.
package assert

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Must ends the test if err is an error. What it is about stands in front of the error, with spaces
// between.
func Must(tb testing.TB, err error, about ...any) {
	if err != nil {
		tb.Helper()
		tb.Fatal(line(about, err))
	}
}

// NoError reports an error. What it is about stands in front of it, with spaces between.
func NoError(tb testing.TB, err error, about ...any) {
	if err != nil {
		tb.Helper()
		tb.Error(line(about, err))
	}
}

// Fails reports that err is no error, or one whose text does not have says in it. An empty says
// takes any error.
func Fails(tb testing.TB, what string, err error, says string) {
	switch {
	case err == nil:
		tb.Helper()
		tb.Errorf("%s: no error, want one with %q", what, says)
	case !strings.Contains(err.Error(), says):
		tb.Helper()
		tb.Errorf("%s: the error is %v, want one with %q", what, err, says)
	}
}

// ErrorIs reports that err is not of a kind, as errors.Is tells.
func ErrorIs(tb testing.TB, what string, err, kind error) {
	if !errors.Is(err, kind) {
		tb.Helper()
		tb.Errorf("%s: the error is %v, want %v", what, err, kind)
	}
}

// True reports what the format says unless holds is true.
func True(tb testing.TB, holds bool, format string, args ...any) {
	if !holds {
		tb.Helper()
		tb.Errorf(format, args...)
	}
}

// MustTrue ends the test with what the format says unless holds is true.
func MustTrue(tb testing.TB, holds bool, format string, args ...any) {
	if !holds {
		tb.Helper()
		tb.Fatalf(format, args...)
	}
}

// Equal reports that got is not want. The report begins with what they are.
func Equal[T comparable](tb testing.TB, what string, got, want T) {
	if got != want {
		tb.Helper()
		tb.Error(differ(what, got, want))
	}
}

// MustEqual ends the test if got is not want.
func MustEqual[T comparable](tb testing.TB, what string, got, want T) {
	if got != want {
		tb.Helper()
		tb.Fatal(differ(what, got, want))
	}
}

// Greater reports that got is at most bound.
func Greater[T cmp.Ordered](tb testing.TB, what string, got, bound T) {
	if got <= bound {
		tb.Helper()
		tb.Errorf("%s: %v, want more than %v", what, got, bound)
	}
}

// GreaterOrEqual reports that got is less than bound.
func GreaterOrEqual[T cmp.Ordered](tb testing.TB, what string, got, bound T) {
	if got < bound {
		tb.Helper()
		tb.Errorf("%s: %v, want at least %v", what, got, bound)
	}
}

// Less reports that got is at least bound.
func Less[T cmp.Ordered](tb testing.TB, what string, got, bound T) {
	if got >= bound {
		tb.Helper()
		tb.Errorf("%s: %v, want less than %v", what, got, bound)
	}
}

// LessOrEqual reports that got is more than bound.
func LessOrEqual[T cmp.Ordered](tb testing.TB, what string, got, bound T) {
	if got > bound {
		tb.Helper()
		tb.Errorf("%s: %v, want at most %v", what, got, bound)
	}
}

// NoDiff reports a difference as cmp.Diff(want, got) returns it, unless it is empty.
func NoDiff(tb testing.TB, what, diff string) {
	if diff != "" {
		tb.Helper()
		tb.Errorf("%s: -want +got:\n%s", what, diff)
	}
}

// Empty reports what stands in a list.
func Empty[T any](tb testing.TB, what string, list []T) {
	if len(list) > 0 {
		tb.Helper()
		tb.Errorf("%s: %q", what, any(list))
	}
}

// Contains reports that got does not have want in it.
func Contains(tb testing.TB, what, got, want string) {
	if !strings.Contains(got, want) {
		tb.Helper()
		tb.Errorf("%s lacks %q:\n%s", what, want, got)
	}
}

// Result is what a call returned: a value, or an error.
type Result[T any] struct {
	value T
	err   error
}

// Of takes what a call returned.
func Of[T any](value T, err error) Result[T] { return Result[T]{value, err} }

// Must returns the value. It ends the test if there is an error, as the function Must does.
func (r Result[T]) Must(tb testing.TB, about ...any) T {
	if r.err != nil {
		tb.Helper()
		tb.Fatal(line(about, r.err))
	}
	return r.value
}

// NoError reports an error, as the function NoError does.
func (r Result[T]) NoError(tb testing.TB, about ...any) {
	if r.err != nil {
		tb.Helper()
		tb.Error(line(about, r.err))
	}
}

// Fails reports that there is no error, or another one, as the function Fails does.
func (r Result[T]) Fails(tb testing.TB, what, says string) {
	tb.Helper()
	Fails(tb, what, r.err, says)
}

// ErrorIs reports that there is no error of a kind, as the function ErrorIs does.
func (r Result[T]) ErrorIs(tb testing.TB, what string, kind error) {
	tb.Helper()
	ErrorIs(tb, what, r.err, kind)
}

// Equal reports an error, or that the value is not want. Its type is a comparable one.
func (r Result[T]) Equal(tb testing.TB, what string, want T) {
	if r.err != nil {
		tb.Helper()
		tb.Errorf("%s: %v, want %s", what, r.err, shown(want))
	} else if any(r.value) != any(want) {
		tb.Helper()
		tb.Error(differ(what, r.value, want))
	}
}

// Patience is how long Until waits.
const Patience = time.Minute

// Until waits until holds returns true. It ends the test after Patience, or when the test's context
// ends, and says what it waited for, and what each of shown returns then.
func Until(tb testing.TB, what string, holds func() bool, shown ...func() string) {
	tb.Helper()
	const longest = 20 * time.Millisecond
	end := time.Now().Add(Patience)
	for pause := time.Millisecond; !holds(); pause = min(2*pause, longest) {
		why := fmt.Sprintf("within %v", Patience)
		if err := tb.Context().Err(); err != nil {
			why = err.Error()
		} else if time.Now().Before(end) {
			time.Sleep(pause)
			continue
		}
		for _, show := range shown {
			why += "\n" + show()
		}
		tb.Fatalf("waited in vain for this: %s: %s", what, why)
	}
}

// line is the line that an error is reported by.
func line(about []any, err error) string {
	if len(about) == 0 {
		return err.Error()
	}
	return strings.TrimSuffix(fmt.Sprintln(about...), "\n") + ": " + err.Error()
}

// differ is the report of two values that are not equal: one below the other, if they are texts of
// several lines.
func differ(what string, got, want any) string {
	g, w := shown(got), shown(want)
	if strings.Contains(g+w, "\n") {
		return fmt.Sprintf("%s:\n%s\nwant:\n%s", what, g, w)
	}
	return fmt.Sprintf("%s: %s, want %s", what, g, w)
}

func shown(v any) string {
	if s, ok := v.(string); ok && !strings.Contains(s, "\n") {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%+v", v)
}
