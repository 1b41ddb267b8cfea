/* Files and folders, read and written on a thread. */
#include "resolver/engine/uv/internal.h"

#include "resolver/engine/request.h"
#include "resolver/engine/uv/write.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed_with(struct mu__request_work *task, int number)
{
    return mu__work_fail(task, mu__errno_code(number), strerror(number));
}

static int too_large(struct mu__request_work *task)
{
    return mu_error_set(&task->error, -MU_EEXHAUSTED, "more than %zu bytes",
                        mu__request_bytes_max(&task->request));
}

static int read_all(struct mu__request_work *task, int fd)
{
    int rv = mu__work_reserve(task, 0);

    while (rv == 0) {
        ssize_t count = read(fd, task->data + task->size, task->room - task->size - 1);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return failed_with(task, errno);
        if (count == 0)
            break;
        task->size += (size_t)count;
        if (task->size > mu__request_bytes_max(&task->request))
            return too_large(task);
        if (task->room - task->size - 1 == 0)
            rv = mu__work_reserve(task, 2 * task->room);
    }
    if (rv == 0)
        task->data[task->size] = '\0';
    return rv;
}

/* O_NONBLOCK: a pipe without a writer must not block. */
int mu__work_file(struct mu__request_work *task)
{
    int fd = open(task->request.name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int rv;

    if (fd < 0)
        return failed_with(task, errno);
    rv = read_all(task, fd);
    (void)close(fd);
    return rv;
}

/* ---- Folders ---- */

static int add_line(struct mu__request_work *task, const char *name)
{
    size_t length = strlen(name);
    int rv;

    if (task->size + length + 1 > mu__request_bytes_max(&task->request))
        return too_large(task);
    rv = mu__work_reserve(task, task->size + length + 1);
    if (rv != 0)
        return rv;
    memcpy(task->data + task->size, name, length);
    task->size += length;
    task->data[task->size++] = '\n';
    return 0;
}

static int add_names(struct mu__request_work *task, DIR *folder)
{
    const struct dirent *entry;
    int rv = mu__work_reserve(task, 0);

    errno = 0;
    while (rv == 0 && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rv = add_line(task, entry->d_name);
        errno = 0;
    }
    return rv == 0 && errno != 0 ? failed_with(task, errno) : rv;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The begin of each line, which now ends with a zero byte. A name of newlines alone
 * gives empty lines: there may be as many lines as bytes. */
static char **lines_of(struct mu__request_work *task, size_t *ret_count)
{
    char **lines = calloc(task->size + 1, sizeof *lines);
    size_t count = 0;

    if (lines == NULL)
        return NULL;
    for (char *at = task->data; at < task->data + task->size; at += strlen(at) + 1) {
        *(char *)memchr(at, '\n', (size_t)(task->data + task->size - at)) = '\0';
        lines[count++] = at;
    }
    *ret_count = count;
    return lines;
}

/* A name with a newline in it becomes several lines, which are sorted like others. */
static int sort(struct mu__request_work *task)
{
    char *sorted = malloc(task->size + 1);
    size_t count = 0;
    char **lines = sorted == NULL ? NULL : lines_of(task, &count);
    char *to = sorted;

    if (lines == NULL) {
        free(sorted);
        return mu__work_fail(task, -MU_ENOMEM, "out of memory");
    }
    qsort(lines, count, sizeof *lines, by_bytes);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(lines[i]);

        memcpy(to, lines[i], length);
        to[length] = '\n';
        to += length + 1;
    }
    *to = '\0';
    free(lines);
    free(task->data);
    task->data = sorted;
    return 0;
}

int mu__work_folder(struct mu__request_work *task)
{
    DIR *folder = opendir(task->request.name);
    int rv;

    if (folder == NULL)
        return failed_with(task, errno);
    rv = add_names(task, folder);
    (void)closedir(folder);
    return rv == 0 ? sort(task) : rv;
}

/* ---- Writing ---- */

static int nothing_to_report(struct mu__request_work *task, int rv)
{
    if (rv == 0)
        rv = mu__work_reserve(task, 0);
    if (rv == 0)
        task->data[0] = '\0';
    return rv;
}

int mu__work_write(struct mu__request_work *task)
{
    const struct mu__request *request = &task->request;

    return nothing_to_report(task, mu__file_write(request->name, request->body,
                                                request->body_size, request->new_only,
                                                &task->error));
}

int mu__work_remove(struct mu__request_work *task)
{
    return nothing_to_report(task, mu__file_remove(task->request.name, &task->error));
}
