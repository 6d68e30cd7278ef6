package packages

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// program builds idproxy.
func program(t *testing.T) string {
	t.Helper()
	path := assert.Of(harness.BuildPlain()).Must(t)
	return path
}

func TestMain(m *testing.M) { harness.Main(m) }

// TestShippedConfiguration: idproxy starts with what the package brings, in the folder that it makes.
func TestShippedConfiguration(t *testing.T) {
	t.Parallel()
	const made = "/var/lib/idproxy/"
	dir := t.TempDir()
	text := strings.ReplaceAll(string(assert.Of(os.ReadFile(filepath.Join(root, "deploy/package/idproxy.yaml"))).Must(t)), made, dir+"/")
	// What its comments show is a rule, when the comment signs go.
	whole := strings.NewReplacer("# sources:\n#  ", "sources:\n  ", "# rules:\n#  ", "rules:\n  ").Replace(text)
	assert.MustTrue(t, whole != text && strings.Contains(text, dir), "the example, or its folder, is not found")
	path := filepath.Join(dir, "idproxy.yaml")
	for text, status := range map[string]int{text: 0, whole: 0, whole + "nonsense: 1\n": 1, strings.ReplaceAll(whole, dir, dir+"/none"): 1} {
		assert.Must(t, os.WriteFile(path, []byte(text), 0o600))
		cmd := exec.CommandContext(t.Context(), program(t), "check", "--config", path)
		out, err := cmd.CombinedOutput()
		assert.True(t, cmd.ProcessState.ExitCode() == status, "%v, want status %d\n%s", err, status, out)
	}
}

// TestScripts reads the scripts of packages with a shell.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(root, "deploy/package/*/*"))
	assert.MustTrue(t, err == nil && len(scripts) == 8, "scripts %q, %v", scripts, err)
	for _, script := range scripts {
		out, err := exec.CommandContext(t.Context(), "sh", "-n", script).CombinedOutput()
		assert.NoError(t, err, script, string(out))
	}
	assert.Fails(t, "a broken script is not found", exec.CommandContext(t.Context(), "sh", "-n", "-c", "if true").Run(), "")
}

// completed is what a shell offers for words, by the script that idproxy prints for it.
func completed(t *testing.T, shell string, words ...string) []string {
	t.Helper()
	bin := filepath.Dir(program(t))
	dir := t.TempDir()
	assert.Must(t, os.Symlink(program(t), filepath.Join(dir, "idproxy")))
	line := "idproxy " + strings.Join(words, " ")
	scripts := map[string]string{
		"bash": `source /usr/share/bash-completion/bash_completion; source <(idproxy completion bash)
			COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_WORDS=($LINE) COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_TYPE=9
			__start_idproxy; printf '%s\n' "${COMPREPLY[@]}"
			# Where a function offers nothing, bash itself offers files.
			[ ${#COMPREPLY[@]} -gt 0 ] || ! complete -p idproxy | grep -q -- '-o default' || compgen -f -- "${COMP_WORDS[-1]}" || true`,
		// A terminal of its own, where a key after the tab shows the line.
		"zsh": `zmodload zsh/zpty; zpty z zsh -f
			zpty -w z 'PS1= PS2= RPS1=; autoload -Uz compinit; compinit -u -D; source <(idproxy completion zsh)
				line() { print -r -- "<$BUFFER>" }; zle -N line; bindkey "^X" line; print RE""ADY'
			zpty -r z said '*READY*'; zpty -w -n z "$LINE"$'\t\x18'; zpty -r z said '*<*>*'
			said=${${said##*<}%%>*}; print -r -- "${${${said% }#$LINE}:+${${said% }##* }}"`,
		"fish": `idproxy completion fish | source; complete --do-complete="$LINE"`,
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, "-c", scripts[shell])
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+bin+":"+os.Getenv("PATH"), "LINE="+line, "HOME="+dir)
	out := assert.Of(cmd.Output()).Must(t, line)
	offers := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	for i := range offers {
		offers[i], _, _ = strings.Cut(offers[i], "\t")
		offers[i], _, _ = strings.Cut(offers[i], "  ")
		offers[i] = strings.TrimSpace(offers[i])
	}
	return offers
}

// TestCompletion asks shells what they offer.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		for _, c := range []struct {
			words []string
			want  string
		}{
			{[]string{"exp"}, "explain"},
			{[]string{"source", "hi"}, "history"},
			{[]string{"check", "--onl"}, "--online"},
			{[]string{"check", "--config", "go.m"}, "go.mod"},
		} {
			got := completed(t, shell, c.words...)
			assert.True(t, slices.Contains(got, c.want), "%s: %q offers %q, want %s", shell, c.words, got, c.want)
		}
		got := completed(t, shell, "source", "nothing-begins-so")
		assert.True(t, len(got) == 0 || got[0] == "", "%s offers %q for nothing", shell, got)
	}
}
