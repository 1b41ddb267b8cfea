/* Any bytes as what three tasks ask about keys, in the real service with the store in a
 * file: nothing that they ask ends it or is answered twice for one asking, a transaction
 * that fails changes nothing, and after its host has died the next one has the same keys.
 *
 * An operation is five bytes: what, who and with which flags; the token; sizes of key and
 * value; a number. The bytes of key and value follow. Those of a transaction's key are
 * its comparisons and changes, one each; or its value is all of it, packed. */
#include "actors/coordination/internal.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/keys/txn.h"
#include "actors/packing.h"
#include "tests/fuzz/service_world.h"

#include <stdint.h>
#include <string.h>

enum { OPERATION_BYTES = 5, OPERATIONS_MAX = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct world *w = (struct world *)world;

    w->answered += msg->kind == MU__KEY_DONE || msg->kind == MU__KEY_LISTED;
    if (msg->kind == MU__KEY_DONE)
        w->code = ((const struct mu__key_done *)mu__body(msg))->code;
    mu__pool_put(mu__kernel_pool(w->kernel), msg);
    return 0;
}

static const struct mu__world_ops ops = BARE_WORLD_OPS(world_transmit);

static void tell(struct world *w, uint32_t node, uint16_t kind, const void *body)
{
    say_as(w, (mu__pid){node, MU__AGENT}, kind, body);
}

/* ---- Operations ---- */

struct operation {
    unsigned what;
    uint32_t node;
    uint32_t flags;
    uint64_t token;
    int64_t number;
    struct mu__view key;
    struct mu__view value;
};

/* False: too few bytes are left. */
static bool take(const uint8_t **at, size_t *left, struct operation *ret)
{
    const uint8_t *head = *at;
    uint32_t key;
    uint32_t value;

    if (*left < OPERATION_BYTES)
        return false;
    key = head[3] & 15;
    value = head[3] >> 4;
    if (*left < OPERATION_BYTES + key + value)
        return false;
    *ret = (struct operation){head[0] % 9,
                              1 + head[1] % TASKS,
                              head[1] >> 4,
                              head[2],
                              (int8_t)head[4],
                              {head + OPERATION_BYTES, key},
                              {head + OPERATION_BYTES + key, value}};
    *at += OPERATION_BYTES + key + value;
    *left -= OPERATION_BYTES + key + value;
    return true;
}

static void change(struct world *w, const struct operation *o)
{
    const struct mu__key_put put = {o->token, (uint8_t)o->number, o->key,
                                    o->value, o->flags,           (uint8_t)o->number};
    const struct mu__key_increment increment = {o->token, 0, o->key, o->number};
    const struct mu__key_delete gone = {o->token, 0, o->key};

    if (o->what == 0)
        tell(w, o->node, MU__KEY_PUT, &put);
    else if (o->what == 1)
        tell(w, o->node, MU__KEY_INCREMENT, &increment);
    else
        tell(w, o->node, MU__KEY_DELETE, &gone);
}

static void look(struct world *w, const struct operation *o)
{
    const struct mu__key_get get = {o->token, o->key, (o->flags & 1) != 0};
    const struct mu__key_list list = {o->token, o->key, o->value, (o->flags & 1) != 0};
    const struct mu__key_watch watch = {o->token, o->key, (o->flags & 1) != 0};
    const struct mu__key_cancel cancel = {o->token};

    if (o->what == 3)
        tell(w, o->node, MU__KEY_GET, &get);
    else if (o->what == 4)
        tell(w, o->node, MU__KEY_LIST, &list);
    else if (o->what == 5)
        tell(w, o->node, MU__KEY_WATCH, &watch);
    else if (o->what == 6)
        tell(w, o->node, MU__KEY_CANCEL, &cancel);
    else
        tell(w, o->node, MU__KEY_UNWATCH, &cancel);
}

/* ---- What is there ---- */

/* Keys, values, revisions and owners in order, as one number. */
static uint64_t digest(const struct world *w)
{
    struct coordination *c = mu__actor_state(w->kernel, w->pid);
    struct mu__key_value entry;
    struct mu__view from = {"", 0};
    uint64_t sum = 0;

    while (mu__coord_keys_next_own(c, from, &entry)) {
        must(mu__key_compare(from, entry.key) < 0, "in order");
        must(mu__key_is_normal(entry.key), "normal");
        sum = sum * 31 + mu__view_hash(entry.key) + entry.revision + entry.owner;
        sum = sum * 31 + (entry.value.size == 0 ? 0 : mu__view_hash(entry.value));
        must(entry.revision <= c->revision, "revision");
        from = entry.key;
    }
    return sum * 31 + c->revision;
}

/* ---- Transactions ---- */

enum { PUTS_FROM = 4, LEASE = 0x80, WHOLE = 8 };

/* One byte: 3 bits that name a key, 3 bits that say what, one of them the flag. */
static void add_part(struct mu__txn *txn, uint8_t byte, const struct operation *o)
{
    static const char *const keys[] = {"a", "b", "c", "d", "d/a", "d/b", "n", "d//"};
    static const int changes[] = {MU_KV_PUT, MU_KV_INCREMENT, MU_KV_DELETE, MU_KV_GET};
    struct mu__view key = mu__view_str(keys[byte & 7]);
    int64_t by = o->number == INT8_MAX   ? INT64_MAX
                 : o->number == INT8_MIN ? INT64_MIN
                                         : o->number;
    unsigned what = byte >> 3 & 7;

    if (what < PUTS_FROM)
        txn->checks[txn->checks_count++] = (struct mu__txn_check){
            MU_KV_IF_REVISION + (int)what, key, (uint8_t)o->number, o->value};
    else
        txn->changes[txn->changes_count++] = (struct mu__txn_change){
            changes[what - PUTS_FROM], (byte & LEASE) != 0 ? MU_KV_LEASE : 0, key,
            o->value, by};
}

static void tell_txn(struct world *w, const struct operation *o)
{
    static struct mu__txn txn;
    struct mu__key_txn body = {.token = o->token};
    struct mu__buf *buf = NULL;
    mu_value *content;

    body.content = (struct mu__packed){.head = o->value.data, .head_size = o->value.size};
    txn = (struct mu__txn){.checks_count = 0};
    for (uint32_t i = 0; i < o->key.size; i++)
        add_part(&txn, ((const uint8_t *)o->key.data)[i], o);
    if ((o->flags & WHOLE) == 0) {
        content = mu__txn_write(&txn);
        buf = mu__pack_value(content, &body.content);
        must(buf != NULL, "memory");
        mu_value_free(content);
    }
    tell(w, o->node, MU__KEY_TXN, &body);
    mu__buf_unref(buf);
}

/* What fails has changed nothing. */
static void transact(struct world *w, const struct operation *o)
{
    uint64_t before = digest(w);

    w->code = UINT32_MAX;
    tell_txn(w, o);
    must(w->code == 0 || digest(w) == before, "all or nothing");
}

/* ---- All of it ---- */

static void work(struct world *w, const uint8_t *data, size_t size)
{
    struct operation o;

    for (int i = 0; i < OPERATIONS_MAX && take(&data, &size, &o); i++) {
        w->asked++;
        w->bare.now_ms++;
        if (o.what < 3)
            change(w, &o);
        else if (o.what == 8)
            transact(w, &o);
        else
            look(w, &o);
        must(w->answered <= w->asked, "answered once");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {.bare = {{&ops}, 1}, .reconnect_ms = 300000};
    uint64_t before;

    w.storage = sim_storage_new("fuzz", 1);
    begin_service(&w);
    work(&w, data, size);
    before = digest(&w);
    mu__kernel_free(w.kernel);
    sim_storage_crash(w.storage);
    begin_service(&w);
    must(digest(&w) == before, "the next host has the same");
    mu__kernel_free(w.kernel);
    sim_storage_free(w.storage);
    return 0;
}
