package snowflake

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/integration/assert"
)

// TestRestIsNoWarning: a number that rests is told, and what fails is warned of, once in a row.
func TestRestIsNoWarning(t *testing.T) {
	rest := &idsource.LaterError{For: time.Second, Err: errors.New("it rests")}
	down := errors.New("store down")
	for _, tt := range []struct {
		name    string
		reports []error
		want    string
	}{
		{"rests", []error{rest, rest, nil}, "INFO INFO"},
		{"down", []error{down, down, nil}, "WARN INFO"},
		{"down while it rests", []error{rest, down, down, nil}, "INFO WARN INFO"},
		{"rests behind a fault", []error{down, rest, nil}, "WARN INFO"},
	} {
		var out strings.Builder
		s := &Snowflake{life: context.Background(), outlook: newOutlook(nil), time: &timeline{host: hostClock()}}
		s.cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
		for _, err := range tt.reports {
			s.report(err)
		}
		var levels []string
		for line := range strings.Lines(out.String()) {
			_, rest, _ := strings.Cut(line, "level=")
			levels = append(levels, strings.Fields(rest)[0])
		}
		assert.Equal(t, tt.name, strings.Join(levels, " "), tt.want)
	}
}
