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

static int failed_with(struct mu__request_work *work, int number)
{
    return mu__work_fail(work, mu__errno_code(number), strerror(number));
}

static int refuse_large_file(struct mu__request_work *work)
{
    return mu_error_set(&work->answer.error, -MU_EEXHAUSTED, "more than %zu bytes",
                        mu__request_bytes_max(&work->request));
}

static int read_whole_file(struct mu__request_work *work, int fd)
{
    int rv = mu__work_reserve(work, 0);

    while (rv == 0) {
        ssize_t count = read(fd, work->answer.data + work->answer.size,
                             work->room - work->answer.size - 1);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return failed_with(work, errno);
        if (count == 0)
            break;
        work->answer.size += (size_t)count;
        if (work->answer.size > mu__request_bytes_max(&work->request))
            return refuse_large_file(work);
        if (work->room - work->answer.size - 1 == 0)
            rv = mu__work_reserve(work, 2 * work->room);
    }
    if (rv == 0)
        work->answer.data[work->answer.size] = '\0';
    return rv;
}

/* O_NONBLOCK: a pipe without a writer must not block. */
int mu__work_file(struct mu__request_work *work)
{
    int fd = open(work->request.name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int rv;

    if (fd < 0)
        return failed_with(work, errno);
    rv = read_whole_file(work, fd);
    (void)close(fd);
    return rv;
}

/* ---- Folders ---- */

static int add_line(struct mu__request_work *work, const char *name)
{
    size_t length = strlen(name);
    int rv;

    if (work->answer.size + length + 1 > mu__request_bytes_max(&work->request))
        return refuse_large_file(work);
    rv = mu__work_reserve(work, work->answer.size + length + 1);
    if (rv != 0)
        return rv;
    memcpy(work->answer.data + work->answer.size, name, length);
    work->answer.size += length;
    work->answer.data[work->answer.size++] = '\n';
    return 0;
}

static int add_folder_names(struct mu__request_work *work, DIR *folder)
{
    const struct dirent *entry;
    int rv = mu__work_reserve(work, 0);

    errno = 0;
    while (rv == 0 && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rv = add_line(work, entry->d_name);
        errno = 0;
    }
    return rv == 0 && errno != 0 ? failed_with(work, errno) : rv;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The begin of each line, which now ends with a zero byte. A name of newlines alone
 * gives empty lines: there may be as many lines as bytes. */
static char **lines_of(struct mu__request_work *work, size_t *ret_count)
{
    char **lines = calloc(work->answer.size + 1, sizeof *lines);
    size_t count = 0;

    if (lines == NULL)
        return NULL;
    for (char *at = work->answer.data; at < work->answer.data + work->answer.size;
         at += strlen(at) + 1) {
        *(char *)memchr(at, '\n', (size_t)(work->answer.data + work->answer.size - at)) =
            '\0';
        lines[count++] = at;
    }
    *ret_count = count;
    return lines;
}

/* A name with a newline in it becomes several lines, which are sorted like others. */
static int sort_folder_lines(struct mu__request_work *work)
{
    char *sorted = malloc(work->answer.size + 1);
    size_t count = 0;
    char **lines = sorted == NULL ? NULL : lines_of(work, &count);
    char *to = sorted;

    if (lines == NULL) {
        free(sorted);
        return mu__work_fail(work, -MU_ENOMEM, "out of memory");
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
    free(work->answer.data);
    work->answer.data = sorted;
    return 0;
}

int mu__work_folder(struct mu__request_work *work)
{
    DIR *folder = opendir(work->request.name);
    int rv;

    if (folder == NULL)
        return failed_with(work, errno);
    rv = add_folder_names(work, folder);
    (void)closedir(folder);
    return rv == 0 ? sort_folder_lines(work) : rv;
}

/* ---- Writing ---- */

static int nothing_to_report(struct mu__request_work *work, int rv)
{
    if (rv == 0)
        rv = mu__work_reserve(work, 0);
    if (rv == 0)
        work->answer.data[0] = '\0';
    return rv;
}

int mu__work_write(struct mu__request_work *work)
{
    const struct mu__request *request = &work->request;

    return nothing_to_report(work, mu__file_write(request->name, request->body,
                                                  request->body_size, request->new_only,
                                                  &work->answer.error));
}

int mu__work_remove(struct mu__request_work *work)
{
    return nothing_to_report(work,
                             mu__file_remove(work->request.name, &work->answer.error));
}
