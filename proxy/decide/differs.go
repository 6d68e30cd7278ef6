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
	if differs.Schema, err = schemaDiffers(o, now); err == nil && quotes {
		differs.Quotes, err = quotesDiffer(&o.By, text, now)
	}
	return differs, err
}

// schemaDiffers reports whether the default schema was another one, where it matters.
func schemaDiffers(o *relay.OwnText, now *relay.State) (bool, error) {
	was := &o.By
	known := was.Known&relay.KnowSchema != 0
	switch {
	case was.SchemaAge == now.SchemaAge, !known && o.Qualified:
		return false, nil
	case !known:
		return false, ErrReadElse("the default schema")
	case now.Known&relay.KnowSchema == 0:
		return false, NeedProbe{}
	}
	return len(was.Schema) > 0 && !bytes.Equal(was.Schema, now.Schema), nil
}

// quotesDiffer reports whether the quotes or backslashes of the text were read by another sql_mode.
func quotesDiffer(was *relay.ReadBy, text string, now *relay.State) (bool, error) {
	matters := relay.Known(0)
	if strings.Contains(text, `"`) {
		matters |= relay.KnowQuotes
	}
	if strings.Contains(text, `\`) {
		matters |= relay.KnowBackslash
	}
	switch {
	case was.ModeAge == now.ModeAge, matters == 0:
		return false, nil
	case was.Known&matters != matters:
		return false, ErrReadElse("sql_mode")
	case now.Known&matters != matters:
		return false, NeedProbe{}
	}
	return matters&relay.KnowQuotes != 0 && was.Mode.ANSIQuotes != now.Mode.ANSIQuotes ||
		matters&relay.KnowBackslash != 0 && was.Mode.NoBackslashEscapes != now.Mode.NoBackslashEscapes, nil
}

// ErrReadElse says why a text cannot be prepared anew with certainty.
func ErrReadElse(what string) error {
	return clienterr.Undecided(errors.New("it must be prepared anew, and " + what + " may have been another when it was prepared: prepare it again"))
}
