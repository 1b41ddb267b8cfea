#include "resolver/source/entry.h"

#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/document/refuse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINES_MAX = 3 };

static const char until[] = "until ";

static int refuse_entry_line(const char *source, unsigned line, const char *expected,
                             const char *text, size_t size, mu_error *ret_error)
{
    return mu__refuse(ret_error, text, size, "%s: line %u: expected %s", source, line,
                      expected);
}

/* Whether all bytes are visible ASCII. */
static bool is_entry_text(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return true;
}

static bool read_until(const char *text, size_t size, uint64_t *ret_seconds)
{
    const size_t word = sizeof until - 1;
    int64_t seconds;

    if (size <= word || memcmp(text, until, word) != 0)
        return false;
    seconds = mu__decimal(text + word, size - word, INT64_C(999999999999));
    *ret_seconds = (uint64_t)seconds;
    return seconds > 0;
}

static int read_entry_line(const char *text, size_t size, unsigned line,
                           const char *source, mu_error *ret_error,
                           struct mu__task_entry *entry)
{
    if (line == 1) {
        if (size == 0 || size >= sizeof entry->address || !is_entry_text(text, size))
            return refuse_entry_line(source, line,
                                     "the task's address, as in \"host:port\"", text,
                                     size, ret_error);
        memcpy(entry->address, text, size);
        entry->address[size] = '\0';
    } else if (line == 2) {
        if (size == 0 || size >= sizeof entry->who || !is_entry_text(text, size))
            return refuse_entry_line(source, line,
                                     "a process, as a muster node writes it", text, size,
                                     ret_error);
        memcpy(entry->who, text, size);
        entry->who[size] = '\0';
    } else if (line > LINES_MAX || !read_until(text, size, &entry->until_s)) {
        return refuse_entry_line(source, line,
                                 line > LINES_MAX ? "the end" : "\"until SECONDS\"", text,
                                 size, ret_error);
    }
    return 0;
}

/* White space at the end of a line, as editors leave it, is not part of it. */
static size_t trim_entry_line(const char *text, size_t size)
{
    while (size > 0 &&
           (text[size - 1] == ' ' || text[size - 1] == '\r' || text[size - 1] == '\t'))
        size--;
    return size;
}

int mu__entry_parse(const char *text, size_t size, const char *source,
                    mu_error *ret_error, struct mu__task_entry *ret_entry)
{
    struct mu__task_entry entry = {.until_s = 0};
    unsigned line = 1;
    int rv = 0;

    while (rv == 0 && (size > 0 || line == 1)) {
        const char *end = memchr(text, '\n', size);
        size_t length = end == NULL ? size : (size_t)(end - text);

        rv = read_entry_line(text, trim_entry_line(text, length), line++, source,
                             ret_error, &entry);
        length += end != NULL;
        text += length;
        size -= length;
    }
    if (rv == 0)
        *ret_entry = entry;
    return rv;
}

void mu__entry_write(const struct mu__task_entry *entry, char *out)
{
    int used = snprintf(out, MU__ENTRY_BYTES_MAX, "%s\n", entry->address);

    if (entry->who[0] == '\0')
        return;
    used += snprintf(out + used, MU__ENTRY_BYTES_MAX - (size_t)used, "%s\n", entry->who);
    if (entry->until_s != 0)
        (void)snprintf(out + used, MU__ENTRY_BYTES_MAX - (size_t)used, "%s%" PRIu64 "\n",
                       until, entry->until_s);
}

int mu__entry_task(const char *name, size_t size, char between, const char *source,
                   mu_error *ret_error, char *ret_type, int *ret_index)
{
    const char *gap = memchr(name, between, size);
    size_t before = gap == NULL ? size : (size_t)(gap - name);
    char shown[MU__QUOTE_BYTES];
    char type[64];
    char text[64];
    mu_error inner;
    int index;

    mu__quote(shown, sizeof shown, name, size);
    (void)snprintf(type, sizeof type, "%.*s", (int)(before < 63 ? before : 63), name);
    if (strlen(type) != before)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: %s: expected TYPE%cINDEX, as in \"worker%c0\"", source,
                            shown, between, between);
    if (mu__task_type_check(type, &inner) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: %s: expected TYPE%cINDEX, as in \"worker%c0\": %s",
                            source, shown, between, between, inner.message);
    size = gap == NULL ? 0 : size - before - 1;
    (void)snprintf(text, sizeof text, "%.*s", (int)(size < 63 ? size : 63),
                   gap == NULL ? "" : gap + 1);
    if (strlen(text) != size || mu__index_parse(text, &index) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: %s: expected %s%c and an index of 0 to %d, as in "
                            "\"%s%c0\"",
                            source, shown, type, between, MU_CLUSTER_INDEX_MAX, type,
                            between);
    (void)snprintf(ret_type, 16, "%.15s", type);
    *ret_index = index;
    return 0;
}

int mu__entry_add(const struct mu__task_entry *entry, const char *source,
                  const char *type, int index, mu_error *ret_error,
                  mu_resolution *resolution)
{
    mu_error inner;
    int rv = mu__resolution_add(resolution, source, type, index, entry->address, &inner);

    if (rv == 0)
        return 0;
    return mu_error_set(
        ret_error, rv == -MU_EEXISTS && entry->who[0] != '\0' ? -MU_EUNAVAILABLE : rv,
        "%s", inner.message);
}
