package decide

import (
	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
)

// inUTF8 returns a name that a statement writes in UTF-8; ok is false when the
// server refuses it, or makes question marks of it.
func (cx *reading) inUTF8(name []byte) (converted []byte, ok bool, err error) {
	if cx.now.HasInUTF8(name) {
		return name, true, nil
	}
	if cx.now.Known&protocol.KnowCharset == 0 {
		if cx.barrier {
			return nil, false, errCut
		}
		return nil, false, NeedProbe{}
	}
	charset := cx.now.Charset
	switch {
	case charset == "utf8mb4" && !cx.Mode.MariaDB:
		return catalog.AsUTF8MB3(name), true, nil
	case catalog.IsUTF8(charset):
		return name, true, nil
	}
	s := catalog.Spelling{Name: string(name), Charset: charset}
	known, found := cx.tables.Names.Get(s)
	switch {
	case found:
		return []byte(known), known != catalog.Unreadable, nil
	case cx.barrier:
		return nil, false, errCut
	}
	return nil, false, NeedName{Name: s}
}

// named returns the name of a table in UTF-8, with its schema if that is known.
func (cx *reading) named(t rewriter.Name) (n rewriter.Name, ok bool, err error) {
	n.Schema = cx.schema
	if len(t.Schema) > 0 {
		if n.Schema, ok, err = cx.inUTF8(t.Schema); err != nil || !ok {
			return n, ok, err
		}
	} else if !cx.known {
		n.Schema = nil
	}
	n.Schema = cx.rules.Schema(n.Schema)
	n.Table, ok, err = cx.inUTF8(t.Table)
	return n, ok, err
}

func (cx *reading) speller() speller {
	return speller{&cx.tables.Names, cx.now.Charset, cx.now.Known&protocol.KnowCharset != 0, cx.barrier}
}
