/* Running a tree. */
#include "resolver/engine/internal.h"
#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A round ---- */

static void entry_begin(struct mu__entry *entry)
{
    entry->state = MU__ENTRY_NOT_TRIED;
    entry->why[0] = '\0';
}

static void begin_tree_round(mu_resolver *resolver)
{
    struct mu__entry *entry;

    for (size_t i = 0; (entry = mu__resolver_entry(resolver, i)) != NULL; i++)
        entry_begin(entry);
    if (resolver->shape == MU__SHAPE_AUTO)
        resolver->taken = NULL;
    for (size_t i = 0; i < resolver->members_count; i++)
        begin_tree_round(resolver->members[i]);
}

/* ---- Leaves ---- */

static int entry_resolve(struct mu__entry *entry, struct mu__requests *requests,
                         mu_error *ret_error, mu_resolution *ret_resolution)
{
    if (entry->own != NULL)
        return mu__own_resolve(entry, requests, ret_error, ret_resolution);
    return entry->kind->resolve(&(struct mu__pass){requests, &entry->settings}, ret_error,
                                ret_resolution);
}

/* Record for the explanation that the entry has failed. */
static void entry_fails(struct mu__entry *entry, const mu_error *error)
{
    entry->state = MU__ENTRY_FAILED;
    MU__COPY_TEXT(entry->why, error->message);
}

/* Record for the explanation which task the entry takes this process for. */
static void entry_succeeds(struct mu__entry *entry, const mu_resolution *resolution)
{
    entry->state = MU__ENTRY_TAKEN;
    if (resolution->task_type[0] == '\0' || resolution->task_index < 0)
        (void)snprintf(entry->why, sizeof entry->why,
                       "it does not say which task this process is");
    else
        (void)snprintf(entry->why, sizeof entry->why, "this process is %s:%d",
                       resolution->task_type, resolution->task_index);
}

/* Texts that are printed and put into environment variables must be clean. */
static int check_texts(const mu_resolution *resolution, mu_error *ret_error)
{
    const struct {
        const char *name;
        const char *text;
    } texts[] = {
        {"rpc layer", resolution->rpc_layer},
        {"environment", resolution->environment},
        {"master", resolution->master},
        {"address to listen at", resolution->bind_address},
        {"visible devices", resolution->visible_devices},
        {"accelerator", resolution->accelerator},
        {"cluster name", resolution->cluster_name},
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!mu__has_control(texts[i].text))
            continue;
        return mu__refuse(ret_error, texts[i].text, strlen(texts[i].text),
                          "%s: expected no control characters", texts[i].name);
    }
    return 0;
}

static int run_entry(struct mu__entry *entry, struct mu__requests *requests,
                     mu_error *ret_error, mu_resolution *ret_resolution)
{
    mu_resolution resolution;
    mu_error error = {0};
    mu_error inner;
    int rv;

    mu_resolution_init(&resolution);
    mu__requests_begin_pass(requests, mu__entry_name(entry));
    rv = entry_resolve(entry, requests, &error, &resolution);
    if (rv == 0 && check_texts(&resolution, &inner) != 0)
        rv = mu_error_set(&error, -MU_EINVALID, "resolver %s: %s", mu__entry_name(entry),
                          inner.message);
    if (rv != 0) {
        mu_cluster_free(resolution.cluster);
        entry_fails(entry, &error);
        if (ret_error != NULL)
            *ret_error = error;
        return rv;
    }
    entry_succeeds(entry, &resolution);
    MU__COPY_TEXT(resolution.source, mu__entry_name(entry));
    *ret_resolution = resolution;
    return 0;
}

/* ---- Auto-detection ---- */

void mu__resolver_take(mu_resolver *resolver, struct mu__entry *entry)
{
    bool announces = entry->kind != NULL && entry->kind->announce != NULL;

    resolver->taken = entry;
    atomic_store(&resolver->registry, announces ? entry : NULL);
}

/* 1: the entry applies here; 0: it does not; or an error. */
static int detect_entry(struct mu__entry *entry, struct mu__requests *requests,
                        mu_error *ret_error)
{
    mu_error why = {0};
    int rv;

    mu__requests_begin_pass(requests, mu__entry_name(entry));
    if (entry->own != NULL)
        rv = mu__own_detect(entry, requests, &why);
    else if (entry->kind->detect != NULL)
        rv = entry->kind->detect(&(struct mu__pass){requests, &entry->settings}, &why);
    else
        rv = mu_error_set(&why, 0, "it is taken only by its name");
    if (rv == 0)
        entry->state = MU__ENTRY_NOT_HERE;
    if (rv == 0)
        MU__COPY_TEXT(entry->why, why.message);
    if (rv >= 0)
        return rv;
    entry_fails(entry, &why);
    return mu_error_set(ret_error, rv, "%s: %.400s", mu__entry_name(entry), why.message);
}

static int refuse_no_detection(const mu_resolver *resolver, mu_error *ret_error)
{
    const struct mu__entry *entry;
    char names[300] = "";
    size_t used = 0;

    for (size_t i = 0; (entry = mu__resolver_entry(resolver, i)) != NULL; i++) {
        int size = snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                            mu__entry_name(entry));

        if (size < 0 || (size_t)size >= sizeof names - used)
            break;
        used += (size_t)size;
    }
    names[used] = '\0';
    return mu_error_set(ret_error, -MU_ENOTFOUND,
                        "no resolver recognises where this process runs (%s); the "
                        "explanation (muster resolve --explain) says what each one "
                        "missed, and a name takes one anyway",
                        names);
}

/* 0 with resolver->taken. */
static int find_taken(mu_resolver *resolver, struct mu__requests *requests,
                      mu_error *ret_error)
{
    struct mu__entry *entry;

    resolver->taken = NULL;
    for (size_t i = 0; (entry = mu__resolver_entry(resolver, i)) != NULL; i++) {
        int rv = detect_entry(entry, requests, ret_error);

        if (rv < 0)
            return rv;
        if (rv > 0) {
            mu__resolver_take(resolver, entry);
            return 0;
        }
    }
    return refuse_no_detection(resolver, ret_error);
}

/* For an auto-detection, find out which entry it takes. */
static int need_taken(mu_resolver *resolver, struct mu__requests *requests,
                      mu_error *ret_error)
{
    return resolver->shape == MU__SHAPE_AUTO ? find_taken(resolver, requests, ret_error)
                                             : 0;
}

/* ---- Unions ---- */

static int run_tree(mu_resolver *resolver, struct mu__requests *requests,
                    mu_error *ret_error, mu_resolution *ret_resolution);

/* The master of the first member that has one. A member whose own task is not in its
 * cluster has none. */
static void first_master(const mu_resolution *members, size_t count, char *ret_master)
{
    ret_master[0] = '\0';
    for (size_t i = 0; i < count && ret_master[0] == '\0'; i++)
        (void)mu_resolution_master(&members[i], NULL, -1, NULL, NULL, ret_master);
}

/* `members` are all concluded, and keep their clusters. */
static int unite_resolutions(const mu_resolution *members, size_t count,
                             mu_error *ret_error, mu_resolution *ret_resolution)
{
    const mu_cluster **clusters = calloc(count, sizeof *clusters);
    mu_resolution whole = members[0];
    int rv;

    if (clusters == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "union: out of memory");
    for (size_t i = 0; i < count; i++)
        clusters[i] = members[i].cluster;
    whole.cluster = NULL;
    whole.master_fixed = 2;
    whole.alone_has_no_master = 0;
    rv = mu__union_clusters(clusters, count, ret_error, &whole.cluster);
    free(clusters);
    if (rv != 0)
        return rv;
    first_master(members, count, whole.master);
    (void)snprintf(whole.source, sizeof whole.source, "union");
    *ret_resolution = whole;
    return 0;
}

static int run_union(mu_resolver *resolver, struct mu__requests *requests,
                     mu_error *ret_error, mu_resolution *ret_resolution)
{
    mu_resolution *members = calloc(resolver->members_count, sizeof *members);
    size_t count = 0;
    int rv = 0;

    if (members == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "union: out of memory");
    for (; count < resolver->members_count && rv == 0; count++) {
        mu_resolution_init(&members[count]);
        rv = run_tree(resolver->members[count], requests, ret_error, &members[count]);
    }
    if (rv == 0)
        rv = unite_resolutions(members, count, ret_error, ret_resolution);
    for (size_t i = 0; i < count; i++)
        mu_cluster_free(members[i].cluster);
    free(members);
    return rv;
}

static int run_fixed(const mu_resolver *resolver, mu_error *ret_error,
                     mu_resolution *ret_resolution)
{
    mu_resolution resolution = resolver->fixed;

    if (resolution.cluster != NULL) {
        resolution.cluster = mu_cluster_copy(resolution.cluster);
        if (resolution.cluster == NULL)
            return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    (void)snprintf(resolution.source, sizeof resolution.source, "static");
    *ret_resolution = resolution;
    return 0;
}

/* ---- The tree ---- */

/* Put in what the program has set, in place of what the source says. */
static void apply_overrides(const mu_resolver *resolver, mu_resolution *resolution)
{
    if (resolver->has_type)
        MU__COPY_TEXT(resolution->task_type, resolver->task_type);
    if (resolver->has_index)
        resolution->task_index = resolver->task_index;
    if ((resolver->has_type || resolver->has_index) && resolution->master_fixed == 0 &&
        resolver->taken != NULL && resolver->taken->kind != NULL &&
        resolver->taken->kind->master_is_first_task)
        resolution->master[0] = '\0';
    if (resolver->has_rpc_layer)
        MU__COPY_TEXT(resolution->rpc_layer, resolver->rpc_layer);
    if (resolver->has_environment)
        MU__COPY_TEXT(resolution->environment, resolver->environment);
    if (resolver->accelerators_count > 0) {
        resolution->accelerators_set_count = resolver->accelerators_count;
        memcpy(resolution->accelerators_set, resolver->accelerators,
               sizeof resolution->accelerators_set);
        memcpy(resolution->accelerator, resolver->accelerators[0].kind,
               sizeof resolution->accelerator);
        resolution->accelerators = resolver->accelerators[0].count;
    }
}

/* -MU_ENOTFOUND of an auto-detection means that no resolver applies here; the one that
 * was taken does, so its own becomes -MU_EPRECONDITION. */
static int taken_misses(mu_error *ret_error)
{
    if (ret_error != NULL)
        ret_error->code = -MU_EPRECONDITION;
    return -MU_EPRECONDITION;
}

static int run_tree(mu_resolver *resolver, struct mu__requests *requests,
                    mu_error *ret_error, mu_resolution *ret_resolution)
{
    int rv = need_taken(resolver, requests, ret_error);

    if (rv != 0)
        return rv;
    if (resolver->shape == MU__SHAPE_FIXED)
        rv = run_fixed(resolver, ret_error, ret_resolution);
    else if (resolver->shape == MU__SHAPE_UNION)
        rv = run_union(resolver, requests, ret_error, ret_resolution);
    else
        rv = run_entry(resolver->taken, requests, ret_error, ret_resolution);
    if (rv == -MU_ENOTFOUND && resolver->shape == MU__SHAPE_AUTO)
        rv = taken_misses(ret_error);
    if (rv == 0)
        apply_overrides(resolver, ret_resolution);
    return rv;
}

int mu__resolver_run(mu_resolver *resolver, struct mu__requests *requests,
                     mu_error *ret_error, mu_resolution *ret_resolution)
{
    mu_resolution resolution;
    int rv;

    begin_tree_round(resolver);
    rv = run_tree(resolver, requests, ret_error, &resolution);
    if (rv == 0 && !mu__requests_out_of_memory(requests))
        *ret_resolution = resolution;
    else if (rv == 0)
        mu_cluster_free(resolution.cluster);
    return mu__requests_out_of_memory(requests) ? mu__resolver_out_of_memory(ret_error)
                                                : rv;
}

static int run_detect(mu_resolver *resolver, struct mu__requests *requests,
                      mu_error *ret_error)
{
    int rv = need_taken(resolver, requests, ret_error);

    for (size_t i = 0; i < resolver->members_count; i++) {
        int one = run_detect(resolver->members[i], requests, rv == 0 ? ret_error : NULL);

        if (rv == 0)
            rv = one;
    }
    return rv;
}

int mu__resolver_run_detect(mu_resolver *resolver, struct mu__requests *requests,
                            mu_error *ret_error)
{
    int rv;

    begin_tree_round(resolver);
    rv = run_detect(resolver, requests, ret_error);
    return mu__requests_out_of_memory(requests) ? mu__resolver_out_of_memory(ret_error)
                                                : rv;
}

/* ---- After a run ---- */

uint32_t mu__resolver_watch_ms(const mu_resolver *resolver)
{
    const struct mu__entry *entry = resolver->taken;
    uint32_t least = entry == NULL || entry->kind == NULL ? 0 : entry->kind->watch_ms;

    for (size_t i = 0; i < resolver->members_count; i++) {
        uint32_t member_ms = mu__resolver_watch_ms(resolver->members[i]);

        if (least == 0 || (member_ms != 0 && member_ms < least))
            least = member_ms;
    }
    return least;
}

static bool is_watched(const mu_resolver *resolver, const char *path)
{
    for (size_t i = 0; i < resolver->watched_count; i++)
        if (strcmp(resolver->watched[i], path) == 0)
            return true;
    return false;
}

/* Out of memory the path is not watched: a change is seen after watch_ms. */
static void add_watched_path(mu_resolver *whole, const char *path)
{
    char *copy;

    if (whole->watched_count == MU__WATCHED_PATHS_MAX || is_watched(whole, path))
        return;
    copy = strdup(path);
    if (copy != NULL)
        whole->watched[whole->watched_count++] = copy;
}

static void add_watched_of(mu_resolver *whole, const mu_resolver *resolver,
                           struct mu__requests *requests)
{
    const struct mu__entry *entry = resolver->taken;
    const char *path = NULL;

    if (entry != NULL && entry->kind != NULL && entry->kind->watched_path != NULL)
        path = entry->kind->watched_path(&(struct mu__pass){requests, &entry->settings});
    if (path != NULL)
        add_watched_path(whole, path);
    for (size_t i = 0; i < resolver->members_count; i++)
        add_watched_of(whole, resolver->members[i], requests);
}

void mu__resolver_forget_watched_paths(mu_resolver *resolver)
{
    while (resolver->watched_count > 0)
        free(resolver->watched[--resolver->watched_count]);
}

void mu__resolver_set_watched_paths(mu_resolver *resolver, struct mu__requests *requests)
{
    mu__resolver_forget_watched_paths(resolver);
    add_watched_of(resolver, resolver, requests);
}

const char *mu__resolver_watched_path(const mu_resolver *resolver, size_t i)
{
    return i < resolver->watched_count ? resolver->watched[i] : NULL;
}
