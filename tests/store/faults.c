// A layer between a process and the kernel, loaded by LD_PRELOAD: it counts the calls that touch
// the files of one store, makes the one with a given number fail or be the last one, and can write
// down what reaches the files, so that a cut of power can be played afterwards.
//
// FAULTS_PATH   calls on files with this in their path are counted
// FAULTS_AT     number of the call, counted from 1
// FAULTS_KIND   io: EIO. full: ENOSPC, of calls that take room. kill: the process dies instead of
//               making the call. tear: it dies after writing the first half
// FAULTS_STICKY set: all later calls fail as well
// FAULTS_COUNT  file that gets the number of calls when the process ends
// FAULTS_TRACE  file that gets every change, in order
//
// Syncing is only counted, never done: what a killed process has written survives it anyway.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

static const char *watched;
static const char *kind;
static long at;
static int sticky;
static int trace = -1;
static atomic_long calls;

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

__attribute__((constructor)) static void begin(void) {
    kind = getenv("FAULTS_KIND");
    at = number("FAULTS_AT");
    sticky = getenv("FAULTS_STICKY") != NULL;
    const char *path = getenv("FAULTS_TRACE");
    if (path) {
        trace = REAL(int, open64, const char *, int, ...)(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    }
    watched = getenv("FAULTS_PATH");
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAULTS_COUNT");
    FILE *out = path ? fopen(path, "w") : NULL;
    if (out) {
        fprintf(out, "%ld\n", atomic_load(&calls));
        fclose(out);
    }
}

// The path of a descriptor, when its calls count; else NULL.
static const char *path_of(int fd, char *path) {
    if (!watched || fd < 0) return NULL;
    int before = errno;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, 4095);
    errno = before;
    if (length < 0) return NULL;
    path[length] = 0;
    return strstr(path, watched) ? path : NULL;
}

static int counts(const char *path) {
    return watched && strstr(path, watched);
}

// What a call does. A full disk fails what takes room, a death only matters between changes, and
// only a write can be torn.
enum { LOOKS, CHANGES, GROWS, WRITES };

// Whether the call that is about to be made is to fail; sets errno. `half` is set when the first
// half is to be done, and then no more.
static int fails(int does, int *half) {
    int least = !kind || !strcmp(kind, "io") ? LOOKS
                : !strcmp(kind, "kill")      ? CHANGES
                : !strcmp(kind, "full")      ? GROWS
                                             : WRITES;
    if (does < least) return 0;
    long call = atomic_fetch_add(&calls, 1) + 1;
    if (!at || call < at || (call > at && !sticky)) return 0;
    if (least == CHANGES) raise(SIGKILL);
    if (least == WRITES) return *half = 1;
    errno = least == GROWS ? ENOSPC : EIO;
    return 1;
}

// Writes down one change: what, path, second path or bytes, offset.
static void note(char what, const char *path, const void *data, size_t length, uint64_t offset) {
    if (trace < 0 || strstr(path, "-shm")) return;
    uint32_t sizes[2] = {strlen(path), length};
    ssize_t (*put)(int, const void *, size_t) = REAL(ssize_t, write, int, const void *, size_t);
    if (put(trace, &what, 1) < 0 || put(trace, sizes, 8) < 0 || put(trace, &offset, 8) < 0 ||
        put(trace, path, sizes[0]) < 0 || put(trace, data, length) < 0)
        abort();
}

#define OPEN(name)                                                                      \
    int name(const char *path, int flags, ...) {                                        \
        va_list rest;                                                                   \
        va_start(rest, flags);                                                          \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                       \
        va_end(rest);                                                                   \
        int mine = counts(path);                                                        \
        if (mine && fails(flags & O_CREAT ? GROWS : LOOKS, NULL)) return -1;                            \
        int fd = REAL(int, name, const char *, int, ...)(path, flags, mode);            \
        if (mine && fd >= 0 && flags & O_CREAT) note('c', path, "", 0, 0);              \
        if (mine && fd >= 0 && flags & O_TRUNC) note('t', path, "", 0, 0);              \
        return fd;                                                                      \
    }
OPEN(open)
OPEN(open64)

#define PREAD(name)                                                                     \
    ssize_t name(int fd, void *to, size_t length, off64_t offset) {                     \
        char path[4096];                                                                \
        if (path_of(fd, path) && fails(LOOKS, NULL)) return -1;                         \
        return REAL(ssize_t, name, int, void *, size_t, off64_t)(fd, to, length, offset); \
    }
PREAD(pread)
PREAD(pread64)

ssize_t read(int fd, void *to, size_t length) {
    char path[4096];
    if (path_of(fd, path) && fails(LOOKS, NULL)) return -1;
    return REAL(ssize_t, read, int, void *, size_t)(fd, to, length);
}

#define PWRITE(name)                                                                    \
    ssize_t name(int fd, const void *from, size_t length, off64_t offset) {             \
        char path[4096];                                                                \
        int half = 0;                                                                   \
        const char *mine = path_of(fd, path);                                           \
        if (mine && fails(WRITES, &half) && !half) return -1;                                \
        if (half) length /= 2;                                                          \
        ssize_t done =                                                                  \
            REAL(ssize_t, name, int, const void *, size_t, off64_t)(fd, from, length, offset); \
        if (half) raise(SIGKILL);                                                       \
        if (mine && done > 0) note('w', path, from, done, offset);                      \
        return done;                                                                    \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t write(int fd, const void *from, size_t length) {
    char path[4096];
    int half = 0;
    ssize_t (*put)(int, const void *, size_t) = REAL(ssize_t, write, int, const void *, size_t);
    // What the process says is in the trace at its place among the changes.
    if (fd == 1) note('s', "", from, length, 0);
    const char *mine = path_of(fd, path);
    if (mine && fails(WRITES, &half) && !half) return -1;
    if (half) length /= 2;
    off_t offset = mine ? lseek(fd, 0, SEEK_CUR) : 0;
    ssize_t done = put(fd, from, length);
    if (half) raise(SIGKILL);
    if (mine && done > 0) note('w', path, from, done, offset);
    return done;
}

#define TRUNCATE(name)                                                                  \
    int name(int fd, off64_t length) {                                                  \
        char path[4096];                                                                \
        const char *mine = path_of(fd, path);                                           \
        if (mine && fails(GROWS, NULL)) return -1;                                      \
        int done = REAL(int, name, int, off64_t)(fd, length);                           \
        if (mine && !done) note('t', path, "", 0, length);                              \
        return done;                                                                    \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

#define SYNC(name)                                                                      \
    int name(int fd) {                                                                  \
        char path[4096];                                                                \
        struct stat about;                                                              \
        const char *mine = path_of(fd, path);                                           \
        if (mine && fails(CHANGES, NULL)) return -1;                                    \
        /* A directory is watched by what is in it, and synced for that. */             \
        if (!mine && watched && !fstat(fd, &about) && S_ISDIR(about.st_mode)) {         \
            if (fails(CHANGES, NULL)) return -1;                                        \
            note('d', "", "", 0, 0);                                                    \
        }                                                                               \
        if (mine) note('f', path, "", 0, 0);                                            \
        return 0;                                                                       \
    }
SYNC(fsync)
SYNC(fdatasync)

int rename(const char *from, const char *to) {
    int mine = counts(from);
    if (mine && fails(GROWS, NULL)) return -1;
    int done = REAL(int, rename, const char *, const char *)(from, to);
    if (mine && !done) note('r', from, to, strlen(to), 0);
    return done;
}

int unlink(const char *path) {
    int mine = counts(path);
    if (mine && fails(CHANGES, NULL)) return -1;
    int done = REAL(int, unlink, const char *)(path);
    if (mine && !done) note('u', path, "", 0, 0);
    return done;
}

#define MMAP(name)                                                                      \
    void *name(void *where, size_t length, int access, int flags, int fd, off64_t offset) { \
        char path[4096];                                                                \
        if (path_of(fd, path) && fails(LOOKS, NULL)) return MAP_FAILED;                 \
        return REAL(void *, name, void *, size_t, int, int, int, off64_t)(              \
            where, length, access, flags, fd, offset);                                  \
    }
MMAP(mmap)
MMAP(mmap64)

int flock(int fd, int how) {
    char path[4096];
    if (path_of(fd, path) && fails(LOOKS, NULL)) return -1;
    return REAL(int, flock, int, int)(fd, how);
}

#define FCNTL(name)                                                                     \
    int name(int fd, int what, ...) {                                                   \
        char path[4096];                                                                \
        va_list rest;                                                                   \
        va_start(rest, what);                                                           \
        void *value = va_arg(rest, void *);                                             \
        va_end(rest);                                                                   \
        /* Taking a lock may fail once. It does not break with a disk, though, and letting    \
           go of one never fails: SQLite would blame others, and wait for ten seconds. */   \
        int takes = what == F_SETLK && ((struct flock *)value)->l_type != F_UNLCK;      \
        if (takes && !sticky && path_of(fd, path) && fails(LOOKS, NULL)) return -1;     \
        return REAL(int, name, int, int, ...)(fd, what, value);                         \
    }
FCNTL(fcntl)
FCNTL(fcntl64)
