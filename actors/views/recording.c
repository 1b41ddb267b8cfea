#include "actors/views/recording.h"

#include "actors/messages.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAUSE_MS = 200, /* after a request that has failed */
    LOG_MS = 10000
};

/* It outlives the actor, if the agent answers later than that ends. */
struct mu__view_request {
    struct mu__kernel *kernel;
    struct mu__msg *news; /* VIEWS_ANSWERED, to be sent; NULL: it was */
    bool is_write;
    bool is_answered;
    bool is_abandoned; /* the actor has ended */
    int code;
    uint64_t revision;
    mu_error error;
    uint32_t size;
    uint8_t bytes[MU__VIEW_TABLE_BYTES]; /* to be written, or read */
};

void mu__view_recording_init(struct mu__view_recording *recording,
                             struct mu__agent_shared *agent, uint32_t recovery_ms,
                             uint64_t now_ms)
{
    recording->agent = agent;
    recording->recovery_ms = recovery_ms;
    recording->since_ms = now_ms;
    recording->is_behind = true;
    recording->again_ms = now_ms + 1; /* the agent begins later in this turn */
}

/* ---- Requests ---- */

static void free_view_request(struct mu__view_request *request)
{
    free(request->news);
    free(request);
}

void mu__view_recording_done(struct mu__view_recording *recording)
{
    struct mu__view_request *request = recording->request;

    if (request == NULL)
        return;
    request->is_abandoned = true;
    if (request->is_answered)
        free_view_request(request);
}

static struct mu__view_request *new_view_request(struct mu__ctx *ctx, bool is_write)
{
    struct mu__view_request *request = calloc(1, sizeof *request);

    if (request == NULL)
        return NULL;
    request->news = mu__msg_heap(MU__VIEWS_ANSWERED, sizeof(struct mu__views_answered));
    if (request->news == NULL) {
        free(request);
        return NULL;
    }
    request->news->to = ctx->self;
    ((struct mu__views_answered *)mu__body(request->news))->request = request;
    request->kernel = ctx->kernel;
    request->is_write = is_write;
    return request;
}

/* A value that is longer is not ours: nothing behind is looked at. */
static void copy_views(struct mu__view_request *request, const mu_kv_response *response)
{
    request->size = response->size > sizeof request->bytes ? sizeof request->bytes
                                                           : (uint32_t)response->size;
    if (request->size > 0)
        memcpy(request->bytes, response->value, request->size);
}

/* When the node is closed, or has no agent, there is no news. */
static void note_answer(void *user, const mu_kv_response *response)
{
    struct mu__view_request *request = user;

    if (request->is_abandoned) {
        free_view_request(request);
        return;
    }
    request->is_answered = true;
    request->code = response->code;
    request->revision = response->revision;
    if (response->code != 0)
        request->error = *response->error;
    else if (!request->is_write)
        copy_views(request, response);
    if (response->code == -MU_ECLOSED)
        return;
    (void)mu__kernel_deliver(request->kernel, request->news);
    request->news = NULL;
}

static int submit_views(struct mu__ctx *ctx, struct mu__view_recording *recording,
                        struct mu__view_request *request)
{
    const mu_kv_request kv_request = {
        .operation = request->is_write ? MU_KV_PUT : MU_KV_TRY_GET,
        .flags = MU__KV_OWN | (request->is_write ? MU_KV_COMPARE : 0),
        .key = MU__KEY_VIEWS,
        .value = request->bytes,
        .size = request->size,
        .revision = recording->revision,
        .timeout_ms = -1,
    };
    struct mu__msg *msg;
    int rv = mu__key_request_new(recording->agent, &kv_request, note_answer, request,
                                 NULL, NULL, &msg);

    if (rv != 0)
        return rv;
    recording->request = request;
    (void)mu__send(ctx, (mu__pid){MU__NODE_SELF, MU__AGENT}, msg);
    return 0;
}

/* Takes the request; NULL: out of memory. */
static void begin_request(struct mu__ctx *ctx, struct mu__view_recording *recording,
                          struct mu__view_request *request)
{
    if (request != NULL && submit_views(ctx, recording, request) == 0)
        return;
    if (request != NULL)
        free_view_request(request);
    recording->is_behind = true;
    recording->again_ms = mu__now_ms(ctx) + PAUSE_MS;
}

/* ---- Answers ---- */

static void note_recorded(struct mu__view_recording *recording,
                          const struct mu__view_request *request)
{
    recording->revision = request->revision;
    recording->size = request->size;
    recording->reason[0] = '\0';
    memcpy(recording->bytes, request->bytes, request->size);
}

static void take_recorded_views(struct mu__ctx *ctx, struct mu__view_recording *recording,
                                struct mu__view_table *table,
                                const struct mu__view_request *request)
{
    const struct mu__view views = {request->bytes, request->size};
    uint64_t now_ms = mu__now_ms(ctx);
    int rv = mu__view_table_restore(table, views, recording->is_read, now_ms);

    if (rv == -MU_ENOMEM) {
        recording->again_ms = now_ms + PAUSE_MS;
        return;
    }
    if (rv != 0)
        mu__log(ctx, MU__LOG_ERROR,
                "key \"" MU__KEY_VIEWS "\" has views that make "
                "no sense, which are ignored");
    note_recorded(recording, request);
    recording->is_behind = false;
    recording->is_read = true;
    if (recording->goes_without)
        mu__log(ctx, MU__LOG_WARN, "views of partitions are recorded again");
    recording->goes_without = false;
}

/* Whatever became of a write, reading tells. */
static void take_failure(struct mu__ctx *ctx, struct mu__view_recording *recording,
                         const struct mu__view_request *request)
{
    recording->is_behind = true;
    if (request->code == -MU_EPRECONDITION && request->is_write) {
        recording->again_ms = 0;
        mu__log(ctx, MU__LOG_WARN,
                "views of partitions were recorded by another "
                "chief, or lost with their store: they are read again");
        return;
    }
    recording->again_ms = mu__now_ms(ctx) + PAUSE_MS;
    (void)snprintf(recording->reason, sizeof recording->reason, ": %.180s",
                   request->error.message);
}

static void take_view_answer(struct mu__ctx *ctx, struct mu__view_recording *recording,
                             struct mu__view_table *table)
{
    struct mu__view_request *request = recording->request;

    if (request == NULL || !request->is_answered)
        return;
    recording->request = NULL;
    if (request->is_write && request->code == 0)
        note_recorded(recording, request);
    else if (!request->is_write && (request->code == 0 || request->code == -MU_ENOTFOUND))
        take_recorded_views(ctx, recording, table, request);
    else
        take_failure(ctx, recording, request);
    free_view_request(request);
}

/* ---- Waiting ---- */

/* Whether waiting for the first reading is over. */
static bool may_go_without(struct mu__ctx *ctx, struct mu__view_recording *recording)
{
    if (!recording->goes_without &&
        mu__now_ms(ctx) >= recording->since_ms + recording->recovery_ms) {
        recording->goes_without = true;
        mu__log(ctx, MU__LOG_WARN,
                "views of partitions are not recorded: the "
                "coordination service could not be read for %" PRIu32
                " ms%s. Until it can, a restarted chief learns them from the servers "
                "that are there",
                recording->recovery_ms, recording->reason);
    }
    return recording->goes_without;
}

static void log_view_wait(struct mu__ctx *ctx, struct mu__view_recording *recording)
{
    uint64_t now_ms = mu__now_ms(ctx);

    if (now_ms < recording->log_ms)
        return;
    recording->log_ms = now_ms + LOG_MS;
    mu__log(
        ctx, MU__LOG_WARN,
        "views of partitions are told to nobody for %" PRIu64
        " ms: the coordination service has not recorded them yet, as key \"" MU__KEY_VIEWS
        "\"%s",
        now_ms - recording->since_ms, recording->reason);
}

bool mu__view_recording_is_ready(struct mu__ctx *ctx,
                                 struct mu__view_recording *recording,
                                 struct mu__view_table *table)
{
    if (recording->agent == NULL)
        return true;
    take_view_answer(ctx, recording, table);
    if (recording->request == NULL && recording->is_behind &&
        mu__now_ms(ctx) >= recording->again_ms)
        begin_request(ctx, recording, new_view_request(ctx, false));
    if (!recording->is_read)
        return may_go_without(ctx, recording);
    if (recording->request == NULL && !recording->is_behind)
        return true;
    log_view_wait(ctx, recording);
    return false;
}

bool mu__view_recording_has(const struct mu__view_recording *recording,
                            const struct mu__view_table *table)
{
    uint8_t bytes[MU__VIEW_TABLE_BYTES];

    return !recording->is_read || (mu__view_table_pack(table, bytes) == recording->size &&
                                   memcmp(bytes, recording->bytes, recording->size) == 0);
}

void mu__view_recording_write(struct mu__ctx *ctx, struct mu__view_recording *recording,
                              const struct mu__view_table *table)
{
    struct mu__view_request *request = new_view_request(ctx, true);

    recording->since_ms = mu__now_ms(ctx);
    recording->log_ms = recording->since_ms + LOG_MS;
    if (request != NULL)
        request->size = mu__view_table_pack(table, request->bytes);
    begin_request(ctx, recording, request);
}

static uint64_t earlier_time(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t mu__view_recording_due_ms(const struct mu__view_recording *recording)
{
    uint64_t due_ms = UINT64_MAX;

    if (recording->agent == NULL)
        return due_ms;
    if (recording->request == NULL && recording->is_behind)
        due_ms = recording->again_ms;
    if (recording->is_read && (recording->request != NULL || recording->is_behind))
        due_ms = earlier_time(due_ms, recording->log_ms);
    if (!recording->is_read && !recording->goes_without)
        due_ms = earlier_time(due_ms, recording->since_ms + recording->recovery_ms);
    return due_ms;
}
