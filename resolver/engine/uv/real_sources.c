/* A request that may hang is a struct mu__request_work: a blocking job with a copy of the
 * request. The thread that asks waits for it, until its timeout; then it is left behind,
 * and its thread frees it. Programs, HTTP requests and functions of the program's own
 * that are left behind are remembered, so that who closes can wait for them. The first
 * two end soon; HTTP's libcrypto must not be in use any more when the process ends. */
#include "resolver/engine/uv/real_sources.h"

#include "resolver/engine/answer_cache.h"
#include "resolver/engine/request.h"
#include "resolver/engine/request_call.h"
#include "resolver/engine/uv/cloud_library.h"
#include "resolver/engine/uv/internal.h"
#include "resolver/engine/uv/run_program.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WORDS_BYTES = 256,
    ACTIVE_MAX = 64, /* of a batch at a time */
    GRACE_MS = 500,  /* for what ends by itself at its timeout */
    END_MS = 5000,   /* for what ends soon once it is cancelled */
    NS_PER_MS = 1000000
};

/* The cache of answers of HTTP and programs; guarded by `lock`. */
struct shared_cache {
    pthread_mutex_t lock;
    struct mu__answer_cache cache;
};

struct mu__sources_uv {
    struct mu__sources base; /* first: operations cast */
    struct mu__blocking_jobs *jobs;
    struct mu__list works; /* struct mu__request_work: they are waited for */
    unsigned active;       /* how many */
    struct mu__list left;  /* struct mu__request_work: nobody waits for them any more */
    struct shared_cache own;
    struct shared_cache *cache;
    atomic_bool is_stopped;
    atomic_bool is_hurried;
};

static struct mu__sources_uv *from_base(struct mu__sources *base)
{
    return (struct mu__sources_uv *)base;
}

static uint64_t get_sources_now_ms(void)
{
    return uv_hrtime() / NS_PER_MS;
}

/* ---- Answers ---- */

static void fail_exchange(struct mu__exchange *exchange, int code, const char *words)
{
    char requested[WORDS_BYTES];

    mu__request_describe(&exchange->request, requested, sizeof requested);
    exchange->answer.code =
        mu_error_set(&exchange->answer.error, code, "%s: %s", requested, words);
    mu__exchange_answered(exchange);
}

/* Takes `data`; NULL: out of memory. */
static void give_answer(struct mu__exchange *exchange, char *data, size_t size)
{
    if (data == NULL) {
        fail_exchange(exchange, -MU_ENOMEM, "out of memory");
        return;
    }
    exchange->answer.data = data;
    exchange->answer.size = size;
    mu__exchange_answered(exchange);
}

static void give_text_answer(struct mu__exchange *exchange, const char *text)
{
    give_answer(exchange, strdup(text), strlen(text));
}

static void answer_variable(struct mu__exchange *exchange)
{
    const char *value = getenv(exchange->request.name);

    if (value == NULL || value[0] == '\0')
        fail_exchange(exchange, -MU_ENOTFOUND, "not set");
    else
        give_text_answer(exchange, value);
}

static void answer_host_name(struct mu__exchange *exchange)
{
    char name[UV_MAXHOSTNAMESIZE];
    size_t size = sizeof name;
    int rv = uv_os_gethostname(name, &size);

    if (rv == 0)
        give_text_answer(exchange, name);
    else
        fail_exchange(exchange, -MU_EUNAVAILABLE, uv_strerror(rv));
}

static void answer_clock(struct mu__exchange *exchange)
{
    char digits[32];

    (void)snprintf(digits, sizeof digits, "%lld", (long long)time(NULL));
    give_text_answer(exchange, digits);
}

static void answer_library(struct mu__exchange *exchange)
{
    const struct mu__cloud *cloud;
    mu_error error;
    int rv = mu__cloud_load(&error, &cloud);

    if (rv == 0) {
        give_text_answer(exchange, "");
        return;
    }
    exchange->answer.code = rv;
    exchange->answer.error = error;
    mu__exchange_answered(exchange);
}

static void answer_signature(struct mu__exchange *exchange)
{
    const struct mu__request *request = &exchange->request;
    unsigned char *signature;
    size_t size;
    mu_error error;
    int rv = mu__sign_rs256(request->secret == NULL ? "" : request->secret, request->body,
                            request->body_size, &error, &signature, &size);

    if (rv != 0) {
        fail_exchange(exchange, rv, error.message);
        return;
    }
    give_answer(exchange, realloc(signature, size + 1), size);
    if (exchange->answer.code == 0)
        exchange->answer.data[size] = '\0';
}

/* False: the cache has no answer for this request, or there is no memory for it. */
static bool answer_from_cache(struct mu__sources_uv *sources,
                              struct mu__exchange *exchange)
{
    const struct mu__cached_answer *cached;
    char *data = NULL;
    size_t size = 0;

    (void)pthread_mutex_lock(&sources->cache->lock);
    cached = mu__answer_cache_find(&sources->cache->cache, &exchange->request,
                                   get_sources_now_ms());
    if (cached != NULL) {
        size = cached->size;
        data = malloc(size + 1);
    }
    if (data != NULL)
        memcpy(data, cached->data, size + 1);
    (void)pthread_mutex_unlock(&sources->cache->lock);
    if (data == NULL)
        return false;
    exchange->answer.status = exchange->request.kind == MU__REQUEST_HTTP ? 200 : 0;
    give_answer(exchange, data, size);
    return true;
}

static void put_into_cache(struct mu__sources_uv *sources,
                           const struct mu__exchange *exchange,
                           const struct mu__answer *answer)
{
    if (answer->code != 0 || exchange->request.cache_ms == 0 ||
        (answer->status != 0 && answer->status != 200))
        return;
    (void)pthread_mutex_lock(&sources->cache->lock);
    mu__answer_cache_put(&sources->cache->cache, &exchange->request, answer->data,
                         answer->size, get_sources_now_ms());
    (void)pthread_mutex_unlock(&sources->cache->lock);
}

static bool answer_number(struct mu__exchange *exchange)
{
    char *text;
    size_t size;

    if (!mu__answer_number(&exchange->request, &text, &size))
        return false;
    give_answer(exchange, text, size);
    return true;
}

/* ---- On a thread ---- */

/* The result is in the call. */
static int work_call(struct mu__request_work *work)
{
    int rv = mu__work_reserve(work, 0);

    if (rv != 0)
        return rv;
    work->answer.data[0] = '\0';
    mu__request_call_run(work->request.call);
    return 0;
}

static int work_program(struct mu__request_work *work)
{
    const struct mu__request *request = &work->request;

    return mu__run_program(request->name, request->body, request->body_size,
                           mu__request_bytes_max(request), &work->is_cancelled,
                           &work->answer.error, &work->answer.data, &work->answer.size);
}

/* How each kind is answered: at once, or by a blocking job. */
static const struct {
    void (*at_once)(struct mu__exchange *exchange);
    struct mu__work_kind work;
} kinds[MU__REQUEST_KINDS] = {
    [MU__REQUEST_VARIABLE] = {.at_once = answer_variable},
    [MU__REQUEST_HOST_NAME] = {.at_once = answer_host_name},
    [MU__REQUEST_CLOCK] = {.at_once = answer_clock},
    [MU__REQUEST_LIBRARY] = {.at_once = answer_library},
    [MU__REQUEST_SIGNATURE] = {.at_once = answer_signature},
    [MU__REQUEST_FILE] = {.work = {.pool = MU__BLOCKING_FILES, .run = mu__work_file}},
    [MU__REQUEST_FOLDER] = {.work = {.pool = MU__BLOCKING_FILES, .run = mu__work_folder}},
    [MU__REQUEST_WRITE] = {.work = {.pool = MU__BLOCKING_FILES, .run = mu__work_write}},
    [MU__REQUEST_REMOVE] = {.work = {.pool = MU__BLOCKING_FILES, .run = mu__work_remove}},
    [MU__REQUEST_ADDRESSES] = {.work = {.pool = MU__BLOCKING_NAMES,
                                        .run = mu__work_names,
                                        .names_itself = true}},
    [MU__REQUEST_SERVICES] = {.work = {.pool = MU__BLOCKING_DNS,
                                       .run = mu__work_dns,
                                       .names_itself = true,
                                       .has_timeout = true}},
    [MU__REQUEST_HTTP] = {.work = {.pool = MU__BLOCKING_HTTP,
                                   .run = mu__work_http,
                                   .has_timeout = true,
                                   .is_awaited = true}},
    [MU__REQUEST_PROGRAM] = {.work = {.pool = MU__BLOCKING_PROGRAMS,
                                      .run = work_program,
                                      .is_awaited = true}},
    [MU__REQUEST_CALL] = {.work = {.pool = MU__BLOCKING_CALLS,
                                   .run = work_call,
                                   .is_awaited = true}},
};

static const struct mu__work_kind *get_work_kind(const struct mu__request *request)
{
    bool is_of_dns =
        request->kind == MU__REQUEST_ADDRESSES && request->dns_server != NULL;

    return &kinds[is_of_dns ? MU__REQUEST_SERVICES : request->kind].work;
}

static void work_free(struct mu__request_work *work)
{
    mu__request_free_copy(&work->request);
    free(work->answer.data);
    free(work);
}

static void on_request_work_run(struct mu__blocking_job *job)
{
    struct mu__request_work *work = (struct mu__request_work *)job;

    work->answer.code = work->kind->run(work);
}

static void on_request_work_dropped(struct mu__blocking_job *job)
{
    work_free((struct mu__request_work *)job);
}

/* ---- Waiting ---- */

static void take_work_answer(struct mu__request_work *work, struct mu__exchange *exchange)
{
    struct mu__answer *answer = &work->answer;

    if (answer->code != 0 && !work->kind->names_itself) {
        fail_exchange(exchange, answer->code, answer->error.message);
        return;
    }
    put_into_cache(work->sources, exchange, answer);
    if (answer->code != 0) {
        free(answer->data);
        answer->data = NULL;
    }
    exchange->answer = *answer;
    answer->data = NULL;
    mu__exchange_answered(exchange);
}

static void on_request_work_done(struct mu__blocking_job *job)
{
    struct mu__request_work *work = (struct mu__request_work *)job;
    struct mu__sources_uv *sources = work->sources;

    if (work->exchange == NULL) {
        mu__list_remove(&sources->left, &work->node);
    } else {
        mu__list_remove(&sources->works, &work->node);
        sources->active--;
        take_work_answer(work, work->exchange);
    }
    work_free(work);
}

/* Nobody waits for it any more. */
static void leave_work(struct mu__request_work *work)
{
    struct mu__sources_uv *sources = work->sources;
    bool has_begun = mu__blocking_job_waits_for(&work->blocking) == 0;

    mu__list_remove(&sources->works, &work->node);
    sources->active--;
    work->exchange = NULL;
    work->due_ms = get_sources_now_ms() + END_MS;
    atomic_store(&work->is_cancelled, true);
    if (work->kind->is_awaited && has_begun)
        mu__list_append(&sources->left, &work->node);
    else
        mu__blocking_job_drop(&work->blocking);
}

/* It says when other jobs have kept this one from beginning. */
static void fail_late_work(struct mu__request_work *work)
{
    struct mu__exchange *exchange = work->exchange;
    unsigned others = mu__blocking_job_waits_for(&work->blocking);
    char words[WORDS_BYTES];
    int used = snprintf(words, sizeof words, "no answer within %u ms",
                        mu__request_timeout_ms(&work->request));

    if (others > 0)
        (void)snprintf(words + used, sizeof words - (size_t)used,
                       ": it has not begun, since %u others have not ended", others);
    leave_work(work);
    fail_exchange(exchange, -MU_EDEADLINE, words);
}

static struct mu__request_work *work_new(struct mu__sources_uv *sources,
                                         struct mu__exchange *exchange)
{
    struct mu__request_work *work = calloc(1, sizeof *work);

    if (work == NULL || mu__request_copy(&exchange->request, &work->request) != 0) {
        free(work);
        return NULL;
    }
    work->sources = sources;
    work->exchange = exchange;
    work->kind = get_work_kind(&exchange->request);
    work->due_ms = get_sources_now_ms() + mu__request_timeout_ms(&exchange->request) +
                   (work->kind->has_timeout ? GRACE_MS : 0);
    work->blocking.pool = work->kind->pool;
    work->blocking.run = on_request_work_run;
    work->blocking.done = on_request_work_done;
    work->blocking.dropped = on_request_work_dropped;
    atomic_init(&work->is_cancelled, false);
    return work;
}

static void begin_request_work(struct mu__sources_uv *sources,
                               struct mu__exchange *exchange)
{
    struct mu__request_work *work;

    if (answer_number(exchange) || answer_from_cache(sources, exchange))
        return;
    work = work_new(sources, exchange);
    if (work == NULL) {
        fail_exchange(exchange, -MU_ENOMEM, "out of memory");
        return;
    }
    if (mu__blocking_start(sources->jobs, &work->blocking) != 0) {
        work_free(work);
        fail_exchange(exchange, -MU_EUNAVAILABLE, "no thread can be started");
        return;
    }
    mu__list_append(&sources->works, &work->node);
    sources->active++;
}

static bool has_batch_ended(struct mu__sources_uv *sources, uint64_t end_ms)
{
    return atomic_load(&sources->is_stopped) || get_sources_now_ms() >= end_ms;
}

static void begin_if_sent(struct mu__sources_uv *sources, struct mu__exchange *exchange,
                          uint64_t end_ms)
{
    if (!exchange->is_sent)
        return;
    if (kinds[exchange->request.kind].at_once != NULL)
        kinds[exchange->request.kind].at_once(exchange);
    else if (!has_batch_ended(sources, end_ms))
        begin_request_work(sources, exchange);
}

static struct mu__request_work *get_first_work(const struct mu__list *works)
{
    return MU__LIST_FIRST(works, struct mu__request_work, node);
}

static uint64_t get_first_due(const struct mu__list *works, uint64_t due_ms)
{
    for (const struct mu__request_work *work = get_first_work(works); work != NULL;
         work = MU__LIST_NEXT(work, struct mu__request_work, node))
        if (work->due_ms < due_ms)
            due_ms = work->due_ms;
    return due_ms;
}

/* Those whose time is over. */
static void expire_request_works(struct mu__sources_uv *sources, uint64_t end_ms)
{
    bool all = has_batch_ended(sources, end_ms);
    struct mu__request_work *next;

    for (struct mu__request_work *work = get_first_work(&sources->works); work != NULL;
         work = next) {
        next = MU__LIST_NEXT(work, struct mu__request_work, node);
        if (all)
            leave_work(work);
        else if (work->due_ms <= get_sources_now_ms())
            fail_late_work(work);
    }
}

static void op_answer(struct mu__sources *base, struct mu__exchange *const *batch,
                      size_t count, uint64_t end_ms)
{
    struct mu__sources_uv *sources = from_base(base);
    size_t next = 0;

    while (next < count || sources->active > 0) {
        while (next < count && sources->active < ACTIVE_MAX)
            begin_if_sent(sources, batch[next++], end_ms);
        if (sources->active == 0)
            continue;
        mu__blocking_wait(sources->jobs, get_first_due(&sources->works, end_ms));
        expire_request_works(sources, end_ms);
    }
}

static enum mu__pause op_pause(struct mu__sources *base, uint64_t due_ms, bool may_hurry)
{
    struct mu__sources_uv *sources = from_base(base);

    for (;;) {
        if (atomic_load(&sources->is_stopped))
            return MU__PAUSE_STOPPED;
        if (may_hurry && atomic_exchange(&sources->is_hurried, false))
            return MU__PAUSE_HURRIED;
        if (get_sources_now_ms() >= due_ms)
            return MU__PAUSE_OVER;
        mu__blocking_wait(sources->jobs, due_ms);
    }
}

static uint64_t op_sources_now_ms(struct mu__sources *base)
{
    (void)base;
    return get_sources_now_ms();
}

static uint64_t op_sources_random(struct mu__sources *base)
{
    uint64_t bits;

    if (uv_random(NULL, NULL, &bits, sizeof bits, 0, NULL) != 0)
        bits = uv_hrtime() ^ (uint64_t)(uintptr_t)base;
    return bits;
}

/* ---- Other threads ---- */

void mu__sources_uv_stop(struct mu__sources_uv *sources)
{
    atomic_store(&sources->is_stopped, true);
    mu__blocking_interrupt(sources->jobs);
}

void mu__sources_uv_restart(struct mu__sources_uv *sources)
{
    atomic_store(&sources->is_stopped, false);
    atomic_store(&sources->is_hurried, false);
}

void mu__sources_uv_hurry(struct mu__sources_uv *sources)
{
    atomic_store(&sources->is_hurried, true);
    mu__blocking_interrupt(sources->jobs);
}

/* ---- Life ---- */

int mu__sources_uv_new(struct mu__sources_uv *cache_of,
                       struct mu__sources_uv **ret_sources)
{
    static const struct mu__sources_ops ops = {op_answer, op_pause, op_sources_now_ms,
                                               op_sources_random};
    struct mu__sources_uv *sources = calloc(1, sizeof *sources);

    if (sources == NULL || mu__blocking_open(NULL, &sources->jobs) != 0) {
        free(sources);
        return -MU_ENOMEM;
    }
    sources->base.ops = &ops;
    (void)pthread_mutex_init(&sources->own.lock, NULL);
    sources->cache = cache_of == NULL ? &sources->own : cache_of->cache;
    atomic_init(&sources->is_stopped, false);
    atomic_init(&sources->is_hurried, false);
    *ret_sources = sources;
    return 0;
}

struct mu__sources *mu__sources_uv_base(struct mu__sources_uv *sources)
{
    return &sources->base;
}

bool mu__sources_uv_has_left(const struct mu__sources_uv *sources)
{
    return !mu__list_is_empty(&sources->left);
}

static void drop_left(struct mu__sources_uv *sources, struct mu__request_work *work)
{
    mu__list_remove(&sources->left, &work->node);
    mu__blocking_job_drop(&work->blocking);
}

static bool is_call(const struct mu__request_work *work)
{
    return work->request.kind == MU__REQUEST_CALL;
}

void mu__sources_uv_wait_for_left(struct mu__sources_uv *sources, uint64_t calls_ms,
                                  void (*left)(void *owner, const char *line),
                                  void *owner)
{
    uint64_t calls_due_ms = get_sources_now_ms() + calls_ms;
    struct mu__request_work *work;
    char line[WORDS_BYTES];

    for (work = get_first_work(&sources->left); work != NULL;
         work = MU__LIST_NEXT(work, struct mu__request_work, node))
        if (is_call(work))
            work->due_ms = calls_due_ms;
    while ((work = get_first_work(&sources->left)) != NULL) {
        mu__blocking_wait(sources->jobs, work->due_ms);
        if (get_first_work(&sources->left) != work || get_sources_now_ms() < work->due_ms)
            continue;
        (void)snprintf(line, sizeof line,
                       "resolver %.64s: its function has not returned within %u ms of "
                       "the closing, and is left to itself",
                       work->request.name, (unsigned)calls_ms);
        if (is_call(work) && left != NULL)
            left(owner, line);
        drop_left(sources, work);
    }
}

void mu__sources_uv_free(struct mu__sources_uv *sources)
{
    if (sources == NULL)
        return;
    assert(sources->active == 0);
    mu__blocking_wait(sources->jobs, 0); /* those that have run meanwhile */
    while (mu__sources_uv_has_left(sources))
        drop_left(sources, get_first_work(&sources->left));
    mu__blocking_close(sources->jobs, NULL, NULL);
    mu__answer_cache_done(&sources->own.cache);
    (void)pthread_mutex_destroy(&sources->own.lock);
    free(sources);
}
