/* What a server reads of its journal when it starts. */
#include "actors/ps/journal/ps_journal.h"

#include "runtime/base/byte_order.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JOURNAL_BYTES_MAX (UINT64_C(1) << 40)

struct restoring {
    struct mu__ctx *ctx;
    struct ps *ps;
    mu_error *error;
};

/* ---- Whose it is ---- */

static void add_former(struct ps_journal *journal, uint64_t incarnation)
{
    if (journal->former_count == MU__FORMER_MAX) {
        memmove(journal->former, journal->former + 1,
                (MU__FORMER_MAX - 1) * sizeof journal->former[0]);
        journal->former_count--;
    }
    journal->former[journal->former_count++] = incarnation;
}

static bool is_other_text(struct mu__view written, const char *own)
{
    return written.size > 0 && own[0] != '\0' && !mu__view_is(written, own);
}

static int check_writer(const struct restoring *r, const struct mu__ps_begin *body)
{
    const struct ps_journal *journal = &r->ps->journal;

    if (body->task != r->ps->index)
        return mu_error_set(r->error, -MU_EPRECONDITION,
                            "%s is the journal of /job:ps/task:%" PRIu32
                            ", and this is /job:ps/task:%" PRIu32,
                            journal->path, body->task, r->ps->index);
    if (is_other_text(body->cluster, journal->cluster))
        return mu_error_set(r->error, -MU_EPRECONDITION,
                            "%s is the journal of a server of cluster \"%.*s\", and this "
                            "one is of \"%s\": remove the file, or name another folder",
                            journal->path, (int)body->cluster.size,
                            (const char *)body->cluster.data, journal->cluster);
    if (is_other_text(body->run, journal->run))
        return mu_error_set(
            r->error, -MU_EPRECONDITION,
            "%s is the journal of the job's run \"%.*s\", and this is run "
            "\"%s\": set MUSTER_RUN=%.*s to go on with that one, or remove "
            "the file",
            journal->path, (int)body->run.size, (const char *)body->run.data,
            journal->run, (int)body->run.size, (const char *)body->run.data);
    return 0;
}

static int read_ps_begin(const struct restoring *r, const struct mu__ps_begin *body)
{
    int rv = check_writer(r, body);

    for (uint32_t i = 0; rv == 0 && i < body->former.size / 8; i++)
        add_former(&r->ps->journal,
                   mu__load_little64((const uint8_t *)body->former.data + (size_t)8 * i));
    return rv;
}

/* ---- What it has ---- */

static int read_ps_view(const struct restoring *r, const struct mu__ps_view *body)
{
    struct ps *ps = r->ps;
    struct mu__partition_view view;
    struct partition *p;

    if (mu__views_count(body->view) != 1 || !mu__views_at(body->view, 0, &view))
        return -MU_EDATALOSS;
    if (view.number >= ps->newest[view.partition].number)
        ps->newest[view.partition] = view;
    if (body->held == MU__PS_HELD_NOT || body->held == MU__PS_HELD_EMPTY)
        mu__ps_drop(r->ctx, ps, view.partition);
    if (body->held == MU__PS_HELD_EMPTY)
        return mu__ps_partition_new(ps, &view, RESTORED) == NULL ? -MU_ENOMEM : 0;
    p = ps->partitions[view.partition];
    if (p == NULL)
        return 0;
    p->view = view;
    if (body->held == MU__PS_HELD_GENERATION)
        mu__ps_end_generation(r->ctx, p);
    return 0;
}

static int refuse_missing(const struct restoring *r, const struct partition *p)
{
    return mu_error_set(r->error, -MU_EDATALOSS,
                        "%s: record %" PRIu64 " of partition %" PRIu32
                        " is missing, as after a repair: the server would lack what was "
                        "acknowledged. Remove the file to begin without it",
                        r->ps->journal.path, p->record + 1, p->view.partition);
}

static int read_fill(const struct restoring *r, const struct mu__msg *msg)
{
    uint32_t partition;
    struct partition *p;

    memcpy(&partition, msg->body, sizeof partition); /* their first field */
    p = r->ps->partitions[partition];
    if (p == NULL)
        return 0;
    (void)mu__fill_take(r->ctx, r->ps, p, msg);
    return p->broken ? refuse_missing(r, p) : 0;
}

static int read_record(const struct restoring *r, const struct mutation *mutation,
                       const struct mu__msg *msg)
{
    mu__pid writer = {0, MU__VARIABLES};
    uint32_t partition;
    uint64_t record;
    struct partition *p;

    memcpy(&partition, msg->body + mutation->partition, sizeof partition);
    memcpy(&record, msg->body + mutation->record, sizeof record);
    memcpy(&writer.node, msg->body + mutation->writer, sizeof writer.node);
    p = r->ps->partitions[partition];
    if (p == NULL)
        return 0;
    if (record != p->record + 1)
        return refuse_missing(r, p);
    p->record = record;
    mutation->apply(r->ctx, r->ps, p, msg, writer);
    return 0;
}

static int restore_record(void *owner, struct mu__msg *msg)
{
    const struct restoring *r = owner;

    switch (msg->kind) {
    case MU__PS_BEGIN:
        return read_ps_begin(r, mu__body(msg));
    case MU__PS_VIEW:
        return read_ps_view(r, mu__body(msg));
    case MU__FILL_BEGIN:
    case MU__FILL_WRITER:
    case MU__FILL_CLOCK:
    case MU__FILL_SHARD:
    case MU__FILL_DATA:
    case MU__FILL_TABLE:
    case MU__FILL_ROWS:
    case MU__FILL_END:
        return read_fill(r, msg);
    case MU__EFFECT_WRITE:
    case MU__OWN_WRITE:
    case MU__VAR_WRITE:
    case MU__VAR_OPEN:
    case MU__FENCED:
    case MU__CLIENT_LOST:
    case MU__WINDOWS_PUT:
    case MU__CLOCK_SET:
    case MU__TABLE_SWEEP:
        return read_record(r, mu__ps_mutation(msg->kind), msg);
    default:
        return -MU_EDATALOSS; /* the file is another kind of journal */
    }
}

/* ---- Start ---- */

static uint32_t finish_partitions(struct mu__ctx *ctx, struct ps *ps)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        struct partition *p = ps->partitions[i];

        if (p == NULL)
            continue;
        mu__ps_end_generation(ctx, p);
        p->filling = (struct filling){.active = false};
        p->is_journaled = true;
        p->journaled = p->record;
        count++;
    }
    ps->written.batches = 0;
    ps->written.repeated = 0;
    return count;
}

static int begin_writing(struct ps *ps, mu_error *error)
{
    const uint64_t incarnation = ps->incarnation;
    uint8_t former[8 * MU__FORMER_MAX];
    struct ps_journal *journal = &ps->journal;
    struct mu__ps_begin body;

    mu__journal_set_bound(journal->file, JOURNAL_BYTES_MAX);
    body = mu__ps_journal_begin_record(ps, former);
    mu__store_little(former, incarnation, 8);
    body.former = (struct mu__view){former, 8};
    mu__ps_journal_put(ps, MU__PS_BEGIN, &body, sizeof body, NULL);
    if (journal->is_behind) {
        *error = journal->error;
        return error->code;
    }
    add_former(journal, incarnation);
    return mu__journal_flush(journal->file, error);
}

static void log_restored(struct mu__ctx *ctx, const struct ps *ps, uint32_t count,
                         uint64_t cut)
{
    if (cut > 0)
        mu__log(ctx, MU__LOG_WARN,
                "the journal ended in the middle of a record: %" PRIu64
                " bytes were cut off",
                cut);
    if (ps->journal.former_count > 1)
        mu__log(ctx, MU__LOG_INFO,
                "the journal: %" PRIu32 " partitions with %" PRIu64
                " bytes, of a process before this one",
                count, ps->bytes_used);
}

static int open_file(struct mu__ctx *ctx, struct ps *ps, struct mu__storage *storage,
                     mu_error *error)
{
    const struct restoring restoring = {ctx, ps, error};
    struct mu__kernel *kernel = ctx->kernel;
    mu_error file_error = {.code = 0};
    uint64_t cut = 0;
    int rv = mu__journal_open(storage, mu__kernel_schema(kernel), mu__kernel_pool(kernel),
                              restore_record, (void *)&restoring, &file_error, &cut,
                              &ps->journal.file);

    if (rv != 0 && error->code == 0)
        *error = file_error;
    if (rv != 0)
        return rv;
    rv = (int)finish_partitions(ctx, ps);
    log_restored(ctx, ps, (uint32_t)rv, cut);
    return begin_writing(ps, error);
}

int mu__ps_journal_open(struct mu__ctx *ctx, struct ps *ps,
                        const struct mu__ps_config *config)
{
    struct ps_journal *journal = &ps->journal;
    mu_error error = {.code = 0};
    int rv;

    if (config->journal == NULL)
        return 0;
    journal->path = config->journal->name;
    if (config->cluster_name != NULL)
        (void)snprintf(journal->cluster, sizeof journal->cluster, "%s",
                       config->cluster_name);
    if (config->run != NULL)
        (void)snprintf(journal->run, sizeof journal->run, "%s", config->run);
    journal->snapshot.spare_bytes =
        config->spare_bytes == 0 ? MU__PS_SPARE_BYTES : config->spare_bytes;
    rv = open_file(ctx, ps, config->journal, &error);
    if (rv == 0)
        return 0;
    mu__log(ctx, MU__LOG_ERROR, "the journal: %s", error.message);
    if (config->error != NULL)
        *config->error = error;
    return rv;
}

bool mu__ps_journal_is_of(const struct ps *ps, const struct mu__replica *replica)
{
    for (uint32_t i = 0; i + 1 < ps->journal.former_count; i++)
        if (mu__replica_is(replica, ps->index, ps->journal.former[i]))
            return true;
    return false;
}

void mu__ps_journal_report(const struct ps *ps, struct mu__ps_restored *memory,
                           struct mu__views_held *body)
{
    uint8_t *at = memory->partitions;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++) {
        const struct partition *p = ps->partitions[i];

        if (p != NULL && p->role == RESTORED)
            at = mu__numbered_put(at, &(struct mu__numbered){i, p->view.store_id});
    }
    body->restored =
        (struct mu__view){memory->partitions, (uint32_t)(at - memory->partitions)};
    body->former = mu__ps_journal_begin_record(ps, memory->former).former;
}
