/* The stat loop: which recorded directories and entries are no longer as recorded.
 *
 * scan(records, root_fd, part, parts) -> bytes
 *
 * Does exactly what `scan_python` in statloop.py does (a test compares them byte for byte), only
 * faster: one pass over the records, one fstatat per entry, the GIL released. `records` is
 * untrusted: every length, count, depth and name is checked before it is used, and nonsense is
 * a ValueError. It must not change during the call. Nothing is opened but directories below
 * `root_fd`, each by its own name, and no link is followed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* O_PATH */
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef O_PATH
#define OPEN_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#else
#define OPEN_FLAGS (O_RDONLY | O_NONBLOCK | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#endif

#ifdef __APPLE__
#define MTIME(st) ((st)->st_mtimespec)
#define CTIME(st) ((st)->st_ctimespec)
#else
#define MTIME(st) ((st)->st_mtim)
#define CTIME(st) ((st)->st_ctim)
#endif

enum { RECORD_SIZE = 128, ENTRY_SIZE = 96 };               /* bytes; see layout.py */
enum { SAME = 0, CHANGED = 1, GONE = 2, DENIED = 3 };      /* status of a directory */
enum { RACY = 0x8000, REASON = 0xff, REASON_VCS = 1, REASON_MOUNT = 2 };
enum { MAX_OPEN = 64, MAX_PARTS = 256 };
enum { DONE = 0, NONSENSE = 1, NO_MEMORY = 2 };            /* how a scan ends */

typedef struct { /* a directory on the way from the root to the current record */
    uint64_t offset, dev;
    const char *name;
} Level;

typedef struct { /* the fields of a record that the loop looks at */
    uint32_t length, count, flags, mode;
    int64_t mtime, ctime;
    uint64_t ino;
} Record;

typedef struct {
    const unsigned char *base;
    size_t size, start, end; /* our share is the records with start <= offset < end */
    size_t at;               /* offset of the current record */
    long depth;              /* depth of the current record; -1 before the first */
    Level *levels;
    size_t levels_room;
    int root_fd;
    int fds[MAX_OPEN]; /* levels low..high are open, level n in slot n % MAX_OPEN */
    long low, high;    /* high is 0 when only the root is known good, -1 when it is not */
    uint64_t *words;   /* the report */
    size_t used, room;
} Scan;

static uint64_t little_endian(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}
#define U16(at) ((uint32_t)little_endian((at), 2))
#define U32(at) ((uint32_t)little_endian((at), 4))
#define U64(at) little_endian((at), 8)
#define I64(at) ((int64_t)little_endian((at), 8))

/* Split the recorded stamp instead of joining the real one: that can overflow, this cannot. */
static int is_other_time(struct timespec real, int64_t recorded)
{
    int64_t seconds = recorded / 1000000000, rest = recorded % 1000000000;
    if (rest < 0) {
        rest += 1000000000;
        seconds -= 1;
    }
    return real.tv_sec != seconds || real.tv_nsec != rest;
}

/* Whether `length` bytes with a NUL after them are the name of one entry of a directory. */
static int is_name(const unsigned char *name, size_t length)
{
    if (length == 0 || name[length] != 0 || memchr(name, 0, length) || memchr(name, '/', length))
        return 0;
    return !(name[0] == '.' && (length == 1 || (length == 2 && name[1] == '.')));
}

/* ---- the report ---- */

static int reserve(Scan *scan, size_t words)
{
    if (scan->room - scan->used >= words)
        return DONE;
    size_t room = scan->room + scan->room / 2 + words + 512;
    uint64_t *grown = realloc(scan->words, room * sizeof *grown);
    if (grown == NULL)
        return NO_MEMORY;
    scan->words = grown;
    scan->room = room;
    return DONE;
}

/* Begin the report of the directory at `depth` on the current way down, with no entries yet. */
static int begin_report(Scan *scan, long depth, int status)
{
    if (reserve(scan, 4 + (size_t)depth))
        return NO_MEMORY;
    uint64_t *to = scan->words + scan->used;
    *to++ = scan->levels[depth].offset;
    *to++ = (uint64_t)status;
    *to++ = (uint64_t)depth;
    *to++ = 0;
    for (long i = 0; i < depth; i++)
        *to++ = scan->levels[i].offset;
    scan->used += 4 + (size_t)depth;
    return DONE;
}

/* ---- descriptors ---- */

static void close_below(Scan *scan, long depth)
{
    while (scan->high >= depth && scan->high >= scan->low)
        close(scan->fds[scan->high-- % MAX_OPEN]);
    if (scan->high < scan->low) { /* what is left of the way down is only the root */
        scan->high = scan->high < 0 ? -1 : 0;
        scan->low = 1;
    }
}

static int status_of_errno(void)
{
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? GONE : DENIED;
}

/* Open the level below the deepest open one and stat it. */
static int open_next(Scan *scan, struct stat *st)
{
    long next = scan->high + 1;
    int fd = scan->root_fd;
    if (next > 0) {
        if (next - scan->low == MAX_OPEN)
            close(scan->fds[scan->low++ % MAX_OPEN]);
        int parent = scan->high == 0 ? scan->root_fd : scan->fds[scan->high % MAX_OPEN];
        do
            fd = openat(parent, scan->levels[next].name, OPEN_FLAGS);
        while (fd < 0 && errno == EINTR);
        if (fd < 0)
            return status_of_errno();
    }
    int status = SAME;
    if (fstat(fd, st) != 0)
        status = status_of_errno();
    else if ((uint64_t)st->st_dev != scan->levels[next].dev)
        status = GONE;
    if (status != SAME) {
        if (next > 0)
            close(fd);
        return status;
    }
    if (next > 0)
        scan->fds[next % MAX_OPEN] = fd;
    scan->high = next;
    return SAME;
}

/* ---- records ---- */

static int remember_level(Scan *scan, long depth, const unsigned char *name, uint64_t dev)
{
    if ((size_t)depth >= scan->levels_room) {
        size_t room = 2 * (size_t)depth + 64;
        Level *grown = realloc(scan->levels, room * sizeof *grown);
        if (grown == NULL)
            return NO_MEMORY;
        scan->levels = grown;
        scan->levels_room = room;
    }
    scan->levels[depth] = (Level){scan->at, dev, (const char *)name};
    return DONE;
}

/* Check the header at scan->at and the directory's own name, and make it the current record. */
static int read_header(Scan *scan, Record *record)
{
    size_t left = scan->size - scan->at;
    if (left < RECORD_SIZE)
        return NONSENSE;
    const unsigned char *from = scan->base + scan->at;
    record->length = U32(from);
    long depth = (long)U16(from + 4);
    size_t namelen = U16(from + 6);
    record->count = U32(from + 8);
    record->flags = U32(from + 12);
    record->mtime = I64(from + 16);
    record->ctime = I64(from + 24);
    record->ino = U64(from + 40);
    record->mode = U32(from + 124);
    if (record->length < RECORD_SIZE || record->length % 8 || record->length > left)
        return NONSENSE;
    if (record->count > (record->length - RECORD_SIZE) / ENTRY_SIZE)
        return NONSENSE;
    size_t name = RECORD_SIZE + (size_t)record->count * ENTRY_SIZE;
    if (record->length - name < namelen + 1)
        return NONSENSE;
    if (scan->depth < 0) {
        if (depth != 0 || namelen != 0 || from[name] != 0)
            return NONSENSE;
    } else if (depth < 1 || depth > scan->depth + 1 || !is_name(from + name, namelen))
        return NONSENSE;
    scan->depth = depth;
    return remember_level(scan, depth, from + name, U64(from + 32));
}

/* Check the names of all entries and that the record ends where they do. */
static int check_entries(const unsigned char *from, const Record *record)
{
    const unsigned char *entry = from + RECORD_SIZE;
    size_t at = RECORD_SIZE + (size_t)record->count * ENTRY_SIZE;
    at += U16(from + 6) + 1;
    for (uint32_t i = 0; i < record->count; i++, entry += ENTRY_SIZE) {
        size_t namelen = U16(entry + 38);
        if (record->length - at < namelen + 1 || !is_name(from + at, namelen))
            return NONSENSE;
        at += namelen + 1;
    }
    if (record->length - at > 7)
        return NONSENSE;
    for (; at < record->length; at++)
        if (from[at] != 0)
            return NONSENSE;
    return DONE;
}

static int is_changed_entry(int fd, const unsigned char *entry, const char *name, uint64_t dev)
{
    uint32_t mode = U32(entry + 32), flags = U16(entry + 36), reason = flags & REASON;
    struct stat st;
    if (reason == REASON_VCS || reason == REASON_MOUNT || (reason == 0 && S_ISDIR(mode)))
        return 0;
    if (flags & RACY)
        return 1;
    while (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        if (errno != EINTR)
            return 1;
    return (uint64_t)st.st_ino != U64(entry) || (uint64_t)st.st_size != U64(entry + 8) ||
           is_other_time(MTIME(&st), I64(entry + 16)) ||
           is_other_time(CTIME(&st), I64(entry + 24)) || (uint32_t)st.st_mode != mode ||
           (uint64_t)st.st_dev != dev;
}

/* Stat the current directory and its entries; *skip becomes the depth whose subtree is lost. */
static int compare_directory(Scan *scan, const Record *record, long *skip)
{
    long depth = scan->depth;
    struct stat st;
    close_below(scan, depth);
    while (scan->high < depth) {
        int lost = open_next(scan, &st);
        if (lost != SAME) { /* a level before our share takes everything below it along */
            long next = scan->high + 1;
            *skip = scan->levels[next].offset < scan->start ? next : depth;
            return begin_report(scan, *skip, lost);
        }
    }
    int fd = depth == 0 ? scan->root_fd : scan->fds[depth % MAX_OPEN];
    size_t report = scan->used;
    int begun = (record->flags & RACY) || (uint64_t)st.st_ino != record->ino ||
                is_other_time(MTIME(&st), record->mtime) ||
                is_other_time(CTIME(&st), record->ctime) || (uint32_t)st.st_mode != record->mode;
    if (begun && begin_report(scan, depth, CHANGED))
        return NO_MEMORY;
    const unsigned char *entry = scan->base + scan->at + RECORD_SIZE;
    const char *name = scan->levels[depth].name; /* the entries' names follow it */
    for (uint32_t i = 0; i < record->count; i++, entry += ENTRY_SIZE) {
        name += strlen(name) + 1;
        if (!is_changed_entry(fd, entry, name, (uint64_t)st.st_dev))
            continue;
        if (!begun && begin_report(scan, depth, SAME))
            return NO_MEMORY;
        begun = 1;
        if (reserve(scan, 1))
            return NO_MEMORY;
        scan->words[scan->used++] = i;
        scan->words[report + 3]++;
    }
    return DONE;
}

static int run(Scan *scan)
{
    Record record;
    long skip = -1; /* records deeper than this are below a lost directory; -1: none is */
    if (scan->size == 0)
        return NONSENSE;
    for (scan->at = 0; scan->at < scan->end; scan->at += record.length) {
        int failed = read_header(scan, &record);
        if (failed)
            return failed;
        if (scan->at < scan->start)
            continue;
        if (check_entries(scan->base + scan->at, &record))
            return NONSENSE;
        if (skip >= 0 && scan->depth > skip)
            continue;
        skip = -1;
        if (compare_directory(scan, &record, &skip))
            return NO_MEMORY;
    }
    return DONE;
}

static PyObject *scan_records(PyObject *module, PyObject *args)
{
    Py_buffer view;
    int root_fd, part, parts, end;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*iii:scan", &view, &root_fd, &part, &parts))
        return NULL;
    PyObject *result = NULL;
    if (part < 0 || part >= parts || parts > MAX_PARTS) {
        PyErr_SetString(PyExc_ValueError, "part must be below parts, and parts at most 256");
    } else {
        size_t size = (size_t)view.len, share = size / (size_t)parts, rest = size % (size_t)parts;
        Scan scan = {.base = view.buf, .size = size, .root_fd = root_fd};
        /* size * part / parts, without a product that could overflow */
        scan.start = share * (size_t)part + rest * (size_t)part / (size_t)parts;
        scan.end = share * ((size_t)part + 1) + rest * ((size_t)part + 1) / (size_t)parts;
        scan.depth = scan.high = -1;
        scan.low = 1;
        Py_BEGIN_ALLOW_THREADS
        end = run(&scan);
        close_below(&scan, 1);
        Py_END_ALLOW_THREADS
        if (end == NO_MEMORY)
            PyErr_NoMemory();
        else if (end == NONSENSE)
            PyErr_Format(PyExc_ValueError, "no directory record at byte %zu", scan.at);
        else
            result = PyBytes_FromStringAndSize((const char *)scan.words,
                                               (Py_ssize_t)(scan.used * sizeof *scan.words));
        free(scan.words);
        free(scan.levels);
    }
    PyBuffer_Release(&view);
    return result;
}

static PyMethodDef methods[] = {
    {"scan", scan_records, METH_VARARGS, "scan(records, root_fd, part, parts) -> bytes"},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_statloop", "The stat loop in C.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__statloop(void)
{
    return PyModuleDef_Init(&definition);
}
