/* The public calls of muster/compat/tpu.h: each one is a query on the calling thread. */
#include "node/deadline.h"
#include "node/discovery/run_query.h"
#include "resolver/cloud/google/tpu.h"
#include "resolver/engine/uv/cloud_library.h"
#include "runtime/message/arguments.h"

#include <muster/compat/tpu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 60000 }; /* a single look at the health may take so long */

struct mu_tpu {
    struct mu__settings settings;
    mu_tpu_progress_fn progress;
    void *user;
};

int mu_tpu_new(mu_error *ret_error, mu_tpu **ret_tpu)
{
    MU__REQUIRE(ret_error, ret_tpu);

    mu_tpu *tpu = calloc(1, sizeof *tpu);

    if (tpu == NULL || mu__settings_init(&tpu->settings, "tpu", mu__tpu_settings) != 0) {
        free(tpu);
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    *ret_tpu = tpu;
    return 0;
}

void mu_tpu_free(mu_tpu *tpu)
{
    if (tpu == NULL)
        return;
    mu__settings_done(&tpu->settings);
    free(tpu);
}

int mu_tpu_set(mu_tpu *tpu, const char *setting, const char *value, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, tpu, setting);
    return mu__settings_set(&tpu->settings, setting, value, ret_error);
}

void mu_tpu_on_progress(mu_tpu *tpu, mu_tpu_progress_fn progress, void *user)
{
    MU__REQUIRE_OR(, tpu);
    tpu->progress = progress;
    tpu->user = user;
}

/* ---- A call ---- */

struct call {
    mu_tpu *tpu;
    int (*run)(void *call, struct mu__requests *requests, mu_error *ret_error);
    mu_tpu_state *states; /* of describing */
    size_t room;
    size_t count;
    const char *version; /* of requesting */
    const char *restart_type;
};

static void on_tpu_progress(void *owner, const char *line)
{
    const mu_tpu *tpu = ((struct call *)owner)->tpu;

    if (tpu->progress != NULL)
        tpu->progress(tpu->user, line);
}

static int run_tpu_call(struct call *c, int64_t timeout_ms, mu_error *ret_error)
{
    const struct mu__run_query_config config = {
        .what = MU__QUERY_RESOLVE,
        .run = c->run,
        .run_owner = c,
        .limits.timeout_ms = timeout_ms,
        .progress = on_tpu_progress,
        .owner = c,
    };
    struct mu__query_result resolved;

    return mu__run_query(&config, ret_error, &resolved);
}

static int run_tpu_describe(void *owner, struct mu__requests *requests,
                            mu_error *ret_error)
{
    struct call *c = owner;
    const struct mu__cloud *cloud;
    int rv = mu__cloud_need(requests, ret_error, &cloud);

    return rv != 0 ? rv
                   : cloud->tpu_describe(&(struct mu__pass){requests, &c->tpu->settings},
                                         ret_error, c->states, c->room, &c->count);
}

static int run_request(void *owner, struct mu__requests *requests, mu_error *ret_error)
{
    struct call *c = owner;
    const struct mu__cloud *cloud;
    int rv = mu__cloud_need(requests, ret_error, &cloud);

    return rv != 0 ? rv
                   : cloud->tpu_request_version(&(struct mu__pass){requests,
                                                                   &c->tpu->settings},
                                                c->version, c->restart_type, ret_error);
}

/* The states of all TPUs that the handle stands for; the caller frees *ret_states. */
static int describe_all_tpus(mu_tpu *tpu, int64_t timeout_ms, mu_error *ret_error,
                             mu_tpu_state **ret_states, size_t *ret_count)
{
    struct call c = {.tpu = tpu, .run = run_tpu_describe, .room = MU_TPU_NODES_MAX};
    int rv;

    c.states = calloc(c.room, sizeof *c.states);
    if (c.states == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    rv = run_tpu_call(&c, timeout_ms, ret_error);
    if (rv != 0) {
        free(c.states);
        return rv;
    }
    *ret_states = c.states;
    *ret_count = c.count;
    return 0;
}

int mu_tpu_describe(mu_tpu *tpu, int64_t timeout_ms, mu_error *ret_error,
                    mu_tpu_state *ret_states, size_t room, size_t *ret_count)
{
    MU__REQUIRE(ret_error, tpu, ret_count);
    if (ret_states == NULL && room > 0)
        return mu__refuse_null(ret_error, __func__, "ret_states", 1);

    mu_tpu_state *states;
    size_t count;
    int rv = describe_all_tpus(tpu, timeout_ms, ret_error, &states, &count);

    if (rv != 0)
        return rv;
    if (count > room)
        rv = mu_error_set(ret_error, -MU_EEXHAUSTED,
                          "there are %zu TPUs: expected room for them, got %zu", count,
                          room);
    for (size_t i = 0; i < count && rv == 0; i++)
        ret_states[i] = states[i];
    if (rv == 0)
        *ret_count = count;
    free(states);
    return rv;
}

int mu_tpu_recoverable(mu_tpu *tpu, int64_t timeout_ms, mu_error *ret_error,
                       int *ret_recoverable, char *ret_why)
{
    MU__REQUIRE(ret_error, tpu, ret_recoverable);

    mu_tpu_state *states;
    size_t count;
    size_t i = 0;
    int rv = describe_all_tpus(tpu, timeout_ms, ret_error, &states, &count);

    if (rv != 0)
        return rv;
    while (i < count && states[i].recoverable)
        i++;
    if (i < count && ret_why != NULL)
        (void)snprintf(ret_why, 512, "TPU \"%s\": %s", states[i].name, states[i].why);
    *ret_recoverable = i == count;
    free(states);
    return 0;
}

int mu_tpu_request_version(mu_tpu *tpu, const char *version, const char *restart_type,
                           int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, tpu, version);

    struct call c = {
        .tpu = tpu,
        .run = run_request,
        .version = version,
        .restart_type = restart_type == NULL ? "always" : restart_type,
    };

    return run_tpu_call(&c, timeout_ms, ret_error);
}

int mu_tpu_leader(mu_tpu *tpu, mu_error *ret_error, char *ret_leader)
{
    MU__REQUIRE(ret_error, tpu, ret_leader);

    const char *job = tpu->settings.values[MU__TPU_SET_JOB_NAME];

    if (job == NULL)
        job = getenv(mu__tpu_settings[MU__TPU_SET_JOB_NAME].variable);
    if (job == NULL || job[0] == '\0')
        job = mu__tpu_settings[MU__TPU_SET_JOB_NAME].initial;
    if (strlen(job) > 40)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "setting job_name: expected a task type");
    (void)snprintf(ret_leader, 64, "/job:%s/task:0", job);
    return 0;
}

/* ---- Waiting ---- */

/* Whether all are healthy at this moment: 0, or the error. */
static int check_tpu_health(mu_tpu *tpu, int64_t left_ms, mu_error *ret_error)
{
    const struct mu__cloud *cloud;
    mu_tpu_state *states;
    size_t count;
    int rv = describe_all_tpus(tpu, left_ms < LOOK_MS ? left_ms : LOOK_MS, ret_error,
                               &states, &count);

    if (rv == 0)
        rv = mu__cloud_load(ret_error, &cloud);
    if (rv != 0)
        return rv;
    rv = cloud->tpu_check_health(states, count, ret_error);
    free(states);
    return rv;
}

int mu_tpu_wait_healthy(mu_tpu *tpu, int64_t wait_ms, int64_t interval_ms,
                        mu_error *ret_error)
{
    MU__REQUIRE(ret_error, tpu);

    struct call c = {.tpu = tpu};
    int64_t timeout_ms = wait_ms <= 0 ? MU_TPU_WAIT_MS : wait_ms;
    int64_t pause_ms = interval_ms <= 0 ? MU_TPU_INTERVAL_MS : interval_ms;
    uint64_t deadline_ns = mu__deadline_in(timeout_ms);
    mu_error why = {0};
    mu_error last;
    char line[600];
    int rv;

    for (;;) {
        rv = check_tpu_health(tpu, mu__deadline_left_ms(deadline_ns), &last);
        if (rv != -MU_EUNAVAILABLE && rv != -MU_EDEADLINE)
            break;
        if (rv == -MU_EUNAVAILABLE || why.code == 0)
            why = last; /* what the TPU has said counts more than its silence */
        if (mu__deadline_left_ms(deadline_ns) < pause_ms)
            return mu_error_set(ret_error, -MU_EDEADLINE,
                                "not healthy after %lld s: %.400s",
                                (long long)(timeout_ms / 1000), why.message);
        (void)snprintf(line, sizeof line, "%s; again in %lld s", last.message,
                       (long long)(pause_ms / 1000));
        on_tpu_progress(&c, line);
        uv_sleep((unsigned)pause_ms);
    }
    if (rv != 0 && ret_error != NULL)
        *ret_error = last;
    return rv;
}
