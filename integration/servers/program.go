package servers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Kind is the make of a server.
type Kind uint8

// The two makes that idproxy is tested with.
const (
	MariaDB Kind = iota // Debian's packages; with Options.Newer 11.8, unpacked as MySQL is
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
	name       string   // tells programs apart
	server     string   // the server's own file
	path       string   // what to execute: the server, or the dynamic loader that runs it
	args       []string // arguments that come first: the server's path for the loader, where its files are
	serverArgs []string // arguments for serving only
	noSyncArgs []string // arguments for serving without waiting for the disk
	noTLS      []string
	client     string
	clientArgs []string
	dump       string // mysqldump or mariadb-dump, with its first arguments
	dumpArgs   []string
	init       func(data string, lowerCase string) (*exec.Cmd, error) // makes an empty data folder
}

// find looks for the programs of a kind.
func find(kind Kind, newer bool) (program, error) {
	tools, err := toolsDir()
	switch {
	case err != nil:
		return program{}, err
	case kind == MySQL && newer:
		return program{}, errors.New("there is one MySQL only, none newer")
	case kind == MySQL:
		return findMySQL(filepath.Join(tools, "mysql97"))
	case newer:
		return findNewerMariaDB(filepath.Join(tools, "mariadb118"))
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
	p := program{name: "MariaDB", server: server, path: server, client: client}
	p.args = append([]string{"--no-defaults"}, asRoot()...)
	p.serverArgs = []string{"--plugin-dir=" + plugins, "--plugin-load-add=auth_ed25519", "--innodb-log-file-size=256M"}
	p.noTLS = []string{"--skip-ssl"}
	p.clientArgs = []string{"--no-defaults"}
	p.dump, p.dumpArgs = dump, p.clientArgs
	p.init = func(data, lowerCase string) (*exec.Cmd, error) {
		args := append([]string{"--no-defaults"}, asRoot()...)
		return exec.Command(install, append(args, "--datadir="+data, lowerCase, "--skip-test-db", "--skip-name-resolve",
			"--auth-root-authentication-method=normal", "--innodb-log-file-size=8M")...), nil
	}
	return p, nil
}

// systemTables are the scripts that a data folder of MariaDB is made with, in the order that they
// have to run.
var systemTables = []string{
	"mariadb_system_tables", "mariadb_performance_tables", "mariadb_system_tables_data", "maria_add_gis_sp_bootstrap", "mariadb_sys_schema",
}

// findNewerMariaDB looks for MariaDB 11.8. Its script that makes a data folder does not run on this
// system, so the server is given the statements that the script would give it.
func findNewerMariaDB(root string) (program, error) {
	usr := filepath.Join(root, "usr")
	plugins, share := filepath.Join(usr, "lib/mysql/plugin"), filepath.Join(usr, "share/mariadb")
	p := program{name: "MariaDB118", server: filepath.Join(usr, "sbin/mariadbd"), noTLS: []string{"--skip-ssl"}}
	p.serverArgs = []string{
		"--plugin-dir=" + plugins, "--plugin-load-add=auth_ed25519;auth_parsec", "--innodb-log-file-size=256M",
	}
	p.init = func(data, lowerCase string) (*exec.Cmd, error) {
		script := []byte("USE mysql;\n")
		for _, name := range systemTables {
			text, err := os.ReadFile(filepath.Join(share, name+".sql"))
			if err != nil {
				return nil, err
			}
			script = append(script, text...)
		}
		if err := os.MkdirAll(filepath.Join(data, "mysql"), 0o700); err != nil {
			return nil, err
		}
		cmd := exec.Command(p.path, append(p.args, "--datadir="+data, lowerCase, "--bootstrap", "--innodb-log-file-size=8M")...)
		cmd.Stdin = bytes.NewReader(script)
		return cmd, nil
	}
	if err := p.load(usr, share, "bin/mariadb", "bin/mariadb-dump"); err != nil {
		return program{}, fmt.Errorf("find MariaDB 11.8: %w\nrun: scripts/install-servers.sh mariadb118", err)
	}
	return p, nil
}

func findMySQL(root string) (program, error) {
	usr := filepath.Join(root, "usr")
	p := program{name: "MySQL", server: filepath.Join(usr, "sbin/mysqld"), noTLS: []string{"--tls-version="}}
	p.serverArgs = []string{
		"--plugin-dir=" + filepath.Join(usr, "lib/mysql/plugin"), "--mysqlx=OFF", "--innodb-redo-log-capacity=256M",
	}
	p.noSyncArgs = []string{"--innodb-log-writer-threads=OFF"} // they spin where there is nothing to write
	p.init = func(data, lowerCase string) (*exec.Cmd, error) {
		return exec.Command(p.path, append(p.args, "--datadir="+data, lowerCase, "--initialize-insecure",
			"--innodb-redo-log-capacity=8M")...), nil
	}
	if err := p.load(usr, filepath.Join(usr, "share/mysql"), "bin/mysql", "bin/mysqldump"); err != nil {
		return program{}, fmt.Errorf("find MySQL: %w\nrun: scripts/install-servers.sh mysql", err)
	}
	p.clientArgs = append(p.clientArgs, "--plugin-dir="+filepath.Join(usr, "lib/mysql/plugin"))
	return p, nil
}

// WriteClient writes a program mysql into a folder, which is the command-line client of a kind of
// server.
func WriteClient(dir string, kind Kind, newer bool) error {
	p, err := find(kind, newer)
	if err != nil {
		return err
	}
	text := "#!/bin/sh\nexec '" + strings.Join(append([]string{p.client}, p.clientArgs...), "' '") + "' \"$@\"\n"
	return os.WriteFile(filepath.Join(dir, "mysql"), []byte(text), 0o700)
}

// load has p run by the dynamic loader and with the libraries of another system, which are unpacked
// in usr. Messages and character sets are in share.
func (p *program) load(usr, share, client, dump string) error {
	loader := filepath.Join(usr, "lib64/ld-linux-x86-64.so.2")
	client, dump = filepath.Join(usr, client), filepath.Join(usr, dump)
	for _, file := range []string{loader, p.server, client, dump} {
		if _, err := os.Stat(file); err != nil {
			return err
		}
	}
	libraries := filepath.Join(usr, "lib/x86_64-linux-gnu") + ":" + filepath.Join(usr, "lib/mysql/private")
	charsets := "--character-sets-dir=" + filepath.Join(share, "charsets")
	p.path, p.client, p.dump = loader, loader, loader
	p.args = []string{"--library-path", libraries, p.server, "--no-defaults", "--basedir=" + usr, "--lc-messages-dir=" + share, charsets}
	p.args = append(p.args, asRoot()...)
	p.clientArgs = []string{"--library-path", libraries, client, "--no-defaults", charsets}
	p.dumpArgs = []string{"--library-path", libraries, dump, "--no-defaults", charsets}
	return nil
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

// template is the path of an empty data folder of this program, made at first use and kept in the
// tools folder. Several test programs may ask for it at once.
func (p program) template(lowerCase int) (string, error) {
	tools, err := toolsDir()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(p.server)
	if err != nil {
		return "", err
	}
	// A server that was upgraded since gets a folder of its own.
	dir := filepath.Join(tools, "data", fmt.Sprintf("%s-%x-lower%d", p.name, info.ModTime().Unix(), lowerCase))
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
	cmd, err := p.init(fresh, fmt.Sprintf("--lower-case-table-names=%d", lowerCase))
	if err != nil {
		return "", err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make a data folder for %s: %w\n%s", p.name, err, out)
	}
	return dir, os.Rename(fresh, dir)
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
