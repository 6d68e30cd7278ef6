package monitor

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
)

// pageText is the status page, with its style and its script.
//
//go:embed page.html
var pageText []byte

// policy lets a browser run the page's own script and style, and nothing else.
var policy = "default-src 'none'; script-src " + hashOf("<script>", "</script>") + "; style-src " + hashOf("<style>", "</style>") +
	"; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// hashOf names, for a policy, the text of the page between two tags.
func hashOf(begin, end string) string {
	_, rest, _ := bytes.Cut(pageText, []byte(begin))
	text, _, _ := bytes.Cut(rest, []byte(end))
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(pageText) // the client may be gone
}
