package relay

import "bytes"

// needsBridge reports whether an authentication packet asks for the password
// itself: in clear over a secure connection, encrypted with the server's key
// over any other. When one side of the session is secure and the other is not,
// client and server disagree on which.
func needsBridge(payload []byte, n int) bool {
	const full = 4 // caching_sha2_password: perform full authentication
	if n == 2 && payload[0] == 1 && payload[1] == full {
		return true
	}
	return bytes.HasPrefix(payload, []byte("\xfesha256_password\x00")) && n <= maxBridged
}

// maxBridged is the size up to which an authentication packet is read whole
// where the connections differ in security: a switch to sha256_password takes
// 38 bytes.
const maxBridged = 64

// MaxHandshake bounds a packet before the login has succeeded. TiProxy and
// MySQL's own net_buffer_length both allow 1 MiB.
const MaxHandshake = 1 << 20
