/* Task types: their names, and suggestions for misspelt ones. */
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES_MAX = 32 /* longer names are near to no type */
};

/* The types that have a role of their own; all others are a program's. */
static const char *const names[] = {"chief", "client", "evaluator", "ps", "worker"};

enum { NAMES_COUNT = sizeof names / sizeof names[0] };

/* Names that other tools have, too far from ours for the edit distance. */
static const struct {
    const char *name;
    const char *type;
} synonyms[] = {
    {"master", "chief"},
    {"eval", "evaluator"},
    {"parameter_server", "ps"},
};

static char lower_type_letter(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool has_role(const char *name)
{
    for (int type = 0; type < NAMES_COUNT; type++) {
        if (strcmp(name, names[type]) == 0)
            return true;
    }
    return false;
}

/* Small letters, digits and _, and a letter first: what host names, files and urls can
 * have in them. */
static bool is_valid_type_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return name[length] == '\0' && length > 0 && length < MU__TASK_TYPE_BYTES &&
           name[0] >= 'a' && name[0] <= 'z';
}

bool mu__task_type_is_valid(const char *type)
{
    return has_role(type) ||
           (is_valid_type_name(type) && mu__task_type_suggest(type) == NULL);
}

bool mu__task_type_is_single(const char *type)
{
    return strcmp(type, "chief") == 0 || strcmp(type, "evaluator") == 0;
}

/* "ps_hosts", "worker-0", "worker0": a type and something that is no letter. */
static bool begins_with_type(const char *name, const char *type)
{
    size_t length = strlen(type);

    return strncmp(name, type, length) == 0 && (name[length] < 'a' || name[length] > 'z');
}

/* The type with the least distance, when that is a third of its letters at most. */
static const char *find_nearest_type(const char *name)
{
    const char *best = NULL;
    unsigned best_distance = NAME_BYTES_MAX;

    for (int type = 0; type < NAMES_COUNT; type++) {
        unsigned limit = ((unsigned)strlen(names[type]) + 2) / 3;
        unsigned distance = mu__text_distance(name, names[type]);

        if (distance <= limit && distance < best_distance) {
            best = names[type];
            best_distance = distance;
        }
    }
    return best;
}

const char *mu__task_type_suggest(const char *name)
{
    char small[NAME_BYTES_MAX + 1];
    size_t length = strlen(name);

    if (length > NAME_BYTES_MAX)
        return NULL;
    for (size_t i = 0; i <= length; i++)
        small[i] = lower_type_letter(name[i]);

    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        if (strcmp(small, synonyms[i].name) == 0)
            return synonyms[i].type;
    }
    for (int type = 0; type < NAMES_COUNT; type++) {
        if (begins_with_type(small, names[type]))
            return names[type];
    }
    return find_nearest_type(small);
}

int mu__task_type_check(const char *name, mu_error *ret_error)
{
    static const char expected[] = "expected chief, client, evaluator, ps, worker, or a "
                                   "type of your own: at most 15 small letters, digits "
                                   "and _";
    const char *suggestion;
    char shown[MU__QUOTE_BYTES];

    if (mu__task_type_is_valid(name))
        return 0;
    mu__quote(shown, sizeof shown, name, strlen(name));
    suggestion = mu__task_type_suggest(name);
    if (strcmp(name, "master") == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s is not a task type here: the task that directs the "
                            "others is called \"chief\"; %s",
                            shown, expected);
    if (suggestion != NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s is not a task type; did you mean \"%s\"? %s", shown,
                            suggestion, expected);
    return mu_error_set(ret_error, -MU_EINVALID, "%s is not a task type; %s", shown,
                        expected);
}

int mu__task_type_read(const char *text, size_t size, mu_error *ret_error, char *ret_type,
                       const char *where, ...)
{
    char name[64];
    char begin[256];
    mu_error inner;
    va_list arguments;
    int rv;

    (void)snprintf(name, sizeof name, "%.*s", (int)(size < 63 ? size : 63), text);
    rv = mu__task_type_check(name, &inner);
    if (rv == 0) {
        (void)snprintf(ret_type, MU__TASK_TYPE_BYTES, "%.15s", name);
        return 0;
    }
    va_start(arguments, where);
    (void)vsnprintf(begin, sizeof begin, where, arguments);
    va_end(arguments);
    return mu_error_set(ret_error, rv, "%s: %s", begin, inner.message);
}

void mu__task_name(char *out, size_t size, const char *type, int index)
{
    (void)snprintf(out, size, "/job:%s/task:%d", type, index);
}
