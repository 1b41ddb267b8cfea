/* Files of hosts, in the form of MPI's launchers. */
#include "resolver/source/mpi.h"

#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <muster/cluster.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host_file {
    const char *source;
    size_t line;
    mu_error *error;
    struct mu__host_list hosts;
    unsigned *slots;
    size_t slots_capacity;
};

static int refuse_host_line(const struct host_file *reader, const char *at, size_t size)
{
    return mu__refuse(reader->error, at, size,
                      "%s: line %zu: expected HOST, HOST:N or HOST slots=N",
                      reader->source, reader->line);
}

static bool read_slots(const char *text, size_t size, unsigned *ret_slots)
{
    int64_t slots = mu__decimal(text, size, MU_CLUSTER_TASKS_MAX);

    *ret_slots = (unsigned)slots;
    return slots > 0;
}

static int keep_slots(struct host_file *reader, size_t from, unsigned slots)
{
    unsigned *more;

    if (reader->hosts.capacity > reader->slots_capacity) {
        more = realloc(reader->slots, reader->hosts.capacity * sizeof *more);
        if (more == NULL)
            return mu_error_set(reader->error, -MU_ENOMEM, "%s: out of memory",
                                reader->source);
        reader->slots = more;
        reader->slots_capacity = reader->hosts.capacity;
    }
    for (size_t i = from; i < reader->hosts.count; i++)
        reader->slots[i] = slots;
    return 0;
}

static int add_file_hosts(struct host_file *reader, const char *text, size_t size,
                          unsigned slots)
{
    size_t from = reader->hosts.count;
    struct mu__host_list names = {0};
    char location[64];
    int rv;

    (void)snprintf(location, sizeof location, "%.40s: line %zu", reader->source,
                   reader->line);
    rv = mu__host_list_parse(text, size, location, reader->error, &names);
    if (rv != 0)
        return rv;
    for (size_t i = 0; rv == 0 && i < names.count; i++)
        rv = mu__host_list_add(&reader->hosts, names.names[i]);
    if (rv != 0)
        rv = mu_error_set(reader->error, rv,
                          "%s: more hosts than memory or the limit of %d", location,
                          (int)MU_CLUSTER_TASKS_MAX);
    mu__host_list_done(&names);
    return rv != 0 ? rv : keep_slots(reader, from, slots);
}

/* "slots=4"; other words, which say how to use a host, are skipped. */
static bool read_words(const char *at, const char *end, unsigned *slots)
{
    while (at < end) {
        size_t size = strcspn(at, " \t\r\n#");

        if (size > 6 && strncmp(at, "slots=", 6) == 0 &&
            !read_slots(at + 6, size - 6, slots))
            return false;
        if (size > 0 && memchr(at, '=', size) == NULL)
            return false;
        at += size;
        at += strspn(at, " \t\r");
    }
    return true;
}

static int read_host_line(struct host_file *reader, const char *at, const char *end)
{
    const char *start = at + strspn(at, " \t\r");
    const char *remark = memchr(at, '#', (size_t)(end - at));
    const char *colon;
    unsigned slots = 0;
    size_t size;

    end = remark == NULL ? end : remark;
    if (start >= end)
        return 0;
    size = strcspn(start, " \t\r\n#");
    if (!read_words(start + size + strspn(start + size, " \t\r"), end, &slots))
        return refuse_host_line(reader, at, (size_t)(end - at));
    colon = memchr(start, ':', size);
    if (colon != NULL &&
        memchr(colon + 1, ':', size - (size_t)(colon + 1 - start)) == NULL) {
        if (!read_slots(colon + 1, size - (size_t)(colon + 1 - start), &slots))
            return refuse_host_line(reader, at, (size_t)(end - at));
        size = (size_t)(colon - start);
    }
    return add_file_hosts(reader, start, size, slots);
}

static int read_host_lines(struct host_file *reader, const char *text)
{
    int rv = 0;

    while (rv == 0 && *text != '\0') {
        size_t size = strcspn(text, "\n");

        reader->line++;
        rv = read_host_line(reader, text, text + size);
        text += size + (text[size] == '\n');
    }
    if (rv == 0 && reader->hosts.count == 0)
        rv = mu_error_set(reader->error, -MU_EINVALID, "%s: expected a host at least",
                          reader->source);
    return rv;
}

int mu__host_file_parse(const char *text, size_t size, const char *source,
                        mu_error *ret_error, struct mu__host_list *ret_hosts,
                        unsigned **ret_slots)
{
    struct host_file reader = {.source = source, .error = ret_error};
    char *copy = strndup(text, size);
    int rv = -MU_ENOMEM;

    if (copy == NULL)
        return mu_error_set(ret_error, rv, "%s: out of memory", source);
    rv = read_host_lines(&reader, copy);
    free(copy);
    if (rv != 0) {
        mu__host_list_done(&reader.hosts);
        free(reader.slots);
        return rv;
    }
    *ret_hosts = reader.hosts;
    *ret_slots = reader.slots;
    return 0;
}
