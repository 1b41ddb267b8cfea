#include "tests/sim/swarm/swarm.h"
#include "tests/support/linear/state.h"
#include "tests/support/test.h"

enum {
    COUNTERS = 3,           /* the first keys, which are only counted up */
    UNKNOWN_MAX = 40,       /* of a history: more are not searched, */
    STATES_MAX = 100 * 1000 /* nor are more than these */
};

const char *const swarm_key_names[ALL_KEYS] = {
    "k/n0",  "k/n1",  "k/n2", "k/0", "k/1", "k/2", "k/3",
    "k/4/a", "k/4/b", "k/5",  "t/0", "t/1", "t/2", "t/3",
};

static const char *const op_names[] = {
    [LINEAR_GET] = "a get",
    [LINEAR_PUT] = "a put",
    [LINEAR_INSERT] = "an insert",
    [LINEAR_COMPARE] = "a compare",
    [LINEAR_INCREMENT] = "an increment",
    [LINEAR_DELETE] = "a delete",
    [LINEAR_TRANSACT] = "a transaction",
};

/* ---- Requests ---- */

size_t swarm_new_record(struct swarm *run, const struct linear_op *op)
{
    struct swarm_record *record;

    run->records = swarm_grown(run->records, run->records_count, &run->records_capacity,
                               sizeof *run->records);
    record = &run->records[run->records_count++];
    *record = (struct swarm_record){
        .op = *op, .floor = run->revision, .floor_store = run->revision_store};
    record->op.begin = ++run->moment;
    record->op.end = LINEAR_UNKNOWN;
    return run->records_count - 1;
}

/* It certainly had no effect. */
static void drop_record(struct swarm_record *record)
{
    record->op.kind = LINEAR_GET;
    record->op.end = LINEAR_UNKNOWN;
}

/* Says what is there instead. */
static bool has_comparison(const struct cluster_call *call)
{
    return has_words(call, "has revision") || has_words(call, "is there already") ||
           has_words(call, "is not there") || has_words(call, "has another value");
}

/* Whether an error is the answer of an operation that was done. */
static bool is_answer(const struct linear_op *op, const struct cluster_call *call)
{
    int code = call->of.call.code;

    return code == 0 || (op->kind == LINEAR_GET && code == -MU_ENOTFOUND) ||
           (op->kind == LINEAR_INSERT && code == -MU_EEXISTS) ||
           (op->kind == LINEAR_COMPARE && code == -MU_EPRECONDITION &&
            has_words(call, "has revision")) ||
           (op->kind == LINEAR_TRANSACT && code == -MU_EPRECONDITION &&
            has_comparison(call));
}

/* An error that says that nothing was done. */
static bool is_refusal(const struct cluster_call *call)
{
    int code = call->of.call.code;

    if ((code == -MU_EDEADLINE && has_words(call, "was not changed within")) ||
        (code == -MU_ECANCELLED && has_words(call, "cancelled")))
        return !has_words(call, "may have been applied");
    return code == -MU_EAGAIN || code == -MU_EEXHAUSTED ||
           (code == -MU_ERANGE && has_words(call, "would not fit")) ||
           (code == -MU_EPRECONDITION && has_words(call, "mu_agent_register"));
}

static void note_revision(struct swarm *run, const struct swarm_record *record)
{
    const struct linear_op *op = &record->op;

    if (!linear_is_change(op))
        return;
    if (op->revision == 0)
        cluster_break(run->cluster, "a change of %s has no revision",
                      swarm_key_names[op->key]);
    if (run->revision_store != record->store) {
        run->revision_store = record->store;
        run->revision = 0;
    }
    if (record->floor_store == record->store && op->revision <= record->floor) {
        cluster_break(run->cluster,
                      "a change of %s has revision %" PRIu64
                      ", and one that had ended before it %" PRIu64,
                      swarm_key_names[op->key], op->revision, record->floor);
    }
    if (op->revision > run->revision)
        run->revision = op->revision;
    if (op->kind != LINEAR_TRANSACT)
        run->revisions[op->key] = op->revision;
}

/* For what is compared later: what a key of transactions was seen to be. */
static void note_seen(struct swarm *run, const struct linear_op *op)
{
    if (op->kind == LINEAR_TRANSACT)
        run->reached[op->code == 0 ? TRANSACTED : NOT_TRANSACTED]++;
    if (op->kind != LINEAR_GET || op->key < KEYS || op->code != 0)
        return;
    run->revisions[op->key] = op->revision;
    run->values[op->key] = op->number;
}

void swarm_note_use(struct swarm_program *program)
{
    struct swarm *run = program->run;

    if (program->used != 0 && program->used != program->store)
        cluster_break(run->cluster, "%s had used a store that is gone, and was not told",
                      program->task->name);
    program->used = program->store;
}

void swarm_end_key(struct swarm_program *program, unsigned slot)
{
    struct swarm *run = program->run;
    struct cluster_call *call = program->keys[slot];
    struct swarm_record *record = &run->records[program->records[slot]];

    if (!is_answer(&record->op, call)) {
        if (has_words(call, "not registered at"))
            cluster_break(run->cluster, "%s, which is registered: %s",
                          program->task->name, call->of.call.error.message);
        sim_note(run->cluster->sim, MU__LOG_DEBUG, "%s: %s of %s fails: %s: %s",
                 program->task->name, op_names[record->op.kind],
                 swarm_key_names[record->op.key], mu_err_name(call->of.call.code),
                 call->of.call.error.message);
        if (is_refusal(call))
            drop_record(record);
        else
            run->reached[UNKNOWN] += record->op.kind != LINEAR_GET;
        return;
    }
    record->op.end = ++run->moment;
    record->op.code = call->of.call.code;
    record->op.revision = call->of.key.revision;
    record->op.number = record->op.kind == LINEAR_GET
                            ? strtoll(call->of.key.value, NULL, 10)
                            : call->of.key.number;
    record->store = program->store;
    run->reached[ANSWERED]++;
    swarm_note_use(program);
    note_revision(run, record);
    note_seen(run, &record->op);
}

void swarm_end_lease(struct swarm_program *program, unsigned slot)
{
    size_t lease = program->records[slot];

    program->leases[lease] =
        program->keys[slot]->of.call.code == 0 && !program->is_doubtful[slot];
    if (program->keys[slot]->of.call.code == 0)
        swarm_note_use(program);
}

static int free_slot(const struct swarm_program *program)
{
    for (int i = 0; i < OPEN_MAX; i++)
        if (program->keys[i] == NULL)
            return i;
    return -1;
}

static void draw_op(struct swarm_program *program, struct linear_op *ret_op)
{
    struct swarm *run = program->run;
    struct linear_op op = {.key = (unsigned)draw(program, 0, KEYS - 1)};

    op.kind = (enum linear_kind)draw(program, LINEAR_GET, LINEAR_DELETE);
    if (op.key < COUNTERS && op.kind != LINEAR_GET)
        op.kind = LINEAR_INCREMENT;
    if (op.kind == LINEAR_INCREMENT)
        op.value = 1;
    else if (op.kind != LINEAR_GET)
        op.value = run->value += 1000000;
    if (op.kind == LINEAR_COMPARE && sim_chance(&program->random, 80))
        op.expected = run->revisions[op.key];
    *ret_op = op;
}

static struct cluster_call *begin_op(struct swarm_program *program,
                                     const struct linear_op *op, bool waits,
                                     int64_t timeout_ms)
{
    static const struct {
        int operation;
        unsigned flags;
    } as[] = {
        [LINEAR_GET] = {MU_KV_TRY_GET, 0},
        [LINEAR_PUT] = {MU_KV_PUT, MU_KV_OVERWRITE},
        [LINEAR_INSERT] = {MU_KV_PUT, 0},
        [LINEAR_COMPARE] = {MU_KV_PUT, MU_KV_COMPARE},
        [LINEAR_INCREMENT] = {MU_KV_INCREMENT, 0},
        [LINEAR_DELETE] = {MU_KV_DELETE, 0},
    };
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRId64, op->value);
    return cluster_key(program->task,
                       &(mu_kv_request){
                           .operation = waits ? MU_KV_GET : as[op->kind].operation,
                           .flags = as[op->kind].flags,
                           .key = swarm_key_names[op->key],
                           .value = text,
                           .size = strlen(text),
                           .revision = op->expected,
                           .by = op->value,
                           .timeout_ms = timeout_ms,
                       });
}

void swarm_ask_op(struct swarm_program *program, const struct linear_op *op, bool waits)
{
    int slot = free_slot(program);
    int64_t timeout_ms;

    if (slot < 0)
        return;
    program->records[slot] = swarm_new_record(program->run, op);
    program->is_lease[slot] = false;
    timeout_ms = (int64_t)draw(program, 0, 5000);
    program->keys[slot] = op->kind == LINEAR_TRANSACT
                              ? swarm_begin_txn(program, op, timeout_ms)
                              : begin_op(program, op, waits, timeout_ms);
}

void swarm_ask_key(struct swarm_program *program)
{
    struct linear_op op;

    if (free_slot(program) < 0)
        return;
    draw_op(program, &op);
    swarm_ask_op(program, &op, op.kind == LINEAR_GET && sim_chance(&program->random, 20));
}

void swarm_ask_lease(struct swarm_program *program)
{
    unsigned lease = (unsigned)draw(program, 0, LEASES - 1);
    int slot = free_slot(program);
    char key[32];
    char value[32];

    if (slot < 0)
        return;
    (void)snprintf(key, sizeof key, "l/%u/%u", program->number, lease);
    (void)snprintf(value, sizeof value, "%u", program->life);
    program->records[slot] = lease;
    program->is_lease[slot] = true;
    program->is_doubtful[slot] = false;
    program->keys[slot] = cluster_key(
        program->task, &(mu_kv_request){.operation = MU_KV_PUT,
                                        .flags = MU_KV_OVERWRITE | MU_KV_LEASE,
                                        .key = key,
                                        .value = value,
                                        .size = strlen(value),
                                        .timeout_ms = 3000});
}

void swarm_doubt_leases(struct swarm_program *program)
{
    memset(program->leases, 0, sizeof program->leases);
    memset(program->is_doubtful, true, sizeof program->is_doubtful);
}

void swarm_read_keys(struct swarm *run, int64_t ret_numbers[ALL_KEYS])
{
    struct swarm_program *program = &run->programs[0];

    for (unsigned key = 0; key < ALL_KEYS && !is_broken(run); key++) {
        const struct linear_op op = {.kind = LINEAR_GET, .key = key};

        program->records[0] = swarm_new_record(run, &op);
        program->is_lease[0] = false;
        program->keys[0] = begin_op(program, &op, false, 5000);
        swarm_wait(run, "the last gets", FINAL_MS);
        ret_numbers[key] = -1;
        if (run->records[run->records_count - 1].op.end == LINEAR_UNKNOWN)
            cluster_break(run->cluster, "%s cannot be read at the end",
                          swarm_key_names[key]);
        else if (run->records[run->records_count - 1].op.code == 0)
            ret_numbers[key] = run->records[run->records_count - 1].op.number;
    }
}

/* A lease that is there is of the present process; one that must be there is. */
void swarm_check_leases(struct swarm *run)
{
    for (unsigned i = 0; i < run->programs_count && !is_broken(run); i++) {
        struct swarm_program *program = &run->programs[i];

        for (unsigned lease = 0; lease < LEASES; lease++) {
            struct cluster_call *call;
            char key[32];
            int code;

            (void)snprintf(key, sizeof key, "l/%u/%u", i, lease);
            call = cluster_key(run->programs[0].task,
                               &(mu_kv_request){.operation = MU_KV_TRY_GET,
                                                .key = key,
                                                .timeout_ms = 5000});
            code = cluster_wait(call);
            run->reached[LEASES_KEPT] += code == 0;
            if (code != 0 && code != -MU_ENOTFOUND)
                cluster_break(run->cluster, "%s cannot be read at the end", key);
            else if (code == 0 && strtoull(call->of.key.value, NULL, 10) != program->life)
                cluster_break(run->cluster,
                              "%s is there, a lease of life %s of %s, "
                              "which is in life %u",
                              key, call->of.key.value, program->task->name,
                              program->life);
            else if (code != 0 && program->life != 0 && program->leases[lease])
                cluster_break(run->cluster, "%s, a lease of %s, is not there", key,
                              program->task->name);
        }
    }
}

/* Of a key's history; those of transactions have one together. */
static bool is_of(const struct swarm_record *record, unsigned key)
{
    return key < KEYS ? record->op.key == key : record->op.key >= KEYS;
}

static unsigned count_unknown(const struct swarm *run, unsigned key)
{
    unsigned count = 0;

    for (size_t i = 0; i < run->records_count; i++)
        count += is_of(&run->records[i], key) && run->records[i].op.kind != LINEAR_GET &&
                 run->records[i].op.end == LINEAR_UNKNOWN;
    return count;
}

/* Of one key, while one content of the store was there; what may have been applied or not
 * is part of each. */
static void check_history(struct swarm *run, uint64_t store, unsigned key)
{
    static char why[163840];
    struct linear_op *ops = calloc(run->records_count + 1, sizeof *ops);
    enum linear_verdict verdict;
    size_t count = 0;

    assert_non_null(ops);
    for (size_t i = 0; i < run->records_count; i++) {
        const struct swarm_record *record = &run->records[i];
        bool is_known = record->op.end != LINEAR_UNKNOWN;

        if (is_of(record, key) &&
            (is_known ? record->store == store : record->op.kind != LINEAR_GET))
            ops[count++] = record->op;
    }
    verdict = linear_judge(ops, count, STATES_MAX, why, sizeof why);
    run->reached[SKIPPED] += verdict == LINEAR_UNDECIDED;
    if (verdict == LINEAR_BAD) {
        fputs(why, stderr);
        cluster_break(run->cluster, "the history of %s is not linearizable",
                      swarm_key_names[key]);
    }
    free(ops);
}

/* Each sum that was told counts once, also where there is too much to search. */
static void check_sum(struct swarm *run, uint64_t store, unsigned key, int64_t number)
{
    int64_t known = 0;

    for (size_t i = 0; i < run->records_count; i++) {
        const struct swarm_record *record = &run->records[i];

        known += record->op.key == key && record->op.kind == LINEAR_INCREMENT &&
                 record->op.end != LINEAR_UNKNOWN && record->store == store;
    }
    number = number < 0 ? 0 : number;
    if (number < known || number > known + count_unknown(run, key))
        cluster_break(run->cluster,
                      "%s is %" PRId64 ", of %" PRId64 " that were told, "
                      "and %u that may be",
                      swarm_key_names[key], number, known, count_unknown(run, key));
}

void swarm_check_histories(struct swarm *run, const int64_t numbers[ALL_KEYS])
{
    uint64_t last = run->records[run->records_count - 1].store;

    for (unsigned key = 0; key <= KEYS; key++) {
        uint64_t before = 0;

        if (key < COUNTERS)
            check_sum(run, last, key, numbers[key]);
        if (count_unknown(run, key) > UNKNOWN_MAX) {
            run->reached[SKIPPED]++;
            continue;
        }
        for (size_t i = 0; i < run->leaders_count && !is_broken(run); i++)
            if (run->leaders[i].store != before) {
                before = run->leaders[i].store;
                check_history(run, before, key);
            }
    }
}
