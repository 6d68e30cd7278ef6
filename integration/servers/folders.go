package servers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// toolsDir is the folder of programs and data that scripts/install-servers.sh and this package keep
// between runs: .tools at the top of the module that the working folder is in.
func toolsDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".tools"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("find .tools: the working folder is not inside the module")
		}
		dir = filepath.Dir(dir)
	}
}

// runDir makes a folder for one server. Its name is short, because the path of a unix socket has
// 107 bytes at most. The name has this process's number, so that a later run can remove what a
// killed one left.
func runDir() (string, error) {
	removeLeftovers()
	dir, err := os.MkdirTemp("", fmt.Sprintf("idproxy-%d-", os.Getpid()))
	if err != nil {
		return "", fmt.Errorf("make a folder for a server: %w", err)
	}
	return dir, nil
}

// removeLeftovers removes the folders of processes that are gone. It leaves those that it cannot
// remove, which belong to another user.
func removeLeftovers() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "idproxy-*-*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(strings.Split(filepath.Base(dir), "-")[1])
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}

// copyTree copies a folder of regular files. Empty data folders are mostly zeros, which become
// holes.
func copyTree(dst, src string) error {
	return filepath.WalkDir(src, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dst, strings.TrimPrefix(path, src))
		if entry.IsDir() {
			return os.Mkdir(target, 0o700)
		}
		return copyFile(target, path)
	})
}

func copyFile(dst, src string) (err error) {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var size int64
	block, zeros := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(in, block)
		if !bytes.Equal(block[:n], zeros[:n]) {
			if _, err := out.WriteAt(block[:n], size); err != nil {
				return err
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
}
