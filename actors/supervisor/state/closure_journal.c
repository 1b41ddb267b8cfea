#include "actors/supervisor/state/closure_journal.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

enum {
    EFFECTS_BLOCK = 1 << 16,
    BODY_MAX = 256,
    RETRY_MS = 1000             /* between two attempts at what could not be written */
};

/* A smaller journal is not rewritten. */
enum { REWRITE_BYTES_MIN = 64 << 20 };

/* One record; `body` is of the kind's type. */
static int append(struct closure_journal *journal, uint16_t kind, const void *body,
                  size_t size, mu_error *ret_error)
{
    alignas(struct mu__msg) unsigned char memory[sizeof(struct mu__msg) + BODY_MAX] = {0};
    struct mu__msg *msg = (void *)memory;
    int rv;

    assert(size <= BODY_MAX);
    msg->kind = kind;
    memcpy(msg->body, body, size);
    rv = mu__journal_append(journal->file, msg, ret_error);
    if (rv == 0)
        journal->is_dirty = true;
    return rv;
}

int mu__closure_journal_flush(struct closure_journal *journal, mu_error *ret_error)
{
    int rv;

    if (!journal->is_dirty)
        return 0;
    rv = mu__journal_flush(journal->file, ret_error);
    if (rv != 0)
        return rv;
    journal->is_dirty = false;
    journal->error[0] = '\0';
    return 0;
}

static int write_begin(struct closure_journal *journal, mu_error *ret_error)
{
    struct mu__journal_begin record = {
        .origin = journal->effects->origin,
        .epoch = journal->effects->epoch,
        .effect_next = journal->effects_end,
    };

    return append(journal, MU__JOURNAL_BEGIN, &record, sizeof record, ret_error);
}

/* Of a closure that has finished only the name and function are written. */
int mu__closure_journal_scheduled(struct closure_journal *journal,
                                  const struct named_closure *named, mu_error *ret_error)
{
    struct mu__journal_scheduled record = {
        .number = named->number,
        .name = {named->name, named->name_size},
        .function = mu__names_view(journal->named.functions, named->function),
        .flags = named->is_late ? MU__JOURNAL_LATE : 0,
    };

    if (named->closure != 0)
        journal->describe(journal->owner, named->closure, &record);
    return append(journal, MU__JOURNAL_SCHEDULED, &record, sizeof record, ret_error);
}

static int write_finished(struct closure_journal *journal,
                          const struct named_closure *named, mu_error *ret_error)
{
    struct mu__journal_finished record = {
        .number = named->number,
        .result = named->result,
    };

    return append(journal, MU__JOURNAL_FINISHED, &record, sizeof record, ret_error);
}

static int write_removed(struct closure_journal *journal, uint64_t number,
                         mu_error *ret_error)
{
    struct mu__journal_removed record = {.number = number};

    return append(journal, MU__JOURNAL_REMOVED, &record, sizeof record, ret_error);
}

/* Leaves out all that has no effect any more. */
int mu__closure_journal_rewrite(struct closure_journal *journal, mu_error *ret_error)
{
    const struct named_closures *named = &journal->named;
    int rv;

    mu__journal_rewrite_begin(journal->file);
    rv = write_begin(journal, ret_error);
    for (uint32_t i = 0; rv == 0 && i < named->size; i++)
        for (const struct named_closure *at = named->buckets[i]; rv == 0 && at != NULL;
             at = at->next) {
            if (at->is_late)
                continue;
            rv = mu__closure_journal_scheduled(journal, at, ret_error);
            if (rv == 0 && at->closure == 0)
                rv = write_finished(journal, at, ret_error);
        }
    if (rv == 0)
        rv = mu__journal_rewrite_commit(journal->file, ret_error);
    if (rv == 0)
        journal->is_dirty = false;
    journal->rewrite_bytes = 2 * mu__journal_bytes(journal->file);
    if (journal->rewrite_bytes < REWRITE_BYTES_MIN)
        journal->rewrite_bytes = REWRITE_BYTES_MIN;
    return rv;
}

int mu__closure_journal_catch_up(struct closure_journal *journal, uint64_t now_ms,
                                 bool *ret_rewritten, mu_error *ret_error)
{
    int rv;

    *ret_rewritten = false;
    if (!journal->is_behind || now_ms < journal->retry_ms)
        return mu__closure_journal_flush(journal, ret_error);
    journal->retry_ms = now_ms + RETRY_MS;
    rv = mu__closure_journal_rewrite(journal, ret_error);
    if (rv != 0)
        return rv;
    journal->is_behind = false;
    *ret_rewritten = true;
    return 0;
}

int mu__closure_journal_reserve(struct closure_journal *journal, mu_error *ret_error)
{
    uint64_t end = journal->effects_end;
    int rv;

    if (journal->file == NULL || journal->effects->last + 1 < end)
        return 0;
    journal->effects_end = journal->effects->last + EFFECTS_BLOCK;
    rv = write_begin(journal, ret_error);
    if (rv == 0)
        rv = mu__closure_journal_flush(journal, ret_error);
    if (rv != 0)
        journal->effects_end = end;
    return rv;
}

static int write_end(struct closure_journal *journal, struct named_closure *named,
                     bool has_finished, mu_error *ret_error)
{
    int rv = 0;

    if (named->is_late && has_finished)
        rv = mu__closure_journal_scheduled(journal, named, ret_error);
    if (rv == 0 && has_finished)
        rv = write_finished(journal, named, ret_error);
    else if (rv == 0 && !named->is_late)
        rv = write_removed(journal, named->number, ret_error);
    named->is_late = false;
    return rv;
}

int mu__closure_journal_ended(struct closure_journal *journal,
                              struct named_closure *named, bool has_finished,
                              mu_error *ret_error)
{
    int rv = write_end(journal, named, has_finished, ret_error);

    if (rv != 0)
        return rv;
    return has_finished && mu__journal_bytes(journal->file) >= journal->rewrite_bytes
               ? mu__closure_journal_rewrite(journal, ret_error)
               : mu__closure_journal_flush(journal, ret_error);
}

int mu__closure_journal_begin(struct closure_journal *journal, mu_error *ret_error)
{
    journal->effects->epoch++;
    journal->effects_end = journal->effects->last + EFFECTS_BLOCK;
    return mu__closure_journal_rewrite(journal, ret_error);
}

void mu__closure_journal_done(struct closure_journal *journal)
{
    mu_error error;

    if (journal->file != NULL)
        (void)mu__closure_journal_flush(journal, &error);
    mu__named_closures_done(&journal->named);
    mu__journal_close(journal->file);
}
