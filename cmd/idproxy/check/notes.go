package check

import (
	"fmt"
	"strings"

	"idproxy/config"
)

// Finding is one thing that check reports.
type Finding struct {
	Position string `json:"position"` // file:line:column
	Level    string `json:"level"`    // error; warning where some statements go wrong; note for what is only worth knowing
	Message  string `json:"message"`
}

const (
	LevelError   = "error"
	LevelWarning = "warning"
	LevelNote    = "note"
)

// notes collects what one part of the check finds. Parts that run at once have
// notes of their own, so that the order of the report does not hang on their speed.
type notes struct{ findings []Finding }

func (n *notes) add(pos config.Pos, level, format string, args ...any) {
	n.findings = append(n.findings, Finding{pos.String(), level, oneLine(fmt.Sprintf(format, args...))})
}

// oneLine sets what may be several errors into a line.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }
