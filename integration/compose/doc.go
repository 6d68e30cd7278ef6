// Package compose has an engine of containers run docker-compose.yml as it stands, from the first
// `up` to `down -v`.
//
// The engine is Debian's, Compose and buildx are built by scripts/install-servers.sh. It has a
// network, processes and mounts of its own, which all end with it. No registry of images can be
// asked: folder images makes what the files name out of programs of this machine.
package compose
