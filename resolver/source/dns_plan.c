#include "resolver/source/dns_plan.h"

#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <string.h>

enum { NAMES, TASKS, ADDRESS, FAMILY, SERVER, HOST, PORT, TASK_TYPE, TASK_INDEX };

const struct mu__setting_spec mu__dns_settings[] = {
    MU__SETTING(NAMES, "names", "MUSTER_DNS_NAMES", NULL,
                "jobs and their names: "
                "\"worker=workers.example:2222,ps=_ps._tcp.example\""),
    MU__SETTING(TASKS, "tasks", "MUSTER_DNS_TASKS", NULL,
                "how many tasks to wait for: \"worker=3,ps=2\""),
    MU__SETTING(ADDRESS, "address", "MUSTER_DNS_ADDRESS", NULL,
                "ip: tasks by address; name: by name where it has one task. Without it "
                "SRV targets are names, all others addresses"),
    MU__SETTING(FAMILY, "family", "MUSTER_DNS_FAMILY", "auto",
                "which addresses count: 4, 6, all; auto: IPv4, or IPv6 where there is no "
                "IPv4"),
    MU__SETTING(SERVER, "dns_server", "MUSTER_DNS_SERVER", NULL,
                "ADDRESS:PORT to ask in place of the system's"),
    MU__SETTING(HOST, "host", "MUSTER_DNS_HOST", NULL,
                "name or address of this machine, to find its task; the default is its "
                "host name"),
    MU__SETTING_WITHIN(PORT, "port", "MUSTER_DNS_PORT", NULL, 1, 65535,
                       "of this task, where a machine has several"),
    MU__SETTING(TASK_TYPE, "task_type", "MUSTER_DNS_TASK_TYPE", NULL, "of this task"),
    MU__SETTING_WITHIN(TASK_INDEX, "task_index", "MUSTER_DNS_TASK_INDEX", NULL, 0,
                       MU_CLUSTER_INDEX_MAX, "of this task"),
    {.name = NULL},
};

static int bad_item(const char *source, unsigned position, const char *text, size_t size,
                    const char *expected, mu_error *ret_error)
{
    return mu__refuse(ret_error, text, size, "%s: item %u: expected %s", source, position,
                      expected);
}

/* The number of a type in the plan. There is room: each row has one, and this task. */
static int number_type(struct mu__dns_plan *plan, const char *name)
{
    int i = 0;

    while (i < plan->types_count && strcmp(plan->types[i], name) != 0)
        i++;
    if (i == plan->types_count) {
        MU__COPY_TEXT(plan->types[i], name);
        plan->tasks[i] = MU__DNS_ANY;
        plan->types_count++;
    }
    return i;
}

/* Parse TYPE=VALUE: the type, and where the value begins. */
static int read_dns_type(const char *source, unsigned position, const char *text,
                         size_t size, const char *expected, mu_error *ret_error,
                         char *ret_type, size_t *ret_value)
{
    const char *equals = memchr(text, '=', size);

    if (equals == NULL)
        return bad_item(source, position, text, size, expected, ret_error);
    *ret_value = (size_t)(equals - text) + 1;
    return mu__task_type_read(text, *ret_value - 1, ret_error, ret_type, "%s: item %u",
                              source, position);
}

static int read_dns_name(const char *source, unsigned position, const char *text,
                         size_t size, mu_error *ret_error, void *own)
{
    static const char expected[] = "TYPE=NAME:PORT, or TYPE=_SERVICE._tcp.NAME";
    struct mu__dns_plan *plan = own;
    struct mu__dns_row *row = &plan->rows[plan->rows_count];
    const char *colon;
    size_t value;
    unsigned port = 0;
    int rv;

    if (plan->rows_count == MU__DNS_ROWS_MAX)
        return mu_error_set(ret_error, -MU_EINVALID, "%s: expected at most %d names",
                            source, (int)MU__DNS_ROWS_MAX);
    rv = read_dns_type(source, position, text, size, expected, ret_error, row->type_name,
                       &value);
    if (rv != 0)
        return rv;
    colon = memchr(text + value, ':', size - value);
    if (text[value] == '_' && colon != NULL)
        return bad_item(source, position, text, size,
                        "a name of SRV records (it begins with \"_\") without port",
                        ret_error);
    if (text[value] != '_' &&
        (colon == NULL ||
         !mu__count_parse(colon + 1, size - (size_t)(colon + 1 - text), &port) ||
         port == 0 || port > 65535))
        return bad_item(source, position, text, size, expected, ret_error);
    size = (colon == NULL ? size : (size_t)(colon - text)) - value;
    if (size == 0 || size >= sizeof row->name)
        return bad_item(source, position, text, value + size, "a name of 1 to 255 bytes",
                        ret_error);
    memcpy(row->name, text + value, size);
    row->name[size] = '\0';
    row->port = port;
    row->type = number_type(plan, row->type_name);
    plan->rows_count++;
    return 0;
}

static int read_dns_count(const char *source, unsigned position, const char *text,
                          size_t size, mu_error *ret_error, void *own)
{
    static const char expected[] = "TYPE=COUNT, as in \"worker=3\"";
    struct mu__dns_plan *plan = own;
    char name[MU__TASK_TYPE_BYTES];
    size_t value;
    unsigned count;
    int type = 0;
    int rv =
        read_dns_type(source, position, text, size, expected, ret_error, name, &value);

    if (rv != 0)
        return rv;
    if (!mu__count_parse(text + value, size - value, &count))
        return bad_item(source, position, text, size, expected, ret_error);
    while (type < plan->types_count && strcmp(plan->types[type], name) != 0)
        type++;
    if (type == plan->types_count)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "%s: item %u: the setting names has no name for job %s",
                            source, position, name);
    if (plan->tasks[type] != MU__DNS_ANY)
        return mu_error_set(ret_error, -MU_EEXISTS, "%s: item %u: \"%s\" appears twice",
                            source, position, name);
    plan->tasks[type] = count;
    return 0;
}

/* Parse a list with commas between; items count from 1. */
static int read_dns_list(const struct mu__pass *pass, unsigned setting,
                         int (*read)(const char *source, unsigned position,
                                     const char *text, size_t size, mu_error *ret_error,
                                     void *own),
                         mu_error *ret_error, struct mu__dns_plan *plan)
{
    const char *text = mu__setting(pass, setting);
    const char *source = mu__setting_origin(pass, setting);
    unsigned position = 1;
    int rv = 0;

    if (text == NULL)
        return 0;
    for (;; position++) {
        size_t size = strcspn(text, ",");

        rv = read(source, position, text, size, ret_error, plan);
        text += size;
        if (rv != 0 || *text == '\0')
            return rv;
        text++;
    }
}

static int read_own_type(const struct mu__pass *pass, mu_error *ret_error,
                         struct mu__dns_plan *plan)
{
    const char *text = mu__setting(pass, TASK_TYPE);
    char type[MU__TASK_TYPE_BYTES];
    int rv;

    plan->task_type = -1;
    if (text == NULL)
        return 0;
    rv = mu__task_type_read(text, strlen(text), ret_error, type, "%s",
                            mu__setting_origin(pass, TASK_TYPE));
    if (rv == 0)
        plan->task_type = number_type(plan, type);
    return rv;
}

int mu__dns_plan_read(const struct mu__pass *pass, mu_error *ret_error,
                      struct mu__dns_plan *plan)
{
    static const char *const families[] = {"auto", "4", "6", "all", NULL};
    static const char *const forms[] = {"ip", "name", NULL};
    enum { AS_ADDRESS, AS_NAME, AS_IT_IS };
    unsigned family = MU__DNS_AUTO;
    unsigned form = AS_IT_IS;
    int rv;

    plan->task_index = -1;
    if (mu__setting(pass, NAMES) == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected names in the setting names or MUSTER_DNS_NAMES, as "
                            "in \"worker=workers.example:2222\", got none");
    if ((rv = read_dns_list(pass, NAMES, read_dns_name, ret_error, plan)) != 0 ||
        (rv = read_dns_list(pass, TASKS, read_dns_count, ret_error, plan)) != 0 ||
        (rv = mu__setting_word(pass, FAMILY, families, "4, 6, all or auto", ret_error,
                               &family)) != 0 ||
        (rv = mu__setting_word(pass, ADDRESS, forms, "ip or name", ret_error, &form)) !=
            0 ||
        (rv = read_own_type(pass, ret_error, plan)) != 0 ||
        (rv = mu__setting_number(pass, PORT, ret_error, &plan->port)) != 0 ||
        (rv = mu__setting_number(pass, TASK_INDEX, ret_error, &plan->task_index)) != 0)
        return rv;
    plan->family = (enum mu__dns_family)family;
    plan->as_address = form == AS_ADDRESS;
    plan->as_name = form == AS_NAME;
    plan->server = mu__setting(pass, SERVER);
    plan->host = mu__setting(pass, HOST);
    return 0;
}

bool mu__dns_plan_given(const struct mu__pass *pass)
{
    return mu__setting_given(pass, NAMES);
}
