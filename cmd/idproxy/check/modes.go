package check

import (
	"idproxy/cmd/idproxy/app"
	"idproxy/config"
)

// modeNotes says what others on this machine can read and write.
func modeNotes(cfg *config.Config) []Finding {
	var n notes
	top := config.Pos{File: cfg.Path, Line: 1, Column: 1}
	for _, path := range app.Readable(cfg) {
		n.add(top, LevelWarning, "file %s: everybody on this machine can read this secret: chmod o-r %[1]s, unless it is mounted into a container", path)
	}
	volumes, err := app.Writable(cfg)
	for _, dir := range volumes {
		n.add(top, LevelWarning, "folder %s: everybody can write to this volume: where others use it, chmod o-w %[1]s, or name a folder in it", dir)
	}
	if err != nil {
		n.add(top, LevelError, "%v", err)
	}
	return n.findings
}
