package assert

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a test that notes what it is told.
type recorder struct {
	testing.TB // nothing else is called
	ctx        context.Context
	said       string
	ended      bool
}

func (*recorder) Helper()                          {}
func (r *recorder) Context() context.Context       { return r.ctx }
func (r *recorder) Error(args ...any)              { r.said += fmt.Sprint(args...) }
func (r *recorder) Errorf(format string, a ...any) { r.said += fmt.Sprintf(format, a...) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	r.ended = true
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// record runs do as a test would.
func record(ctx context.Context, do func(testing.TB)) *recorder {
	r := &recorder{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(r)
	}()
	<-done
	return r
}

func TestReports(t *testing.T) {
	broken := errors.New("it is broken")
	for name, tt := range map[string]struct {
		do   func(tb testing.TB)
		want string // "" passes
		ends bool
	}{
		"Must, no error":        {do: func(tb testing.TB) { Must(tb, nil, "x") }},
		"Must":                  {func(tb testing.TB) { Must(tb, broken) }, "it is broken", true},
		"Must, about":           {func(tb testing.TB) { Must(tb, broken, "row", 3) }, "row 3: it is broken", true},
		"NoError, no error":     {do: func(tb testing.TB) { NoError(tb, nil) }},
		"NoError":               {func(tb testing.TB) { NoError(tb, broken, "row", 3) }, "row 3: it is broken", false},
		"Fails":                 {do: func(tb testing.TB) { Fails(tb, "x", broken, "is broken") }},
		"Fails, any":            {do: func(tb testing.TB) { Fails(tb, "x", broken, "") }},
		"Fails, no error":       {func(tb testing.TB) { Fails(tb, "x", nil, "") }, `x: no error, want one with ""`, false},
		"Fails, another":        {func(tb testing.TB) { Fails(tb, "x", broken, "away") }, `x: the error is it is broken, want one with "away"`, false},
		"True":                  {do: func(tb testing.TB) { True(tb, true, "x") }},
		"True, it is false":     {func(tb testing.TB) { True(tb, false, "row %d", 3) }, "row 3", false},
		"MustTrue":              {do: func(tb testing.TB) { MustTrue(tb, true, "x") }},
		"MustTrue, it is false": {func(tb testing.TB) { MustTrue(tb, false, "row %d", 3) }, "row 3", true},
		"Equal, alike":          {do: func(tb testing.TB) { Equal(tb, "x", 3, 3) }},
		"Equal":                 {func(tb testing.TB) { Equal(tb, "rows", uint8(2), 3) }, "rows: 2, want 3", false},
		"Equal, texts":          {func(tb testing.TB) { Equal(tb, "name", " a", "") }, `name: " a", want ""`, false},
		"Equal, several lines":  {func(tb testing.TB) { Equal(tb, "page", "a\nb", "a") }, "page:\na\nb\nwant:\n\"a\"", false},
		"Equal, a struct":       {func(tb testing.TB) { Equal(tb, "x", struct{ A, B int }{1, 2}, struct{ A, B int }{}) }, "x: {A:1 B:2}, want {A:0 B:0}", false},
		"MustEqual, alike":      {do: func(tb testing.TB) { MustEqual(tb, "x", broken, broken) }},
		"MustEqual":             {func(tb testing.TB) { MustEqual(tb, "x", broken, nil) }, "x: it is broken, want <nil>", true},
		"Greater":               {do: func(tb testing.TB) { Greater(tb, "rows", 4, 3) }},
		"Greater, equal":        {func(tb testing.TB) { Greater(tb, "rows", 3, 3) }, "rows: 3, want more than 3", false},
		"GreaterOrEqual":        {do: func(tb testing.TB) { GreaterOrEqual(tb, "rows", 3, 3) }},
		"GreaterOrEqual, less":  {func(tb testing.TB) { GreaterOrEqual(tb, "rows", 2, 3) }, "rows: 2, want at least 3", false},
		"Less":                  {do: func(tb testing.TB) { Less(tb, "it took", time.Second, time.Minute) }},
		"Less, equal":           {func(tb testing.TB) { Less(tb, "it took", time.Minute, time.Minute) }, "it took: 1m0s, want less than 1m0s", false},
		"LessOrEqual":           {do: func(tb testing.TB) { LessOrEqual(tb, "rows", 3, 3) }},
		"LessOrEqual, more":     {func(tb testing.TB) { LessOrEqual(tb, "rows", 4, 3) }, "rows: 4, want at most 3", false},
		"NoDiff":                {do: func(tb testing.TB) { NoDiff(tb, "x", "") }},
		"NoDiff, one":           {func(tb testing.TB) { NoDiff(tb, "x", "- a") }, "x: -want +got:\n- a", false},
		"ErrorIs":               {do: func(tb testing.TB) { ErrorIs(tb, "x", fmt.Errorf("a: %w", broken), broken) }},
		"ErrorIs, no error":     {func(tb testing.TB) { ErrorIs(tb, "x", nil, broken) }, "x: the error is <nil>, want it is broken", false},
		"Of ErrorIs":            {do: func(tb testing.TB) { Of(3, broken).ErrorIs(tb, "x", broken) }},
		"Of ErrorIs, another":   {func(tb testing.TB) { Of(3, broken).ErrorIs(tb, "x", context.Canceled) }, "x: the error is it is broken, want context canceled", false},
		"Empty":                 {do: func(tb testing.TB) { Empty(tb, "x", []string(nil)) }},
		"Empty, it is not":      {func(tb testing.TB) { Empty(tb, "words", []string{"a", " "}) }, `words: ["a" " "]`, false},
		"Contains, it is there": {do: func(tb testing.TB) { Contains(tb, "x", "abc", "b") }},
		"Contains":              {func(tb testing.TB) { Contains(tb, "the page", "abc", "d") }, "the page lacks \"d\":\nabc", false},
		"Of Must":               {do: func(tb testing.TB) { Equal(tb, "x", Of(3, nil).Must(tb), 3) }},
		"Of Must, an error":     {func(tb testing.TB) { Of(3, broken).Must(tb, "row", 3) }, "row 3: it is broken", true},
		"Of NoError":            {do: func(tb testing.TB) { Of(3, nil).NoError(tb) }},
		"Of NoError, an error":  {func(tb testing.TB) { Of(3, broken).NoError(tb, "row", 3) }, "row 3: it is broken", false},
		"Of Fails":              {do: func(tb testing.TB) { Of(3, broken).Fails(tb, "x", "is broken") }},
		"Of Fails, no error":    {func(tb testing.TB) { Of(3, nil).Fails(tb, "x", "") }, `x: no error, want one with ""`, false},
		"Of Equal":              {do: func(tb testing.TB) { Of(3, nil).Equal(tb, "x", 3) }},
		"Of Equal, an error":    {func(tb testing.TB) { Of(3, broken).Equal(tb, "rows", 3) }, "rows: it is broken, want 3", false},
		"Of Equal, another":     {func(tb testing.TB) { Of(2, nil).Equal(tb, "rows", 3) }, "rows: 2, want 3", false},
		"Until, at once":        {do: func(tb testing.TB) { Until(tb, "x", func() bool { return true }, func() string { panic("shown") }) }},
	} {
		r := record(t.Context(), tt.do)
		if r.said != tt.want || r.ended != tt.ends {
			t.Errorf("%s: %q, ended: %v; want %q, %v", name, r.said, r.ended, tt.want, tt.ends)
		}
	}
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		later := func() bool { return time.Since(began) > Patience/2 }
		if r := record(t.Context(), func(tb testing.TB) { Until(tb, "x", later) }); r.said != "" {
			t.Errorf("what holds after half a minute: %s", r.said)
		}
		r := record(t.Context(), func(tb testing.TB) {
			Until(tb, "the end", func() bool { return false }, func() string { return "the log" })
		})
		if want := "waited in vain for this: the end: within 1m0s\nthe log"; r.said != want || !r.ended {
			t.Errorf("what never holds: %q, ended: %v; want %q", r.said, r.ended, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		began = time.Now()
		cancel()
		r = record(ctx, func(tb testing.TB) { Until(tb, "the end", func() bool { return false }) })
		if !strings.Contains(r.said, "canceled") || !r.ended || time.Since(began) > 0 {
			t.Errorf("a test that ends: %q after %v", r.said, time.Since(began))
		}
	})
}
