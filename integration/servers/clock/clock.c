/* A wall clock that a test moves, for servers that ask the C library for the time. It is loaded before that library.
 * The file that IDPROXY_CLOCK names holds by how many nanoseconds the clock is ahead, and is mapped: what is written
 * there is in force at once. Monotonic clocks stay what they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t second = 1000000000;
static int64_t none;
static volatile int64_t *ahead = &none;

__attribute__((constructor)) static void begin(void) {
	const char *path = getenv("IDPROXY_CLOCK");
	int file = path ? open(path, O_RDONLY) : -1;
	void *mapped = file < 0 ? MAP_FAILED : mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
	if (mapped == MAP_FAILED)
		abort();
	close(file);
	ahead = mapped;
}

static struct timespec moved(struct timespec t, int64_t by) {
	int64_t ns = t.tv_sec * second + t.tv_nsec + by;
	return (struct timespec){ns / second, ns % second};
}

/* The system is asked, not the library: allocators ask for the time before symbols can be looked up. */
int clock_gettime(clockid_t clock, struct timespec *t) {
	int failed = syscall(SYS_clock_gettime, clock, t);
	if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		*t = moved(*t, *ahead);
	return failed;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *t) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}

/* A wait until a time of day ends by the host's clock. Times below are those of a monotonic clock. */
int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, const struct timespec *restrict until) {
	static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
	struct timespec t = *until;
	if (t.tv_sec > second)
		t = moved(t, -*ahead);
	if (!wait)
		*(void **)&wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
	return wait(c, m, &t);
}
