/* The setting tasks_per_node. */
#include "resolver/source/slurm.h"

#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <muster/cluster.h>

#include <stdlib.h>
#include <string.h>

static bool read_node_count(const char *text, size_t size, unsigned *ret_count)
{
    return mu__count_parse(text, size, ret_count) && *ret_count >= 1 &&
           *ret_count <= MU_CLUSTER_TASKS_MAX;
}

/* The bytes up to a comma that is not within brackets. */
static size_t row_size(const char *text)
{
    size_t size = 0;
    int depth = 0;

    for (; text[size] != '\0' && (text[size] != ',' || depth > 0); size++)
        depth += (text[size] == '[') - (text[size] == ']');
    return size;
}

static int set_host(const char *name, unsigned count, const char *source,
                    const struct mu__host_list *hosts, unsigned *counts,
                    mu_error *ret_error)
{
    size_t position = mu__host_list_find(hosts, name, strlen(name));

    if (position == hosts->count)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "%s: \"%.80s\" is none of the %zu hosts of the job", source,
                            name, hosts->count);
    if (counts[position] != 0)
        return mu_error_set(ret_error, -MU_EEXISTS, "%s: \"%.80s\" appears twice", source,
                            name);
    counts[position] = count;
    return 0;
}

static int set_row(const char *text, size_t size, const char *source,
                   const struct mu__host_list *hosts, unsigned *counts,
                   mu_error *ret_error)
{
    const char *equals = memchr(text, '=', size);
    size_t before = equals == NULL ? 0 : (size_t)(equals - text);
    struct mu__host_list names = {0};
    unsigned count;
    int rv;

    if (equals == NULL || !read_node_count(equals + 1, size - before - 1, &count))
        return mu__refuse(ret_error, text, size,
                          "%s: expected a number, or HOST=NUMBER with commas between",
                          source);
    rv = mu__host_list_parse(text, before, source, ret_error, &names);
    for (size_t i = 0; rv == 0 && i < names.count; i++)
        rv = set_host(names.names[i], count, source, hosts, counts, ret_error);
    mu__host_list_done(&names);
    return rv;
}

static int set_rows(const char *text, const char *source,
                    const struct mu__host_list *hosts, unsigned *counts,
                    mu_error *ret_error)
{
    int rv = 0;

    for (const char *at = text; rv == 0; at++) {
        size_t size = row_size(at);

        rv = set_row(at, size, source, hosts, counts, ret_error);
        at += size;
        if (*at == '\0')
            break;
    }
    for (size_t i = 0; rv == 0 && i < hosts->count; i++)
        if (counts[i] == 0)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "%s: it does not say how many tasks \"%.80s\" has",
                                source, hosts->names[i]);
    return rv;
}

int mu__slurm_set_counts(const char *text, const char *source,
                         const struct mu__host_list *hosts, mu_error *ret_error,
                         unsigned **ret_counts)
{
    unsigned *counts = calloc(hosts->count + 1, sizeof *counts);
    unsigned each;
    int rv = 0;

    if (counts == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "%s: out of memory", source);
    if (read_node_count(text, strlen(text), &each)) {
        for (size_t i = 0; i < hosts->count; i++)
            counts[i] = each;
    } else {
        rv = set_rows(text, source, hosts, counts, ret_error);
    }
    if (rv == 0)
        *ret_counts = counts;
    else
        free(counts);
    return rv;
}
