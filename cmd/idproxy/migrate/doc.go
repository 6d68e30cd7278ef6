// Package migrate walks tables from AUTO_INCREMENT on several shards to ids of idproxy, and back, by a
// plan that is kept in a file. [Open] reads or makes it, [Migration.Report] says where it stands, and
// [Migration.Run] runs one step. DESIGN.md has the idea.
package migrate
