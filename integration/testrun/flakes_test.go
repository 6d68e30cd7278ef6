package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// fakeMake answers its third call as a run that is interrupted does, and every second one with failures.
const fakeMake = `#!/bin/sh
echo "$*" >>calls
case $(wc -l <calls) in
3) echo "ok idproxy/a"; exit 1 ;;
1 | 5) echo "9 passed, 0 failed, 1 skipped" ;;
*) cat <<'EOF'
what it printed
failed: idproxy/a TestOne/part
failed: idproxy/a TestOne
failed: idproxy/a 
failed: idproxy/b 
8 passed, 1 failed, 1 skipped
EOF
exit 1 ;;
esac
`

// TestFlakes: scripts/flakes.sh counts what fails, goes on where it was, and leaves no process behind.
func TestFlakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := assert.Of(os.ReadFile("../../scripts/flakes.sh")).Must(t)
	for name, text := range map[string]string{"scripts/flakes.sh": string(script), "bin/make": fakeMake, "bin/git": "#!/bin/sh\necho 1a2b3c4\n"} {
		path := filepath.Join(dir, name)
		assert.Must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)))
	}
	test := strings.Repeat("TestOne|", 32) + "TestTwo" // no file may have such a name
	flakes := func(args ...string) (status int, out string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(dir, "scripts/flakes.sh"), args...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "RUN="+test)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		text, err := cmd.CombinedOutput() // it waits for whoever can write to it
		if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			t.Fatal(err)
		} else if ok {
			status = exit.ExitCode()
		}
		for end := time.Now().Add(time.Minute); syscall.Kill(-cmd.Process.Pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
			assert.MustTrue(t, !time.Now().After(end), "it left a process behind")
		}
		return status, string(text)
	}
	for _, tt := range []struct {
		args   string
		status int
		says   string
	}{
		{"--help", 2, "usage: "},
		{"4 ./a ./b", 1, "run 3 came to no end"},
		{"4 ./a ./b", 1, "flakes: 2 of 4 runs failed"},
		{"1 ./a ./b", 0, "flakes: 0 of 1 runs failed"},
	} {
		status, out := flakes(strings.Fields(tt.args)...)
		assert.True(t, status == tt.status && strings.Contains(out, tt.says), "%s: status %d, want %d and %q:\n%s", tt.args, status, tt.status, tt.says, out)
	}
	calls, err1 := os.ReadFile(filepath.Join(dir, "calls"))
	sum, err2 := os.ReadFile(filepath.Join(dir, ".tools/flakes/sum"))
	logs, err3 := filepath.Glob(filepath.Join(dir, ".tools/flakes/1a2b3c4/*/*.log"))
	assert.Must(t, errors.Join(err1, err2, err3))
	assert.True(t, string(calls) == strings.Repeat("test PKG=./a ./b\n", 5), "make was called with %q", calls)
	for _, want := range []string{
		"make test PKG=\"./a ./b\" RUN=" + test + ", beside three spinning programs, at 1a2b3c4\n", "run-1: 9 passed, 0 failed, 1 skipped, ",
		"2 failed: idproxy/a TestOne\n", "2 failed: idproxy/b\n",
	} {
		assert.True(t, strings.Contains(string(sum), want), "the sum lacks %q:\n%s", want, sum)
	}
	assert.True(t, !strings.Contains(string(sum), "part") && len(logs) == 2, "the logs are %q, the sum\n%s", logs, sum)
}
