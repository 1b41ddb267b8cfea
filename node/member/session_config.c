#include "node/member/session_config.h"

#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"
#include "runtime/document/json.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mu_session_config_init_sized(mu_session_config *config, size_t size)
{
    const mu_session_config defaults = {0};

    mu__options_init(config, size, &defaults, sizeof defaults);
}

/* ---- checking ---- */

/* "/job:ps" or "/job:worker/task:1". */
static bool is_filter(const char *text)
{
    static const char head[] = "/job:";
    static const char middle[] = "/task:";
    const char *slash;
    char type[16];
    int index;

    if (text == NULL || strncmp(text, head, sizeof head - 1) != 0)
        return false;
    text += sizeof head - 1;
    slash = strchr(text, '/');
    if (slash == NULL)
        return mu__task_type_is_valid(text);
    if ((size_t)(slash - text) >= sizeof type)
        return false;
    (void)snprintf(type, sizeof type, "%.*s", (int)(slash - text), text);
    return mu__task_type_is_valid(type) &&
           strncmp(slash, middle, sizeof middle - 1) == 0 &&
           mu__index_parse(slash + sizeof middle - 1, &index) == 0;
}

static int check_number(const char *name, unsigned number, mu_error *ret_error)
{
    if (number <= MU__SESSION_THREADS_MAX)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "session config: %s is %u, expected at most %d", name, number,
                        MU__SESSION_THREADS_MAX);
}

int mu__session_config_check(const mu_session_config *config, mu_error *ret_error)
{
    char shown[MU__QUOTE_BYTES];
    int rv = check_number("inter_op_threads", config->inter_op_threads, ret_error);

    if (rv == 0)
        rv = check_number("intra_op_threads", config->intra_op_threads, ret_error);
    if (rv == 0 && config->device_filters_count > MU__SESSION_FILTERS_MAX)
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "session config: more than %d device_filters",
                          MU__SESSION_FILTERS_MAX);
    for (size_t i = 0; rv == 0 && i < config->device_filters_count; i++) {
        const char *filter =
            config->device_filters == NULL ? NULL : config->device_filters[i];

        if (is_filter(filter))
            continue;
        if (filter == NULL)
            filter = "";
        mu__quote(shown, sizeof shown, filter, strlen(filter));
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "session config: device_filters[%zu] is %s, expected a task "
                          "type or a task, as \"/job:ps\" or \"/job:worker/task:1\"",
                          i, shown);
    }
    return rv;
}

/* ---- copies ---- */

/* The filters are the config's own, made by `add`; the public struct has them const. */
static char **filters_of(const mu_session_config *config)
{
    return (char **)(uintptr_t)config->device_filters;
}

void mu__session_config_done(mu_session_config *config)
{
    char **filters = filters_of(config);

    for (size_t i = 0; i < config->device_filters_count; i++)
        free(filters[i]);
    free(filters);
    mu_session_config_init(config);
}

static int reserve_device_filters(mu_session_config *config, size_t count)
{
    char **filters = count == 0 ? NULL : calloc(count, sizeof *filters);

    config->device_filters = (const char *const *)filters;
    config->device_filters_count = 0;
    return count > 0 && filters == NULL ? -MU_ENOMEM : 0;
}

static int add_device_filter(mu_session_config *config, const char *filter)
{
    char *copy = strdup(filter);

    if (copy == NULL)
        return -MU_ENOMEM;
    filters_of(config)[config->device_filters_count++] = copy;
    return 0;
}

int mu__session_config_copy(const mu_session_config *config,
                            mu_session_config *ret_config)
{
    mu_session_config copy = *config;
    int rv = reserve_device_filters(&copy, config->device_filters_count);

    for (size_t i = 0; rv == 0 && i < config->device_filters_count; i++)
        rv = add_device_filter(&copy, config->device_filters[i]);
    if (rv == 0)
        *ret_config = copy;
    else
        mu__session_config_done(&copy);
    return rv;
}

bool mu__session_config_same(const mu_session_config *one, const mu_session_config *two)
{
    if (one->inter_op_threads != two->inter_op_threads ||
        one->intra_op_threads != two->intra_op_threads ||
        one->device_filters_count != two->device_filters_count)
        return false;
    for (size_t i = 0; i < one->device_filters_count; i++)
        if (strcmp(one->device_filters[i], two->device_filters[i]) != 0)
            return false;
    return true;
}

/* ---- as a value ---- */

mu_value *mu__session_config_value(const mu_session_config *config)
{
    mu_value *map = mu_value_map();
    mu_value *filters = mu_value_list();
    int rv = map == NULL || filters == NULL ? -MU_ENOMEM : 0;

    for (size_t i = 0; rv == 0 && i < config->device_filters_count; i++)
        rv = mu_value_append(filters, mu_value_string(config->device_filters[i]));
    if (rv == 0)
        rv =
            mu_value_set(map, "inter_op_threads", mu_value_int(config->inter_op_threads));
    if (rv == 0)
        rv =
            mu_value_set(map, "intra_op_threads", mu_value_int(config->intra_op_threads));
    if (rv == 0) {
        rv = mu_value_set(map, "device_filters", filters);
        filters = NULL;
    }
    if (rv == 0)
        return map;
    mu_value_free(filters);
    mu_value_free(map);
    return NULL;
}

static int read_config_number(const mu_value *map, const char *key, mu_error *ret_error,
                              unsigned *ret_number)
{
    const mu_value *item = mu_value_find(map, key);
    int64_t number = 0;

    if (item != NULL && (mu_value_get_int(item, &number) != 0 || number < 0 ||
                         number > MU__SESSION_THREADS_MAX))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "session config: %s: expected a whole number of 0 to %d", key,
                            MU__SESSION_THREADS_MAX);
    *ret_number = (unsigned)number;
    return 0;
}

static int read_filters(const mu_value *list, mu_error *ret_error,
                        mu_session_config *config)
{
    size_t count = list == NULL ? 0 : mu_value_count(list);
    int rv;

    if (list != NULL && mu_value_type(list) != MU_VALUE_LIST)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "session config: device_filters: expected a list");
    if (count > MU__SESSION_FILTERS_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "session config: more than %d device_filters",
                            MU__SESSION_FILTERS_MAX);
    rv = reserve_device_filters(config, count);
    for (size_t i = 0; rv == 0 && i < count; i++) {
        const char *text = "";
        size_t size;

        (void)mu_value_get_string(mu_value_at(list, i), &text, &size);
        rv = add_device_filter(config, text);
    }
    return rv == 0 ? 0 : mu_error_set(ret_error, rv, "no memory for a session config");
}

int mu__session_config_read(const mu_value *value, mu_error *ret_error,
                            mu_session_config *ret_config)
{
    mu_session_config config;
    int rv = 0;

    mu_session_config_init(&config);
    if (value != NULL && mu_value_type(value) != MU_VALUE_NIL &&
        mu_value_type(value) != MU_VALUE_MAP)
        return mu_error_set(ret_error, -MU_EINVALID, "session config: expected a map");
    if (value != NULL && mu_value_type(value) == MU_VALUE_MAP) {
        rv = read_config_number(value, "inter_op_threads", ret_error,
                                &config.inter_op_threads);
        if (rv == 0)
            rv = read_config_number(value, "intra_op_threads", ret_error,
                                    &config.intra_op_threads);
        if (rv == 0)
            rv = read_filters(mu_value_find(value, "device_filters"), ret_error, &config);
        if (rv == 0)
            rv = mu__session_config_check(&config, ret_error);
    }
    if (rv == 0)
        *ret_config = config;
    else
        mu__session_config_done(&config);
    return rv;
}

char *mu__session_config_filters(const mu_session_config *config)
{
    size_t size = 1;
    size_t at = 0;
    char *text;

    for (size_t i = 0; i < config->device_filters_count; i++)
        size += strlen(config->device_filters[i]) + 1;
    text = calloc(1, size);
    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < config->device_filters_count; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i == 0 ? "" : ",",
                               config->device_filters[i]);
    return text;
}
