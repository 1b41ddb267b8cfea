/* Where lines come from: a file, whose shards are ranges of bytes with the lines that
 * begin in them; or the generator, which writes them as text, for the same reader. */
#include "plugin_ctr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LINE_BYTES = 256, /* of a line in a file, about: the size of a shard */
    HELD_PART = 10    /* one shard of so many of a file is held out */
};

int ctr_failed(mu_error *ret_error, int rv, const char *what)
{
    const int code = rv == -ENOMEM ? -MU_ENOMEM : -MU_EPRECONDITION;

    return mu_error_set(ret_error, code, "%.400s: %s", what, strerror(-rv));
}

static int open_file(struct source *source, mu_error *ret_error)
{
    const uint64_t shard_bytes = source->settings->batch * LINE_BYTES;
    struct stat status;
    uint64_t shards;

    source->file = open(source->settings->data, O_RDONLY | O_CLOEXEC);
    if (source->file < 0 || fstat(source->file, &status) != 0)
        return ctr_failed(ret_error, -errno, source->settings->data);
    source->file_bytes = (uint64_t)status.st_size;
    shards = (source->file_bytes + shard_bytes - 1) / shard_bytes;
    if (shards < 2)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "%.400s is too short for batches of %llu lines",
                            source->settings->data,
                            (unsigned long long)source->settings->batch);
    source->held = (shards + HELD_PART - 1) / HELD_PART;
    source->train = shards - source->held;
    return 0;
}

int source_open(const struct settings *settings, mu_error *ret_error,
                struct source *ret_source)
{
    const uint64_t batch = settings->batch;

    *ret_source = (struct source){.settings = settings, .file = -1};
    if (settings->data != NULL)
        return open_file(ret_source, ret_error);
    ctr_planted_init(settings->seed, settings->planted != 0, &ret_source->planted);
    ret_source->train = (settings->lines + batch - 1) / batch;
    ret_source->held = (settings->held + batch - 1) / batch;
    return 0;
}

/* ---- A file ---- */

/* Read bytes `begin` to `end`. Returns how many there were, or a negative errno. */
static ssize_t read_range(int file, char *text, uint64_t begin, uint64_t end)
{
    size_t size = 0;

    while (begin + size < end) {
        const ssize_t n =
            pread(file, text + size, end - begin - size, (off_t)(begin + size));

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        size += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)size;
}

/* The lines that begin in [begin, end): `text` starts with the byte before `begin`, if
 * there is one, and goes on for a line behind `end`. */
static const char *cut_lines(const char *text, size_t size, uint64_t begin, uint64_t end,
                             size_t *ret_bytes)
{
    const size_t before = begin > 0;
    const size_t range = (size_t)(end - begin) + before;
    const char *newline = before ? memchr(text, '\n', size) : NULL;
    size_t first = 0;
    size_t last = size;

    if (before)
        first = newline == NULL ? size : (size_t)(newline - text) + 1;
    if (size >= range) {
        newline = memchr(text + range - 1, '\n', size - range + 1);
        last = newline == NULL ? size : (size_t)(newline - text) + 1;
    }
    *ret_bytes = first < range && first < last ? last - first : 0;
    return text + first;
}

static int read_file(const struct source *source, uint64_t first, uint64_t count,
                     mu_error *ret_error, struct ctr_lines *ret_lines)
{
    const uint64_t shard_bytes = source->settings->batch * LINE_BYTES;
    const uint64_t begin = first * shard_bytes;
    const uint64_t end = begin + count * shard_bytes;
    const uint64_t from = begin - (begin > 0);
    char *text = malloc(end - from + CTR_LINE_MAX);
    ssize_t size;
    size_t bytes;
    const char *lines;
    int rv;

    if (text == NULL)
        return ctr_failed(ret_error, -ENOMEM, "lines");
    size = read_range(source->file, text, from, end + CTR_LINE_MAX);
    if (size < 0) {
        free(text);
        return ctr_failed(ret_error, (int)size, source->settings->data);
    }
    lines = cut_lines(text, (size_t)size, begin, end, &bytes);
    rv = ctr_lines_read(lines, bytes, 1, ret_lines);
    free(text);
    return rv == 0 ? 0 : ctr_failed(ret_error, rv, "lines");
}

/* ---- The generator ---- */

static int generate(const struct source *source, uint64_t first, uint64_t count,
                    double *probabilities, mu_error *ret_error,
                    struct ctr_lines *ret_lines)
{
    const uint64_t batch = source->settings->batch;
    char *text = malloc(count * batch * CTR_LINE_MAX);
    size_t bytes = 0;
    int rv;

    if (text == NULL)
        return ctr_failed(ret_error, -ENOMEM, "lines");
    for (uint64_t i = 0; i < count * batch; i++) {
        double probability;

        bytes += ctr_planted_line(&source->planted, first * batch + i, text + bytes,
                                  &probability);
        if (probabilities != NULL)
            probabilities[i] = probability;
    }
    rv = ctr_lines_read(text, bytes, first * batch, ret_lines);
    free(text);
    return rv == 0 ? 0 : ctr_failed(ret_error, rv, "lines");
}

int source_read(const struct source *source, uint64_t first, uint64_t count,
                double *probabilities, mu_error *ret_error, struct ctr_lines *ret_lines)
{
    if (source->file >= 0)
        return read_file(source, first, count, ret_error, ret_lines);
    return generate(source, first, count, probabilities, ret_error, ret_lines);
}
