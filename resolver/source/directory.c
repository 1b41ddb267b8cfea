/* The resolver directory: a folder that all machines see, with one file for each task,
 * "worker-3", which has its address (resolver/source/entry.h). Persons, scripts and the
 * nodes themselves write them. */
#include "resolver/engine/expected.h"
#include "resolver/source/entry.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH,
    TASKS,
    TTL,
    TASK_TYPE,
    TASK_INDEX,
    SOURCE_BYTES = 320,
    WATCH_MS = 5000,
    FILES_AT_A_TIME = 64
};

static const struct mu__setting_spec settings_of[] = {
    MU__SETTING(PATH, "path", "MUSTER_CLUSTER_DIRECTORY", NULL,
                "the folder, which all tasks see"),
    MU__SETTING(TASKS, "tasks", "MUSTER_TASKS", NULL,
                "who is expected, \"chief=1,worker=3,ps=2\"; without it, who is there is "
                "the cluster"),
    MU__SETTING_WITHIN(TTL, "ttl", "MUSTER_DIRECTORY_TTL", "30", 3, 86400,
                       "seconds after which a task that is not heard of counts as gone"),
    MU__TASK_SETTINGS(TASK_TYPE, TASK_INDEX),
    {.name = NULL},
};

static int detect_directory(const struct mu__pass *pass, mu_error *ret_why)
{
    return mu__setting_detect(pass, PATH, ret_why);
}

/* The state of one pass. */
struct look {
    const struct mu__pass *pass;
    const char *path;
    char source[SOURCE_BYTES]; /* "directory /x" */
    struct mu__jobs shape;
    uint64_t now_s;
    unsigned removed;                /* entries that have expired, */
    uint64_t removed_s;              /* how long ago the last of them did, */
    char removed_path[SOURCE_BYTES]; /* and its file */
    mu_error *error;
};

static int begin_directory_pass(const struct mu__pass *pass, mu_error *ret_error,
                                struct look *look)
{
    const struct mu__request clock = {.kind = MU__REQUEST_CLOCK};
    const struct mu__answer *now;
    int rv;

    *look = (struct look){pass, .error = ret_error};
    rv = mu__setting_required(pass, PATH, "a folder", ret_error, &look->path);
    if (rv != 0)
        return rv;
    if (strlen(look->path) > 255)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "directory: expected a path of at most 255 bytes, got %zu",
                            strlen(look->path));
    (void)snprintf(look->source, sizeof look->source, "directory %s", look->path);
    now = mu__requests_get(pass->requests, &clock);
    if (now->code != 0)
        return mu_error_set(ret_error, now->code, "directory: %s", now->error.message);
    look->now_s = strtoull(now->data, NULL, 10);
    return mu__expected_parse(pass, TASKS, ret_error, &look->shape);
}

/* The files' names, one each line. A folder that is missing may still be made. */
static int request_names(const struct look *look, const char **ret_names)
{
    const struct mu__request request = {
        .kind = MU__REQUEST_FOLDER,
        .name = look->path,
        .retry_missing = true,
    };
    const struct mu__answer *answer = mu__requests_get(look->pass->requests, &request);

    if (answer->code == -MU_ENOTFOUND)
        return mu_error_set(look->error, -MU_EUNAVAILABLE, "directory: %s",
                            answer->error.message);
    *ret_names = answer->data;
    return mu__answer_check(answer, "directory", look->error);
}

static void file_path(const struct look *look, const char *name, size_t size, char *out)
{
    (void)snprintf(out, SOURCE_BYTES, "%s/%.*s", look->path, (int)size, name);
}

static struct mu__request make_file_request(const struct look *look, const char *name,
                                            size_t size, char *path)
{
    file_path(look, name, size, path);
    return (struct mu__request){
        .kind = MU__REQUEST_FILE,
        .name = path,
        .bytes_max = MU__ENTRY_BYTES_MAX,
    };
}

static const struct mu__answer *request_task_file(const struct look *look,
                                                  const char *name, size_t size)
{
    char path[SOURCE_BYTES];
    const struct mu__request request = make_file_request(look, name, size, path);

    return mu__requests_get(look->pass->requests, &request);
}

/* ---- Reading ---- */

/* Whether a file is no entry: its name begins with a point, or ends like an editor's or
 * a half-written one. */
static bool is_passed_over(const char *name, size_t size)
{
    return name[0] == '.' || name[size - 1] == '~' ||
           (size > 4 && memcmp(name + size - 4, ".tmp", 4) == 0);
}

static bool is_removed(const struct look *look, const struct mu__task_entry *entry)
{
    return entry->until_s != 0 && entry->until_s < look->now_s;
}

static void record_removed(struct look *look, const char *path,
                           const struct mu__task_entry *entry)
{
    uint64_t since_s = look->now_s - entry->until_s;

    mu__requests_explain(look->pass->requests, "%s was not heard of for %llu s", path,
                         (unsigned long long)since_s);
    if (look->removed++ > 0 && since_s >= look->removed_s)
        return;
    look->removed_s = since_s;
    MU__COPY_TEXT(look->removed_path, path);
}

/* A file that is not there any more, or is still empty, adds no task. */
static int read_directory_task(struct look *look, const char *name, size_t size,
                               mu_resolution *resolution)
{
    const struct mu__answer *answer = request_task_file(look, name, size);
    struct mu__task_entry entry;
    char path[SOURCE_BYTES];
    char type[16];
    int index;
    int rv;

    file_path(look, name, size, path);
    rv = mu__entry_task(name, size, '-', look->source, look->error, type, &index);
    if (rv != 0 || answer->code == -MU_ENOTFOUND ||
        (answer->code == 0 && answer->size == 0))
        return rv;
    rv = mu__answer_check(answer, look->source, look->error);
    if (rv == 0)
        rv = mu__entry_parse(answer->data, answer->size, path, look->error, &entry);
    if (rv != 0)
        return rv;
    if (is_removed(look, &entry)) {
        record_removed(look, path, &entry);
        return 0;
    }
    return mu__entry_add(&entry, path, type, index, look->error, resolution);
}

/* A listing's names, one each line. Returns the next one's place; NULL at the end. */
static const char *next_name(const char *at, const char **ret_name, size_t *ret_size)
{
    while (mu__next_line(&at, ret_name, ret_size))
        if (!is_passed_over(*ret_name, *ret_size))
            return at;
    return NULL;
}

/* Read many files at a time: those from `at` on. Returns where the next ones begin. */
static const char *read_task_files(const struct look *look, const char *at)
{
    char paths[FILES_AT_A_TIME][SOURCE_BYTES];
    struct mu__request list[FILES_AT_A_TIME];
    const char *next = at;
    const char *name;
    size_t count = 0;
    size_t size;

    while (count < FILES_AT_A_TIME && (next = next_name(at, &name, &size)) != NULL) {
        list[count] = make_file_request(look, name, size, paths[count]);
        count++;
        at = next;
    }
    mu__requests_get_all(look->pass->requests, list, count);
    return next;
}

static int read_directory_tasks(struct look *look, const char *names,
                                mu_resolution *resolution)
{
    const char *name;
    size_t count = 0;
    size_t size;
    int rv = 0;

    for (const char *at = names; (at = next_name(at, &name, &size)) != NULL;) {
        if (size > 30)
            return mu__entry_task(name, size, '-', look->source, look->error,
                                  (char[16]){""}, (int[]){0});
        if (++count > MU_CLUSTER_TASKS_MAX)
            return mu_error_set(look->error, -MU_EEXHAUSTED,
                                "%s: expected at most %d files", look->source,
                                MU_CLUSTER_TASKS_MAX);
    }
    for (const char *at = names; at != NULL;)
        at = read_task_files(look, at);
    for (const char *at = names; rv == 0 && (at = next_name(at, &name, &size)) != NULL;)
        rv = read_directory_task(look, name, size, resolution);
    return rv;
}

/* Check for missing tasks. The error also counts those whose entries have expired: they
 * had been there. */
static int check_expected(const struct look *look, const mu_cluster *cluster)
{
    int rv = mu__expected_check(&look->shape, look->source, cluster, look->error);
    mu_error missing;

    if (rv == 0 || look->removed == 0)
        return rv;
    missing = *look->error;
    return mu_error_set(look->error, rv,
                        "%.300s; %u %s there and %s not heard of any more: %s for %llu s",
                        missing.message, look->removed,
                        look->removed == 1 ? "was" : "were",
                        look->removed == 1 ? "is" : "are", look->removed_path,
                        (unsigned long long)look->removed_s);
}

static int resolve_directory(const struct mu__pass *pass, mu_error *ret_error,
                             mu_resolution *ret_resolution)
{
    const char *names = "";
    struct look look;
    mu_error inner;
    int rv = begin_directory_pass(pass, ret_error, &look);

    if (rv == 0)
        rv = mu__task_setting(pass, TASK_TYPE, ret_error, ret_resolution);
    if (rv != 0)
        return rv;
    rv = request_names(&look, &names);
    if (rv == 0)
        rv = read_directory_tasks(&look, names, ret_resolution);
    if (rv == 0 && mu__cluster_check(ret_resolution->cluster, &inner) != 0)
        rv = mu_error_set(ret_error, inner.code, "%s: %s", look.source, inner.message);
    return rv != 0 ? rv : check_expected(&look, ret_resolution->cluster);
}

/* ---- Announcing ---- */

/* State between calls. */
struct own {
    bool taken;              /* this process has held the place */
    uint64_t holder_until_s; /* of another process's entry, when it was first seen */
    char holder[MU__ENTRY_WHO_BYTES];
};

static struct own *get_directory_state(void **own)
{
    if (*own == NULL)
        *own = calloc(1, sizeof(struct own));
    return *own;
}

/* The first index without a file, or with an expired one. */
static int choose_index(const struct look *look, const char *names, const char *type,
                        int *ret_index)
{
    unsigned count = mu__expected_count(&look->shape, type);
    int end = count > 0 ? (int)count : MU_CLUSTER_INDEX_MAX;
    char name[32];

    for (int index = 0; index < end; index++) {
        int size = snprintf(name, sizeof name, "%s-%d", type, index);
        const struct mu__answer *answer;
        struct mu__task_entry entry;

        if (mu__has_line(names, name, (size_t)size)) {
            answer = request_task_file(look, name, (size_t)size);
            if (answer->code != -MU_ENOTFOUND &&
                (answer->code != 0 ||
                 mu__entry_parse(answer->data, answer->size, name, NULL, &entry) != 0 ||
                 !is_removed(look, &entry)))
                continue;
        }
        *ret_index = index;
        return 0;
    }
    return mu_error_set(look->error, -MU_EUNAVAILABLE,
                        "%s: all %d places of type %s are taken", look->source, end,
                        type);
}

static int find_directory_index(const struct look *look, const mu_resolution *task,
                                int *ret_index)
{
    const char *names = "";
    int rv;

    if (task->task_index >= 0) {
        *ret_index = task->task_index;
        return 0;
    }
    rv = request_names(look, &names);
    return rv != 0 ? rv : choose_index(look, names, task->task_type, ret_index);
}

/* The error when another process's file is in the place. If it is written anew while we
 * look, that process lives. */
static int refuse_directory_holder(const struct look *look, const char *path,
                                   const struct mu__task_entry *entry, struct own *own)
{
    bool same = strcmp(own->holder, entry->who) == 0;

    if (own->taken || entry->who[0] == '\0' ||
        (same && entry->until_s != own->holder_until_s))
        return mu_error_set(look->error, -MU_EEXISTS, "%s: is another process's, at %s%s",
                            path, entry->address,
                            own->taken ? ", which has taken this one's place"
                            : entry->who[0] == '\0'
                                ? ", as somebody wrote by hand: remove the file"
                                : ", which lives");
    MU__COPY_TEXT(own->holder, entry->who);
    own->holder_until_s = entry->until_s;
    return mu_error_set(look->error, -MU_EUNAVAILABLE,
                        "%s: is another process's, at %s: it is not known yet whether "
                        "it lives, for %llu s at most",
                        path, entry->address,
                        (unsigned long long)(entry->until_s - look->now_s + 1));
}

static int write_location(const struct look *look, const char *path,
                          const mu_announcement *announcement, long ttl_s, bool new_only)
{
    struct mu__task_entry entry = {.until_s = look->now_s + (uint64_t)ttl_s};
    char text[MU__ENTRY_BYTES_MAX];
    struct mu__request request = {
        .kind = MU__REQUEST_WRITE,
        .name = path,
        .body = text,
        .new_only = new_only,
        .tries = 1,
    };
    const struct mu__answer *answer;

    MU__COPY_TEXT(entry.address, announcement->address);
    MU__COPY_TEXT(entry.who, announcement->incarnation);
    mu__entry_write(&entry, text);
    request.body_size = strlen(text);
    answer = mu__requests_get(look->pass->requests, &request);
    if (answer->code == -MU_EEXISTS)
        return mu_error_set(look->error, -MU_EUNAVAILABLE,
                            "%s: was taken by another process a moment ago", path);
    if (answer->code == -MU_ENOTFOUND) /* the folder: it may come back */
        return mu_error_set(look->error, -MU_EUNAVAILABLE, "%s: %s", look->source,
                            answer->error.message);
    return mu__answer_check(answer, look->source, look->error);
}

static int take_directory_slot(const struct look *look,
                               const mu_announcement *announcement, const char *name,
                               struct own *own, long ttl_s)
{
    char path[SOURCE_BYTES];
    struct mu__task_entry entry = {.until_s = 0};
    const struct mu__answer *answer;
    bool is_there;
    int rv = 0;

    file_path(look, name, strlen(name), path);
    answer = request_task_file(look, name, strlen(name));
    is_there = answer->code != -MU_ENOTFOUND;
    if (is_there)
        rv = mu__answer_check(answer, look->source, look->error);
    if (rv == 0 && is_there && answer->size > 0)
        rv = mu__entry_parse(answer->data, answer->size, path, look->error, &entry);
    if (rv == 0 && entry.address[0] != '\0' && !is_removed(look, &entry) &&
        strcmp(entry.who, announcement->incarnation) != 0)
        rv = refuse_directory_holder(look, path, &entry, own);
    return rv != 0 ? rv : write_location(look, path, announcement, ttl_s, !is_there);
}

static int announce_in_directory(const struct mu__pass *pass,
                                 const mu_announcement *announcement, mu_error *ret_error,
                                 void **own, int *ret_index, uint32_t *ret_again_ms)
{
    struct own *state = get_directory_state(own);
    struct look look;
    mu_resolution task;
    char name[32];
    long ttl_s = 0;
    int index = 0;
    int rv = begin_directory_pass(pass, ret_error, &look);

    if (state == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "directory: out of memory");
    if (rv == 0)
        rv = mu__setting_number(pass, TTL, ret_error, &ttl_s);
    if (rv == 0)
        rv = mu__task_announced(pass, TASK_TYPE, announcement, ret_error, &task);
    if (rv == 0)
        rv = find_directory_index(&look, &task, &index);
    if (rv != 0)
        return rv;
    (void)snprintf(name, sizeof name, "%s-%d", task.task_type, index);
    rv = take_directory_slot(&look, announcement, name, state, ttl_s);
    if (rv != 0)
        return rv;
    state->taken = true;
    *ret_index = index;
    *ret_again_ms = (uint32_t)ttl_s * 1000 / 3;
    return 0;
}

static int withdraw_from_directory(const struct mu__pass *pass,
                                   const mu_announcement *announcement,
                                   mu_error *ret_error, void **own)
{
    char path[SOURCE_BYTES];
    const struct mu__request request = {
        .kind = MU__REQUEST_REMOVE, .name = path, .tries = 1};
    const struct mu__answer *answer;
    struct mu__task_entry entry;
    struct look look;
    mu_resolution task;
    char name[32];
    int rv = begin_directory_pass(pass, ret_error, &look);

    if (rv != 0 || *own == NULL || !((struct own *)*own)->taken)
        return rv;
    rv = mu__task_announced(pass, TASK_TYPE, announcement, ret_error, &task);
    if (rv != 0)
        return rv;
    (void)snprintf(name, sizeof name, "%s-%d", task.task_type, task.task_index);
    file_path(&look, name, strlen(name), path);
    answer = request_task_file(&look, name, strlen(name));
    if (answer->code != 0 ||
        mu__entry_parse(answer->data, answer->size, path, NULL, &entry) != 0 ||
        strcmp(entry.who, announcement->incarnation) != 0)
        return 0;
    answer = mu__requests_get(pass->requests, &request);
    return answer->code == -MU_ENOTFOUND
               ? 0
               : mu__answer_check(answer, look.source, ret_error);
}

static const char *get_directory_path(const struct mu__pass *pass)
{
    return mu__setting(pass, PATH);
}

const struct mu__resolver_kind mu__resolver_directory = {
    .name = "directory",
    .summary = "a folder with a file for each task, in which its address stands",
    .settings = settings_of,
    .detect = detect_directory,
    .resolve = resolve_directory,
    .announce = announce_in_directory,
    .withdraw = withdraw_from_directory,
    .watch_ms = WATCH_MS,
    .watched_path = get_directory_path,
};
