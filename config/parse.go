package config

// Parse checks the content of a file. The name is for messages, and its folder
// is what relative paths are relative to; env answers for ${NAME}. The error is
// [Errors].
func Parse(name string, data []byte, env func(string) (string, bool)) (*Config, error) {
	return nil, Errors{{Pos: Pos{name, 1, 1}, Message: "not read"}}
}

// Diff lists, by key path, what differs between two configurations and needs a
// restart.
func Diff(old, new *Config) []string { return nil }
