package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"idproxy/idsource/access"
	"idproxy/integration/assert"
)

// TestJavaClients sends what clients of Leaf and tinyid send, byte for byte, and reads what they read.
//
// tinyid's own client (TinyIdHttpUtils.post) is HttpURLConnection of the JDK, whose bytes were taken
// down from OpenJDK 17. Leaf has no client of its own; its users ask with RestTemplate of Spring,
// for a Long or a String, which have these headers.
func TestJavaClients(t *testing.T) {
	w := newWorld(t, Config{TinyIDStep: 100, Users: access.NewUsers(access.User{Name: "ann", Secret: access.DigestOf("of-ann")})})
	addr, _ := w.serve(t)
	open := newWorld(t, Config{})
	leaf, _ := open.serve(t)
	jdk := "Cache-Control: no-cache\r\nPragma: no-cache\r\nUser-Agent: Java/17.0.15\r\nHost: ids:8080\r\nAccept: text/html, image/gif, image/jpeg, */*; q=0.2\r\n" +
		"Connection: keep-alive\r\nContent-type: application/x-www-form-urlencoded\r\nContent-Length: 0\r\n\r\n"
	spring := func(accept string) string {
		return "Accept: " + accept + "\r\nUser-Agent: Java/17.0.15\r\nHost: ids:8080\r\nConnection: keep-alive\r\n\r\n"
	}
	for _, tt := range []struct {
		name, addr, request string
		media, want         string
	}{
		{"tinyid's client", addr, "POST /tinyid/id/nextSegmentIdSimple?token=of-ann&bizType=orders HTTP/1.1\r\n" + jdk, "text/plain", "0,20,100,1,0"},
		{"tinyid's client, the next segment", addr, "POST /tinyid/id/nextSegmentIdSimple?token=of-ann&bizType=orders HTTP/1.1\r\n" + jdk, "text/plain", "100,120,200,1,0"},
		{"tinyid's client with a wrong token: it takes an empty text for no segment", addr, "POST /tinyid/id/nextSegmentIdSimple?token=none&bizType=orders HTTP/1.1\r\n" + jdk, "text/plain", ""},
		{"RestTemplate for a Long", leaf, "GET /api/segment/get/orders HTTP/1.1\r\n" + spring("application/json, application/*+json"), "application/json", "1"},
		{"RestTemplate for a String", leaf, "GET /api/segment/get/orders HTTP/1.1\r\n" + spring("text/plain, application/json, application/*+json, */*"), "text/plain", "2"},
		{"curl", leaf, "GET /api/segment/get/orders HTTP/1.1\r\n" + spring("*/*"), "text/plain", "3"},
	} {
		c, err := net.Dial("tcp", tt.addr)
		assert.Must(t, err)
		assert.Of(io.WriteString(c, tt.request)).Must(t)
		a := assert.Of(http.ReadResponse(bufio.NewReader(c), nil)).Must(t)
		body, err := io.ReadAll(a.Body)
		assert.NoError(t, err)
		media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
		assert.True(t, a.StatusCode == http.StatusOK && media == tt.media && string(body) == tt.want, "%s: %s, %s %q; want %s %q", tt.name, a.Status, media, body, tt.media, tt.want)
		_ = c.Close()
	}
}
