package resp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// What a client can make the server hold.
const (
	maxArgs = 64
	maxAuth = 8 // before the login, which takes seven
	maxBulk = 4 << 10
	maxLine = 4 << 10

	maxError = 2 << 10 // of the text that a client is told: those who read lines have bounds, too
)

// protocolError is a reading that makes the rest of the stream unreadable.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// readCommand reads one command of at most so many words, in either form; an empty one has
// none. It makes room for what is there, not for what is announced.
func readCommand(r *bufio.Reader, most int) ([]string, error) {
	line, err := readLine(r)
	if err != nil {
		return nil, err
	}
	if len(line) == 0 || line[0] != '*' {
		return inline(line, most)
	}
	n, err := parseLength(line[1:], most)
	if err != nil {
		return nil, protocolError("invalid multibulk length")
	}
	var args []string
	for range n {
		if line, err = readLine(r); err != nil {
			return nil, cut(err)
		}
		if len(line) == 0 || line[0] != '$' {
			return nil, protocolError("expected '$'")
		}
		size, err := parseLength(line[1:], maxBulk)
		if err != nil {
			return nil, protocolError("invalid bulk length")
		}
		word, err := r.Peek(size + 2) // the buffer holds the longest
		if err != nil {
			return nil, cut(err)
		}
		if word[size] != '\r' || word[size+1] != '\n' {
			return nil, protocolError("a bulk string does not end where it should")
		}
		args = append(args, string(word[:size]))
		_, _ = r.Discard(size + 2) // it is there
	}
	return args, nil
}

// cut makes the end of the stream inside a command an error.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readLine reads up to a line feed, which it drops with the carriage return
// before it. The line is good until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(line) > maxLine {
		return nil, protocolError("too big a line")
	}
	if err != nil {
		if len(line) > 0 {
			return nil, cut(err)
		}
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
}

// inline is a command as a person types it.
func inline(line []byte, most int) ([]string, error) {
	words := bytes.Fields(line)
	if len(words) > most {
		return nil, protocolError("too many words")
	}
	args := make([]string, len(words))
	for i, w := range words {
		args[i] = string(w)
	}
	return args, nil
}

// parseLength reads a length of plain digits; none is longer than most has.
func parseLength(text []byte, most int) (int, error) {
	if len(text) == 0 || len(text) > 9 || text[0] < '0' || text[0] > '9' {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.Atoi(string(text))
	if err == nil && n > most {
		err = strconv.ErrRange
	}
	return n, err
}

func appendSimple(b []byte, text string) []byte {
	return append(append(append(b, '+'), text...), "\r\n"...)
}

// appendError answers with an error, whose first word is its code. Line breaks
// would end it early.
func appendError(b []byte, format string, args ...any) []byte {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "")
	}
	b = append(b, '-')
	for i := range len(text) {
		if text[i] < ' ' {
			b = append(b, ' ')
		} else {
			b = append(b, text[i])
		}
	}
	return append(b, "\r\n"...)
}

func appendInt(b []byte, n int64) []byte {
	return append(strconv.AppendInt(append(b, ':'), n, 10), "\r\n"...)
}

func appendBulk(b []byte, text string) []byte {
	b = append(strconv.AppendInt(append(b, '$'), int64(len(text)), 10), "\r\n"...)
	return append(append(b, text...), "\r\n"...)
}

func appendLength(b []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(b, kind), int64(n), 10), "\r\n"...)
}

// appendMap begins a map of n pairs.
func (cl *client) appendMap(b []byte, n int) []byte {
	if cl.version == 3 {
		return appendLength(b, '%', n)
	}
	return appendLength(b, '*', 2*n)
}

// appendSet begins a set of n things.
func (cl *client) appendSet(b []byte, n int) []byte {
	if cl.version == 3 {
		return appendLength(b, '~', n)
	}
	return appendLength(b, '*', n)
}

// appendText is a text for people.
func (cl *client) appendText(b []byte, text string) []byte {
	if cl.version == 3 {
		return append(append(appendLength(b, '=', len(text)+4), "txt:"+text...), "\r\n"...)
	}
	return appendBulk(b, text)
}

// appendNilList is nothing where a list could be.
func appendNilList(b []byte, version int) []byte {
	if version == 3 {
		return append(b, "_\r\n"...)
	}
	return append(b, "*-1\r\n"...)
}

// appendNil is nothing, in the protocol's version.
func appendNil(b []byte, version int) []byte {
	if version == 3 {
		return append(b, "_\r\n"...)
	}
	return append(b, "$-1\r\n"...)
}
