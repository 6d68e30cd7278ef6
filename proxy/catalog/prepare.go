package catalog

import (
	"bytes"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// TryPrepare has the server prepare a statement, and close it again. It returns the
// number of its parameters, or the server's error.
func TryPrepare(s Server, sql []byte) (parameters int, refused *mysql.MyError, err error) {
	p, err := s.Prepare(sql)
	if refused, ok := errors.AsType[*mysql.MyError](err); ok {
		return 0, refused, nil
	}
	if errors.Is(err, wire.ErrPlainOK) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	return int(p.Params), nil, s.Close(p.ID)
}

// maxCuts bounds the places where one text may end that the server is asked about.
const maxCuts = 64

// ParseError returns the server's error for a statement that it cannot read, in the
// words in which it puts that: they quote the text up to its end. sql is what was
// taken for the statement, and text goes on behind it. It returns nil when the server
// may have read a statement up to a ';' and failed behind it, for it prepares only one.
func ParseError(s Server, sql, text []byte) (*mysql.MyError, error) {
	cuts := 0
	for i, c := range sql {
		if c != ';' || bytes.HasSuffix(bytes.TrimRight(sql[:i], "; \t\n\v\f\r"), []byte{0}) { // a zero byte would be the end of the text
			continue
		}
		if cuts++; cuts > maxCuts {
			return nil, nil
		}
		_, own, err := TryPrepare(s, sql[:i])
		if err == nil && own == nil { // in a comment of one line there is room for a word of nonsense
			_, own, err = TryPrepare(s, append(bytes.Clone(sql[:i]), ')'))
			if err == nil && own == nil {
				continue
			}
			return nil, err
		}
		if err != nil || own.Code != mysql.ER_PARSE_ERROR && own.Code != mysql.ER_EMPTY_QUERY {
			return nil, err
		}
	}
	_, own, err := TryPrepare(s, text)
	return own, err
}
