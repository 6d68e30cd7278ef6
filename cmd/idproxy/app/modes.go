package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
)

const everybodyReads, everybodyWrites fs.FileMode = 0o004, 0o002

// Readable returns the files with passwords and private keys that everybody on this machine can
// read. Kubernetes mounts secrets like that into a container, where there is nobody else.
func Readable(cfg *config.Config) (files []string) {
	for _, path := range append(tlsconfig.Keys(cfg), cfg.ValueFiles...) {
		if info, err := os.Stat(path); err == nil && info.Mode()&everybodyReads != 0 { // what cannot be read is told of elsewhere
			files = append(files, path)
		}
	}
	return files
}

// Writable returns the folders in which everybody on this machine could replace what idproxy keeps,
// ids among it, or a socket. volumes are those of them where a file system is mounted: Kubernetes
// makes them like that, for one container.
func Writable(cfg *config.Config) (volumes []string, err error) {
	for _, dir := range kept(cfg) {
		info, serr := os.Stat(dir)
		if serr != nil { // it is made, or told of elsewhere
			dir = filepath.Dir(dir)
			info, serr = os.Stat(dir)
		}
		switch {
		case serr != nil || info.Mode()&everybodyWrites == 0 || info.Mode()&fs.ModeSticky != 0:
		case isMounted(dir, info):
			volumes = append(volumes, dir)
		default:
			err = errors.Join(err, fmt.Errorf("folder %s: everybody on this machine can replace what idproxy keeps there (mode %04o): chmod o-w %[1]s, or name a folder of idproxy's own", dir, info.Mode().Perm()))
		}
	}
	return volumes, err
}

// closed refuses to keep ids where everybody can replace them, and tells of what else others on this
// machine can do.
func (p *Program) closed() error {
	for _, path := range Readable(p.cfg) {
		p.log.Warn("others can read a secret", "file.path", path)
	}
	volumes, err := Writable(p.cfg)
	for _, dir := range volumes {
		p.log.Warn("others can write to a folder", "file.directory", dir)
	}
	return err
}

// kept are the folders of stores, and of sockets that clients and operators connect to.
func kept(cfg *config.Config) (dirs []string) {
	socket := func(a config.Addr) {
		if a.Network == "unix" {
			dirs = append(dirs, filepath.Dir(a.Address))
		}
	}
	for i := range cfg.Stores {
		if f := cfg.Stores[i].File; f != nil {
			dirs = append(dirs, f.Dir)
		}
	}
	for i := range cfg.Listeners {
		socket(cfg.Listeners[i].Listen)
	}
	if cfg.Admin != nil {
		socket(cfg.Admin.Listen)
		socket(cfg.Admin.Socket)
	}
	return dirs
}

// isMounted reports whether a file system begins at a folder.
func isMounted(dir string, info fs.FileInfo) bool {
	above, err := os.Stat(filepath.Join(dir, ".."))
	if err != nil {
		return false
	}
	own, ok1 := info.Sys().(*syscall.Stat_t)
	outer, ok2 := above.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && own.Dev != outer.Dev
}
