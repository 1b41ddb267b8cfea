/* Any bytes as what three tasks say about names of actors to the real service with the
 * store in a file: nothing that they say ends it, each name that is made has a record and
 * a place, and after its host has died the next one knows the same names, and passes over
 * records that are none.
 *
 * An operation is six bytes: what and who, which name, its token or epoch, flags, a
 * number, and how many bytes follow, which are a name, a type, a text or a record. */
#include "actors/coordination/internal.h"
#include "actors/coordination/job_runs.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/names/coord_names.h"
#include "actors/coordination/names/record_bytes.h"
#include "actors/packing.h"
#include "tests/fuzz/service_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPERATION_BYTES = 6, OPERATIONS_MAX = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int world_transmit(struct mu__world *world, struct mu__msg *msg)
{
    struct world *w = (struct world *)world;

    w->answered += msg->kind == MU__NAME_NEWS &&
                   ((const struct mu__name_news *)mu__body(msg))->token != 0;
    mu__pool_put(mu__kernel_pool(w->kernel), msg);
    return 0;
}

static const struct mu__world_ops ops = BARE_WORLD_OPS(world_transmit);

static void say(struct world *w, uint32_t node, uint16_t kind, const void *body)
{
    say_as(w, (mu__pid){node, MU__ACTORS}, kind, body);
}

static struct coordination *service(const struct world *w)
{
    return mu__actor_state(w->kernel, w->pid);
}

/* ---- Operations ---- */

struct operation {
    unsigned what;
    uint32_t node;
    uint64_t number;
    uint32_t flags;
    uint32_t more;
    struct mu__view name;
    struct mu__view text;
};

/* False: too few bytes are left. */
static bool take(const uint8_t **at, size_t *left, struct operation *ret)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    const uint8_t *head = *at;

    if (*left < OPERATION_BYTES || *left < OPERATION_BYTES + (size_t)head[5] % 80)
        return false;
    *ret = (struct operation){head[0] % 16 % 9,
                              1 + (head[0] >> 4) % TASKS,
                              head[2],
                              head[3],
                              head[4],
                              mu__view_str(names[head[1] % 4]),
                              {head + OPERATION_BYTES, head[5] % 80}};
    if (head[1] >= 250)
        ret->name = ret->text;
    *at += OPERATION_BYTES + head[5] % 80;
    *left -= OPERATION_BYTES + head[5] % 80;
    return true;
}

static void say_make(struct world *w, const struct operation *o)
{
    const struct mu__name_make body = {
        .token = o->number,
        .name = o->name,
        .type = mu__view_str((o->more & 1) != 0 ? "t" : "u"),
        .flags = o->flags & 31,
        .mailbox_max = o->more,
        .policy = o->more % 3,
        .restarts = o->more,
        .within_ms = 1000,
        .task_type = (o->more & 2) != 0 ? mu__view_str("worker") : (struct mu__view){0},
        .args = {.head = o->text.data, .head_size = o->text.size},
    };

    w->asked++;
    say(w, o->node, MU__NAME_MAKE, &body);
}

/* Of the epoch that the name has, or of any. */
static void say_state(struct world *w, const struct operation *o)
{
    const struct coord_name *name = mu__coord_name_find(service(w), o->name);
    const struct mu__name_state body = {
        .name = o->name,
        .epoch = name == NULL || (o->flags & 16) != 0 ? o->number : name->epoch,
        .actor = o->more,
        .end = o->flags % MU__NAME_ENDS,
        .code = o->more,
        .message = o->text,
    };

    say(w, o->node, MU__NAME_STATE, &body);
}

static void say_as_owner(struct world *w, const struct operation *o)
{
    const struct mu__name_offer offer = {
        .types = (o->flags & 4) != 0 ? o->text : mu__view_str("t\nu\n"),
        .drains = (o->flags & 1) != 0 && o->more > 128,
        .begins = (o->flags & 2) != 0};
    const struct mu__name_hold hold = {.sent_ms = o->number, .loads = o->text};

    if (o->what == 3)
        say(w, o->node, MU__NAME_OFFER, &offer);
    else
        say(w, o->node, MU__NAME_HOLD, &hold);
}

static void say_stop(struct world *w, const struct operation *o)
{
    const struct mu__name_stop body = {
        .name = o->name, .token = o->number, .epoch = o->more, .how = o->flags & 1};

    w->asked++;
    say(w, o->node, MU__NAME_STOP, &body);
}

/* A record of any bytes, with a checksum that is right or not. */
static void put_record(struct world *w, const struct operation *o)
{
    struct coordination *c = service(w);
    const char name = "xyz"[o->more % 3];
    char what[16];
    char key[MU__RUN_KEY_MAX];
    uint8_t bytes[128];
    const size_t size = o->text.size < 4 ? 4 : o->text.size;
    uint32_t sum;

    if (!c->leads)
        return;
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, o->text.data, o->text.size);
    if ((o->flags & 1) != 0) {
        sum = mu__crc32c_add(&c->names->crc, 0, bytes + 4, size - 4);
        sum = mu__crc32c_add(&c->names->crc, sum, &name, 1);
        memcpy(bytes, &sum, sizeof sum);
    }
    (void)snprintf(what, sizeof what, "actor/%c", name);
    (void)mu__coord_run_key(c, what, key);
    (void)mu__coord_keys_put_own(&(struct mu__ctx){.kernel = w->kernel, .self = w->pid},
                                 c, key, bytes, size);
}

/* ---- What must be ---- */

static uint64_t digest(const struct world *w)
{
    struct coordination *c = service(w);
    const struct mu__text_node *node = NULL;
    uint64_t sum = 0;

    while ((node = mu__text_map_next(&c->names->names, node)) != NULL) {
        const struct coord_name *name = (const struct coord_name *)(const void *)node;

        must(name->is_made || !mu__list_is_empty(&name->followers), "somebody wants it");
        if (!name->is_made || name->text[0] >= 'x')
            continue; /* or its record was put there */
        must(mu__coord_name_has_record(c, name->text), "a record");
        must(name->made != 0 && name->epoch >= name->made && name->epoch <= c->revision,
             "epochs");
        must(name->owner != NULL || name->is_waiting || name->state == MU__NAME_FAILED,
             "a place");
        sum += mu__view_hash(name->named.text) * (name->made + 1);
    }
    return sum;
}

static void die(struct world *w)
{
    uint64_t before = digest(w);
    bool knows = service(w)->names->is_read;

    mu__kernel_free(w->kernel);
    sim_storage_crash(w->storage);
    begin_service(w);
    w->bare.now_ms += 1000;
    take_turns(w);
    if (knows && service(w)->leads)
        must(digest(w) == before, "the next host knows the same names");
}

static void do_operation(struct world *w, const struct operation *o)
{
    const struct mu__name_find find = {.name = o->name};

    if (o->what == 0)
        say_make(w, o);
    else if (o->what == 1)
        say(w, o->node, MU__NAME_FIND, &find);
    else if (o->what == 2)
        say_state(w, o);
    else if (o->what <= 4)
        say_as_owner(w, o);
    else if (o->what == 5)
        say_stop(w, o);
    else if (o->what == 6)
        put_record(w, o);
    else if (o->what == 7)
        w->bare.now_ms += o->number * 16;
    else if ((o->flags & 7) == 0)
        die(w);
    take_turns(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w = {
        .bare = {.world = {&ops}, .now_ms = 1000}, .run = "fuzz", .reconnect_ms = 1000};
    struct operation operation;

    w.storage = sim_storage_new("names", 1);
    w.kept = sim_storage_new("names.kept", 1);
    must(w.storage != NULL && w.kept != NULL, "memory");
    begin_service(&w);
    for (int i = 0; i < OPERATIONS_MAX && take(&data, &size, &operation); i++) {
        do_operation(&w, &operation);
        (void)digest(&w);
        must(w.answered <= w.asked, "no more answers than were asked for");
    }
    mu__kernel_free(w.kernel);
    sim_storage_free(w.storage);
    sim_storage_free(w.kept);
    return 0;
}
