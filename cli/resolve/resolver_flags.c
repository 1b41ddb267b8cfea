#include "cli/resolve/resolver_flags.h"

#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

enum { TIMEOUT_MS = 10000, MEMBERS_MAX = 16, NAME_BYTES = 64 };

/* The resolvers of --resolver, by their names. */
struct members {
    mu_resolver *rows[MEMBERS_MAX];
    const char *names[MEMBERS_MAX];
    size_t count;
};

bool cmd_resolver_is_given(const struct cmd_options *options)
{
    return options->values[CMD_FLAG_RESOLVER].source != CMD_FROM_DEFAULT;
}

/* `muster check` does not wait: it reports the present state. */
int64_t cmd_resolve_timeout_ms(const struct cmd_options *options)
{
    if (options->values[CMD_FLAG_RESOLVE_MS].source != CMD_FROM_DEFAULT)
        return (int64_t)cmd_number(options, CMD_FLAG_RESOLVE_MS);
    return options->verb->bit == CMD_CHECK ? 0 : TIMEOUT_MS;
}

static void print_progress(void *user, const char *line)
{
    const struct cmd_options *options = user;

    (void)fprintf(stderr, "muster %s: %s\n", options->verb->name, line);
}

/* Set an error whose message begins with the flag or variable. */
static int set_flag_error(const struct cmd_options *options, enum cmd_flag flag, int code,
                          const mu_error *why, mu_error *ret_error)
{
    char origin[CMD_ORIGIN_BYTES];

    return mu_error_set(ret_error, code, "%s: %s",
                        cmd_origin(options, flag, origin, sizeof origin), why->message);
}

static int make_members(const struct cmd_options *options, struct members *members,
                        mu_error *error)
{
    const struct cmd_value *names = &options->values[CMD_FLAG_RESOLVER];
    mu_error inner = {0};

    for (size_t i = 0; i < names->items_count; i++) {
        int rv;

        if (members->count == MEMBERS_MAX) {
            (void)snprintf(inner.message, sizeof inner.message,
                           "expected at most %d resolvers", MEMBERS_MAX);
            return set_flag_error(options, CMD_FLAG_RESOLVER, -MU_EINVALID, &inner,
                                  error);
        }
        rv = mu_resolver_new(names->items[i], &inner, &members->rows[members->count]);
        if (rv != 0)
            return set_flag_error(options, CMD_FLAG_RESOLVER, rv, &inner, error);
        members->names[members->count++] = names->items[i];
    }
    return 0;
}

/* ---- settings ---- */

static bool begins_with(const char *text, const char *name)
{
    size_t length = strlen(name);

    return strncmp(text, name, length) == 0 && text[length] == '.';
}

/* The resolver of a setting "SETTING" (of the only resolver) or "NAME.SETTING" (of one of
 * several; the name is cut off *setting). "auto" takes the latter unchanged. */
static mu_resolver *find_member(const struct members *members, const char **setting)
{
    for (size_t i = 0; i < members->count; i++)
        if (begins_with(*setting, members->names[i])) {
            *setting += strlen(members->names[i]) + 1;
            return members->rows[i];
        }
    for (size_t i = 0; i < members->count; i++)
        if (strcmp(members->names[i], "auto") == 0)
            return members->rows[i];
    return members->count == 1 ? members->rows[0] : NULL;
}

static int apply_resolver_setting(const struct cmd_options *options,
                                  const struct members *members, const char *text,
                                  mu_error *error)
{
    const char *equals = strchr(text, '=');
    const char *setting;
    mu_resolver *resolver;
    char name[NAME_BYTES];
    mu_error inner = {0};
    int rv;

    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof name) {
        (void)snprintf(inner.message, sizeof inner.message,
                       "expected SETTING=VALUE, got \"%.100s\"", text);
        return set_flag_error(options, CMD_FLAG_RESOLVER_SET, -MU_EINVALID, &inner,
                              error);
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)(equals - text), text);
    setting = name;
    resolver = find_member(members, &setting);
    if (resolver == NULL) {
        (void)snprintf(inner.message, sizeof inner.message,
                       "there are several resolvers: expected NAME.SETTING=VALUE, got "
                       "\"%.100s=...\"",
                       name);
        return set_flag_error(options, CMD_FLAG_RESOLVER_SET, -MU_EINVALID, &inner,
                              error);
    }
    rv = mu_resolver_set(resolver, setting, equals + 1, &inner);
    return rv == 0 ? 0
                   : set_flag_error(options, CMD_FLAG_RESOLVER_SET, rv, &inner, error);
}

static int apply_resolver_settings(const struct cmd_options *options,
                                   const struct members *members, mu_error *error)
{
    const struct cmd_value *settings = &options->values[CMD_FLAG_RESOLVER_SET];
    int rv = 0;

    for (size_t i = 0; rv == 0 && i < settings->items_count; i++)
        rv = apply_resolver_setting(options, members, settings->items[i], error);
    return rv;
}

/* ---- the resolver ---- */

/* Takes ownership of the members on success. */
static int join_members(const struct cmd_options *options, struct members *members,
                        mu_error *error, mu_resolver **ret_resolver)
{
    mu_error inner;
    int rv;

    if (members->count == 1) {
        *ret_resolver = members->rows[0];
        return 0;
    }
    rv = mu_resolver_new_union(members->rows, members->count, &inner, ret_resolver);
    return rv == 0 ? 0 : set_flag_error(options, CMD_FLAG_RESOLVER, rv, &inner, error);
}

int cmd_resolver_open(const struct cmd_options *options, mu_error *ret_error,
                      mu_resolver **ret_resolver)
{
    struct members members = {.count = 0};
    int rv = make_members(options, &members, ret_error);

    if (rv == 0)
        rv = apply_resolver_settings(options, &members, ret_error);
    if (rv == 0)
        rv = join_members(options, &members, ret_error, ret_resolver);
    if (rv == 0)
        mu_resolver_on_progress(*ret_resolver, print_progress, (void *)options);
    else
        for (size_t i = 0; i < members.count; i++)
            mu_resolver_free(members.rows[i]);
    return rv;
}
