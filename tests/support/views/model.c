#include "tests/support/views/model.h"

#include "actors/views/internal.h"
#include "runtime/base/byte_order.h"
#include "tests/support/test.h"

void model_init(struct view_model *model, const struct mu__view_config *config,
                uint64_t seed)
{
    *model = (struct view_model){.config = *config, .seed = seed, .told = MODEL_TO_ALL};
    model_chief_start(model);
}

void model_done(struct view_model *model)
{
    mu__view_table_free(model->table);
    model->table = NULL;
}

/* ---- Processes and links ---- */

void model_chief_crash(struct view_model *model)
{
    for (uint32_t i = 0; i < MODEL_SERVERS; i++) {
        model->servers[i].node = 0;
        model->servers[i].has_reported = false;
    }
    model_done(model);
}

void model_chief_start(struct view_model *model)
{
    model->table = mu__view_table_new(&model->config, model->now_ms);
    assert_non_null(model->table);
    mu__view_table_seed(model->table, ++model->seed);
    assert_int_equal(
        mu__view_table_restore(model->table,
                               (struct mu__view){model->recorded, model->recorded_size},
                               false, model->now_ms),
        0);
    model_settle(model);
}

void model_store_lost(struct view_model *model)
{
    model->recorded_size = 0;
}

void model_start(struct view_model *model, uint32_t task)
{
    struct model_server *server = &model->servers[task];

    *server = (struct model_server){.incarnation = server->incarnation + 1, .runs = true};
    server->journal = model->journals ? server->incarnation : 0;
}

void model_restore(struct view_model *model, uint32_t task)
{
    struct model_server *server = &model->servers[task];

    if (server->journal == 0)
        server->journal = server->incarnation;
    server->incarnation++;
    server->runs = true;
    server->draining = false;
}

void model_crash(struct view_model *model, uint32_t task)
{
    model_unlink(model, task);
    model->servers[task].runs = false;
}

void model_link(struct view_model *model, uint32_t task)
{
    struct model_server *server = &model->servers[task];
    const struct mu__replica process = {task, server->incarnation};

    server->node = ++model->node_last;
    server->has_reported = false;
    assert_int_equal(
        mu__view_table_up(model->table, server->node, &process, model->now_ms), 0);
}

void model_unlink(struct view_model *model, uint32_t task)
{
    struct model_server *server = &model->servers[task];

    if (server->node != 0)
        mu__view_table_down(model->table, server->node, model->now_ms);
    server->node = 0;
    server->has_reported = false;
}

bool model_is_alive(const struct view_model *model, const struct mu__replica *replica)
{
    const struct model_server *server = &model->servers[replica->task];

    return replica->incarnation != 0 && server->runs &&
           server->incarnation == replica->incarnation;
}

bool model_is_up(const struct view_model *model, const struct mu__replica *replica)
{
    return model_is_alive(model, replica) && model->servers[replica->task].has_reported;
}

/* ---- What servers say ---- */

bool model_is_member(const struct mu__partition_view *view, uint32_t task,
                     uint64_t incarnation)
{
    return mu__replica_is(&view->primary, task, incarnation) ||
           mu__replica_is(&view->backup, task, incarnation) ||
           mu__replica_is(&view->learner, task, incarnation);
}

bool model_is_former(const struct view_model *model, const struct mu__replica *replica,
                     uint32_t task)
{
    const struct model_server *server = &model->servers[task];

    return replica->task == task && server->journal != 0 &&
           replica->incarnation >= server->journal &&
           replica->incarnation < server->incarnation;
}

/* What it has of former processes, and was not told to serve. */
static void report_restored(struct view_model *model, uint32_t task)
{
    const struct model_server *server = &model->servers[task];
    uint8_t former[8 * MU__FORMER_MAX];
    uint8_t bytes[MU__PARTITIONS * MU__NUMBERED_BYTES];
    uint8_t *end = bytes;
    uint32_t count = 0;

    for (uint64_t i = server->journal; i > 0 && i <= server->incarnation; i++)
        mu__store_little(former + 8 * (count++ % MU__FORMER_MAX), i, 8);
    for (uint32_t i = 0; count > 0 && i < MU__PARTITIONS; i++) {
        const struct mu__partition_view *view = &server->views[i];

        if (server->journaled[i] == view->store_id && server->journaled[i] != 0 &&
            !model_is_member(view, task, server->incarnation))
            end = mu__numbered_put(end, &(struct mu__numbered){i, view->store_id});
    }
    if (count > MU__FORMER_MAX)
        count = MU__FORMER_MAX;
    assert_int_equal(mu__views_note_restored(
                         model->table, server->node, (struct mu__view){former, 8 * count},
                         (struct mu__view){bytes, (uint32_t)(end - bytes)}),
                     0);
}

int model_report(struct view_model *model, uint32_t task)
{
    struct model_server *server = &model->servers[task];
    uint8_t bytes[MU__PARTITIONS * MU__VIEW_BYTES];
    uint8_t *end = bytes;

    for (uint32_t i = 0; i < MU__PARTITIONS; i++)
        if (server->views[i].number != 0)
            end = mu__views_put(end, &server->views[i]);
    server->has_reported = true;
    report_restored(model, task);
    mu__view_table_note_draining(model->table, server->node, server->draining);
    return mu__view_table_held(model->table, server->node,
                               (struct mu__view){bytes, (uint32_t)(end - bytes)},
                               server->known, model->now_ms);
}

int model_news(struct view_model *model, uint32_t task, uint32_t partition,
               enum mu__replica_fate fate)
{
    const struct model_server *server = &model->servers[task];
    bool learner = server->views[partition].backup.incarnation == 0;

    return model_news_of(model, task, partition, fate,
                         learner || fate == MU__REPLICA_LEVEL);
}

int model_news_of(struct view_model *model, uint32_t task, uint32_t partition,
                  enum mu__replica_fate fate, bool learner)
{
    const struct model_server *server = &model->servers[task];
    const struct mu__numbered entry = {partition, server->views[partition].number};
    uint8_t bytes[MU__NUMBERED_BYTES];

    if (fate == MU__REPLICA_SPARE)
        model->servers[task].journaled[partition] = server->views[partition].store_id;
    (void)mu__numbered_put(bytes, &entry);
    return mu__view_table_news(model->table, server->node, fate, learner,
                               (struct mu__view){bytes, sizeof bytes});
}

/* ---- What servers hear ---- */

bool model_is_same(const struct mu__partition_view *a, const struct mu__partition_view *b)
{
    uint8_t bytes[2][MU__VIEW_BYTES];

    (void)mu__views_put(bytes[0], a);
    (void)mu__views_put(bytes[1], b);
    return memcmp(bytes[0], bytes[1], MU__VIEW_BYTES) == 0;
}

/* What becomes of it in the server's journal: a primary that begins empty has all of it
 * there, and who gets it says so later (MU__REPLICA_SPARE). */
static void keep_journaled(struct view_model *model, uint32_t task,
                           const struct mu__partition_view *view)
{
    struct model_server *server = &model->servers[task];
    uint64_t *journaled = &server->journaled[view->partition];
    bool is_primary = mu__replica_is(&view->primary, task, server->incarnation);

    if (is_primary && server->views[view->partition].store_id != view->store_id)
        *journaled = view->store_id;
    else if (*journaled != view->store_id ||
             !(is_primary || mu__replica_is(&view->backup, task, server->incarnation) ||
               model_is_former(model, &view->primary, task) ||
               model_is_former(model, &view->backup, task)))
        *journaled = 0;
}

static void hear(struct view_model *model, uint32_t task,
                 const struct mu__partition_view *view)
{
    struct model_server *server = &model->servers[task];
    struct mu__partition_view *held = &server->views[view->partition];

    server->known = true;
    if (view->number <= held->number) {
        model->refused += !model_is_same(view, held);
        return;
    }
    keep_journaled(model, task, view);
    *held = *view;
    if (model->heard != NULL)
        model->heard(model, task, view);
}

static void hear_all(struct view_model *model, const struct mu__views_owed *owed)
{
    const struct mu__view bytes = {owed->bytes, owed->size};
    struct mu__partition_view view;

    for (uint32_t task = 0; task < MODEL_SERVERS; task++) {
        if (model->servers[task].node != owed->node || (model->told >> task & 1) == 0)
            continue;
        for (uint32_t i = 0; i < mu__views_count(bytes); i++) {
            assert_true(mu__views_at(bytes, i, &view));
            hear(model, task, &view);
        }
    }
}

/* Servers that are asked report at once. */
static void report_requested(struct view_model *model)
{
    uint32_t at = 0;
    uint32_t server;
    uint32_t node;
    bool draining;

    while (mu__view_table_next_requested(model->table, &at, &server, &node, &draining)) {
        mu__view_table_requested(model->table, server);
        for (uint32_t i = 0; i < MODEL_SERVERS; i++)
            if (model->servers[i].has_reported && model->servers[i].node == node) {
                model->servers[i].draining |= draining;
                assert_int_equal(model_report(model, i), 0);
            }
    }
}

void model_settle(struct view_model *model)
{
    struct mu__views_owed owed;
    uint32_t at = 0;

    report_requested(model);
    model->due_ms = mu__view_table_decide(model->table, model->now_ms);
    assert_true(model->due_ms > model->now_ms);
    if (!model->goes_without)
        model->recorded_size = mu__view_table_pack(model->table, model->recorded);
    mu__view_table_recorded(model->table);
    while (mu__view_table_next_owed(model->table, &at, &owed)) {
        hear_all(model, &owed);
        mu__view_table_sent(model->table, owed.server);
    }
}

void model_pass(struct view_model *model, uint64_t ms)
{
    uint64_t end_ms = model->now_ms + ms;

    if (model->table != NULL)
        model_settle(model);
    while (model->table != NULL && model->due_ms <= end_ms) {
        model->now_ms = model->due_ms;
        model_settle(model);
    }
    model->now_ms = end_ms;
}
