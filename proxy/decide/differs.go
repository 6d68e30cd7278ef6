package decide

import (
	"bytes"
	"errors"
	"strings"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
)

// asItWas says what must be another for a text to be read as it was read.
type asItWas struct{ Schema, Quotes bool }

// DiffersFrom reports what differs from what the text was read by; quotes: sql_mode
// matters, too. A need says that something is to be asked first.
func DiffersFrom(o *relay.OwnText, text string, now *relay.State, quotes bool) (differs asItWas, err error) {
	was := &o.By
	if was.SchemaAge != now.SchemaAge && (was.Known&relay.KnowSchema != 0 || !o.Qualified) {
		switch {
		case was.Known&relay.KnowSchema == 0:
			return differs, ErrReadElse("the default schema")
		case now.Known&relay.KnowSchema == 0:
			return differs, NeedProbe{}
		}
		differs.Schema = len(was.Schema) > 0 && !bytes.Equal(was.Schema, now.Schema)
	}
	matters := relay.Known(0)
	if strings.Contains(text, `"`) {
		matters |= relay.KnowQuotes
	}
	if strings.Contains(text, `\`) {
		matters |= relay.KnowBackslash
	}
	if quotes && was.ModeAge != now.ModeAge && matters != 0 {
		switch {
		case was.Known&matters != matters:
			return differs, ErrReadElse("sql_mode")
		case now.Known&matters != matters:
			return differs, NeedProbe{}
		}
		differs.Quotes = matters&relay.KnowQuotes != 0 && was.Mode.ANSIQuotes != now.Mode.ANSIQuotes ||
			matters&relay.KnowBackslash != 0 && was.Mode.NoBackslashEscapes != now.Mode.NoBackslashEscapes
	}
	return differs, nil
}

// ErrReadElse says why a text cannot be prepared anew with certainty.
func ErrReadElse(what string) error {
	return clienterr.Undecided(errors.New("it must be prepared anew, and " + what + " may have been another when it was prepared: prepare it again"))
}
