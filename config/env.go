package config

import (
	"fmt"
	"strings"
)

// expand replaces ${NAME} by the environment's value and $$ by a dollar sign. It
// works on one scalar after YAML was parsed, so no value can change the shape of
// the file. used reports whether the environment gave any part.
func expand(raw string, env func(string) (string, bool)) (text string, used bool, problems []string) {
	var b strings.Builder
	for rest := raw; ; {
		before, after, found := strings.Cut(rest, "$")
		b.WriteString(before)
		if !found {
			return b.String(), used, problems
		}
		name, tail, closed := strings.Cut(strings.TrimPrefix(after, "{"), "}")
		switch {
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			rest = after[1:]
			continue
		case !strings.HasPrefix(after, "{"), !closed, !validVariable(name):
			return "", used, append(problems, "a \"$\" stands alone: write ${NAME} for an environment variable, $$ for a dollar sign")
		}
		value, set := env(name)
		if !set {
			problems = append(problems, fmt.Sprintf("environment variable %s is not set: set it, or write the value here", name))
		}
		used = true
		b.WriteString(value)
		rest = tail
	}
}

func validVariable(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_')
	})
}
