package config

// sizeUnits, largest first among the binary ones, as String wants them.
var sizeUnits = []struct {
	name   string
	bytes  int64
	binary bool
}{
	{"GiB", 1 << 30, true},
	{"MiB", 1 << 20, true},
	{"KiB", 1 << 10, true},
	{"GB", 1e9, false},
	{"MB", 1e6, false},
	{"KB", 1e3, false},
	{"B", 1, false},
}
