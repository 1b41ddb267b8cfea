#include "actors/supervisor/state/closure_journal.h"

#include "runtime/base/byte_order.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

enum { EFFECTS_BLOCK = 1 << 16, BODY_MAX = 256 };

/* A smaller journal does not become too large. */
enum { COMPACT_BYTES_MIN = 64 << 20 };

enum { STEP_RECORDS = 1000 }; /* of a compaction: 1 to 3 ms */

/* To the new file of a compaction alone, or to the journal. */
enum target { TO_JOURNAL, TO_NEW_FILE };

/* One record; `body` is of the kind's type. */
static int append_record(struct closure_journal *journal, enum target target,
                         uint16_t kind, const void *body, size_t size,
                         mu_error *ret_error)
{
    alignas(struct mu__msg) unsigned char memory[sizeof(struct mu__msg) + BODY_MAX] = {0};
    struct mu__msg *msg = (void *)memory;
    int rv;

    assert(size <= BODY_MAX);
    msg->kind = kind;
    memcpy(msg->body, body, size);
    if (target == TO_NEW_FILE)
        return mu__journal_renew_append(journal->file, msg, ret_error);
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

static int write_begin_record(struct closure_journal *journal, enum target target,
                              bool forgets, mu_error *ret_error)
{
    struct mu__journal_begin record = {
        .origin = journal->effects->origin,
        .epoch = journal->effects->epoch,
        .effect_next = journal->effects_end,
        .forgets = forgets,
    };

    return append_record(journal, target, MU__JOURNAL_BEGIN, &record, sizeof record,
                         ret_error);
}

static int write_scheduled(struct closure_journal *journal, enum target target,
                           struct mu__journal_scheduled *record, uint32_t function,
                           mu_error *ret_error)
{
    record->function = mu__names_view(journal->named.functions, function);
    return append_record(journal, target, MU__JOURNAL_SCHEDULED, record, sizeof *record,
                         ret_error);
}

/* Before the first record that needs it, in the file and in the new one of a
 * compaction. */
static int write_body(struct closure_journal *journal, enum target target,
                      uint64_t number, mu_error *ret_error)
{
    const struct compaction *compaction = &journal->compaction;
    struct mu__journal_body record = {.number = number};
    struct sent_body *body = journal->content(journal->owner, number, &record);
    bool is_new =
        compaction->runs && body->is_listed && body->compaction == compaction->number;
    bool is_whole = target == TO_NEW_FILE || body->is_written;
    int rv;

    if (is_whole && (is_new || !compaction->runs))
        return 0;
    rv = append_record(journal, is_whole ? TO_NEW_FILE : TO_JOURNAL, MU__JOURNAL_BODY,
                       &record, sizeof record, ret_error);
    if (rv == 0)
        mu__sent_bodies_add(&journal->bodies, body, compaction->number, !is_whole);
    return target == TO_JOURNAL && is_whole ? 0 : rv; /* the compaction fails */
}

static int write_bodies(struct closure_journal *journal, enum target target,
                        struct mu__view inputs, mu_error *ret_error)
{
    int rv = 0;

    for (uint32_t i = 0; rv == 0 && i < inputs.size / 8; i++)
        rv = write_body(journal, target,
                        mu__load_little64((const uint8_t *)inputs.data + (size_t)8 * i),
                        ret_error);
    return rv;
}

/* Of a closure that ends only the name and function are written. */
static int write_named(struct closure_journal *journal, enum target target,
                       const struct named_closure *named, mu_error *ret_error)
{
    struct mu__journal_scheduled record = {
        .number = named->number,
        .name = {named->name, named->name_size},
        .flags = named->is_late ? MU__JOURNAL_LATE : 0,
    };
    int rv = 0;

    if (named->closure != 0)
        journal->describe(journal->owner, named->closure, &record);
    if (record.inputs.size > 0) {
        record.flags |= MU__JOURNAL_LATE;
        rv = write_bodies(journal, target, record.inputs, ret_error);
    }
    return rv != 0
               ? rv
               : write_scheduled(journal, target, &record, named->function, ret_error);
}

static int write_finished(struct closure_journal *journal, enum target target,
                          uint64_t number, const struct mu__packed *result,
                          mu_error *ret_error)
{
    struct mu__journal_finished record = {.number = number, .result = *result};

    return append_record(journal, target, MU__JOURNAL_FINISHED, &record, sizeof record,
                         ret_error);
}

static int write_removed(struct closure_journal *journal, uint64_t number,
                         mu_error *ret_error)
{
    struct mu__journal_removed record = {.number = number};

    return append_record(journal, TO_JOURNAL, MU__JOURNAL_REMOVED, &record, sizeof record,
                         ret_error);
}

/* A file that is behind gets no more closures; a compaction that is under way does. */
int mu__closure_journal_scheduled(struct closure_journal *journal,
                                  struct named_closure *named, mu_error *ret_error)
{
    struct compaction *compaction = &journal->compaction;
    int rv = 0;

    if (!journal->is_behind)
        rv = write_named(journal, TO_JOURNAL, named, ret_error);
    else if (compaction->runs)
        rv = write_named(journal, TO_NEW_FILE, named, ret_error);
    named->compaction = compaction->number;
    return rv;
}

int mu__closure_journal_reserve(struct closure_journal *journal, mu_error *ret_error)
{
    uint64_t end = journal->effects_end;
    int rv;

    if (journal->file == NULL || journal->effects->last + 1 < end)
        return 0;
    journal->effects_end = journal->effects->last + EFFECTS_BLOCK;
    rv = write_begin_record(journal, TO_JOURNAL, false, ret_error);
    if (rv == 0)
        rv = mu__closure_journal_flush(journal, ret_error);
    if (rv != 0)
        journal->effects_end = end;
    return rv;
}

/* The new file of a compaction that has not come to this closure must know its number. */
static int ensure_in_new_file(struct closure_journal *journal,
                              struct named_closure *named, mu_error *ret_error)
{
    struct compaction *compaction = &journal->compaction;

    if (!compaction->runs || named->compaction == compaction->number)
        return 0;
    named->compaction = compaction->number;
    return write_named(journal, TO_NEW_FILE, named, ret_error);
}

static int write_end(struct closure_journal *journal, struct named_closure *named,
                     const struct mu__packed *result, mu_error *ret_error)
{
    int rv = 0;

    if (named->is_late && result == NULL)
        return 0;
    if (named->is_late) {
        rv = write_named(journal, TO_JOURNAL, named, ret_error);
        named->compaction = journal->compaction.number;
    } else if (result != NULL) {
        (void)ensure_in_new_file(journal, named, ret_error); /* the compaction fails */
    }
    if (rv == 0 && result != NULL)
        rv = write_finished(journal, TO_JOURNAL, named->number, result, ret_error);
    else if (rv == 0)
        rv = write_removed(journal, named->number, ret_error);
    return rv;
}

int mu__closure_journal_ended(struct closure_journal *journal,
                              struct named_closure *named,
                              const struct mu__packed *result, mu_error *ret_error)
{
    int rv = write_end(journal, named, result, ret_error);

    return rv != 0 ? rv : mu__closure_journal_flush(journal, ret_error);
}

int mu__closure_journal_forget(struct closure_journal *journal, mu_error *ret_error)
{
    int rv = write_begin_record(journal, TO_JOURNAL, true, ret_error);

    if (rv == 0)
        rv = mu__closure_journal_flush(journal, ret_error);
    if (rv == 0)
        journal->compaction.is_requested = true;
    return rv;
}

int mu__closure_journal_begin(struct closure_journal *journal, mu_error *ret_error)
{
    int rv;

    journal->effects->epoch++;
    journal->effects_end = journal->effects->last + EFFECTS_BLOCK;
    rv = write_begin_record(journal, TO_JOURNAL, false, ret_error);
    return rv != 0 ? rv : mu__closure_journal_flush(journal, ret_error);
}

/* ---- Compaction ---- */

bool mu__closure_journal_is_due(const struct closure_journal *journal)
{
    return journal->is_behind || journal->compaction.is_requested ||
           mu__journal_bytes(journal->file) >= journal->compact_bytes;
}

static int finish_compaction(struct closure_journal *journal, int rv)
{
    journal->compaction.runs = false;
    if (rv == 0)
        mu__sent_bodies_renewed(&journal->bodies, journal->compaction.number);
    else
        mu__sent_bodies_stay(&journal->bodies);
    journal->compact_bytes = 2 * mu__journal_bytes(journal->file);
    if (journal->compact_bytes < COMPACT_BYTES_MIN)
        journal->compact_bytes = COMPACT_BYTES_MIN;
    return rv;
}

int mu__closure_journal_compact(struct closure_journal *journal, mu_error *ret_error)
{
    struct compaction *compaction = &journal->compaction;
    int rv;

    compaction->is_requested = false;
    rv = mu__journal_renew_begin(journal->file, ret_error);
    if (rv != 0)
        return finish_compaction(journal, rv);
    compaction->runs = true;
    compaction->number++;
    compaction->at = journal->finished.head;
    compaction->end = journal->finished.tail;
    (void)write_begin_record(journal, TO_NEW_FILE, false,
                             ret_error); /* the commit fails */
    return MU__STORAGE_NOT_YET;
}

/* The next closure under way that the new file does not have. Errors come again from the
 * commit, here as below. */
static bool write_next_named(struct closure_journal *journal, mu_error *ret_error)
{
    struct named_closure *named =
        MU__LIST_FIRST(&journal->named.all, struct named_closure, node);

    if (named == NULL || named->compaction == journal->compaction.number)
        return false;
    mu__list_remove(&journal->named.all, &named->node);
    mu__list_append(&journal->named.all, &named->node);
    if (named->is_late)
        named->compaction = journal->compaction.number;
    else
        (void)ensure_in_new_file(journal, named, ret_error);
    return true;
}

static bool write_next_finished(struct closure_journal *journal, mu_error *ret_error)
{
    struct compaction *compaction = &journal->compaction;
    const struct finished_closure *finished =
        mu__finished_walk(&journal->finished, &compaction->at, compaction->end);
    struct mu__journal_scheduled record = {.number = 0};
    struct mu__packed result;
    struct mu__buf *buf;

    if (finished == NULL)
        return false;
    record.number = finished->number;
    record.name = mu__finished_name(finished);
    result = mu__finished_result(finished, &buf);
    (void)write_scheduled(journal, TO_NEW_FILE, &record, finished->function, ret_error);
    (void)write_finished(journal, TO_NEW_FILE, finished->number, &result, ret_error);
    return true;
}

int mu__closure_journal_compact_step(struct closure_journal *journal, mu_error *ret_error)
{
    bool has_more = true;
    int rv;

    for (int i = 0; i < STEP_RECORDS && has_more; i++) {
        if (mu__journal_renew_is_busy(journal->file))
            return MU__STORAGE_NOT_YET;
        has_more = write_next_named(journal, ret_error) ||
                   write_next_finished(journal, ret_error);
    }
    if (has_more)
        return MU__STORAGE_NOT_YET;
    rv = mu__journal_renew_commit(journal->file, ret_error);
    if (rv == MU__STORAGE_NOT_YET)
        return rv;
    if (rv == 0)
        journal->is_dirty = journal->is_behind = false;
    return finish_compaction(journal, rv);
}

void mu__closure_journal_done(struct closure_journal *journal)
{
    mu_error error;

    if (journal->file != NULL)
        (void)mu__closure_journal_flush(journal, &error);
    mu__named_closures_done(&journal->named);
    mu__finished_done(&journal->finished);
    mu__journal_close(journal->file);
}
