package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"idproxy/integration/assert"
)

// greeting returns a greeting as a server writes it.
func greeting(version string, caps uint64, plugin string) []byte {
	b := append([]byte{10}, version+"\x00"...)
	b = append(b, 0x39, 0x30, 0, 0) // thread 12345
	b = append(b, "scramble\x00"...)
	b = binary.LittleEndian.AppendUint16(b, uint16(caps))
	b = append(b, 45, 2, 0) // character set, status
	b = binary.LittleEndian.AppendUint16(b, uint16(caps>>16))
	b = append(b, 21)
	b = append(b, make([]byte, 6)...)
	b = binary.LittleEndian.AppendUint32(b, uint32(caps>>32))
	b = append(b, "second scram\x00"...)
	if plugin != "" {
		b = append(b, plugin+"\x00"...)
	}
	return b
}

const (
	mysqlCaps   = uint64(mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_PLUGIN_AUTH | mysql.CLIENT_DEPRECATE_EOF)
	mariadbCaps = mysqlCaps&^1 | MariaDBStmtBulkOperations | MariaDBCacheMetadata
)

func TestParseGreeting(t *testing.T) {
	for _, tt := range []struct {
		name    string
		in      []byte
		want    *Greeting
		mariaDB bool
	}{
		{
			name: "mysql", in: greeting("9.7.0", mysqlCaps, "caching_sha2_password"),
			want: &Greeting{Version: "9.7.0", ThreadID: 12345, Caps: mysqlCaps, Status: 2, Plugin: "caching_sha2_password"},
		},
		{
			name: "mariadb", in: greeting("5.5.5-10.11.14-MariaDB", mariadbCaps, "mysql_native_password"),
			want:    &Greeting{Version: "5.5.5-10.11.14-MariaDB", ThreadID: 12345, Caps: mariadbCaps, Status: 2, Plugin: "mysql_native_password"},
			mariaDB: true,
		},
		{
			name: "upper caps are filler where bit 0 is set", in: greeting("8.4.0", mysqlCaps|MariaDBCacheMetadata, ""),
			want: &Greeting{Version: "8.4.0", ThreadID: 12345, Caps: mysqlCaps, Status: 2},
		},
		{
			name: "plugin name without its NUL", in: bytes.TrimSuffix(greeting("8.4.0", mysqlCaps, "x"), []byte{0}),
			want: &Greeting{Version: "8.4.0", ThreadID: 12345, Caps: mysqlCaps, Status: 2, Plugin: "x"},
		},
		{name: "empty"},
		{name: "protocol 9", in: append([]byte{9}, greeting("3.20", 0, "")[1:]...)},
		{name: "version without NUL", in: []byte("\x0a8.4.0")},
		{name: "cut off", in: greeting("8.4.0", mysqlCaps, "")[:37]},
	} {
		got, err := ParseGreeting(tt.in)
		if tt.want != nil {
			tt.want.Scramble = []byte("scramblesecond scram")
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(Greeting{})); diff != "" || (err == nil) != (tt.want != nil) {
			t.Errorf("%s: error %v, difference (-want +got):\n%s", tt.name, err, diff)
			continue
		}
		assert.True(t, err != nil || got.MariaDB() == tt.mariaDB, "%s: MariaDB() is not %v", tt.name, tt.mariaDB)
	}
}

// response returns a HandshakeResponse41. parts stand behind the fixed part.
func response(caps uint64, parts ...string) []byte {
	b := make([]byte, 32)
	binary.LittleEndian.PutUint32(b, uint32(caps))
	binary.LittleEndian.PutUint32(b[4:], 1<<24)
	b[8] = 45
	if caps&1 == 0 {
		binary.LittleEndian.PutUint32(b[28:], uint32(caps>>32))
	}
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func TestParseResponse(t *testing.T) {
	const (
		old    = uint64(mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_PROTOCOL_41)
		plain  = old | uint64(mysql.CLIENT_SECURE_CONNECTION)
		withDB = plain | uint64(mysql.CLIENT_CONNECT_WITH_DB)
		plugin = withDB | uint64(mysql.CLIENT_PLUGIN_AUTH)
		lenenc = plugin | uint64(mysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
		tls    = plugin | uint64(mysql.CLIENT_SSL)
	)
	for _, tt := range []struct {
		name    string
		in      []byte
		tlsCaps uint64
		want    *Response
	}{
		{name: "user alone", in: response(plain, "app\x00", "\x00"), want: &Response{Caps: plain, Charset: 45, User: "app"}},
		{name: "old password", in: response(old, "app\x00", "hash\x00"), want: &Response{Caps: old, Charset: 45, User: "app"}},
		{
			name: "everything", in: response(plugin, "app\x00", "\x02ab", "shop\x00", "mysql_native_password\x00", "\x03\x01a\x00"),
			want: &Response{Caps: plugin, Charset: 45, User: "app", Schema: "shop", Plugin: "mysql_native_password"},
		},
		{
			name: "long auth data", in: response(lenenc, "app\x00", "\xfc\x01\x01", string(make([]byte, 257)), "shop\x00", "p\x00"),
			want: &Response{Caps: lenenc, Charset: 45, User: "app", Schema: "shop", Plugin: "p"},
		},
		{name: "schema without its NUL", in: response(withDB, "app\x00", "\x00", "shop"), want: &Response{Caps: withDB, Charset: 45, User: "app", Schema: "shop"}},
		{name: "plugin missing", in: response(plugin, "app\x00", "\x00", "shop\x00"), want: &Response{Caps: plugin, Charset: 45, User: "app", Schema: "shop"}},
		{
			name: "MariaDB capabilities", in: response(plain&^1|MariaDBCacheMetadata, "app\x00", "\x00"),
			want: &Response{Caps: plain&^1 | MariaDBCacheMetadata, Charset: 45, User: "app"},
		},
		{name: "request for TLS", in: response(tls), want: &Response{Caps: tls, Charset: 45, SSLRequest: true}},
		{
			name: "capabilities of the request for TLS hold", in: response(old, "app\x00", "\x00", "shop\x00"), tlsCaps: tls,
			want: &Response{Caps: tls, Charset: 45, User: "app", Schema: "shop"},
		},
		{name: "empty"},
		{name: "31 bytes", in: response(plain)[:31]},
		{name: "a JConnector's four bytes for TLS", in: response(tls)[:4]},
		{name: "fixed part alone", in: response(plain)},
		{name: "user without NUL", in: response(plain, "app")},
		{name: "auth data cut off", in: response(plain, "app\x00", "\x05ab")},
		{name: "protocol before 4.1", in: response(uint64(mysql.CLIENT_LONG_PASSWORD), "app\x00", "\x00")},
	} {
		got, err := ParseResponse(tt.in, tt.tlsCaps)
		diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(Response{}))
		assert.True(t, diff == "" && (err == nil) == (tt.want != nil), "%s: error %v, difference (-want +got):\n%s", tt.name, err, diff)
	}
}

// changeUser returns a COM_CHANGE_USER behind its first byte.
func changeUser(parts ...string) []byte { return []byte(strings.Join(parts, "")) }

// TestBlank: what is left of a packet has neither what the client says of its password nor the name
// of its plugin, and nothing else of it has changed.
func TestBlank(t *testing.T) {
	const (
		plain  = uint64(mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_PLUGIN_AUTH)
		withDB = plain | uint64(mysql.CLIENT_CONNECT_WITH_DB)
		lenenc = withDB | uint64(mysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
	)
	for _, tt := range []struct {
		in, want []byte
		caps     uint64
		change   bool
	}{
		{in: response(plain, "app\x00", "\x03s\x01\x00", "sha256_password\x00"), want: response(plain, "app\x00", "\x03\x00\x00\x00", "_ha256_password\x00")},
		{in: response(lenenc, "app\x00", "\xfc\x02\x00pw", "shop\x00", "dialog"), want: response(lenenc, "app\x00", "\xfc\x02\x00\x00\x00", "shop\x00", "_ialog")},
		{in: response(withDB, "app\x00", "\x00", "shop\x00"), want: response(withDB, "app\x00", "\x00", "shop\x00")},
		{in: changeUser("app\x00", "\x02pw", "shop\x00", "-\x00", "dialog\x00", "attributes"), want: changeUser("app\x00", "\x02\x00\x00", "shop\x00", "-\x00", "_ialog\x00", "attributes"), caps: plain, change: true},
		{in: changeUser("app\x00", "\x02pw"), want: changeUser("app\x00", "\x02\x00\x00"), caps: plain, change: true},
		{in: changeUser("app\x00", "\x09pw"), want: changeUser("app\x00", "\x09pw"), caps: plain, change: true},
	} {
		if tt.change {
			c := ParseChangeUser(tt.in, tt.caps)
			assert.True(t, string(c.User) == "app", "user %q", c.User)
			c.Blank()
		} else {
			r := assert.Of(ParseResponse(tt.in, 0)).Must(t)
			r.Blank()
		}
		assert.NoDiff(t, "blanked", cmp.Diff(tt.want, tt.in))
	}
}

// FuzzChangeUser: what is read of the packet stands in it, and blanking changes nothing in front of
// the proof.
func FuzzChangeUser(f *testing.F) {
	f.Add(changeUser("app\x00", "\x02pw", "shop\x00", "-\x00", "dialog\x00", "attributes"), mysqlCaps)
	f.Add(changeUser("app\x00", "pw\x00", "shop\x00"), uint64(0))
	f.Fuzz(func(t *testing.T, in []byte, caps uint64) {
		out := bytes.Clone(in)
		c := ParseChangeUser(out, caps)
		user := string(c.User)
		assert.True(t, bytes.HasPrefix(in, c.User) && bytes.Contains(in, []byte(c.Plugin)), "%q and %q of %x", c.User, c.Plugin, in)
		c.Blank()
		assert.True(t, len(out) == len(in) && string(out[:len(user)]) == user, "%x became %x", in, out)
	})
}

func TestNumber(t *testing.T) {
	for in, want := range map[string]uint32{
		"5.5.5-10.11.19-MariaDB-0+deb12u1": 101119, "11.4.2-MariaDB-log": 110402, "10.6.16-10-MariaDB-enterprise-log": 100616,
		"9.7.4": 90704, "9.7.4-2": 90704, "8.0.32-0ubuntu0.22.04.2": 80032, "5.7.44-log": 50744, "8.0.36-28.1": 80036,
		"8.0.33-google": 80033, "5.7.44-rds.20240408-log": 50744, "8.4.0-commercial": 80400,

		"": 0, "x": 0, "8": 0, "8.0": 0, "8.0.x": 0, "8.0.100": 0, "8.0.1.2": 0, "8.0.-1": 0, "8.0.+1": 0, "300.0.1": 0,
		"8.0.11-TiDB-v7.5.0": 0, "5.7.25-OceanBase-v4.2": 0, "8.0.30-Vitess": 0, "8.0.11 (ProxySQL)": 0, "5.5.5-x-MariaDB": 0,
	} {
		assert.Equal(t, fmt.Sprintf("%q is version", in), (&Greeting{Version: in}).Number(), want)
	}
}

// changed returns the offsets at which a and b, of equal length, differ.
func changed(a, b []byte) (at []int) {
	for i := range a {
		if a[i] != b[i] {
			at = append(at, i)
		}
	}
	return at
}

// SetCaps changes capability bytes alone, and what it wrote reads back.
func FuzzGreeting(f *testing.F) {
	f.Add(greeting("9.7.0", mysqlCaps, "caching_sha2_password"), uint64(0))
	f.Add(greeting("5.5.5-10.11.14-MariaDB", mariadbCaps, "mysql_native_password"), mariadbCaps)
	f.Add([]byte("\x0a\x00"), uint64(1))
	f.Fuzz(func(t *testing.T, in []byte, caps uint64) {
		g, err := ParseGreeting(in)
		if err != nil {
			return
		}
		bit0 := g.Caps & 1 // never changed by a caller: it says where the capabilities are
		caps = caps&^1 | bit0
		if bit0 == 1 {
			caps = uint64(uint32(caps))
		}
		out := bytes.Clone(in)
		g.SetCaps(out, caps)
		at := len(g.Version) + 2
		allowed := []int{at + 13, at + 14, at + 18, at + 19, at + 27, at + 28, at + 29, at + 30}
		for _, i := range changed(in, out) {
			assert.True(t, slices.Contains(allowed, i) && (bit0 != 1 || i < at+27), "SetCaps(%x) changed byte %d of %x", caps, i, in)
		}
		again, err := ParseGreeting(out)
		assert.MustTrue(t, err == nil && again.Caps == caps && g.Caps == caps, "capabilities %x read back as %+v, %v", caps, again, err)
		assert.True(t, again.Version == g.Version && again.ThreadID == g.ThreadID && again.Status == g.Status, "SetCaps changed %+v to %+v", g, again)
	})
}

// SetResponseCaps changes capability bytes alone; user, schema and plugin are
// inside the payload.
func FuzzResponse(f *testing.F) {
	f.Add(response(mysqlCaps, "app\x00", "\x14", string(make([]byte, 20)), "mysql_native_password\x00"), uint64(0), uint64(0))
	f.Add(response(mariadbCaps, "app\x00", "\x00"), mariadbCaps, uint64(0))
	f.Add(response(mysqlCaps|uint64(mysql.CLIENT_SSL)), mysqlCaps, mysqlCaps)
	f.Fuzz(func(t *testing.T, in []byte, caps, tlsCaps uint64) {
		resp, err := ParseResponse(in, tlsCaps)
		if err != nil {
			return
		}
		for _, s := range []string{resp.User, resp.Schema, resp.Plugin} {
			assert.True(t, bytes.Contains(in, []byte(s)), "%q is not in %x", s, in)
		}
		extended := in[0]&1 == 0
		if !extended {
			caps |= 1
		} else {
			caps &^= 1
		}
		out := bytes.Clone(in)
		SetResponseCaps(out, caps)
		for _, i := range changed(in, out) {
			assert.True(t, i < 4 || extended && i >= 28 && i < 32, "SetResponseCaps(%x) changed byte %d of %x", caps, i, in)
		}
		got := uint64(binary.LittleEndian.Uint32(out))
		if extended {
			got |= uint64(binary.LittleEndian.Uint32(out[28:])) << 32
		} else {
			caps = uint64(uint32(caps))
		}
		assert.True(t, got == caps, "capabilities %x written as %x", caps, got)
	})
}

// TestTakeLevel: the level of zstd stands behind the connection attributes, and nothing else goes.
func TestTakeLevel(t *testing.T) {
	caps := uint64(mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_PLUGIN_AUTH | mysql.CLIENT_CONNECT_ATTRS | mysql.CLIENT_LONG_PASSWORD)
	packet := make([]byte, 32)
	SetResponseCaps(packet, caps|ClientMySQL)
	packet = append(packet, "ann\x00\x02pwcaching_sha2_password\x00\x04\x01k\x01v"...)
	for _, tt := range []struct {
		behind, left string
		level        byte
	}{{"", "", 0}, {"\x07", "", 7}, {"\xff", "", 255}, {"\x03more", "more", 3}} {
		payload := append(bytes.Clone(packet), tt.behind...)
		r := assert.Of(ParseResponse(payload, 0)).Must(t)
		got, level := r.TakeLevel(payload)
		want := string(packet) + tt.left
		assert.True(t, string(got) == want && level == tt.level, "%q behind: level %d and %q, want %d and %q", tt.behind, level, got, tt.level, want)
	}
}
