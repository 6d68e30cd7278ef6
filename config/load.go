package config

import (
	"fmt"
	"os"
)

// Load reads and checks a file; the environment is the process's own,
// and files that values name are read. The error
// is [Errors] when the file was read and something in it is wrong. When it could not be
// read, it is the wrapped error of the operating system.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return parse(path, data, outside{variable: os.LookupEnv, file: readValue})
}
