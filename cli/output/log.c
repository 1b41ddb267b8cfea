#define _GNU_SOURCE /* dup3 */
#include "cli/output/log.h"

#include "cli/output/print_json.h"

#include "muster/node.h"
#include "runtime/base/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 2048, FILE_MODE = 0644 };

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const char *const level_heads[] = {"ERROR", "WARN ", "INFO ", "DEBUG"};

static int open_log_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, FILE_MODE);
}

int cmd_log_open(const struct cmd_options *options, mu_error *ret_error,
                 struct cmd_log *ret_log)
{
    const char *path = cmd_text(options, CMD_FLAG_LOG_FILE);
    int fd = STDERR_FILENO;

    if (path != NULL)
        fd = open_log_file(path);
    if (fd < 0)
        return mu_error_set(ret_error, -MU_EINVALID, "log file \"%s\": %s", path,
                            strerror(errno));
    *ret_log = (struct cmd_log){
        .path = path,
        .fd = fd,
        .level = (int)cmd_number(options, CMD_FLAG_LOG_LEVEL),
        .json = cmd_number(options, CMD_FLAG_LOG_FORMAT) == 1,
    };
    return 0;
}

int cmd_log_open_client(const struct cmd_options *options, mu_error *ret_error,
                        struct cmd_log *ret_log)
{
    int rv = cmd_log_open(options, ret_error, ret_log);

    if (rv == 0 && options->values[CMD_FLAG_LOG_LEVEL].source == CMD_FROM_DEFAULT)
        ret_log->level = MU_LOG_ERROR;
    return rv;
}

/* The new file takes the place of the old one behind the descriptor, which other threads
 * may be writing to. */
int cmd_log_reopen(struct cmd_log *log)
{
    int number = 0;
    int fd;

    if (log->path == NULL)
        return 0;
    fd = open_log_file(log->path);
    if (fd < 0 || dup3(fd, log->fd, O_CLOEXEC) < 0)
        number = errno;
    if (fd >= 0)
        (void)close(fd);
    return number;
}

void cmd_log_close(struct cmd_log *log)
{
    if (log->fd != STDERR_FILENO)
        (void)close(log->fd);
}

int cmd_write_all(int fd, const void *data, size_t size)
{
    const char *at = data;

    while (size > 0) {
        ssize_t written = write(fd, at, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        at += written;
        size -= (size_t)written;
    }
    return 0;
}

/* Errors are ignored: the process works on when its log cannot be written. */
static void write_log(const struct cmd_log *log, const char *text, size_t size)
{
    (void)cmd_write_all(log->fd, text, size);
}

static void put_json(const struct cmd_log *log, const struct timespec *now, int level,
                     const char *task, const char *who, const char *line)
{
    cJSON *map = cJSON_CreateObject();
    struct tm parts;
    char stamp[40];
    char *text;
    size_t used;

    (void)gmtime_r(&now->tv_sec, &parts);
    used = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(stamp + used, sizeof stamp - used, ".%03ldZ", now->tv_nsec / 1000000);
    cmd_json_add_text(map, "time", stamp);
    cmd_json_add_text(map, "level", level_names[level]);
    cmd_json_add_text(map, "task", task);
    cmd_json_add_text(map, "who", who);
    cmd_json_add_text(map, "message", line);
    text = cJSON_PrintUnformatted(map);
    cJSON_Delete(map);
    if (text == NULL)
        return;
    used = strlen(text);
    text[used] = '\n'; /* replaces the zero byte; the size is passed along */
    write_log(log, text, used + 1);
    cJSON_free(text);
}

static void put_text(const struct cmd_log *log, const struct timespec *now, int level,
                     const char *task, const char *who, const char *line)
{
    char text[LINE_BYTES];
    struct tm parts;
    char zone[8];
    size_t used;
    int needed;

    (void)localtime_r(&now->tv_sec, &parts);
    used = strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
    (void)strftime(zone, sizeof zone, "%z", &parts);
    needed = snprintf(text + used, sizeof text - used, ".%03ld%s %s %s %s: %s\n",
                      now->tv_nsec / 1000000, zone, level_heads[level], task, who, line);
    used += (size_t)(needed < 0 ? 0 : needed);
    if (used >= sizeof text) {
        used = sizeof text - 1;
        text[used - 1] = '\n';
    }
    write_log(log, text, used);
}

void cmd_log_line(void *user, int level, const char *task, const char *who,
                  const char *line)
{
    const struct cmd_log *log = user;
    char shown[LINE_BYTES];
    struct timespec now;

    if (level > log->level || level < 0)
        return;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    mu__printable(line, shown, sizeof shown);
    (log->json ? put_json : put_text)(log, &now, level, task, who, shown);
}

void cmd_print_error(const char *verb, const char *message)
{
    char shown[LINE_BYTES];

    mu__printable(message, shown, sizeof shown);
    (void)fprintf(stderr, "muster %s: %s\n", verb, shown);
}

void cmd_log_say(struct cmd_log *log, int level, const char *task, const char *format,
                 ...)
{
    char line[LINE_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    cmd_log_line(log, level, task, "node", line);
}
