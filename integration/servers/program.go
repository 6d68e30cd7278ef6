package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Kind is the make of a server.
type Kind uint8

// The two makes that idproxy is tested with.
const (
	MariaDB Kind = iota // Debian's packages
	MySQL               // MySQL 9.7, unpacked into the tools folder with its own C library
)

// String is the name as documentation writes it.
func (k Kind) String() string {
	if k == MySQL {
		return "MySQL"
	}
	return "MariaDB"
}

// program is how to run one kind of server.
type program struct {
	kind       Kind
	path       string   // what to execute: the server, or the dynamic loader that runs it
	args       []string // arguments that come first: the server's path for the loader, where its files are
	serverArgs []string // arguments for serving only
	noTLS      []string
	client     string
	clientArgs []string
	dump       string // mysqldump or mariadb-dump, with its first arguments
	dumpArgs   []string
	init       func(data string, lowerCase string) *exec.Cmd // makes an empty data folder
}

// find looks for the programs of a kind.
func find(kind Kind) (program, error) {
	tools, err := toolsDir()
	if err != nil {
		return program{}, err
	}
	if kind == MySQL {
		return findMySQL(filepath.Join(tools, "mysql97"))
	}
	return findMariaDB(filepath.Join(tools, "mariadb"))
}

func findMariaDB(tools string) (program, error) {
	server, err1 := lookPath("mariadbd")
	client, err2 := lookPath("mariadb")
	install, err3 := lookPath("mariadb-install-db")
	if err := errors.Join(err1, err2, err3); err != nil {
		return program{}, fmt.Errorf("%w\nrun: scripts/install-servers.sh mariadb", err)
	}
	plugins, dump := filepath.Join(tools, "plugin"), filepath.Join(tools, "bin/mariadb-dump")
	for _, file := range []string{filepath.Join(plugins, "auth_ed25519.so"), dump} {
		if _, err := os.Stat(file); err != nil {
			return program{}, fmt.Errorf("part of MariaDB: %w\nrun: scripts/install-servers.sh mariadb", err)
		}
	}
	p := program{kind: MariaDB, path: server, client: client, args: append([]string{"--no-defaults"}, asRoot()...)}
	p.serverArgs = []string{"--plugin-dir=" + plugins, "--plugin-load-add=auth_ed25519", "--innodb-log-file-size=256M"}
	p.noTLS = []string{"--skip-ssl"}
	p.clientArgs = []string{"--no-defaults"}
	p.dump, p.dumpArgs = dump, p.clientArgs
	p.init = func(data, lowerCase string) *exec.Cmd {
		args := append([]string{"--no-defaults"}, asRoot()...)
		return exec.Command(install, append(args, "--datadir="+data, lowerCase, "--skip-test-db",
			"--auth-root-authentication-method=normal", "--innodb-log-file-size=8M")...)
	}
	return p, nil
}

func findMySQL(root string) (program, error) {
	usr := filepath.Join(root, "usr")
	loader := filepath.Join(usr, "lib64/ld-linux-x86-64.so.2")
	server, client, dump := filepath.Join(usr, "sbin/mysqld"), filepath.Join(usr, "bin/mysql"), filepath.Join(usr, "bin/mysqldump")
	for _, file := range []string{loader, server, client, dump} {
		if _, err := os.Stat(file); err != nil {
			return program{}, fmt.Errorf("find MySQL: %w\nrun: scripts/install-servers.sh mysql", err)
		}
	}
	libraries := filepath.Join(usr, "lib/x86_64-linux-gnu") + ":" + filepath.Join(usr, "lib/mysql/private")
	load := []string{"--library-path", libraries}
	charsets := "--character-sets-dir=" + filepath.Join(usr, "share/mysql/charsets")
	p := program{kind: MySQL, path: loader, client: loader}
	p.args = append(load, server, "--no-defaults", "--basedir="+usr, "--plugin-dir="+filepath.Join(usr, "lib/mysql/plugin"),
		"--lc-messages-dir="+filepath.Join(usr, "share/mysql"), charsets)
	p.args = append(p.args, asRoot()...)
	p.serverArgs = []string{"--mysqlx=OFF", "--innodb-redo-log-capacity=256M"}
	p.noTLS = []string{"--tls-version="}
	p.clientArgs = []string{load[0], load[1], client, "--no-defaults", charsets}
	p.dump, p.dumpArgs = loader, []string{load[0], load[1], dump, "--no-defaults", charsets}
	p.init = func(data, lowerCase string) *exec.Cmd {
		return exec.Command(loader, append(p.args, "--datadir="+data, lowerCase, "--initialize-insecure",
			"--innodb-redo-log-capacity=8M")...)
	}
	return p, nil
}

// lookPath finds a program also where a user's PATH does not look for servers.
func lookPath(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + name)
}

// asRoot is the argument without which both servers refuse to run as root.
func asRoot() []string {
	if os.Getuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// template is the path of an empty data folder of this program, made at first use and kept in the tools folder.
// Several test programs may ask for it at once.
func (p program) template(lowerCase int) (string, error) {
	tools, err := toolsDir()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(p.serverFile())
	if err != nil {
		return "", err
	}
	// A server that was upgraded since gets a folder of its own.
	dir := filepath.Join(tools, "data", fmt.Sprintf("%s-%x-lower%d", p.kind, info.ModTime().Unix(), lowerCase))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	fresh := dir + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return "", err
	}
	cmd := p.init(fresh, fmt.Sprintf("--lower-case-table-names=%d", lowerCase))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make a data folder for %s: %w\n%s", p.kind, err, out)
	}
	return dir, os.Rename(fresh, dir)
}

// serverFile is the server's own file, which for MySQL is an argument of the loader.
func (p program) serverFile() string {
	if p.kind == MySQL {
		return p.args[2]
	}
	return p.path
}

// lock takes a file lock that ends with the process at the latest.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // closing unlocks; nothing was written
}
