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

	"idproxy/integration/harness"
)

// program builds idproxy.
func program(t *testing.T) string {
	t.Helper()
	path, err := harness.BuildPlain()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) { harness.Main(m) }

// TestShippedConfiguration: idproxy starts with what the package brings, as it is.
func TestShippedConfiguration(t *testing.T) {
	t.Parallel()
	shipped := filepath.Join(root, "deploy/package/idproxy.yaml")
	if out, err := exec.CommandContext(t.Context(), program(t), "check", "--config", shipped).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	// What its comments show is a rule, when the comment signs go.
	whole := strings.NewReplacer("# sources:\n#  ", "sources:\n  ", "# rules:\n#  ", "rules:\n  ").Replace(string(text))
	if whole == string(text) {
		t.Fatal("the example is not found")
	}
	path := filepath.Join(t.TempDir(), "idproxy.yaml")
	for text, status := range map[string]int{whole: 0, whole + "nonsense: 1\n": 1} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program(t), "check", "--config", path)
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != status {
			t.Errorf("%v, want status %d\n%s", err, status, out)
		}
	}
}

// TestScripts reads the scripts of packages with a shell.
func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(root, "deploy/package/*/*"))
	if err != nil || len(scripts) != 8 {
		t.Fatalf("scripts %q, %v", scripts, err)
	}
	for _, script := range scripts {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
	if err := exec.CommandContext(t.Context(), "sh", "-n", "-c", "if true").Run(); err == nil {
		t.Error("a broken script is not found")
	}
}

// completed is what a shell offers for words, by the script that idproxy prints for it.
func completed(t *testing.T, shell string, words ...string) []string {
	t.Helper()
	bin := filepath.Dir(program(t))
	dir := t.TempDir()
	if err := os.Symlink(program(t), filepath.Join(dir, "idproxy")); err != nil {
		t.Fatal(err)
	}
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
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
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
			if got := completed(t, shell, c.words...); !slices.Contains(got, c.want) {
				t.Errorf("%s: %q offers %q, want %s", shell, c.words, got, c.want)
			}
		}
		if got := completed(t, shell, "source", "nothing-begins-so"); len(got) > 0 && got[0] != "" {
			t.Errorf("%s offers %q for nothing", shell, got)
		}
	}
}
