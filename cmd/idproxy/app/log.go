package app

import (
	"io"
	"log/slog"
	"time"

	"idproxy/config"
)

// newHandler writes to w what the configuration asks for. The level can change
// later.
func newHandler(w io.Writer, c config.Log, level *slog.LevelVar) slog.Handler {
	setLevel(level, c)
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		options.ReplaceAttr = inMilliseconds
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
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
