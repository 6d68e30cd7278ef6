package decide

import (
	"bytes"
	"errors"
	"strings"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
)

// asItWas says what must be another for a text to be read as it was read.
type asItWas struct{ Schema, Quotes bool }

// DiffersFrom reports what differs from what the text was read by; quotes: sql_mode
// matters, too. A need says that something is to be asked first.
func DiffersFrom(o *protocol.OwnText, text string, now *protocol.Vars, quotes bool) (differs asItWas, err error) {
	if differs.Schema, err = schemaDiffers(o, now); err == nil && quotes {
		differs.Quotes, err = quotesDiffer(&o.By, text, now)
	}
	return differs, err
}

// schemaDiffers reports whether the default schema was another one, where it matters.
func schemaDiffers(o *protocol.OwnText, now *protocol.Vars) (bool, error) {
	was := &o.By
	known := was.Known&protocol.KnowSchema != 0
	switch {
	case was.SchemaAge == now.SchemaAge, !known && o.Qualified:
		return false, nil
	case !known:
		return false, ErrReadElse("the default schema")
	case now.Known&protocol.KnowSchema == 0:
		return false, NeedProbe{}
	}
	return len(was.Schema) > 0 && !bytes.Equal(was.Schema, now.Schema), nil
}

// quotesDiffer reports whether the quotes or backslashes of the text were read by another sql_mode.
func quotesDiffer(was *protocol.ReadBy, text string, now *protocol.Vars) (bool, error) {
	matters := protocol.VarSet(0)
	if strings.Contains(text, `"`) {
		matters |= protocol.KnowQuotes
	}
	if strings.Contains(text, `\`) {
		matters |= protocol.KnowBackslash
	}
	switch {
	case was.ModeAge == now.ModeAge, matters == 0:
		return false, nil
	case was.Known&matters != matters:
		return false, ErrReadElse("sql_mode")
	case now.Known&matters != matters:
		return false, NeedProbe{}
	}
	return matters&protocol.KnowQuotes != 0 && was.Mode.ANSIQuotes != now.Mode.ANSIQuotes ||
		matters&protocol.KnowBackslash != 0 && was.Mode.NoBackslashEscapes != now.Mode.NoBackslashEscapes, nil
}

// ErrReadElse says why a text cannot be prepared anew with certainty.
func ErrReadElse(what string) error {
	return clienterr.Undecided(errors.New("it must be prepared anew, and " + what + " may have been another when it was prepared: prepare it again"))
}
