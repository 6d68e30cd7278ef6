/* Servers that do not wait for the disk. It is loaded before the C library. What they wrote is in the system's cache,
 * where it outlives them: only a machine that loses its power would lose it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int fsync(int file) {
	(void)file;
	return 0;
}

int fdatasync(int file) {
	(void)file;
	return 0;
}

int sync_file_range(int file, off64_t from, off64_t bytes, unsigned flags) {
	(void)file, (void)from, (void)bytes, (void)flags;
	return 0;
}

int msync(void *from, size_t bytes, int flags) {
	(void)from, (void)bytes, (void)flags;
	return 0;
}
