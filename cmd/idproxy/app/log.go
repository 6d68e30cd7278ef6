package app

import (
	"context"
	"io"
	"log/slog"
	"time"

	"idproxy/config"
)

// newHandler writes lines of all levels to w, in the format that the configuration asks for.
func newHandler(w io.Writer, c config.Log) slog.Handler {
	options := &slog.HandlerOptions{Level: slog.LevelDebug}
	if c.Format == "json" {
		options.ReplaceAttr = inMilliseconds
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}

// leveled leaves out lines below a level, which can change.
type leveled struct {
	slog.Handler
	level slog.Leveler
}

// Enabled implements slog.Handler.
func (h leveled) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// WithAttrs implements slog.Handler.
func (h leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leveled{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements slog.Handler.
func (h leveled) WithGroup(name string) slog.Handler {
	return leveled{h.Handler.WithGroup(name), h.level}
}

// inMilliseconds writes durations as numbers of milliseconds, with the unit in the name;
// slog's own are nanoseconds.
func inMilliseconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Float64(a.Key+"_ms", float64(a.Value.Duration())/float64(time.Millisecond))
}

func setLevel(level *slog.LevelVar, c config.Log) {
	var l slog.Level
	if l.UnmarshalText([]byte(c.Level)) == nil { // config has checked the word
		level.Set(l)
	}
}
