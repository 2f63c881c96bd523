/* Preloaded into every process of a run, it shifts the date by CLOCK_SHIFT_S seconds. Intervals stay the machine's.

   Times of files that were changed after CLOCK_SHIFT_SINCE_S, which is when the run began, are shifted too: others
   are of sources, and a compiled module is thrown away when its source's time changes.
   Libraries that do the same also shift the waits of threads, and made a run three times as long. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t shift, since;

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("CLOCK_SHIFT_S");
    shift = text ? atoll(text) : 0;
    text = getenv("CLOCK_SHIFT_SINCE_S");
    since = text ? atoll(text) : 0;
}

static int read_clock(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    return real ? real(clock, at) : (int)syscall(SYS_clock_gettime, clock, at);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int status = read_clock(clock, at);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += shift;
    return status;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    read_clock(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec + shift;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    read_clock(CLOCK_REALTIME, &now);
    now.tv_sec += shift;
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *at, int base) {
    if (base != TIME_UTC) return 0;
    return clock_gettime(CLOCK_REALTIME, at) == 0 ? base : 0;
}

static int with_shift(int status, struct stat *found) {
    if (status != 0) return status;
    if (found->st_atim.tv_sec >= since) found->st_atim.tv_sec += shift;
    if (found->st_mtim.tv_sec >= since) found->st_mtim.tv_sec += shift;
    if (found->st_ctim.tv_sec >= since) found->st_ctim.tv_sec += shift;
    return 0;
}

int fstatat(int folder, const char *restrict path, struct stat *restrict found, int flags) {
    return with_shift((int)syscall(SYS_newfstatat, folder, path, found, flags), found);
}

int fstat(int file, struct stat *found) { return with_shift((int)syscall(SYS_fstat, file, found), found); }

int stat(const char *restrict path, struct stat *restrict found) { return fstatat(AT_FDCWD, path, found, 0); }

int lstat(const char *restrict path, struct stat *restrict found) {
    return fstatat(AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}

/* The same functions under the names that programs built for large files call. */
int fstatat64(int folder, const char *restrict path, struct stat64 *restrict found, int flags)
    __attribute__((alias("fstatat")));
int fstat64(int file, struct stat64 *found) __attribute__((alias("fstat")));
int stat64(const char *restrict path, struct stat64 *restrict found) __attribute__((alias("stat")));
int lstat64(const char *restrict path, struct stat64 *restrict found) __attribute__((alias("lstat")));
