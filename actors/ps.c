#include "actors/ps.h"

#include "actors/keep.h"
#include "actors/messages.h"
#include "actors/packing.h"
#include "actors/variable_store.h"

/* What it hears. */
static void on_open(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_read(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_write(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_status_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg);
static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg);

static const struct mu__handler handlers[] = {
    {MU__VAR_OPEN, on_open},
    {MU__VAR_READ, on_read},
    {MU__VAR_WRITE, on_write},
    {MU__STATUS_GET, on_status_get},
    {MU__NODE_UP, on_node_up},
    {MU__NODE_DOWN, on_node_down},
    {MU__NODE_TROUBLE, on_node_trouble},
};

/* What it remembers. */
struct ps {
    struct mu__store *store;
};

/* ---- Answers ---- */

/* An answer that is lost here leaves its asker waiting until its limit. */
static void answer(struct mu__ctx *ctx, mu__pid to, struct mu__msg *msg)
{
    int rv = mu__send_borrowed(ctx, to, msg);

    if (rv != 0)
        mu__log(ctx, MU__LOG_WARN, "an answer to node %u was lost: %s", to.node,
                mu_strerror(rv));
}

/* Codes travel as positive numbers, words only with an error. */
static uint32_t code_to_send(int rv)
{
    return (uint32_t)-rv;
}

static struct mu__view words_of(int rv, const char *words)
{
    return rv == 0 ? (struct mu__view){NULL, 0} : mu__view_str(words);
}

static void answer_open(struct mu__ctx *ctx, const struct mu__store_opened *opened)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__VAR_OPENED);

    if (msg != NULL) {
        struct mu__var_opened *body = mu__body(msg);

        body->token = opened->asker.token;
        body->code = code_to_send(opened->code);
        body->message = words_of(opened->code, opened->words);
        body->variable = opened->id;
        body->created = opened->created;
    }
    answer(ctx, opened->asker.pid, msg);
}

/* Whatever a request made due: the store answers opens when it is time. */
static void answer_opens(struct mu__ctx *ctx, struct ps *ps)
{
    struct mu__store_opened opened;

    while (mu__store_next_opened(ps->store, &opened))
        answer_open(ctx, &opened);
}

/* ---- Requests ---- */

static void on_open(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__var_open *body = mu__body(msg);
    struct mu__store_open request = {
        .name = body->name,
        .shape = {.dtype = body->dtype, .shards = body->shards},
        .shard = body->shard,
        .bytes = body->size,
        .asker = {msg->from, body->token},
        .existing = body->existing,
        .replaces = body->replaces,
    };
    mu_error error;
    int rv = mu__shape_unpack_dims(body->dims, &request.shape);

    if (rv != 0)
        (void)mu_error_set(&error, rv, "dims of %u bytes: expected 8 for each",
                           body->dims.size);
    else
        rv = mu__store_open(ps->store, &request, &error);
    if (rv != 0)
        answer_open(ctx, &(struct mu__store_opened){
                             .asker = request.asker, .code = rv, .words = error.message});
    answer_opens(ctx, ps);
}

static void on_read(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__var_read *body = mu__body(msg);
    const struct mu__store_read request = {body->variable, body->offset, body->size};
    struct mu__view data = {NULL, 0};
    uint64_t version = 0;
    mu_error error;
    int rv = mu__store_read(ps->store, &request, &error, &data, &version);
    struct mu__msg *reply = mu__msg_new(ctx, MU__VAR_DATA);

    if (reply != NULL) {
        struct mu__var_data *reply_body = mu__body(reply);

        reply_body->token = body->token;
        reply_body->code = code_to_send(rv);
        reply_body->message = words_of(rv, error.message);
        reply_body->version = version;
        reply_body->data = data;
    }
    answer(ctx, msg->from, reply);
}

static void answer_write(struct mu__ctx *ctx, const struct mu__msg *msg, uint64_t token,
                         const mu_error *error, uint64_t version)
{
    struct mu__msg *reply = mu__msg_new(ctx, MU__VAR_WRITTEN);

    if (reply != NULL) {
        struct mu__var_written *body = mu__body(reply);

        body->token = token;
        body->code = code_to_send(error->code);
        body->message = words_of(error->code, error->message);
        body->version = version;
    }
    answer(ctx, msg->from, reply);
}

static void on_write(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__var_write *body = mu__body(msg);
    const struct mu__store_write request = {
        .id = body->variable,
        .operation = body->operation,
        .transfer = body->transfer,
        .offset = body->offset,
        .data = body->data,
        .rate = body->rate,
        .momentum = body->momentum,
        .writer = msg->from,
    };
    mu_error error = {.code = 0};
    uint64_t version = 0;

    (void)mu__store_write(ps->store, &request, &error, &version);
    if (body->operation != MU__WRITE_ABANDON)
        answer_write(ctx, msg, body->token, &error, version);
    answer_opens(ctx, ps);
}

/* ---- Nodes ---- */

static void on_node_down(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct ps *ps = state;
    const struct mu__node_down *body = mu__body(msg);

    mu__store_node_down(ps->store, body->node);
    answer_opens(ctx, ps);
}

/* Who comes, and who cannot be reached, is no concern of a server that only answers. */
static void on_node_up(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

static void on_node_trouble(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
}

/* ---- Status ---- */

struct listing {
    mu_value *list;     /* NULL when out of memory */
    size_t left_out;
};

static mu_value *dims_value(const struct mu__shape *shape)
{
    mu_value *list = mu_value_list();

    for (uint32_t i = 0; list != NULL && i < shape->rank; i++) {
        if (mu_value_append(list, mu_value_int((int64_t)shape->dims[i])) != 0) {
            mu_value_free(list);
            return NULL;
        }
    }
    return list;
}

struct entry {
    const char *key;
    mu_value *value;
};

/* A map of the entries; takes their values. NULL when out of memory. */
static mu_value *map_of(const struct entry *entries, size_t count)
{
    mu_value *map = mu_value_map();
    bool failed = map == NULL;

    for (size_t i = 0; i < count; i++) {
        if (failed)
            mu_value_free(entries[i].value);
        else
            failed = mu_value_set(map, entries[i].key, entries[i].value) != 0;
    }
    if (failed) {
        mu_value_free(map);
        return NULL;
    }
    return map;
}

static mu_value *number(uint64_t n)
{
    return mu_value_int((int64_t)n);
}

static mu_value *info_value(const struct mu__store_info *info)
{
    const struct entry entries[] = {
        {"name", mu_value_string(info->name)},
        {"dtype", mu_value_string(mu_dtype_name((int)info->shape->dtype))},
        {"dims", dims_value(info->shape)},
        {"shard", number(info->shard)},
        {"shards", number(info->shape->shards)},
        {"bytes", number(info->bytes)},
        {"version", number(info->version)},
        {"ready", mu_value_bool(info->ready)},
        {"reads", number(info->reads)},
        {"writes", number(info->writes)},
        {"bytes_read", number(info->bytes_read)},
        {"bytes_written", number(info->bytes_written)},
    };

    return map_of(entries, sizeof entries / sizeof entries[0]);
}

/* Takes `item`. A list that lacks memory for one item is dropped as a whole. */
static void add_item(struct listing *listing, mu_value *item)
{
    if (listing->list == NULL) {
        mu_value_free(item);
        return;
    }
    if (mu_value_append(listing->list, item) != 0) {
        mu_value_free(listing->list);
        listing->list = NULL;
    }
}

static void list_variable(void *user, const struct mu__store_info *info)
{
    struct listing *listing = user;

    if (listing->list != NULL && mu_value_count(listing->list) >= MU__PS_STATUS_MAX)
        listing->left_out++;
    else
        add_item(listing, info_value(info));
}

mu_value *mu__ps_status(const void *ps_state)
{
    const struct ps *ps = ps_state;
    struct listing listing = {mu_value_list(), 0};

    if (listing.list == NULL)
        return NULL;
    mu__store_each(ps->store, list_variable, &listing);
    if (listing.left_out > 0) {
        const struct entry entry = {"left_out", number(listing.left_out)};

        add_item(&listing, map_of(&entry, 1));
    }
    return listing.list;
}

static void on_status_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    const struct mu__status_get *body = mu__body(msg);
    mu_value *value = mu__ps_status(state);
    struct mu__msg *reply = mu__msg_new(ctx, MU__STATUS);

    if (value != NULL && reply != NULL) {
        struct mu__status *reply_body = mu__body(reply);

        reply_body->token = body->token;
        reply->backing = mu__pack_value(value, &reply_body->status);
    }
    mu_value_free(value);
    if (reply == NULL || reply->backing == NULL) {
        mu__log(ctx, MU__LOG_WARN, "no status: out of memory");
        mu__msg_free(ctx, reply);
        return;
    }
    answer(ctx, msg->from, reply);
}

/* ---- Life ---- */

static int init(struct mu__ctx *ctx, void *state, const void *arg)
{
    struct ps *ps = state;
    int rv;

    ps->store = mu__store_new(arg == NULL ? &mu__store_limits_default : arg,
                              mu__random(ctx));
    if (ps->store == NULL)
        return -MU_ENOMEM;
    rv = mu__watch_nodes(ctx);
    if (rv != 0)
        mu__store_free(ps->store);
    return rv;
}

static void done(struct mu__ctx *ctx, void *state)
{
    struct ps *ps = state;

    (void)ctx;
    mu__store_free(ps->store);
}

const struct mu__behavior mu__ps = {
    .name = "ps",
    .state_size = sizeof(struct ps),
    .handlers = handlers,
    .handlers_count = sizeof handlers / sizeof handlers[0],
    .init = init,
    .done = done,
};
