/* clockshim moves the wall clock of one process: clock_gettime, gettimeofday and time are
 * answered from a page that another process writes. Loaded with LD_PRELOAD by package testredis.
 *
 * The page holds two 64-bit words, each written atomically (clock.go has the other side):
 *   offset  microseconds added to real time
 *   frozen  microseconds since 1970 to show and stay at; 0 lets the clock run
 *
 * Only CLOCK_REALTIME and its coarse twin move. CLOCK_MONOTONIC does not: event loops and timers
 * stand on it, and a server whose timers jump is a broken server, not one with a wrong clock. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct page {
	_Atomic int64_t offset;
	_Atomic int64_t frozen;
};

/* NULL until the constructor has run: allocators ask for the time before that, and get the real one. */
static struct page *page;

__attribute__((constructor)) static void map_page(void) {
	const char *path = getenv("SLUICE_TESTREDIS_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *page, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) { /* a clock that silently does not move would make tests lie */
		static const char msg[] = "clockshim: cannot map the file named by SLUICE_TESTREDIS_CLOCK\n";
		(void)!write(STDERR_FILENO, msg, sizeof msg - 1);
		_exit(127);
	}
	close(fd);
	page = p;
}

/* The system call and not dlsym(RTLD_NEXT): dlsym allocates, and the allocator asks for the time. */
int clock_gettime(clockid_t id, struct timespec *ts) {
	int rc = (int)syscall(SYS_clock_gettime, id, ts);
	if (rc != 0 || page == NULL || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
		return rc;
	int64_t ns = atomic_load(&page->frozen) * 1000;
	if (ns == 0)
		ns = ts->tv_sec * INT64_C(1000000000) + ts->tv_nsec + atomic_load(&page->offset) * 1000;
	ts->tv_sec = ns / INT64_C(1000000000);
	ts->tv_nsec = ns % INT64_C(1000000000);
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
	struct timespec ts;
	if (tz != NULL)
		memset(tz, 0, sizeof(struct timezone));
	if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
		return -1;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t) {
	struct timespec ts;
	if (clock_gettime(CLOCK_REALTIME, &ts) != 0)
		return (time_t)-1;
	if (t != NULL)
		*t = ts.tv_sec;
	return ts.tv_sec;
}
