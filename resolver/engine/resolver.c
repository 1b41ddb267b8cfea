/* Making and freeing resolvers, and what is set in them. */
#include "resolver/engine/internal.h"

#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MASTER_BYTES_MAX = 300 }; /* an rpc layer comes before it */

int mu__resolver_out_of_memory(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
}

const char *mu__entry_name(const struct mu__entry *entry)
{
    return entry->own != NULL ? entry->own->name : entry->kind->name;
}

struct mu__entry *mu__resolver_entry(const mu_resolver *resolver, size_t i)
{
    if (i < resolver->own_count)
        return &resolver->own_entries[i];
    i -= resolver->own_count;
    return i < resolver->entries_count ? &resolver->entries[i] : NULL;
}

static void entry_done(struct mu__entry *entry)
{
    mu__settings_done(&entry->settings);
    mu__own_done(entry);
    free(entry->memory);
    if (entry->own != NULL)
        entry->own->unref(entry->own);
}

static void entries_free(struct mu__entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        entry_done(&entries[i]);
    free(entries);
}

void mu_resolver_free(mu_resolver *resolver)
{
    if (resolver == NULL)
        return;
    entries_free(resolver->entries, resolver->entries_count);
    entries_free(resolver->own_entries, resolver->own_count);
    mu_cluster_free(resolver->fixed.cluster);
    for (size_t i = 0; i < resolver->members_count; i++)
        mu_resolver_free(resolver->members[i]);
    free(resolver->members);
    mu_value_free(resolver->explained);
    mu__resolver_forget_watched_paths(resolver);
    free(resolver);
}

/* ---- Making ---- */

static int entry_init(struct mu__entry *entry, const struct mu__resolver_kind *kind)
{
    *entry = (struct mu__entry){.kind = kind};
    return mu__settings_init(&entry->settings, kind->name, kind->settings);
}

static void entry_init_own(struct mu__entry *entry, struct mu__own_kind *own)
{
    *entry = (struct mu__entry){.own = own};
    own->ref(own);
}

static mu_resolver *new_shape(enum mu__shape shape, size_t entries)
{
    mu_resolver *resolver = calloc(1, sizeof *resolver);

    if (resolver == NULL)
        return NULL;
    resolver->shape = shape;
    mu_resolution_init(&resolver->fixed);
    if (entries > 0)
        resolver->entries = calloc(entries, sizeof *resolver->entries);
    if (entries > 0 && resolver->entries == NULL) {
        free(resolver);
        return NULL;
    }
    return resolver;
}

static int add_kind(mu_resolver *resolver, const struct mu__resolver_kind *kind)
{
    int rv = entry_init(&resolver->entries[resolver->entries_count], kind);

    if (rv == 0)
        resolver->entries_count++;
    return rv;
}

int mu__resolver_new_kind(const struct mu__resolver_kind *kind, mu_error *ret_error,
                          mu_resolver **ret_resolver)
{
    mu_resolver *resolver = new_shape(MU__SHAPE_ONE, 1);

    if (resolver == NULL || add_kind(resolver, kind) != 0) {
        mu_resolver_free(resolver);
        return mu__resolver_out_of_memory(ret_error);
    }
    mu__resolver_take(resolver, resolver->entries);
    *ret_resolver = resolver;
    return 0;
}

int mu__resolver_new_own(struct mu__own_kind *own, mu_error *ret_error,
                         mu_resolver **ret_resolver)
{
    mu_resolver *resolver = new_shape(MU__SHAPE_ONE, 1);

    if (resolver == NULL)
        return mu__resolver_out_of_memory(ret_error);
    entry_init_own(&resolver->entries[0], own);
    resolver->entries_count = 1;
    mu__resolver_take(resolver, resolver->entries);
    *ret_resolver = resolver;
    return 0;
}

int mu__resolver_new_auto(const struct mu__resolver_kind *const *kinds,
                          mu_error *ret_error, mu_resolver **ret_resolver)
{
    mu_resolver *resolver;
    size_t count = 0;

    while (kinds[count] != NULL)
        count++;
    resolver = new_shape(MU__SHAPE_AUTO, count);
    for (size_t i = 0; resolver != NULL && i < count; i++) {
        if (add_kind(resolver, kinds[i]) == 0)
            continue;
        mu_resolver_free(resolver);
        resolver = NULL;
    }
    if (resolver == NULL)
        return mu__resolver_out_of_memory(ret_error);
    *ret_resolver = resolver;
    return 0;
}

/* Hand calls that still run over to the new entry of the same resolver. */
static void move_calls(mu_resolver *resolver, struct mu__entry *entry)
{
    for (size_t i = 0; i < resolver->own_count; i++)
        if (resolver->own_entries[i].own == entry->own)
            mu__own_move(&resolver->own_entries[i], entry);
}

/* Resolvers of the program's own keep no other state between queries, so all entries
 * are made anew. */
static int offer_to_auto(mu_resolver *resolver, struct mu__own_kind *const *kinds,
                         size_t count)
{
    struct mu__entry *entries = NULL;

    if (count > 0) {
        entries = calloc(count, sizeof *entries);
        if (entries == NULL)
            return -MU_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        entry_init_own(&entries[i], kinds[i]);
        move_calls(resolver, &entries[i]);
    }
    entries_free(resolver->own_entries, resolver->own_count);
    resolver->own_entries = entries;
    resolver->own_count = count;
    resolver->taken = NULL;
    return 0;
}

int mu__resolver_offer_own(mu_resolver *resolver, struct mu__own_kind *const *kinds,
                           size_t count)
{
    int rv = 0;

    if (resolver->shape == MU__SHAPE_AUTO)
        return offer_to_auto(resolver, kinds, count);
    for (size_t i = 0; rv == 0 && i < resolver->members_count; i++)
        rv = mu__resolver_offer_own(resolver->members[i], kinds, count);
    return rv;
}

static int bad_index(int index, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EINVALID,
                        "task index: expected 0 to %d, or -1 for none, got %d",
                        (int)MU_CLUSTER_INDEX_MAX, index);
}

static int check_set_type(const char *type, mu_error *ret_error)
{
    return type == NULL ? 0 : mu__task_type_check(type, ret_error);
}

/* Check the arguments of a static resolver; `rv` is the result for its type. */
static int check_fixed(int rv, const char *master, int task_index,
                       mu_resolver *const *ret_resolver, mu_error *ret_error)
{
    if (ret_resolver == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected room for the resolver, got NULL");
    if (rv != 0)
        return rv;
    if (task_index < -1 || task_index > MU_CLUSTER_INDEX_MAX)
        return bad_index(task_index, ret_error);
    if (master != NULL && strlen(master) > MASTER_BYTES_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "master: expected at most %d bytes, got %zu",
                            (int)MASTER_BYTES_MAX, strlen(master));
    if (master != NULL && mu__has_control(master))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "master: expected no control characters");
    return 0;
}

int mu_resolver_new_static(const mu_cluster *cluster, const char *master,
                           const char *task_type, int task_index, mu_error *ret_error,
                           mu_resolver **ret_resolver)
{
    int rv = check_set_type(task_type, ret_error);
    mu_resolver *resolver;

    rv = check_fixed(rv, master, task_index, ret_resolver, ret_error);
    if (rv != 0)
        return rv;
    resolver = new_shape(MU__SHAPE_FIXED, 0);
    if (resolver != NULL && cluster != NULL)
        resolver->fixed.cluster = mu_cluster_copy(cluster);
    if (resolver == NULL || (cluster != NULL && resolver->fixed.cluster == NULL)) {
        mu_resolver_free(resolver);
        return mu__resolver_out_of_memory(ret_error);
    }
    resolver->fixed.task_index = task_index;
    MU__COPY_TEXT(resolver->fixed.master, master == NULL ? "" : master);
    MU__COPY_TEXT(resolver->fixed.task_type, task_type == NULL ? "" : task_type);
    *ret_resolver = resolver;
    return 0;
}

static int check_members(mu_resolver *const *members, size_t count, mu_error *ret_error)
{
    if (members == NULL || count == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a union: expected one member or more, got none");
    for (size_t i = 0; i < count; i++) {
        if (members[i] == NULL)
            return mu_error_set(ret_error, -MU_EINVALID,
                                "a union: member %zu: expected a resolver, got NULL", i);
        for (size_t k = 0; k < i; k++)
            if (members[k] == members[i])
                return mu_error_set(ret_error, -MU_EINVALID,
                                    "a union: members %zu and %zu are the same", k, i);
    }
    return 0;
}

int mu_resolver_new_union(mu_resolver *const *members, size_t count, mu_error *ret_error,
                          mu_resolver **ret_resolver)
{
    int rv = check_members(members, count, ret_error);
    mu_resolver *resolver;

    if (rv == 0 && ret_resolver == NULL)
        rv = mu_error_set(ret_error, -MU_EINVALID,
                          "expected room for the resolver, got NULL");
    if (rv != 0)
        return rv;
    resolver = new_shape(MU__SHAPE_UNION, 0);
    if (resolver != NULL)
        resolver->members = calloc(count, sizeof(mu_resolver *));
    if (resolver == NULL || resolver->members == NULL) {
        mu_resolver_free(resolver);
        return mu__resolver_out_of_memory(ret_error);
    }
    memcpy(resolver->members, members, count * sizeof(mu_resolver *));
    resolver->members_count = count;
    *ret_resolver = resolver;
    return 0;
}

const char *mu__resolver_name(const mu_resolver *resolver)
{
    static const char *const names[] = {
        [MU__SHAPE_FIXED] = "static",
        [MU__SHAPE_UNION] = "union",
        [MU__SHAPE_AUTO] = "auto",
    };

    return resolver->shape == MU__SHAPE_ONE ? mu__entry_name(resolver->entries)
                                            : names[resolver->shape];
}

/* ---- Setting ---- */

static int no_settings(const mu_resolver *resolver, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EINVALID, "resolver %s has no settings%s",
                        mu__resolver_name(resolver),
                        resolver->shape == MU__SHAPE_UNION ? "; its members have" : "");
}

/* The entry that "NAME.SETTING" is for; *ret_rest is the setting. NULL: none. */
static struct mu__entry *named_entry(const mu_resolver *resolver, const char *setting,
                                     const char **ret_rest)
{
    const char *point = strchr(setting, '.');
    struct mu__entry *entry;

    if (point == NULL)
        return NULL;
    for (size_t i = 0; (entry = mu__resolver_entry(resolver, i)) != NULL; i++) {
        const char *name = mu__entry_name(entry);

        if (strlen(name) == (size_t)(point - setting) &&
            strncmp(name, setting, strlen(name)) == 0) {
            *ret_rest = point + 1;
            return entry;
        }
    }
    return NULL;
}

int mu_resolver_set(mu_resolver *resolver, const char *setting, const char *value,
                    mu_error *ret_error)
{
    const char *rest = setting;
    struct mu__entry *entry;

    if (resolver == NULL || setting == NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "expected a resolver and the name of a setting, got NULL");
    if (resolver->shape == MU__SHAPE_FIXED || resolver->shape == MU__SHAPE_UNION)
        return no_settings(resolver, ret_error);
    entry = named_entry(resolver, setting, &rest);
    if (entry == NULL && resolver->shape == MU__SHAPE_ONE)
        entry = resolver->entries;
    if (entry == NULL) {
        return mu__refuse(ret_error, setting, strlen(setting),
                          "expected NAME.SETTING with the name of a resolver, as in "
                          "\"slurm.port_base\"");
    }
    if (entry->own != NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "resolver %s has no settings",
                            mu__entry_name(entry));
    return mu__settings_set(&entry->settings, rest, value, ret_error);
}

static int no_resolver(mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EINVALID, "expected a resolver, got NULL");
}

int mu_resolver_set_task_type(mu_resolver *resolver, const char *type,
                              mu_error *ret_error)
{
    int rv;

    if (resolver == NULL)
        return no_resolver(ret_error);
    if (resolver->shape == MU__SHAPE_ONE && resolver->entries[0].kind != NULL &&
        resolver->entries[0].kind->type_is_setting)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "the task type of resolver %s is a setting of its own",
                            mu__resolver_name(resolver));
    rv = check_set_type(type, ret_error);
    if (rv != 0)
        return rv;
    resolver->has_type = type != NULL;
    MU__COPY_TEXT(resolver->task_type, type == NULL ? "" : type);
    return 0;
}

int mu_resolver_set_task_index(mu_resolver *resolver, int index, mu_error *ret_error)
{
    if (resolver == NULL)
        return no_resolver(ret_error);
    if (index < -1 || index > MU_CLUSTER_INDEX_MAX)
        return bad_index(index, ret_error);
    resolver->has_index = index >= 0;
    resolver->task_index = index;
    return 0;
}

/* Set a word of a resolution: `has` and `room` (16 bytes) are the resolver's. */
static int set_word(const char *what, const char *word, mu_error *ret_error, bool *has,
                    char *room)
{
    if (word != NULL && (strlen(word) > 15 || mu__has_control(word))) {
        return mu__refuse(ret_error, word, strlen(word),
                          "%s: expected at most 15 bytes, and no control characters",
                          what);
    }
    *has = word != NULL;
    (void)snprintf(room, 16, "%s", word == NULL ? "" : word);
    return 0;
}

int mu_resolver_set_rpc_layer(mu_resolver *resolver, const char *rpc_layer,
                              mu_error *ret_error)
{
    return resolver == NULL ? no_resolver(ret_error)
                            : set_word("rpc layer", rpc_layer, ret_error,
                                       &resolver->has_rpc_layer, resolver->rpc_layer);
}

int mu_resolver_set_environment(mu_resolver *resolver, const char *environment,
                                mu_error *ret_error)
{
    return resolver == NULL ? no_resolver(ret_error)
                            : set_word("environment", environment, ret_error,
                                       &resolver->has_environment, resolver->environment);
}

/* The row of a kind: the one that it has, or the next free one; NULL: all are taken. */
static mu_accelerator *accelerator_of(mu_resolver *resolver, const char *kind)
{
    for (int i = 0; i < resolver->accelerators_count; i++)
        if (strcmp(resolver->accelerators[i].kind, kind) == 0)
            return &resolver->accelerators[i];
    return resolver->accelerators_count == MU_ACCELERATOR_KINDS_MAX
               ? NULL
               : &resolver->accelerators[resolver->accelerators_count++];
}

int mu_resolver_set_accelerators(mu_resolver *resolver, const char *kind, int count,
                                 mu_error *ret_error)
{
    mu_accelerator *accelerator;
    char word[16];
    bool has;
    int rv;

    if (resolver == NULL)
        return no_resolver(ret_error);
    if (kind == NULL) {
        resolver->accelerators_count = 0;
        return 0;
    }
    if (count < 0 || kind[0] == '\0')
        return mu_error_set(ret_error, -MU_EINVALID,
                            "accelerators: expected a kind, and a number of 0 or more, "
                            "got %d",
                            count);
    rv = set_word("accelerator", kind, ret_error, &has, word);
    if (rv != 0)
        return rv;
    accelerator = accelerator_of(resolver, word);
    if (accelerator == NULL)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "accelerators: expected at most %d kinds, \"%s\" is one more",
                            (int)MU_ACCELERATOR_KINDS_MAX, word);
    memcpy(accelerator->kind, word, sizeof word);
    accelerator->count = count;
    return 0;
}

void mu_resolver_on_progress(mu_resolver *resolver, mu_resolver_progress_fn progress,
                             void *user)
{
    if (resolver == NULL)
        return;
    resolver->progress = progress;
    resolver->progress_user = user;
}

void mu__resolver_progress(const mu_resolver *resolver, const char *line)
{
    if (resolver->progress != NULL)
        resolver->progress(resolver->progress_user, line);
}
