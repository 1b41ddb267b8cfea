/* Keys that are changed together, by transactions, and looked at together, by comparisons
 * and lists; and one by one, too. Their histories are checked as one. */
#include "runtime/message/codec.h"
#include "tests/sim/swarm/swarm.h"
#include "tests/support/test.h"

#define DIRECTORY "t"

enum { NUMBER_BYTES = 24 };

/* ---- What is asked ---- */

static unsigned draw_key(struct swarm_program *program)
{
    return KEYS + (unsigned)draw(program, 0, TXN_KEYS - 1);
}

static struct linear_part *add_part(struct linear_op *op, enum linear_part_kind kind,
                                    unsigned key, int64_t value)
{
    struct linear_part *part = &op->parts[op->parts_count++];

    *part = (struct linear_part){.kind = kind, .key = key, .value = value};
    return part;
}

/* With what was seen last, most of the time. */
static void draw_comparison(struct swarm_program *program, struct linear_op *op)
{
    const struct swarm *run = program->run;
    unsigned key = draw_key(program);
    enum linear_part_kind kind =
        (enum linear_part_kind)draw(program, LINEAR_IF_REVISION, LINEAR_IF_VALUE);
    struct linear_part *part = add_part(op, kind, key, run->values[key]);

    if (sim_chance(&program->random, 90))
        part->expected = run->revisions[key];
}

/* The same for all of them; from one to another; or anything, and perhaps a sum that does
 * not fit as the last, with which nothing may be done. */
static void draw_changes(struct swarm_program *program, struct linear_op *op)
{
    static const enum linear_part_kind always[] = {LINEAR_PART_PUT,
                                                   LINEAR_PART_INCREMENT};
    unsigned count = (unsigned)draw(program, 2, 3);
    unsigned first = (unsigned)draw(program, 0, TXN_KEYS - 1);
    unsigned style = (unsigned)draw(program, 0, 2);
    int64_t value = program->run->value += 1000000;

    for (unsigned i = 0; i < count; i++) {
        enum linear_part_kind kind =
            style < 2 ? always[style]
                      : (enum linear_part_kind)draw(program, LINEAR_PART_PUT,
                                                    LINEAR_PART_DELETE);

        (void)add_part(op, kind, KEYS + (first + i) % TXN_KEYS,
                       kind == LINEAR_PART_PUT         ? value
                       : kind == LINEAR_PART_INCREMENT ? (i == 0 ? -7 : 7)
                                                       : 0);
    }
    if (style == 2 && sim_chance(&program->random, 40))
        (void)add_part(op, LINEAR_PART_INCREMENT, KEYS + (first + count) % TXN_KEYS,
                       INT64_MAX);
}

static void draw_transaction(struct swarm_program *program, struct linear_op *op)
{
    unsigned comparisons = (unsigned)draw(program, 0, 2);

    *op = (struct linear_op){.kind = LINEAR_TRANSACT};
    for (unsigned i = 0; i < comparisons; i++)
        draw_comparison(program, op);
    if (comparisons == 0 || sim_chance(&program->random, 80))
        draw_changes(program, op);
    op->key = op->parts[0].key;
}

static void draw_single(struct swarm_program *program, struct linear_op *op)
{
    struct swarm *run = program->run;

    *op = (struct linear_op){.key = draw_key(program)};
    if (sim_chance(&program->random, 70))
        return;
    op->kind = (enum linear_kind)draw(program, LINEAR_PUT, LINEAR_DELETE);
    op->value = op->kind == LINEAR_INCREMENT ? 1 : (run->value += 1000000);
    op->expected = op->kind == LINEAR_COMPARE ? run->revisions[op->key] : 0;
}

/* ---- How it is asked ---- */

static void write_part(const struct linear_part *part, char text[NUMBER_BYTES],
                       struct mu__txn *txn)
{
    static const int types[] = {
        [LINEAR_IF_REVISION] = MU_KV_IF_REVISION,
        [LINEAR_IF_ABSENT] = MU_KV_IF_ABSENT,
        [LINEAR_IF_PRESENT] = MU_KV_IF_PRESENT,
        [LINEAR_IF_VALUE] = MU_KV_IF_VALUE,
        [LINEAR_PART_PUT] = MU_KV_PUT,
        [LINEAR_PART_INCREMENT] = MU_KV_INCREMENT,
        [LINEAR_PART_DELETE] = MU_KV_DELETE,
    };
    struct mu__view key = mu__view_str(swarm_key_names[part->key]);

    (void)snprintf(text, NUMBER_BYTES, "%" PRId64, part->value);
    if (part->kind <= LINEAR_IF_VALUE)
        txn->checks[txn->checks_count++] = (struct mu__txn_check){
            types[part->kind], key, part->expected,
            mu__view_str(part->kind == LINEAR_IF_VALUE ? text : "")};
    else
        txn->changes[txn->changes_count++] = (struct mu__txn_change){
            .operation = types[part->kind],
            .key = key,
            .value = mu__view_str(part->kind == LINEAR_PART_PUT ? text : ""),
            .by = part->kind == LINEAR_PART_INCREMENT ? part->value : 0};
}

struct cluster_call *swarm_send_txn(struct swarm_program *program,
                                    const struct mu__txn *txn, const char *key,
                                    int64_t timeout_ms)
{
    mu_value *content = mu__txn_write(txn);
    uint8_t packed[4096];
    uint32_t head = 0;
    uint32_t tail = 0;

    assert_int_equal(mu__value_measure(content, &head, &tail), 0);
    assert_true(head <= sizeof packed && tail == 0);
    mu__value_pack(content, packed, head, NULL, 0);
    mu_value_free(content);
    return cluster_key(program->task, &(mu_kv_request){
                                          .operation = MU__KV_TRANSACT,
                                          .key = key,
                                          .value = packed,
                                          .size = head,
                                          .timeout_ms = timeout_ms,
                                      });
}

struct cluster_call *swarm_begin_txn(struct swarm_program *program,
                                     const struct linear_op *op, int64_t timeout_ms)
{
    static struct mu__txn txn;
    char texts[LINEAR_PARTS_MAX][NUMBER_BYTES];

    txn = (struct mu__txn){.checks_count = 0};
    for (unsigned i = 0; i < op->parts_count; i++)
        write_part(&op->parts[i], texts[i], &txn);
    return swarm_send_txn(program, &txn, swarm_key_names[op->key], timeout_ms);
}

static void ask_list(struct swarm_program *program)
{
    if (program->listing != NULL)
        return;
    program->listed = swarm_new_record(
        program->run, &(struct linear_op){.kind = LINEAR_GET, .key = KEYS});
    program->listing = cluster_agent(
        program->task, CALL(CALL_OF(MU__AGENT_LIST, (int64_t)draw(program, 0, 5000)),
                            .name = DIRECTORY));
}

void swarm_ask_txn(struct swarm_program *program)
{
    struct linear_op op;
    uint64_t what = draw(program, 0, 99);

    if (what < 15) {
        ask_list(program);
        return;
    }
    if (what < 50)
        draw_single(program, &op);
    else
        draw_transaction(program, &op);
    swarm_ask_op(program, &op, false);
}

/* ---- A list ---- */

/* All keys at one moment: as a transaction of comparisons that holds. */
static void note_list(struct swarm *run, const mu_value *items, struct linear_op *op)
{
    op->kind = LINEAR_TRANSACT;
    for (unsigned key = KEYS; key < ALL_KEYS; key++) {
        bool there = false;

        for (size_t i = 0; i < mu_value_count(items) && !there; i++) {
            const mu_value *item = mu_value_at(items, i);
            const char *name = "";
            const void *value = "";
            size_t size = 0;
            int64_t revision = 0;
            char text[NUMBER_BYTES];

            (void)mu_value_get_string(mu_value_find(item, "key"), &name, &size);
            there = strcmp(name, swarm_key_names[key]) == 0;
            if (!there)
                continue;
            (void)mu_value_get_bytes(mu_value_find(item, "value"), &value, &size);
            (void)mu_value_get_int(mu_value_find(item, "revision"), &revision);
            (void)snprintf(text, sizeof text, "%.*s", (int)size, (const char *)value);
            run->values[key] = strtoll(text, NULL, 10);
            run->revisions[key] = (uint64_t)revision;
            (void)add_part(op, LINEAR_IF_VALUE, key, run->values[key]);
            add_part(op, LINEAR_IF_REVISION, key, 0)->expected = (uint64_t)revision;
        }
        if (!there)
            (void)add_part(op, LINEAR_IF_ABSENT, key, 0);
    }
}

void swarm_end_list(struct swarm_program *program)
{
    struct cluster_call *call = program->listing;
    struct swarm_record *record = &program->run->records[program->listed];

    program->listing = NULL;
    if (call->of.call.code == 0) {
        note_list(program->run, call->of.agent.content, &record->op);
        record->op.end = ++program->run->moment;
        record->store = program->store;
        program->run->reached[LISTED]++;
        swarm_note_use(program);
    }
    mu_value_free(call->of.agent.content);
    call->of.agent.content = NULL;
}
