/* The resolver kubernetes_job: an Indexed Job, a JobSet, a StatefulSet or everything
 * behind a headless service, from variables and the cluster's DNS, without its API.
 *
 * Kubernetes numbers the pods, and a headless service gives each a name:
 *
 *     Indexed Job, StatefulSet    NAME-INDEX.SERVICE
 *     JobSet                      JOBSET-REPLICATED_JOB-JOB_INDEX-INDEX.SERVICE */
#include "resolver/cluster.h"
#include "resolver/json.h"
#include "resolver/kind.h"
#include "resolver/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUPS_MAX = 8,
    NAME_BYTES = 64,        /* a DNS label and a zero */
    HOST_BYTES = 256,
    WAIT_MS = 10000,
    WATCH_MS = 30000        /* addresses change with their pods */
};

enum {
    MODE,
    TASKS,
    REPLICAS,
    JOBS,
    GROUPS,
    SERVICE,
    NAME,
    JOBSET,
    REPLICATED_JOB,
    JOB_INDEX,
    INDEX,
    NAMESPACE,
    DOMAIN,
    PORT,
    ADDRESS,
    WAIT_FOR,
    RPC_LAYER
};

#define VARIABLE(name) "MUSTER_KUBERNETES_JOB_" name

static const struct mu__setting_spec settings_of[] = {
    [MODE] = {.name = "mode", .variable = VARIABLE("MODE"), .initial = "auto",
              .help = "job, jobset, statefulset, service (all addresses behind it) or "
                      "auto"},
    [TASKS] = {.name = "tasks", .form = MU__SETTING_NUMBER, .low = 1,
               .high = MU_CLUSTER_TASKS_MAX, .variable = VARIABLE("TASKS"),
               .help = "the Job's completions, the StatefulSet's replicas"},
    [REPLICAS] = {.name = "replicas", .form = MU__SETTING_NUMBER, .low = 1,
                  .high = MU_CLUSTER_TASKS_MAX, .variable = "REPLICATED_JOB_REPLICAS",
                  .initial = "1",
                  .help = "of a JobSet: how many Jobs the replicated job has, each of "
                          "`tasks`"},
    [JOBS] = {.name = "jobs", .variable = VARIABLE("JOBS"),
              .help = "what the tasks are, by index: chief=1,ps=2,worker=*"},
    [GROUPS] = {.name = "groups", .variable = VARIABLE("GROUPS"),
                .help = "several Jobs behind one service: ps=NAME:2,worker=NAME:4, of a "
                        "JobSet also NAME:2x4"},
    [SERVICE] = {.name = "service", .variable = VARIABLE("SERVICE"),
                 .help = "the headless service; of a JobSet without it the JobSet's "
                         "name"},
    [NAME] = {.name = "job_name", .variable = VARIABLE("NAME"),
              .help = "the Job or StatefulSet; without it HOSTNAME without -INDEX"},
    [JOBSET] = {.name = "jobset", .variable = "JOBSET_NAME", .help = "the JobSet"},
    [REPLICATED_JOB] = {.name = "replicated_job", .variable = "REPLICATED_JOB_NAME",
                        .help = "which replicated job of the JobSet this is"},
    [JOB_INDEX] = {.name = "job_index", .form = MU__SETTING_NUMBER, .low = 0,
                   .high = MU_CLUSTER_INDEX_MAX, .variable = "JOB_INDEX", .initial = "0",
                   .help = "which Job of the replicated job this is"},
    [INDEX] = {.name = "index", .form = MU__SETTING_NUMBER, .low = 0,
               .high = MU_CLUSTER_INDEX_MAX, .variable = "JOB_COMPLETION_INDEX",
               .help = "which pod this is; of a StatefulSet without it the end of "
                       "HOSTNAME"},
    [NAMESPACE] = {.name = "namespace", .variable = VARIABLE("NAMESPACE"),
                   .help = "of the service, when it is another one"},
    [DOMAIN] = {.name = "domain", .variable = VARIABLE("DOMAIN"),
                .help = "of the cluster's DNS, to have whole names: cluster.local"},
    [PORT] = {.name = "port", .form = MU__SETTING_NUMBER, .low = 1, .high = 65535,
              .variable = VARIABLE("PORT"), .initial = "55527",
              .help = "where every task listens"},
    [ADDRESS] = {.name = "address", .variable = VARIABLE("ADDRESS"), .initial = "name",
                 .help = "name or ip"},
    [WAIT_FOR] = {.name = "wait_for", .variable = VARIABLE("WAIT_FOR"),
                  .initial = "first",
                  .help = "whose names have to be known: none, first or all"},
    [RPC_LAYER] = {.name = "rpc_layer", .variable = VARIABLE("RPC_LAYER"),
                   .initial = "grpc", .help = "in front of a master's address"},
    {.name = NULL},
};

/* Pods that are numbered together. */
struct group {
    char type[16];              /* "": what `jobs` says */
    char name[NAME_BYTES];      /* of the Job, replicated job or StatefulSet */
    unsigned replicas;          /* of a JobSet's replicated job: its Jobs; else 1 */
    unsigned tasks;             /* in each */
};

enum mode { JOB, JOB_SET, STATEFUL_SET, SERVICE_ALONE };

struct plan {
    enum mode mode;
    struct group groups[GROUPS_MAX];
    size_t groups_count;
    const char *jobset;
    char suffix[HOST_BYTES];    /* ".service.namespace.svc.domain" */
    unsigned port;
    bool by_ip;
    unsigned waits_for;         /* how many names have to be known, from the first on */
    size_t own_group;           /* groups_count: none */
    unsigned own_replica;
    unsigned own_index;
};

/* ---- Reading settings ---- */

static int bad(struct mu__notes *notes, const struct mu__settings *settings,
               unsigned number, const char *expected, mu_error *ret_error)
{
    const char *text = mu__setting(notes, settings, number);
    char shown[MU__QUOTE_BYTES] = "nothing";
    char origin[128];

    mu__setting_origin(notes, settings, number, origin);
    if (text == NULL)
        (void)snprintf(origin, sizeof origin, "setting %.40s of resolver %.40s",
                       settings->specs[number].name, settings->resolver);
    else
        mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(ret_error, -MU_EINVALID, "%s: expected %s, got %s", origin,
                        expected, shown);
}

/* One of several words, NULL behind the last one; its place. */
static int read_word(struct mu__notes *notes, const struct mu__settings *settings,
                     unsigned number, const char *const *words, const char *expected,
                     mu_error *ret_error, unsigned *ret_place)
{
    const char *text = mu__setting(notes, settings, number);

    for (unsigned i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) != 0)
            continue;
        *ret_place = i;
        return 0;
    }
    return bad(notes, settings, number, expected, ret_error);
}

static int read_unsigned(struct mu__notes *notes, const struct mu__settings *settings,
                         unsigned number, mu_error *ret_error, unsigned *number_found)
{
    long found = *number_found;
    int rv = mu__setting_number(notes, settings, number, ret_error, &found);

    if (rv == 0)
        *number_found = (unsigned)found;
    return rv;
}

/* A DNS label. */
static bool is_label(const char *text, size_t size)
{
    size_t plain = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return size > 0 && size < NAME_BYTES && plain >= size && text[0] != '-' &&
           text[size - 1] != '-';
}

/* HOSTNAME of a pod "name-3": 4, the bytes before "-3", and 3. False: it is not so. */
static bool split_host_name(const char *host_name, size_t *ret_size, int *ret_index)
{
    const char *dash = host_name == NULL ? NULL : strrchr(host_name, '-');

    if (dash == NULL || mu__index_parse(dash + 1, ret_index) != 0)
        return false;
    *ret_size = (size_t)(dash - host_name);
    return is_label(host_name, *ret_size);
}

static const char *own_host_name(struct mu__notes *notes)
{
    const struct mu__question question = {.kind = MU__ASK_HOST_NAME};
    const char *variable = mu__ask_variable(notes, "HOSTNAME");
    const struct mu__answer *answer;

    if (variable != NULL)
        return variable;
    answer = mu__ask(notes, &question);
    return answer->code == 0 ? answer->data : NULL;
}

static int read_mode(struct mu__notes *notes, const struct mu__settings *settings,
                     mu_error *ret_error, enum mode *ret_mode)
{
    static const char *const words[] = {"job", "jobset", "statefulset", "service",
                                        "auto", NULL};
    unsigned place = 0;
    size_t size;
    int index;
    int rv = read_word(notes, settings, MODE, words,
                       "job, jobset, statefulset, service or auto", ret_error, &place);

    if (rv != 0)
        return rv;
    *ret_mode = (enum mode)place;
    if (place <= SERVICE_ALONE)
        return 0;
    if (mu__setting(notes, settings, JOBSET) != NULL)
        *ret_mode = JOB_SET;
    else if (mu__setting(notes, settings, INDEX) != NULL)
        *ret_mode = JOB;
    else if (split_host_name(own_host_name(notes), &size, &index))
        *ret_mode = STATEFUL_SET;
    else
        *ret_mode = SERVICE_ALONE;
    return 0;
}

/* ".service", with namespace and domain behind it where they are wanted. */
static int read_suffix(struct mu__notes *notes, const struct mu__settings *settings,
                       mu_error *ret_error, struct plan *plan)
{
    const char *service = mu__setting(notes, settings, SERVICE);
    const char *name_space = mu__setting(notes, settings, NAMESPACE);
    const char *domain = mu__setting(notes, settings, DOMAIN);

    if (service == NULL && plan->mode == JOB_SET)
        service = plan->jobset;
    if (service == NULL || !is_label(service, strlen(service)))
        return bad(notes, settings, SERVICE,
                   "the name of the headless service (the pods' subdomain)", ret_error);
    if (name_space != NULL && !is_label(name_space, strlen(name_space)))
        return bad(notes, settings, NAMESPACE, "the name of a namespace", ret_error);
    if (domain != NULL && name_space == NULL)
        return bad(notes, settings, NAMESPACE, "a namespace beside the domain",
                   ret_error);
    if (domain != NULL && strlen(domain) > 100)
        return bad(notes, settings, DOMAIN, "a domain of at most 100 bytes", ret_error);
    (void)snprintf(plan->suffix, sizeof plan->suffix, ".%.63s%s%.63s%s%s%.100s", service,
                   name_space == NULL ? "" : ".", name_space == NULL ? "" : name_space,
                   name_space == NULL ? "" : ".svc", domain == NULL ? "" : ".",
                   domain == NULL ? "" : domain);
    return 0;
}

/* ---- Groups ---- */

/* "4" or "2x4". */
static bool read_size(const char *text, size_t size, bool is_set, struct group *group)
{
    char digits[16] = "";
    char *x;
    int tasks;
    int replicas = 1;

    if (size >= sizeof digits)
        return false;
    memcpy(digits, text, size);
    x = strchr(digits, 'x');
    if (x != NULL) {
        *x = '\0';
        if (!is_set || mu__index_parse(digits, &replicas) != 0)
            return false;
    }
    if (mu__index_parse(x == NULL ? digits : x + 1, &tasks) != 0 || tasks == 0 ||
        replicas == 0)
        return false;
    group->tasks = (unsigned)tasks;
    group->replicas = (unsigned)replicas;
    return true;
}

/* "worker=NAME:2x4". */
static int read_group(struct mu__notes *notes, const struct mu__settings *settings,
                      const char *text, size_t size, mu_error *ret_error,
                      struct plan *plan)
{
    struct group *group = &plan->groups[plan->groups_count];
    size_t type = strcspn(text, "=,");
    size_t name = type < size ? strcspn(text + type + 1, ":,") : size;
    size_t behind = type + name + 2;
    char word[32];
    mu_error inner;
    int number;

    if (plan->groups_count == GROUPS_MAX || type + 1 >= size || behind >= size ||
        !is_label(text + type + 1, name) ||
        !read_size(text + behind, size - behind, plan->mode == JOB_SET, group))
        return bad(notes, settings, GROUPS,
                   "up to 8 of TYPE=NAME:COUNT, as in \"ps=ps:2,worker=work:4\" (of a "
                   "JobSet also NAME:JOBSxCOUNT)",
                   ret_error);
    (void)snprintf(word, sizeof word, "%.*s", (int)(type < 31 ? type : 31), text);
    if (mu__task_type_find(word, &inner, &number) != 0)
        return mu_error_set(ret_error, -MU_EINVALID, "groups: %s", inner.message);
    (void)snprintf(group->type, sizeof group->type, "%s", mu__task_type_name(number));
    (void)snprintf(group->name, sizeof group->name, "%.*s", (int)name, text + type + 1);
    plan->groups_count++;
    return 0;
}

static int read_groups(struct mu__notes *notes, const struct mu__settings *settings,
                       const char *text, mu_error *ret_error, struct plan *plan)
{
    if (mu__setting(notes, settings, JOBS) != NULL)
        return bad(notes, settings, JOBS, "nothing beside groups", ret_error);
    while (*text != '\0') {
        size_t size = strcspn(text, ",");
        int rv = read_group(notes, settings, text, size, ret_error, plan);

        if (rv != 0)
            return rv;
        text += size;
        text += *text == ',';
    }
    return plan->groups_count > 0 ? 0
                                  : bad(notes, settings, GROUPS, "TYPE=NAME:COUNT",
                                        ret_error);
}

/* The index that HOSTNAME ends with has to be that of the Job: with the network of its
 * host a pod is called as the host is. */
static bool is_numbered(struct mu__notes *notes, const struct mu__settings *settings,
                        int index)
{
    const char *text = mu__setting(notes, settings, INDEX);
    int known;

    return text == NULL || mu__index_parse(text, &known) != 0 || known == index;
}

/* The name that the own pods have in common. */
static int own_name(struct mu__notes *notes, const struct mu__settings *settings,
                    const struct plan *plan, mu_error *ret_error, char *ret_name)
{
    unsigned number = plan->mode == JOB_SET ? REPLICATED_JOB : NAME;
    const char *name = mu__setting(notes, settings, number);
    const char *host_name = own_host_name(notes);
    size_t size = name == NULL ? 0 : strlen(name);
    int index;

    if (name == NULL && plan->mode != JOB_SET &&
        split_host_name(host_name, &size, &index) &&
        is_numbered(notes, settings, index))
        name = host_name;
    if (name == NULL || !is_label(name, size))
        return bad(notes, settings, number,
                   plan->mode == JOB_SET
                       ? "the name of the replicated job"
                       : "the name of the Job or StatefulSet (HOSTNAME is not NAME-INDEX "
                         "here)",
                   ret_error);
    (void)snprintf(ret_name, NAME_BYTES, "%.*s", (int)size, name);
    return 0;
}

/* Without `groups` there is one, ours. */
static int make_group(struct mu__notes *notes, const struct mu__settings *settings,
                      mu_error *ret_error, struct plan *plan)
{
    struct group *group = &plan->groups[0];
    int rv = read_unsigned(notes, settings, TASKS, ret_error, &group->tasks);

    group->replicas = 1;
    if (rv == 0 && plan->mode == JOB_SET)
        rv = read_unsigned(notes, settings, REPLICAS, ret_error, &group->replicas);
    if (rv != 0)
        return rv;
    if (group->tasks == 0)
        return bad(notes, settings, TASKS,
                   "how many pods there are (the Job's completions, the StatefulSet's "
                   "replicas)",
                   ret_error);
    plan->groups_count = 1;
    return plan->mode == SERVICE_ALONE
               ? 0
               : own_name(notes, settings, plan, ret_error, group->name);
}

/* ---- Who we are ---- */

static int own_index(struct mu__notes *notes, const struct mu__settings *settings,
                     const struct plan *plan, mu_error *ret_error, unsigned *ret_index)
{
    const char *host_name = own_host_name(notes);
    size_t size;
    int index;

    if (mu__setting(notes, settings, INDEX) != NULL)
        return read_unsigned(notes, settings, INDEX, ret_error, ret_index);
    if (plan->mode != STATEFUL_SET)
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "JOB_COMPLETION_INDEX is not set; expected a Job with "
                            "completionMode: Indexed");
    if (!split_host_name(host_name, &size, &index))
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "HOSTNAME: expected NAME-INDEX, as a StatefulSet's pods "
                            "have it");
    *ret_index = (unsigned)index;
    return 0;
}

static int own_place(struct mu__notes *notes, const struct mu__settings *settings,
                     mu_error *ret_error, struct plan *plan)
{
    char name[NAME_BYTES];
    const struct group *group;
    int rv = own_name(notes, settings, plan, ret_error, name);

    if (rv == 0)
        rv = own_index(notes, settings, plan, ret_error, &plan->own_index);
    if (rv == 0 && plan->mode == JOB_SET)
        rv = read_unsigned(notes, settings, JOB_INDEX, ret_error, &plan->own_replica);
    if (rv != 0)
        return rv;
    while (plan->own_group < plan->groups_count &&
           strcmp(plan->groups[plan->own_group].name, name) != 0)
        plan->own_group++;
    if (plan->own_group == plan->groups_count) {
        mu__notes_say(notes, "\"%s\" is none of the groups: this process is no task",
                      name);
        return 0;
    }
    group = &plan->groups[plan->own_group];
    if (plan->own_index < group->tasks && plan->own_replica < group->replicas)
        return 0;
    return mu_error_set(ret_error, -MU_ERANGE,
                        "JOB_COMPLETION_INDEX, HOSTNAME: this is pod %u of Job %u, but "
                        "%s has %u with %u pods each; are tasks and replicas right?",
                        plan->own_index, plan->own_replica, group->name, group->replicas,
                        group->tasks);
}

/* ---- Names ---- */

static unsigned group_size(const struct group *group)
{
    return group->replicas * group->tasks;
}

static unsigned count_tasks(const struct plan *plan)
{
    unsigned count = 0;

    for (size_t i = 0; i < plan->groups_count; i++)
        count += group_size(&plan->groups[i]);
    return count;
}

static int make_host(const struct plan *plan, const struct group *group, unsigned i,
                     mu_error *ret_error, char *ret_host)
{
    int size;

    if (plan->mode == JOB_SET)
        size = snprintf(ret_host, HOST_BYTES, "%s-%s-%u-%u%s", plan->jobset, group->name,
                        i / group->tasks, i % group->tasks, plan->suffix);
    else
        size = snprintf(ret_host, HOST_BYTES, "%s-%u%s", group->name, i, plan->suffix);
    if (size > 0 && size < HOST_BYTES)
        return 0;
    return mu_error_set(ret_error, -MU_EINVALID,
                        "the name of pod %u of %s: expected fewer than %d bytes", i,
                        group->name, (int)HOST_BYTES);
}

static int no_such_host(const char *host, const char *words, mu_error *ret_error)
{
    return mu_error_set(ret_error, -MU_EUNAVAILABLE,
                        "%.150s has no address (%.80s). Does the pod run, is there a "
                        "headless service (clusterIP: None) with this name that selects "
                        "it, with publishNotReadyAddresses: true, and is it the pod's "
                        "subdomain?",
                        host, words);
}

/* The addresses of a name; *ret_lines is the notes'. */
static int look_up(struct mu__notes *notes, const char *host, mu_error *ret_error,
                   const char **ret_lines)
{
    const struct mu__question question = {.kind = MU__ASK_ADDRESSES, .name = host,
                                          .limit_ms = WAIT_MS,
                                          .missing_is_passing = true};
    const struct mu__answer *answer = mu__ask(notes, &question);

    if (answer == NULL)
        return MU__LATER;
    if (answer->code == -MU_ENOTFOUND || (answer->code == 0 && answer->size == 0))
        return no_such_host(host, answer->code == 0 ? "the answer is empty"
                                                    : answer->error.message,
                            ret_error);
    if (answer->code != 0)
        return mu__answer_check(answer, host, ret_error);
    *ret_lines = answer->data;
    return 0;
}

/* ---- The cluster ---- */

/* Where the tasks of a group of its own type, or by rank over all jobs, stand. */
struct cursor {
    struct mu__jobs jobs;
    unsigned rank;
};

static void place_of(const struct cursor *cursor, const struct group *group,
                     const mu_resolution *resolution, const char **ret_type,
                     int *ret_index)
{
    if (group->type[0] == '\0') {
        mu__jobs_at(&cursor->jobs, cursor->rank, ret_type, ret_index);
        return;
    }
    *ret_type = group->type;
    *ret_index = (int)mu_cluster_task_count(resolution->cluster, group->type);
}

static int add_pod(struct mu__notes *notes, const struct plan *plan,
                   const struct group *group, unsigned i, struct cursor *cursor,
                   mu_error *ret_error, mu_resolution *resolution)
{
    char host[HOST_BYTES];
    char ip[64];
    const char *lines = NULL;
    const char *type;
    int index;
    int rv = make_host(plan, group, i, ret_error, host);

    if (rv == 0 && (plan->by_ip || cursor->rank < plan->waits_for))
        rv = look_up(notes, host, ret_error, &lines);
    if (rv != 0)
        return rv;
    place_of(cursor, group, resolution, &type, &index);
    if (group == &plan->groups[plan->own_group] &&
        i == plan->own_replica * group->tasks + plan->own_index) {
        (void)snprintf(resolution->task_type, sizeof resolution->task_type, "%s", type);
        resolution->task_index = index;
    }
    if (plan->by_ip)
        (void)snprintf(ip, sizeof ip, "%.*s", (int)strcspn(lines, "\n"), lines);
    cursor->rank++;
    return mu__resolution_add_host(resolution, host, type, index,
                                   plan->by_ip ? ip : host, plan->port, ret_error);
}

/* Ask for all names that are waited for, before one of them is. */
static void ask_ahead(struct mu__notes *notes, const struct plan *plan)
{
    unsigned rank = 0;

    for (size_t k = 0; k < plan->groups_count; k++) {
        for (unsigned i = 0; i < group_size(&plan->groups[k]); i++) {
            char host[HOST_BYTES];
            const char *lines;

            if (rank++ < plan->waits_for &&
                make_host(plan, &plan->groups[k], i, NULL, host) == 0)
                (void)look_up(notes, host, NULL, &lines);
        }
    }
}

static int add_groups(struct mu__notes *notes, const struct mu__settings *settings,
                      const struct plan *plan, mu_error *ret_error,
                      mu_resolution *resolution)
{
    struct cursor cursor = {.rank = 0};
    char origin[128];
    int rv = 0;

    mu__setting_origin(notes, settings, JOBS, origin);
    if (plan->groups[0].type[0] == '\0')
        rv = mu__jobs_parse(mu__setting(notes, settings, JOBS), origin,
                            count_tasks(plan), ret_error, &cursor.jobs);
    if (rv == 0)
        ask_ahead(notes, plan);
    for (size_t k = 0; rv == 0 && k < plan->groups_count; k++)
        for (unsigned i = 0; rv == 0 && i < group_size(&plan->groups[k]); i++)
            rv = add_pod(notes, plan, &plan->groups[k], i, &cursor, ret_error,
                         resolution);
    return rv;
}

/* ---- All addresses behind a service ---- */

static bool has_line(const char *lines, const char *line, size_t size)
{
    for (const char *at = lines; at != NULL && *at != '\0'; at += *at == '\n') {
        size_t length = strcspn(at, "\n");

        if (length == size && memcmp(at, line, size) == 0)
            return true;
        at += length;
    }
    return false;
}

/* The own addresses: POD_IP, else what the own name stands for in the pod. */
static int own_addresses(struct mu__notes *notes, const char **ret_lines)
{
    const char *host_name = own_host_name(notes);
    const struct mu__question question = {.kind = MU__ASK_ADDRESSES, .name = host_name,
                                          .tries = 1};
    const struct mu__answer *answer;

    *ret_lines = mu__ask_variable(notes, "POD_IP");
    if (*ret_lines != NULL || host_name == NULL)
        return 0;
    answer = mu__ask(notes, &question);
    if (answer == NULL)
        return MU__LATER;
    *ret_lines = answer->code == 0 ? answer->data : NULL;
    return 0;
}

static unsigned count_lines(const char *lines)
{
    unsigned count = 0;

    for (const char *at = lines; *at != '\0'; at += *at == '\n') {
        at += strcspn(at, "\n");
        count++;
    }
    return count;
}

static int add_lines(const char *lines, const char *own, const struct mu__jobs *jobs,
                     const struct plan *plan, mu_error *ret_error,
                     mu_resolution *resolution)
{
    unsigned rank = 0;

    for (const char *at = lines; *at != '\0'; at += *at == '\n') {
        size_t size = strcspn(at, "\n");
        const char *type;
        char ip[64];
        int index;
        int rv;

        mu__jobs_at(jobs, rank++, &type, &index);
        (void)snprintf(ip, sizeof ip, "%.*s", (int)size, at);
        rv = mu__resolution_add_host(resolution, plan->suffix + 1, type, index, ip,
                                     plan->port, ret_error);
        if (rv != 0)
            return rv;
        if (has_line(own, at, size)) {
            (void)snprintf(resolution->task_type, sizeof resolution->task_type, "%s",
                           type);
            resolution->task_index = index;
        }
        at += size;
    }
    return 0;
}

static int add_service(struct mu__notes *notes, const struct mu__settings *settings,
                       const struct plan *plan, mu_error *ret_error,
                       mu_resolution *resolution)
{
    unsigned wanted = plan->groups[0].tasks;
    const char *lines = NULL;
    const char *own = NULL;
    struct mu__jobs jobs;
    char origin[128];
    unsigned found;
    int rv = look_up(notes, plan->suffix + 1, ret_error, &lines);

    if (own_addresses(notes, &own) == MU__LATER)
        rv = rv == 0 ? MU__LATER : rv;
    if (rv != 0)
        return rv;
    found = count_lines(lines);
    if (found != wanted)
        return mu_error_set(ret_error,
                            found < wanted ? -MU_EUNAVAILABLE : -MU_EPRECONDITION,
                            "%s: expected %u addresses (tasks), but there are %u",
                            plan->suffix + 1, wanted, found);
    mu__setting_origin(notes, settings, JOBS, origin);
    rv = mu__jobs_parse(mu__setting(notes, settings, JOBS), origin, found, ret_error,
                        &jobs);
    return rv == 0 ? add_lines(lines, own, &jobs, plan, ret_error, resolution) : rv;
}

/* ---- All together ---- */

static int read_addresses(struct mu__notes *notes, const struct mu__settings *settings,
                          mu_error *ret_error, struct plan *plan)
{
    static const char *const addresses[] = {"name", "ip", NULL};
    static const char *const waits[] = {"none", "first", "all", NULL};
    unsigned place = 0;
    int rv = read_word(notes, settings, ADDRESS, addresses, "name or ip", ret_error,
                       &place);

    plan->by_ip = place == 1;
    if (rv == 0)
        rv = read_word(notes, settings, WAIT_FOR, waits, "none, first or all", ret_error,
                       &plan->waits_for);
    if (plan->waits_for == 2 || plan->by_ip)
        plan->waits_for = MU_CLUSTER_TASKS_MAX;
    return rv == 0 ? read_unsigned(notes, settings, PORT, ret_error, &plan->port) : rv;
}

static int check_size(const struct plan *plan, mu_error *ret_error)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < plan->groups_count; i++)
        sum += (uint64_t)plan->groups[i].replicas * plan->groups[i].tasks;
    if (sum <= MU_CLUSTER_TASKS_MAX)
        return 0;
    return mu_error_set(ret_error, -MU_EEXHAUSTED,
                        "tasks, groups: expected at most %d tasks, got %llu",
                        MU_CLUSTER_TASKS_MAX, (unsigned long long)sum);
}

static int read_plan(struct mu__notes *notes, const struct mu__settings *settings,
                     mu_error *ret_error, struct plan *plan)
{
    const char *groups = mu__setting(notes, settings, GROUPS);
    int rv = read_mode(notes, settings, ret_error, &plan->mode);

    plan->jobset = mu__setting(notes, settings, JOBSET);
    if (rv == 0 && plan->mode == JOB_SET &&
        (plan->jobset == NULL || !is_label(plan->jobset, strlen(plan->jobset))))
        rv = bad(notes, settings, JOBSET, "the name of the JobSet", ret_error);
    if (rv == 0)
        rv = read_addresses(notes, settings, ret_error, plan);
    if (rv == 0)
        rv = read_suffix(notes, settings, ret_error, plan);
    if (rv == 0 && groups != NULL && plan->mode == SERVICE_ALONE)
        rv = bad(notes, settings, GROUPS, "no groups in mode service", ret_error);
    if (rv == 0)
        rv = groups != NULL ? read_groups(notes, settings, groups, ret_error, plan)
                            : make_group(notes, settings, ret_error, plan);
    if (rv == 0)
        rv = check_size(plan, ret_error);
    if (rv == 0 && plan->mode != SERVICE_ALONE)
        rv = own_place(notes, settings, ret_error, plan);
    return rv;
}

static int resolve(struct mu__notes *notes, const struct mu__settings *settings,
                   mu_error *ret_error, mu_resolution *ret_resolution)
{
    struct plan plan = {.own_group = 0};
    int rv = read_plan(notes, settings, ret_error, &plan);

    (void)snprintf(ret_resolution->rpc_layer, sizeof ret_resolution->rpc_layer, "%s",
                   mu__setting(notes, settings, RPC_LAYER));
    if (rv != 0)
        return rv;
    if (plan.mode == SERVICE_ALONE)
        return add_service(notes, settings, &plan, ret_error, ret_resolution);
    return add_groups(notes, settings, &plan, ret_error, ret_resolution);
}

/* Many Indexed Jobs have tasks that know nothing of each other: only with their number
 * (or the groups) it is known that these here do. */
static int detect(struct mu__notes *notes, const struct mu__settings *settings,
                  mu_error *ret_why)
{
    bool indexed = mu__setting(notes, settings, INDEX) != NULL;

    if (!indexed && !mu__setting_given(notes, settings, SERVICE)) {
        (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                           "neither JOB_COMPLETION_INDEX nor "
                           "MUSTER_KUBERNETES_JOB_SERVICE is set");
        return 0;
    }
    if (mu__setting_given(notes, settings, TASKS) ||
        mu__setting_given(notes, settings, GROUPS))
        return 1;
    (void)mu_error_set(ret_why, -MU_ENOTFOUND,
                       "neither MUSTER_KUBERNETES_JOB_TASKS nor "
                       "MUSTER_KUBERNETES_JOB_GROUPS is set");
    return 0;
}

const struct mu__resolver_kind mu__resolver_kubernetes_job = {
    .name = "kubernetes_job",
    .summary = "an Indexed Job, JobSet or StatefulSet, by variables and DNS",
    .settings = settings_of,
    .detect = detect,
    .resolve = resolve,
    .watch_ms = WATCH_MS,
};
