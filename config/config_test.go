package config

import (
	"errors"
	"testing"
)

// testEnv is the environment of all tests.
func testEnv(name string) (string, bool) {
	v, ok := map[string]string{
		"PW":     `p: "}{'#@/`,
		"WORKER": "7",
		"EMPTY":  "",
		"DOLLAR": "${PW}$$",
	}[name]
	return v, ok
}

func parseOK(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("c.yaml", []byte(text), testEnv)
	if err != nil {
		t.Fatalf("Parse(%s): %v", text, err)
	}
	return c
}

func problems(t *testing.T, err error) Errors {
	t.Helper()
	if err == nil {
		return nil
	}
	list, ok := errors.AsType[Errors](err)
	if !ok {
		t.Fatalf("got %T, want Errors", err)
	}
	return list
}
