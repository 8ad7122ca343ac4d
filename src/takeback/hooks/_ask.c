/* The small client of the resident helper: ask PYTHON -I -S MAIN hook [FOLDER]
 *
 * Does what `entry.main` and `line.ask` do when a helper is there, without the start of Python,
 * which costs more than everything else together. In every other case, and whenever anything is
 * unusual, it becomes the command that it was given, with the same stdin: the Python program hears
 * the event then, and knows what to do. So nothing is lost, nothing is decided here, and leaving
 * this program out changes nothing but the time. Like every hook it ends with 0, always.
 *
 * What is said on the line is written down in line.py; tests/hooks/test_ask.py compares both.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* struct ucred */
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#ifdef __APPLE__
#define MTIME(st) ((st).st_mtimespec)
#else
#define MTIME(st) ((st).st_mtim)
#endif

#ifndef PATIENCE_MS
#define PATIENCE_MS 10000 /* as line.PATIENCE; tests have less of it */
#endif
enum { LONGEST_PATH = 100 };          /* as in line.py */
enum { LARGEST = 1 << 26 };           /* as line._MOST and entry._LARGEST */
enum { FIRST_ROOM = 1 << 16 };        /* bytes; hardly a payload needs more */
enum { LONGEST_TEXT = 5 * PATH_MAX }; /* five words, or the stamp */
enum { ENTROPY = 16 };                /* bytes of an event's id */

typedef struct { /* text that is put together; `cut` if it was too long */
    char data[LONGEST_TEXT];
    size_t length;
    bool cut;
} Text;

typedef struct {
    char *data;
    size_t size;
} Bytes;

/* ---- text ---- */

__attribute__((format(printf, 2, 3))) static void put(Text *text, const char *format, ...)
{
    size_t room = sizeof text->data - text->length;
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text->data + text->length, room, format, values);
    va_end(values);
    if (length < 0 || (size_t)length >= room)
        text->cut = true;
    else
        text->length += (size_t)length;
}

static void join(Text *text, const Text *more)
{
    if (more->cut || more->length >= sizeof text->data - text->length) {
        text->cut = true;
        return;
    }
    memcpy(text->data + text->length, more->data, more->length);
    text->length += more->length;
}

/* Whether Python's abspath would leave a path as it is. */
static bool is_plain(const char *path)
{
    if (path[0] != '/' || path[1] == '\0')
        return false;
    for (const char *at = path; *at == '/';) {
        const char *name = ++at;
        at += strcspn(at, "/");
        size_t length = (size_t)(at - name);
        if (length == 0 || (length <= 2 && strncmp(name, "..", length) == 0))
            return false;
    }
    return true;
}

/* ---- where we are, as environment.py sees it ---- */

/* The user's home folder, without slashes at its end; without HOME the user database has it, and
 * that is left to Python. */
static bool find_user_home(Text *found)
{
    const char *home = getenv("HOME");
    if (home == NULL || home[0] != '/')
        return false;
    put(found, "%s", home);
    while (found->length > 1 && found->data[found->length - 1] == '/')
        found->data[--found->length] = '\0';
    return !found->cut;
}

static bool find_home(Text *found, const Text *user_home)
{
    const char *chosen = getenv("TAKEBACK_HOME");
    if (chosen != NULL && chosen[0] != '\0') {
        put(found, "%s", chosen);
        return is_plain(chosen);
    }
#ifdef __APPLE__
    put(found, "%s/Library/Application Support/takeback", user_home->data);
#else
    const char *data = getenv("XDG_DATA_HOME");
    if (data != NULL && data[0] == '/')
        put(found, "%s/takeback", data);
    else
        put(found, "%s/.local/share/takeback", user_home->data);
#endif
    return true;
}

/* The words of the request, and the path of the socket. */
static bool find_words(Text *words, const char *agent_folder, const char *event,
                       struct sockaddr_un *address)
{
    static Text home, user_home;
    char folder[PATH_MAX];
    if (!find_user_home(&user_home) || !find_home(&home, &user_home) || home.cut)
        return false;
    if (getcwd(folder, sizeof folder) == NULL)
        return false;
    const char *said[] = {home.data, user_home.data, agent_folder, folder, event};
    for (size_t n = 0; n < sizeof said / sizeof *said; n++)
        put(words, "%s%c", said[n], '\0'); /* each ended by a NUL */
    address->sun_family = AF_UNIX;
    int length = snprintf(address->sun_path, LONGEST_PATH + 1, "%s/helper.sock", home.data);
    return !words->cut && length > 0 && length <= LONGEST_PATH;
}

/* The id of this event, in hexadecimal: whoever handles it, it counts once. */
static bool make_event(char *event)
{
    unsigned char chosen[ENTROPY];
    int source = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    bool made = source >= 0 && read(source, chosen, sizeof chosen) == (ssize_t)sizeof chosen;
    if (source >= 0)
        close(source);
    for (size_t n = 0; made && n < sizeof chosen; n++)
        snprintf(event + 2 * n, 3, "%02x", chosen[n]);
    return made;
}

/* Python goes on with the same event: the process stays, so its number tells whose id this is. */
static bool leave_event(const char *event)
{
    char said[2 * ENTROPY + 32];
    snprintf(said, sizeof said, "%ld %s", (long)getpid(), event);
    return setenv("TAKEBACK_EVENT", said, 1) == 0;
}

/* Which files paths mean: another mount namespace, or root folder, has others. */
static bool put_view(Text *head)
{
    struct stat space, root;
    if (stat("/proc/self/ns/mnt", &space) != 0)
        space.st_ino = 0; /* a system without them */
    if (stat("/", &root) != 0)
        return false;
    put(head, ",%llu,%llu.%llu", (unsigned long long)space.st_ino,
        (unsigned long long)root.st_dev, (unsigned long long)root.st_ino);
    return true;
}

/* What both ends must have in common: as line.stamp, from the path of the program. */
static bool put_head(Text *head, const char *program)
{
    static const char *const looked_at[] = {"", "/version.py", "/hooks", "/agents",
                                            "/capture", "/ledger", "/undo"};
    static const char ending[] = "/takeback/__main__.py";
    const size_t of_ending = sizeof ending - 1, of_name = strlen("/__main__.py");
    size_t length = strlen(program);
    if (!is_plain(program) || length >= PATH_MAX || length < of_ending
        || strcmp(program + length - of_ending, ending) != 0)
        return false;
    const int of_package = (int)(length - of_name);
    put(head, "takeback-hook-3 %.*s@", of_package, program);
    for (size_t n = 0; n < sizeof looked_at / sizeof *looked_at; n++) {
        char path[PATH_MAX + 16];
        struct stat found;
        snprintf(path, sizeof path, "%.*s%s", of_package, program, looked_at[n]);
        if (stat(path, &found) != 0)
            return false;
        long long changed = (long long)MTIME(found).tv_sec * 1000000000LL + MTIME(found).tv_nsec;
        put(head, "%s%llu.%lld", n ? "," : "", (unsigned long long)found.st_ino, changed);
    }
    return put_view(head);
}

static bool wants_helper(void)
{
    const char *said = getenv("TAKEBACK_HELPER");
    return said == NULL || strcmp(said, "0") != 0;
}

/* ---- bytes in and out ---- */

/* All of stdin. If that fails, `bytes` holds what was read so far: more than LARGEST if there is
 * more than that. */
static bool read_whole(Bytes *bytes)
{
    size_t room = 0;
    while (bytes->size <= LARGEST) {
        if (bytes->size == room) {
            room = room == 0 ? FIRST_ROOM : room < LARGEST ? 2 * room : LARGEST + 1;
            char *data = realloc(bytes->data, room);
            if (data == NULL)
                return false;
            bytes->data = data;
        }
        ssize_t count = read(STDIN_FILENO, bytes->data + bytes->size, room - bytes->size);
        if (count == 0)
            return true;
        if (count > 0)
            bytes->size += (size_t)count;
        else if (errno != EINTR)
            return false;
    }
    return false; /* too large */
}

static bool write_whole(int fd, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = write(fd, data + done, size - done);
        if (count > 0)
            done += (size_t)count;
        else if (count == 0 || errno != EINTR)
            return false;
    }
    return true;
}

static bool read_exactly(int fd, char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = read(fd, data + done, size - done);
        if (count > 0)
            done += (size_t)count;
        else if (count == 0 || errno != EINTR)
            return false;
    }
    return true;
}

/* ---- the line ---- */

static bool is_ours(int connection)
{
#ifdef SO_PEERCRED
    struct ucred other;
    socklen_t size = sizeof other;
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0
        && other.uid == geteuid();
#else
    uid_t user;
    gid_t group;
    return getpeereid(connection, &user, &group) == 0 && user == geteuid();
#endif
}

static bool reach(int connection, const struct sockaddr_un *address)
{
    struct timeval patience = {PATIENCE_MS / 1000, PATIENCE_MS % 1000 * 1000};
    return setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0
        && setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0
        && connect(connection, (const struct sockaddr *)address, sizeof *address) == 0
        && is_ours(connection);
}

/* The whole answer, or nothing: half of one must not reach the agent before Python is asked. */
static bool read_reply(int connection, Bytes *answer)
{
    char sign = '\0';
    size_t size = 0, digits = 0;
    for (; read_exactly(connection, &sign, 1) && sign >= '0' && sign <= '9'; digits++) {
        size = 10 * size + (size_t)(sign - '0');
        if (size > LARGEST)
            return false;
    }
    if (sign != '\n' || digits == 0)
        return false;
    answer->size = size;
    answer->data = malloc(size + 1);
    return answer->data != NULL && read_exactly(connection, answer->data, size);
}

static bool ask(const struct sockaddr_un *address, Text *head, const Text *words,
                const Bytes *payload, Bytes *answer)
{
    put(head, "\n%zu %zu\n", words->length, payload->size);
    join(head, words); /* at once: the helper looks at the words to know whom to give it to */
    int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connection < 0)
        return false;
    errno = 0; /* the end of a stream sets none */
    bool answered = reach(connection, address) && !head->cut
        && write_whole(connection, head->data, head->length)
        && write_whole(connection, payload->data, payload->size)
        && read_reply(connection, answer);
    if (!answered && (errno == EAGAIN || errno == EWOULDBLOCK))
        setenv("TAKEBACK_HELPER", "0", 1); /* it hangs: Python need not wait for it as long again */
    close(connection); /* before the answer is written: it may have the number of a closed stdout */
    return answered;
}

/* ---- the other way ---- */

static bool becomes_stdin(int fd)
{
    bool became = dup2(fd, STDIN_FILENO) >= 0;
    close(fd);
    return became;
}

static bool pass_on_by_pipe(const Bytes *payload)
{
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    bool fits = fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0
        && write_whole(ends[1], payload->data, payload->size);
    close(ends[1]);
    if (fits)
        return becomes_stdin(ends[0]);
    close(ends[0]);
    return false;
}

/* In memory where the system can; else a file without a name. */
static int nameless_file(void)
{
#if defined SYS_memfd_create && !defined WITHOUT_MEMFD /* tests try it without, too */
    int fd = (int)syscall(SYS_memfd_create, "takeback-hook", 0U);
    if (fd >= 0)
        return fd;
#endif
    FILE *file = tmpfile();
    return file != NULL ? fileno(file) : -1;
}

static bool pass_on_by_file(const Bytes *payload)
{
    int fd = nameless_file();
    return fd >= 0 && write_whole(fd, payload->data, payload->size)
        && lseek(fd, 0, SEEK_SET) == 0 && becomes_stdin(fd);
}

/* What was read, then the rest of stdin. */
static void pump(int to, const Bytes *payload)
{
    char piece[FIRST_ROOM];
    bool goes_on = write_whole(to, payload->data, payload->size);
    while (goes_on) {
        ssize_t count = read(STDIN_FILENO, piece, sizeof piece);
        if (count < 0 && errno == EINTR)
            continue;
        goes_on = count > 0 && write_whole(to, piece, (size_t)count);
    }
}

/* A payload that is too large to be held: a process beside this one passes it on, bit by bit. */
static bool pass_on_by_process(const Bytes *payload)
{
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        /* The agent waits until all who have its stdout are gone. A closed one may be our end. */
        for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
            if (fd != ends[1])
                close(fd);
        pump(ends[1], payload);
        _exit(0);
    }
    close(ends[1]);
    if (child > 0)
        return becomes_stdin(ends[0]);
    close(ends[0]);
    return false;
}

/* Become the Python program. Without a payload stdin was not touched, or is empty anyway. Only if
 * there is neither memory nor a disk to pass it on, Python finds nothing to hear. */
static void become(char **command, const Bytes *payload)
{
    bool is_passed_on = payload->size == 0
        || (payload->size > LARGEST ? pass_on_by_process(payload) : pass_on_by_pipe(payload));
    if (!is_passed_on)
        (void)pass_on_by_file(payload);
    execv(command[0], command);
}

/* ---- */

static void leave(int signal_number)
{
    (void)signal_number;
    _exit(0);
}

/* As Python does: the agent does not notice an interrupt, and writing to nobody is an error. */
static void set_signals(void)
{
    if (signal(SIGINT, leave) == SIG_IGN)
        signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

int main(int argc, char **argv)
{
    static Text words, head; /* zeroed, as all that is static */
    static struct sockaddr_un address;
    static char event[2 * ENTROPY + 1];
    Bytes payload = {NULL, 0}, answer = {NULL, 0};
    if (argc < 2)
        return 0;
    set_signals();
    /* What can be known without stdin comes first: Python then reads it from where it is. */
    if ((argc == 6 || argc == 7) && strcmp(argv[5], "hook") == 0 && wants_helper()
        && make_event(event) && find_words(&words, argc == 7 ? argv[6] : "", event, &address)
        && put_head(&head, argv[4])
        && access(address.sun_path, F_OK) == 0 && leave_event(event) && read_whole(&payload)
        && ask(&address, &head, &words, &payload, &answer))
        (void)write_whole(STDOUT_FILENO, answer.data, answer.size);
    else
        become(argv + 1, &payload);
    return 0;
}
