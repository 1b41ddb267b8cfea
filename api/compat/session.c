/* Sessions of the tasks that share parameters.
 *
 * The key "session/NAME" is there while the parameters are ready, with the path of the
 * checkpoint that was restored. The chief deletes it before it begins, and puts it with a
 * lease: so it is never that of an earlier chief, whose parameters may be half
 * overwritten already. Below it, "session/NAME/failed" says why the chief's last try
 * has failed, until the next one begins. */
#include "api/compat/compat.h"

#include "actors/job/job.h"
#include "actors/messages.h"
#include "node/deadline.h"
#include "node/member/session_config.h"
#include "node/node.h"

#include "muster/checkpoint.h"
#include "muster/coordination.h"
#include "runtime/message/arguments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMEOUT_MS = 7200000,
    RECOVERY_WAIT_MS = 30000,
    NAME_BYTES_MAX = 200,
    KEY_BYTES = 256,
    LOOKUP_MS = 250,      /* for a request to the service about the chief */
    LOOK_MS = 1000,       /* between two looks for the chief's failure, */
    FIRST_LINE_MS = 3000, /* and before the first line in the log */
    CLOSE_MS = 1000,
    PAUSE_MS = 20,
    LINE_BYTES = 900
};

struct mu_session {
    mu_node *node; /* held: see mu__node_ref */
    bool is_chief;
    bool has_reported;
    char *restored;
    mu_session_config config;
    char key[KEY_BYTES];
};

/* One opening. */
struct opening {
    mu_node *node;
    const mu_session_options *options; /* `own`, with `config` */
    mu_session_options own;
    mu_session_config config;
    char key[KEY_BYTES];
    uint64_t began_ns;
    uint64_t deadline_ns;
    bool has_service;
    char *restored;          /* the checkpoint; "": initialized; NULL: not yet known */
    const atomic_bool *over; /* a worker's: it is not needed any more; may be NULL */
    int64_t line_ms;         /* a worker's: when it logs next what it waits for */
    char failed[LINE_BYTES]; /* a worker's: the chief's failure that was logged */
};

void mu_session_options_init_sized(mu_session_options *options, size_t size)
{
    const mu_session_options defaults = {
        .name = "session",
        .timeout_ms = TIMEOUT_MS,
        .recovery_wait_ms = RECOVERY_WAIT_MS,
    };

    mu__options_init(options, size, &defaults, sizeof defaults);
}

/* ---- helpers ---- */

static int64_t spent_ms(const struct opening *opening)
{
    return (int64_t)((uv_hrtime() - opening->began_ns) / 1000000);
}

static int64_t get_session_left_ms(const struct opening *opening)
{
    return mu__deadline_left_ms(opening->deadline_ns);
}

/* The time left, but no more than until the next log line. */
static int64_t step_ms(const struct opening *opening)
{
    int64_t step = opening->options->recovery_wait_ms;
    int64_t left = get_session_left_ms(opening);

    return left >= 0 && left < step ? left : step;
}

/* The code and error of one of the program's functions; a positive code becomes
 * -MU_EUNKNOWN. */
static int check_hook_result(const struct opening *opening, const char *what, int rv,
                             const mu_error *error, mu_error *ret_error)
{
    if (rv == 0)
        return 0;
    return mu_error_set(ret_error, rv > 0 ? -MU_EUNKNOWN : rv, "session %s: %s: %.400s",
                        opening->options->name, what,
                        error->message[0] == '\0' ? mu_strerror(rv) : error->message);
}

static int call_hook(const struct opening *opening, const char *what,
                     int (*function)(mu_node *node, void *user, mu_error *ret_error),
                     mu_error *ret_error)
{
    mu_error error = {0};

    if (function == NULL)
        return 0;
    return check_hook_result(opening, what,
                             function(opening->node, opening->options->user, &error),
                             &error, ret_error);
}

/* Whether the program says that the parameters are ready: 0, or why not in `words`. */
static int request_ready(const struct opening *opening, char words[LINE_BYTES])
{
    const mu_session_options *o = opening->options;
    mu_error error = {0};
    int rv = o->ready == NULL ? 0 : o->ready(opening->node, o->user, &error);

    if (rv != 0)
        (void)snprintf(words, LINE_BYTES, "the parameters are not ready: %s",
                       error.message[0] == '\0' ? mu_strerror(rv) : error.message);
    return rv;
}

/* ---- checks ---- */

static int check_session_options(mu_node *node, const mu_session_options *o,
                                 mu_error *ret_error)
{
    if (mu__node_on_loop(node))
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "a session waits, so it must not be opened on a loop's "
                            "thread");
    if (o->name == NULL || o->name[0] == '\0' || strlen(o->name) > NAME_BYTES_MAX)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a session's name is \"%.80s\", expected 1 to %d bytes",
                            o->name == NULL ? "" : o->name, NAME_BYTES_MAX);
    if (o->checkpoint_dir != NULL && o->checkpoint_file != NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a session has checkpoint_dir \"%.150s\" and checkpoint_file "
                            "\"%.150s\", expected one of them",
                            o->checkpoint_dir, o->checkpoint_file);
    if (o->recovery_wait_ms == 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "a session's recovery_wait_ms is 0, expected at least 1");
    return mu__session_config_check(o->config, ret_error);
}

static int read_session_options(const mu_session_options *options, mu_error *ret_error,
                                struct opening *opening)
{
    mu_session_options *own = &opening->own;
    int rv = MU__OPTIONS_READ(mu_session_options, options, ret_error, own);

    if (rv == 0)
        rv =
            MU__OPTIONS_READ(mu_session_config, own->config, ret_error, &opening->config);
    own->config = &opening->config;
    opening->options = own;
    return rv == 0 ? check_session_options(opening->node, own, ret_error) : rv;
}

static int begin_opening(mu_node *node, const mu_session_options *options,
                         mu_error *ret_error, struct opening *ret_opening)
{
    int rv;

    *ret_opening = (struct opening){
        .node = node,
        .began_ns = uv_hrtime(),
        .has_service = mu_agent_state(node, NULL) != MU_AGENT_UNINITIALIZED,
    };
    rv = read_session_options(options, ret_error, ret_opening);
    if (rv != 0)
        return rv;
    ret_opening->deadline_ns = mu__deadline_in(ret_opening->own.timeout_ms);
    (void)snprintf(ret_opening->key, sizeof ret_opening->key, "session/%s",
                   ret_opening->own.name);
    return 0;
}

/* Takes opening->restored. */
static int make_session(struct opening *opening, bool is_chief, mu_error *ret_error,
                        mu_session **ret_session)
{
    mu_session *session = calloc(1, sizeof *session);

    if (session == NULL ||
        mu__session_config_copy(&opening->config, &session->config) != 0) {
        free(session);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a session");
    }
    session->node = opening->node;
    mu__node_ref(session->node);
    session->is_chief = is_chief;
    session->restored = opening->restored;
    opening->restored = NULL;
    memcpy(session->key, opening->key, sizeof session->key);
    *ret_session = session;
    return 0;
}

/* ---- the chief's session ---- */

static int set_restored(struct opening *opening, const char *path, mu_error *ret_error)
{
    opening->restored = strdup(path);
    return opening->restored != NULL
               ? 0
               : mu_error_set(ret_error, -MU_ENOMEM, "no memory for a session");
}

static int restore_session(struct opening *opening, const char *path, mu_error *ret_error)
{
    const mu_session_options *o = opening->options;
    mu_error error = {0};
    int rv;

    mu__node_log(opening->node, MU_LOG_INFO, "session", "%s: restores %s",
                 opening->options->name, path);
    if (o->restore == NULL)
        rv = mu_checkpoint_restore(opening->node, path, NULL, 0,
                                   get_session_left_ms(opening), &error);
    else
        rv = o->restore(opening->node, path, o->user, &error);
    rv = check_hook_result(opening, "restore", rv, &error, ret_error);
    return rv == 0 ? set_restored(opening, path, ret_error) : rv;
}

static int initialize_parameters(struct opening *opening, mu_error *ret_error)
{
    int rv;

    mu__node_log(opening->node, MU_LOG_INFO, "session", "%s: initializes the parameters",
                 opening->options->name);
    rv = call_hook(opening, "init", opening->options->init, ret_error);
    return rv == 0 ? set_restored(opening, "", ret_error) : rv;
}

/* Without a directory or a checkpoint in it the parameters are initialized. */
static int restore_or_initialize(struct opening *opening, mu_error *ret_error)
{
    const mu_session_options *o = opening->options;
    char *path = NULL;
    int rv;

    if (o->checkpoint_file != NULL)
        return restore_session(opening, o->checkpoint_file, ret_error);
    if (o->checkpoint_dir == NULL)
        return initialize_parameters(opening, ret_error);
    rv = mu_checkpoint_latest(o->checkpoint_dir, o->checkpoint_name, ret_error, &path,
                              NULL);
    if (rv == -MU_ENOTFOUND)
        return initialize_parameters(opening, ret_error);
    if (rv == 0)
        rv = restore_session(opening, path, ret_error);
    free(path);
    return rv;
}

static int make_session_ready(struct opening *opening, mu_error *ret_error)
{
    char words[LINE_BYTES];
    int rv = restore_or_initialize(opening, ret_error);

    if (rv == 0)
        rv = call_hook(opening, "local_init", opening->options->local_init, ret_error);
    if (rv != 0 || request_ready(opening, words) == 0)
        return rv;
    return mu_error_set(ret_error, -MU_EPRECONDITION, "session %s: %.400s",
                        opening->options->name, words);
}

/* Delete the key of an earlier chief, so that no worker reads it from now on. */
static int take_key_away(struct opening *opening, mu_error *ret_error)
{
    int rv;

    if (!opening->has_service)
        return 0;
    rv = mu_agent_register(opening->node, 0, get_session_left_ms(opening), ret_error);
    return rv == 0 ? mu_kv_delete(opening->node, opening->key,
                                  get_session_left_ms(opening), ret_error, NULL)
                   : rv;
}

static int put_key(struct opening *opening, mu_error *ret_error)
{
    if (!opening->has_service)
        return 0;
    return mu_kv_put(opening->node, opening->key, opening->restored,
                     strlen(opening->restored), MU_KV_OVERWRITE | MU_KV_LEASE, 0,
                     get_session_left_ms(opening), ret_error, NULL);
}

/* For the log of workers that wait. */
static void report_session_failure(const struct opening *opening, const mu_error *error)
{
    char key[KEY_BYTES + 8];

    if (!opening->has_service)
        return;
    (void)snprintf(key, sizeof key, "%s/failed", opening->key);
    (void)mu_kv_put(opening->node, key, error->message, strlen(error->message),
                    MU_KV_OVERWRITE | MU_KV_LEASE, 0, CLOSE_MS, NULL, NULL);
}

int mu_session_open_chief(mu_node *node, const mu_session_options *options,
                          mu_error *ret_error, mu_session **ret_session)
{
    MU__REQUIRE(ret_error, node, options, ret_session);

    mu_error error = {0};
    struct opening opening;
    mu_session *session = NULL;
    int rv = begin_opening(node, options, ret_error, &opening);

    if (rv != 0)
        return rv;
    mu__node_ref(node); /* it may be closed between two calls */
    rv = take_key_away(&opening, ret_error);
    if (rv == 0) {
        rv = make_session_ready(&opening, &error);
        if (rv != 0)
            report_session_failure(&opening, &error);
        if (rv != 0 && ret_error != NULL)
            *ret_error = error;
    }
    if (rv == 0)
        rv = put_key(&opening, ret_error);
    if (rv == 0)
        rv = make_session(&opening, true, ret_error, &session);
    free(opening.restored);
    mu__node_unref(node);
    if (rv != 0)
        return rv;
    session->has_reported = opening.has_service;
    mu__node_log(node, MU_LOG_INFO, "session", "%s: is ready after %" PRId64 " ms",
                 opening.own.name, spent_ms(&opening));
    *ret_session = session;
    return 0;
}

/* ---- a worker's session ---- */

/* "/job:chief/task:0 at tcp://..." -> "/job:chief/task:0". */
static void name_chief(const struct opening *opening, char *out, size_t size)
{
    const char *words = opening->node->member.job_owner;

    (void)snprintf(out, size, "%.*s", (int)strcspn(words, " "), words);
}

/* Write the chief's state, and when it was last heard. Waits for `timeout_ms` at most. */
static void look_for_chief(const struct opening *opening, int64_t timeout_ms, char *out,
                           size_t size)
{
    char chief[64];
    mu_value *states = NULL;
    const mu_value *state;
    const char *words = "";
    int64_t heard_ms = -1;
    mu_error error;
    size_t length;

    name_chief(opening, chief, sizeof chief);
    if (mu_tasks_states(opening->node, chief, timeout_ms, &error, &states) != 0) {
        if (error.code == -MU_ENOTFOUND)
            (void)snprintf(out, size, "%s was never heard", chief);
        else
            (void)snprintf(out, size, "nothing is known of %s: %.200s", chief,
                           error.message);
        return;
    }
    state = mu_value_at(states, 0);
    (void)mu_value_get_int(mu_value_find(state, "heard_ms"), &heard_ms);
    (void)mu_value_get_string(mu_value_find(state, "state"), &words, &length);
    if (heard_ms < 0)
        (void)snprintf(out, size, "%s was never heard", chief);
    else
        (void)snprintf(out, size, "%s is %s and was heard %" PRId64 " ms ago", chief,
                       words, heard_ms);
    mu_value_free(states);
}

static int fail_late_session(const struct opening *opening, const char *what,
                             mu_error *ret_error)
{
    int64_t waited_ms = spent_ms(opening);
    char chief[320];

    look_for_chief(opening, LOOKUP_MS, chief, sizeof chief);
    return mu_error_set(ret_error, -MU_EDEADLINE,
                        "session %s: %.200s after %" PRId64 " ms: %s",
                        opening->options->name, what, waited_ms, chief);
}

static void describe_waiting(const struct opening *opening, const char *what)
{
    int64_t left = get_session_left_ms(opening);
    char chief[320];

    look_for_chief(opening, left >= 0 && left < LOOKUP_MS ? left : LOOKUP_MS, chief,
                   sizeof chief);
    mu__node_log(opening->node, MU_LOG_INFO, "session",
                 "%s: %.500s after %" PRId64 " ms: %s", opening->options->name, what,
                 spent_ms(opening), chief);
}

static const char no_word[] = "the chief has not said that the parameters are ready";

/* Whether the service has lost its state. The error of a failed task has the task's
 * name, that of the loss has none. */
static bool is_service_loss(const struct opening *opening, int rv, const mu_error *error)
{
    return rv == -MU_EABORTED && error->task[0] == '\0' &&
           mu_agent_state(opening->node, NULL) == MU_AGENT_ERROR;
}

/* How long until the next look. */
static int64_t get_poll_ms(const struct opening *opening)
{
    int64_t step = step_ms(opening);

    return step < LOOK_MS ? step : LOOK_MS;
}

/* Register with the service, then wait for the key. */
static int request_for_word(struct opening *opening, mu_error *ret_error,
                            mu_kv_item *ret_item)
{
    int rv = mu_agent_register(opening->node, 0, get_poll_ms(opening), ret_error);

    return rv == 0 ? mu_kv_get(opening->node, opening->key, get_poll_ms(opening),
                               ret_error, ret_item)
                   : rv;
}

/* Log the chief's failure. It may try again, or be restarted, so it is waited for all the
 * same. */
static void look_for_failure(struct opening *opening)
{
    int64_t timeout_ms = get_session_left_ms(opening);
    char key[KEY_BYTES + 8];
    mu_kv_item item;

    if (timeout_ms == 0)
        return;
    timeout_ms = timeout_ms < 0 || timeout_ms > LOOKUP_MS ? LOOKUP_MS : timeout_ms;
    (void)snprintf(key, sizeof key, "%s/failed", opening->key);
    if (mu_kv_try_get(opening->node, key, timeout_ms, NULL, &item) != 0) {
        opening->failed[0] = '\0';
        return;
    }
    if (strncmp(opening->failed, item.value, sizeof opening->failed - 1) != 0) {
        (void)snprintf(opening->failed, sizeof opening->failed, "%s", item.value);
        mu__node_log(opening->node, MU_LOG_WARN, "session",
                     "%s: the chief has failed, and is waited for: %.600s",
                     opening->options->name, opening->failed);
    }
    mu_kv_item_clear(&item);
}

static int check_session_over(const struct opening *opening, mu_error *ret_error)
{
    if (opening->over == NULL || !atomic_load(opening->over))
        return 0;
    return mu_error_set(ret_error, -MU_EABORTED,
                        "session %s: another task has failed, or the job is done",
                        opening->options->name);
}

static bool is_job_done(mu_node *node, mu_error *ret_job)
{
    struct mu__job_call call = {.call.operation = MU__JOB_WAIT, .call.timeout_ms = 0};
    int rv = mu__node_call(node, MU__JOB, &call.call, NULL);

    *ret_job = call.call.error;
    return rv == 0;
}

/* Whether no chief will come: the job is done, or this task's run has failed. */
static int is_in_vain(const struct opening *opening, mu_error *ret_error)
{
    const char *name = opening->options->name;
    mu_error job = {0};
    int rv = check_session_over(opening, ret_error);

    if (rv != 0)
        return rv;
    if (!is_job_done(opening->node, &job))
        return 0;
    if (job.code == 0)
        return mu_error_set(ret_error, -MU_EABORTED,
                            "session %s: the job is done, and "
                            "the chief has not said that the parameters are ready",
                            name);
    return mu_error_set(ret_error, job.code, "session %s: the job has failed: %.700s",
                        name, job.message);
}

/* Log what is waited for: soon, and then from time to time. */
static void log_session_wait(struct opening *opening, const char *what)
{
    int64_t step = opening->options->recovery_wait_ms;

    if (opening->line_ms == 0)
        opening->line_ms = step < FIRST_LINE_MS ? step : FIRST_LINE_MS;
    if (spent_ms(opening) < opening->line_ms || get_session_left_ms(opening) == 0)
        return;
    describe_waiting(opening, what);
    opening->line_ms = spent_ms(opening) + step;
}

/* A service that has lost its state is no failure for a worker that only waits. */
static int wait_for_session_chief(struct opening *opening, mu_error *ret_error)
{
    mu_kv_item item;
    mu_error error;

    while (get_session_left_ms(opening) != 0) {
        int rv = request_for_word(opening, &error, &item);

        if (rv == 0) {
            rv = set_restored(opening, item.value, ret_error);
            mu_kv_item_clear(&item);
            return rv;
        }
        if (is_service_loss(opening, rv, &error)) {
            mu__node_log(opening->node, MU_LOG_WARN, "session", "%s: waits anew: %s",
                         opening->options->name, error.message);
            rv = mu_agent_reset(opening->node, step_ms(opening), &error);
        } else if (rv == -MU_EDEADLINE) {
            look_for_failure(opening);
            log_session_wait(opening, no_word);
            rv = is_in_vain(opening, &error);
        }
        if (rv != 0 && rv != -MU_EDEADLINE) {
            if (ret_error != NULL)
                *ret_error = error;
            return rv;
        }
    }
    return fail_late_session(opening, no_word, ret_error);
}

/* Until the program is asked again whether the parameters are ready. */
static int pause_before_retry(const struct opening *opening, mu_error *ret_error)
{
    uint64_t until_ns = mu__deadline_in(step_ms(opening));

    while (uv_hrtime() < until_ns) {
        int rv = check_session_over(opening, ret_error);

        if (mu__node_refuses_calls(opening->node))
            rv = mu_error_set(ret_error, -MU_ECLOSED, "%s is being closed",
                              opening->node->member.task);
        if (rv != 0)
            return rv;
        uv_sleep(PAUSE_MS);
    }
    return 0;
}

static int wait_until_ready(struct opening *opening, mu_error *ret_error)
{
    char words[LINE_BYTES];
    int rv;

    while (request_ready(opening, words) != 0) {
        if (get_session_left_ms(opening) == 0)
            return fail_late_session(opening, words, ret_error);
        describe_waiting(opening, words);
        rv = pause_before_retry(opening, ret_error);
        if (rv != 0)
            return rv;
    }
    return 0;
}

int mu_session_open_worker(mu_node *node, const mu_session_options *options,
                           mu_error *ret_error, mu_session **ret_session)
{
    MU__REQUIRE(ret_error, node, options, ret_session);
    return mu__session_open_worker(node, options, NULL, ret_error, ret_session);
}

int mu__session_open_worker(mu_node *node, const mu_session_options *options,
                            const atomic_bool *over, mu_error *ret_error,
                            mu_session **ret_session)
{
    struct opening opening;
    int rv = begin_opening(node, options, ret_error, &opening);

    if (rv != 0)
        return rv;
    opening.over = over;
    if (!opening.has_service)
        return mu_error_set(ret_error, -MU_EPRECONDITION,
                            "session %s: there is no coordination service, by which the "
                            "chief could say that the parameters are ready: see option "
                            "service_hosts",
                            opening.own.name);
    mu__node_ref(node); /* it may be closed between two calls */
    rv = wait_for_session_chief(&opening, ret_error);
    if (rv == 0)
        rv = call_hook(&opening, "local_init", opening.own.local_init, ret_error);
    if (rv == 0)
        rv = wait_until_ready(&opening, ret_error);
    if (rv == 0)
        rv = make_session(&opening, false, ret_error, ret_session);
    free(opening.restored);
    mu__node_unref(node);
    return rv;
}

int mu_session_open(mu_node *node, const mu_session_options *options, mu_error *ret_error,
                    mu_session **ret_session)
{
    MU__REQUIRE(ret_error, node, options, ret_session);

    const struct mu__offer_own *own = &node->offer.own;

    return mu_cluster_is_chief(own->cluster, own->type, own->index)
               ? mu_session_open_chief(node, options, ret_error, ret_session)
               : mu_session_open_worker(node, options, ret_error, ret_session);
}

/* ---- looking, closing ---- */

mu_node *mu_session_node(mu_session *session)
{
    MU__REQUIRE_OR(NULL, session);
    return session->node;
}

const char *mu_session_restored(const mu_session *session)
{
    MU__REQUIRE_OR(NULL, session);
    return session->restored;
}

int mu_session_is_chief(const mu_session *session)
{
    MU__REQUIRE_OR(0, session);
    return session->is_chief;
}

const mu_session_config *mu_session_get_config(const mu_session *session)
{
    MU__REQUIRE_OR(NULL, session);
    return &session->config;
}

/* A key that cannot be deleted now ends with its lease. */
void mu_session_close(mu_session *session)
{
    if (session == NULL)
        return;
    if (session->has_reported && !mu__node_on_loop(session->node))
        (void)mu_kv_delete(session->node, session->key, CLOSE_MS, NULL, NULL);
    mu__session_config_done(&session->config);
    free(session->restored);
    mu__node_unref(session->node);
    free(session);
}
