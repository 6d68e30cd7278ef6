package app

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"idproxy/config"
)

// newHandler writes lines of all levels to w, in the format that the configuration asks for, and the
// name of the process at the end of each.
func newHandler(w io.Writer, cfg *config.Config) slog.Handler {
	options := &slog.HandlerOptions{Level: slog.LevelDebug}
	if cfg.Log.Format == "json" {
		options.ReplaceAttr = inMilliseconds
		return named{slog.NewJSONHandler(w, options), instanceOf(cfg)}
	}
	return named{slog.NewTextHandler(w, options), instanceOf(cfg)}
}

// instanceOf is what a process is called: as its configuration says, or else as its host.
func instanceOf(cfg *config.Config) string {
	host, _ := os.Hostname() // a host without a name is called as below
	return cmp.Or(cfg.Instance, host, "idproxy")
}

// named says in each line whose it is.
type named struct {
	slog.Handler
	instance string
}

// Handle implements slog.Handler.
func (h named) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	r.AddAttrs(slog.String("instance", h.instance))
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h named) WithAttrs(attrs []slog.Attr) slog.Handler {
	return named{h.Handler.WithAttrs(attrs), h.instance}
}

// WithGroup implements slog.Handler.
func (h named) WithGroup(name string) slog.Handler {
	return named{h.Handler.WithGroup(name), h.instance}
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
