#include "transport/wire/uv/probe.h"

#include "transport/wire/uv/dialling.h"

#include "muster/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One call of mu__probe_all. */
struct probe_run {
    uv_loop_t loop;
    struct mu__blocking_jobs *blocking_jobs;
    struct mu__probe *probes;
    size_t count;
    size_t next; /* the first that has not begun */
    size_t under_way;
    bool filling;
    unsigned timeout_ms;
    const struct mu__tls_source *tls;
};

/* One probe under way. It is freed when its timer has been closed; the dialling frees
 * itself. */
struct attempt {
    struct probe_run *run;
    struct mu__probe *probe;
    struct mu__url url;
    uv_timer_t timer;              /* of the timeout */
    struct mu__dialling *dialling; /* NULL: not begun, or over */
    uint64_t began_ms;
};

static void begin_attempts(struct probe_run *run);

static void on_probe_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* End an attempt, and begin others that wait. */
static void conclude_attempt(struct attempt *attempt)
{
    struct probe_run *run = attempt->run;

    attempt->probe->took_ms = (uint32_t)(uv_now(&run->loop) - attempt->began_ms);
    uv_close((uv_handle_t *)&attempt->timer, on_probe_timer_closed);
    run->under_way--;
    begin_attempts(run);
}

static void conclude_as(struct attempt *attempt, enum mu__probe_state state,
                        const char *why)
{
    attempt->probe->state = state;
    (void)snprintf(attempt->probe->why, sizeof attempt->probe->why, "%s", why);
    conclude_attempt(attempt);
}

/* ---- results ---- */

/* How the state of an address is reported. Without a node, the address with the highest
 * weight is the result. An attempt that is still under way counts as unanswered. */
static const struct outcome {
    enum mu__probe_state state;
    unsigned weight;
    const char *words; /* for `others`; NULL: the reason of the try */
} outcomes[] = {
    [MU__DIAL_UNTRIED] = {MU__PROBE_SILENT, 0, "its turn did not come"},
    [MU__DIAL_CONNECTING] = {MU__PROBE_SILENT, 3, "no answer by then"},
    [MU__DIAL_CONNECTED] = {MU__PROBE_MUTE, 4, "connected, but it says nothing"},
    [MU__DIAL_GREETS] = {MU__PROBE_GREETS, 6, NULL},
    [MU__DIAL_REFUSED] = {MU__PROBE_REFUSED, 2, NULL},
    [MU__DIAL_SILENT] = {MU__PROBE_SILENT, 3, NULL},
    [MU__DIAL_MUTE] = {MU__PROBE_MUTE, 4, "connected, but it says nothing"},
    [MU__DIAL_ENDED] = {MU__PROBE_OTHER, 5, NULL},
    [MU__DIAL_OTHER] = {MU__PROBE_OTHER, 5, NULL},
    [MU__DIAL_UNPROVEN] = {MU__PROBE_OTHER, 5, NULL},
    [MU__DIAL_NO_WAY] = {MU__PROBE_NO_WAY, 1, NULL},
};

/* The address with the highest weight. */
static unsigned telling_one(const struct mu__dial_try *tries, unsigned count)
{
    unsigned best = 0;

    for (unsigned i = 1; i < count; i++)
        if (outcomes[tries[i].state].weight > outcomes[tries[best].state].weight)
            best = i;
    return best;
}

static void note_found(struct mu__probe *probe, const char *name)
{
    size_t used = strlen(probe->found);

    (void)snprintf(probe->found + used, sizeof probe->found - used, "%s%s",
                   used == 0 ? "" : ", ", name);
}

static void note_address(struct attempt *attempt, const struct mu__dial_try *try,
                         const char *name)
{
    struct mu__probe *probe = attempt->probe;

    if (attempt->url.ipc)
        (void)snprintf(probe->at, sizeof probe->at, "%.79s", attempt->url.path);
    else
        (void)snprintf(probe->at, sizeof probe->at,
                       try->address.any.sa_family == AF_INET6 ? "[%s]:%u" : "%s:%u", name,
                       attempt->url.port);
    probe->state = outcomes[try->state].state;
    probe->why[0] = '\0';
    if (probe->state == MU__PROBE_OTHER || probe->state == MU__PROBE_NO_WAY)
        (void)snprintf(probe->why, sizeof probe->why, "%s", try->why);
}

static void note_tries(struct attempt *attempt)
{
    struct mu__dial_failure rows[MU__DIAL_ADDRESSES_MAX];
    char names[MU__DIAL_ADDRESSES_MAX][INET6_ADDRSTRLEN];
    struct mu__probe *probe = attempt->probe;
    unsigned rows_count = 0;
    unsigned count;
    const struct mu__dial_try *tries = mu__dialling_tries(attempt->dialling, &count);
    unsigned best = telling_one(tries, count);

    for (unsigned i = 0; i < count; i++) {
        const char *words = outcomes[tries[i].state].words;

        mu__dial_name(&tries[i], names[i], sizeof names[i]);
        note_found(probe, names[i]);
        if (i == best)
            note_address(attempt, &tries[i], names[i]);
        else if (tries[i].state != MU__DIAL_UNTRIED ||
                 tries[best].state != MU__DIAL_GREETS)
            rows[rows_count++] =
                (struct mu__dial_failure){names[i], words == NULL ? tries[i].why : words};
    }
    mu__dial_words(rows, rows_count, probe->others, sizeof probe->others);
}

/* The end of a dialling, by whatever event. */
static void on_attempt_end(struct attempt *attempt)
{
    const char *no_name = mu__dialling_no_name(attempt->dialling);
    unsigned count;

    (void)mu__dialling_tries(attempt->dialling, &count);
    if (count > 0)
        note_tries(attempt);
    attempt->dialling = NULL;
    if (count > 0)
        conclude_attempt(attempt);
    else
        conclude_as(attempt, MU__PROBE_NO_NAME,
                    no_name == NULL ? "the name server does not answer" : no_name);
}

static void on_probe_timeout(uv_timer_t *timer)
{
    struct attempt *attempt = timer->data;
    struct mu__dialling *dialling = attempt->dialling;

    on_attempt_end(attempt);
    mu__dialling_cancel(dialling);
}

static void on_stream_closed(uv_handle_t *handle)
{
    mu__connection_free((struct mu__connection *)handle);
}

static void on_probe_won(void *owner, const struct mu__dialling *dialling,
                         struct mu__connection *connection)
{
    (void)dialling;
    on_attempt_end(owner);
    uv_close(&connection->stream.handle, on_stream_closed);
}

static void on_probe_lost(void *owner, const struct mu__dialling *dialling)
{
    (void)dialling;
    on_attempt_end(owner);
}

static void on_probe_dialling_closed(void *arg)
{
    (void)arg; /* the loop runs until all handles are closed */
}

/* ---- the run ---- */

static void start_probe_dial(struct attempt *attempt)
{
    static const struct mu__dialling_events events = {on_probe_won, on_probe_lost,
                                                      on_probe_dialling_closed};
    const struct mu__dial_request request = {
        .loop = &attempt->run->loop,
        .blocking_jobs = attempt->run->blocking_jobs,
        .url = &attempt->url,
        .tls = attempt->run->tls,
        .timeout_ms = attempt->run->timeout_ms,
        .events = &events,
        .owner = attempt,
    };

    if (mu__dialling_start(&request, &attempt->dialling) != 0)
        conclude_as(attempt, MU__PROBE_NO_WAY, "out of memory");
}

static void begin_probe(struct probe_run *run, struct mu__probe *probe)
{
    struct attempt *attempt = calloc(1, sizeof *attempt);
    const char *wrong;

    if (attempt == NULL)
        return;
    run->under_way++;
    attempt->run = run;
    attempt->probe = probe;
    attempt->began_ms = uv_now(&run->loop);
    (void)uv_timer_init(&run->loop, &attempt->timer);
    attempt->timer.data = attempt;
    wrong = mu__url_parse(probe->url, false, &attempt->url);
    if (wrong != NULL && mu__url_is_of_nng(probe->url))
        wrong = "only nng's sockets have its scheme: a node on them dials it, as `muster "
                "status --address` does";
    if (wrong != NULL) {
        conclude_as(attempt, MU__PROBE_NO_WAY, wrong);
        return;
    }
    (void)uv_timer_start(&attempt->timer, on_probe_timeout, run->timeout_ms, 0);
    start_probe_dial(attempt);
}

/* An attempt that ends at once calls begin_attempts() again: `filling` makes that a loop
 * instead of a recursion. */
static void begin_attempts(struct probe_run *run)
{
    if (run->filling)
        return;
    run->filling = true;
    while (run->under_way < MU__PROBES_AT_ONCE && run->next < run->count)
        begin_probe(run, &run->probes[run->next++]);
    run->filling = false;
}

/* The result of a probe that cannot begin. */
static void clear_probe(struct mu__probe *probe)
{
    *probe = (struct mu__probe){.url = probe->url, .state = MU__PROBE_NO_WAY};
    (void)snprintf(probe->why, sizeof probe->why, "out of memory");
}

static void on_probe_blocking_closed(void *arg)
{
    (void)arg;
}

int mu__probe_all(struct mu__probe *probes, size_t count, unsigned timeout_ms,
                  const struct mu__tls_source *tls)
{
    struct probe_run run = {
        .probes = probes, .count = count, .timeout_ms = timeout_ms, .tls = tls};

    if (uv_loop_init(&run.loop) != 0)
        return -MU_ENOMEM;
    if (mu__blocking_open(&run.loop, &run.blocking_jobs) != 0) {
        (void)uv_loop_close(&run.loop);
        return -MU_ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        clear_probe(&probes[i]);
    begin_attempts(&run);
    (void)uv_run(&run.loop, UV_RUN_DEFAULT);
    mu__blocking_close(run.blocking_jobs, on_probe_blocking_closed, NULL);
    (void)uv_run(&run.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&run.loop);
    return 0;
}
