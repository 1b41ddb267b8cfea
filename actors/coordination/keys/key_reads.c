/* Key-values of the coordination service: reads.
 *
 * A subject is a key or directory with waits: gets that wait until the key is there,
 * watches of the key, watches of the keys below. Each wait is in a list of its subject,
 * for changes, and in the map of its node, for cancels. Waits are forgotten when the link
 * of the node is down or the service does not lead any more: agents repeat them.
 *
 * The snapshot of a large directory is sent in pages, one in a tick, and only to who has
 * read the former ones, so that it does not fill a link. A change of a key behind the
 * last page is not sent by itself: a later page will have it.
 *
 * While it is not certain that this node holds the store, reads are held, in order. */
#include "actors/coordination/keys/internal.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/replies.h"
#include "actors/packing.h"

#include <stdlib.h>
#include <string.h>

enum { HELD_AGAIN_MS = 50, BEHIND_AGAIN_MS = 20 };

/* ---- Gets ---- */

static void get_key(struct mu__ctx *ctx, struct coordination *c,
                    const struct mu__msg *msg)
{
    const struct mu__key_get *body = (const void *)msg->body;
    uint32_t node = msg->from.node;
    struct mu__key_value entry;
    struct coord_wait *wait;
    mu_error error;
    int rv;

    if (mu__key_values_find(c->keys->kv, body->key, &entry)) {
        mu__coord_key_send_value(ctx, c, node, body->token, &entry);
        return;
    }
    if (body->wait)
        rv = mu__coord_key_add_wait(c->keys->reads, node, body->token, WAIT_GET,
                                    body->key, &error, &wait);
    else
        rv = mu__coord_key_error(&error, -MU_ENOTFOUND, body->key, "is not there");
    if (rv != 0 && rv != -MU_EEXISTS)
        mu__coord_key_refuse(ctx, c, node, body->token, &error);
}

/* ---- Lists ---- */

/* A key that is not UTF-8 is bytes. */
static mu_value *key_value(struct mu__view key)
{
    char text[MU__KEY_MAX + 1];
    mu_value *value;

    mu__view_copy(key, text, sizeof text);
    value = mu_value_string(text);
    return value != NULL ? value : mu_value_bytes(key.data, key.size);
}

static mu_value *make_listed_item(const struct mu__key_value *entry, bool names_only)
{
    mu_value *item = mu_value_map();

    if (item != NULL && mu_value_set(item, "key", key_value(entry->key)) == 0 &&
        (names_only ||
         mu_value_set(item, "value",
                      mu_value_bytes(entry->value.data, entry->value.size)) == 0) &&
        mu_value_set(item, "revision", mu_value_int((int64_t)entry->revision)) == 0)
        return item;
    mu_value_free(item);
    return NULL;
}

/* One page; NULL: no memory. */
static mu_value *list_page(const struct coordination *c, const struct mu__key_list *body,
                           bool *ret_more)
{
    bool from_after = body->after.size > 0 && mu__key_is_below(body->after, body->key);
    mu_value *items = mu_value_list();
    struct mu__key_value entry;
    uint64_t bytes = 0;
    bool more = mu__key_values_next(c->keys->kv, from_after ? body->after : body->key,
                                    true, &entry);

    while (items != NULL && more && mu__key_is_below(entry.key, body->key)) {
        bytes += entry.key.size + (body->names_only ? 0 : entry.value.size);
        if (mu_value_count(items) >= COORD_PAGE_ITEMS ||
            (bytes > COORD_PAGE_BYTES && mu_value_count(items) > 0)) {
            *ret_more = true;
            return items;
        }
        if (mu_value_append(items, make_listed_item(&entry, body->names_only)) != 0) {
            mu_value_free(items);
            return NULL;
        }
        more = mu__key_values_next(c->keys->kv, entry.key, true, &entry);
    }
    *ret_more = false;
    return items;
}

static void list_keys(struct mu__ctx *ctx, struct coordination *c,
                      const struct mu__msg *msg)
{
    const struct mu__key_list *body = (const void *)msg->body;
    struct mu__msg *answer = mu__msg_new(ctx, MU__KEY_LISTED);
    bool more = false;
    mu_value *items = answer == NULL ? NULL : list_page(c, body, &more);
    mu_error error;

    if (items != NULL) {
        struct mu__key_listed *listed = mu__body(answer);

        listed->token = body->token;
        listed->more = more;
        answer->backing = mu__pack_value(items, &listed->items);
        mu_value_free(items);
    }
    if (answer != NULL && answer->backing != NULL) {
        mu__coord_send(ctx, c, msg->from.node, answer);
        return;
    }
    if (answer != NULL)
        mu__msg_free(ctx, answer);
    (void)mu_error_set(&error, -MU_ENOMEM, "no memory for a list of keys");
    mu__coord_key_refuse_list(ctx, c, msg->from.node, body->token, &error);
}

/* ---- Reads, now or held ---- */

/* One kind of read. All bodies begin with the token and the key. */
struct read_kind {
    uint16_t kind;
    bool may_be_empty;
    void (*read)(struct mu__ctx *ctx, struct coordination *c, const struct mu__msg *msg);
    void (*refuse)(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                   uint64_t token, const mu_error *error);
};

static const struct read_kind read_kinds[] = {
    {MU__KEY_GET, false, get_key, mu__coord_key_refuse},
    {MU__KEY_LIST, true, list_keys, mu__coord_key_refuse_list},
    {MU__KEY_WATCH, true, mu__coord_key_watch, mu__coord_key_refuse_watch},
};

struct read_head {
    uint64_t token;
    struct mu__view key;
};

_Static_assert(offsetof(struct mu__key_get, key) == offsetof(struct read_head, key),
               "a get has its head");

_Static_assert(offsetof(struct mu__key_list, key) == offsetof(struct read_head, key),
               "a list has its head");

_Static_assert(offsetof(struct mu__key_watch, key) == offsetof(struct read_head, key),
               "a watch has its head");

static struct read_head head_of(const struct mu__msg *msg)
{
    struct read_head head;

    memcpy(&head, msg->body, sizeof head);
    return head;
}

static const struct read_kind *get_read_kind(const struct mu__msg *msg)
{
    const struct read_kind *kind = read_kinds;

    while (kind->kind != msg->kind)
        kind++;
    return kind;
}

static int check_read(struct mu__ctx *ctx, struct coordination *c,
                      const struct read_kind *kind, const struct mu__msg *msg,
                      mu_error *error)
{
    struct read_head head = head_of(msg);

    if (mu__coord_key_requester(ctx, c, msg->from.node, error) == NULL ||
        mu__coord_key_admit(c, error) != 0)
        return error->code;
    if (mu__key_is_normal(head.key) && (head.key.size > 0 || kind->may_be_empty))
        return 0;
    return mu_error_set(error, -MU_EINVALID,
                        "a key is not in its normal form: it is "
                        "empty, too long, has slashes too many or control characters");
}

static void run_key_read(struct mu__ctx *ctx, struct coordination *c,
                         const struct mu__msg *msg)
{
    const struct read_kind *kind = get_read_kind(msg);
    mu_error error;

    if (check_read(ctx, c, kind, msg, &error) == 0)
        kind->read(ctx, c, msg);
    else
        kind->refuse(ctx, c, msg->from.node, head_of(msg).token, &error);
}

void mu__coord_reads_try_within(struct mu__ctx *ctx, struct coordination *c,
                                uint64_t delay_ms)
{
    struct coord_reads *r = c->keys->reads;

    r->again_ms = mu__coord_earlier(r->again_ms, mu__coord_clock(ctx, c) + delay_ms);
}

static void hold_read(struct mu__ctx *ctx, struct coordination *c, struct mu__msg *msg)
{
    struct coord_reads *r = c->keys->reads;
    mu_error error;

    if (r->held_count >= COORD_HELD_MAX) {
        (void)mu_error_set(&error, -MU_EEXHAUSTED,
                           "%d reads wait until it is certain that %s holds its store",
                           COORD_HELD_MAX, c->config.task);
        get_read_kind(msg)->refuse(ctx, c, msg->from.node, head_of(msg).token, &error);
        return;
    }
    msg = mu__claim(ctx);
    msg->next = NULL;
    *r->held_end = msg;
    r->held_end = &msg->next;
    r->held_count++;
    mu__coord_reads_try_within(ctx, c, HELD_AGAIN_MS);
}

static bool may_read_store(struct mu__ctx *ctx, const struct coordination *c)
{
    return c->store->ops->may_read(c->store, ctx);
}

/* KEY_GET, KEY_LIST, KEY_WATCH. */
void mu__coord_on_key_read(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;

    if (c->keys->reads->held == NULL && may_read_store(ctx, c))
        run_key_read(ctx, c, msg);
    else
        hold_read(ctx, c, msg);
}

static void release_held_reads(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_reads *r = c->keys->reads;

    while (r->held != NULL && may_read_store(ctx, c)) {
        struct mu__msg *msg = r->held;

        r->held = msg->next;
        if (r->held == NULL)
            r->held_end = &r->held;
        r->held_count--;
        mu__handle_again(ctx, msg);
    }
}

/* Drop the held reads of a node; with a token, only that one. */
static void drop_held_reads(struct coord_reads *r, uint32_t node, uint64_t token)
{
    struct mu__msg **link = &r->held;

    while (*link != NULL) {
        struct mu__msg *msg = *link;

        if (msg->from.node != node || (token != 0 && head_of(msg).token != token)) {
            link = &msg->next;
            continue;
        }
        *link = msg->next;
        r->held_count--;
        mu__pool_put(r->pool, msg);
    }
    r->held_end = link;
}

void mu__coord_reads_tick(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_reads *r = c->keys->reads;
    bool sent;

    r->again_ms = UINT64_MAX;
    release_held_reads(ctx, c);
    sent = mu__coord_key_next_pages(ctx, c);
    if (!mu__list_is_empty(&r->pages))
        mu__coord_reads_try_within(ctx, c, sent ? 1 : BEHIND_AGAIN_MS);
    else if (r->held != NULL)
        mu__coord_reads_try_within(ctx, c, HELD_AGAIN_MS);
}

/* ---- Cancelling ---- */

static void cancel_read(struct coord_reads *r, uint32_t node, uint64_t token)
{
    struct coord_wait *wait = token == 0 ? NULL : mu__coord_key_find_wait(r, node, token);

    if (wait != NULL)
        mu__coord_key_end_wait(r, wait);
    else if (token != 0 && r->held != NULL)
        drop_held_reads(r, node, token);
}

void mu__coord_on_key_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__key_cancel *body = mu__body(msg);

    (void)ctx;
    cancel_read(c->keys->reads, msg->from.node, body->token);
}

void mu__coord_on_key_unwatch(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__key_unwatch *body = mu__body(msg);

    (void)ctx;
    cancel_read(c->keys->reads, msg->from.node, body->token);
}

/* ---- start and end ---- */

struct coord_reads *mu__coord_reads_new(uint64_t secret, struct mu__pool *pool)
{
    struct coord_reads *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->pool = pool;
    r->secret = secret;
    r->held_end = &r->held;
    r->subjects = mu__key_values_new(secret, 0, 0);
    if (r->subjects != NULL)
        return r;
    free(r);
    return NULL;
}

static void free_reader(struct coord_reads *r, struct key_reader *reader)
{
    for (size_t i = 0; i < reader->waits.capacity; i++)
        if (reader->waits.entries[i].key != 0)
            mu__coord_key_free_wait(r, reader->waits.entries[i].value);
    mu__map_done(&reader->waits);
    free(reader);
}

void mu__coord_reads_node_down(struct coord_reads *r, uint32_t node)
{
    struct key_reader *reader = mu__map_remove(&r->readers, (uint64_t)node + 1);

    drop_held_reads(r, node, 0);
    if (reader != NULL)
        free_reader(r, reader);
}

void mu__coord_reads_forget(struct coord_reads *r)
{
    for (size_t i = 0; i < r->readers.capacity; i++)
        if (r->readers.entries[i].key != 0)
            free_reader(r, r->readers.entries[i].value);
    mu__map_done(&r->readers);
    while (r->held != NULL) {
        struct mu__msg *msg = r->held;

        r->held = msg->next;
        mu__pool_put(r->pool, msg);
    }
    r->held_end = &r->held;
    r->held_count = 0;
}

void mu__coord_reads_free(struct coord_reads *r)
{
    if (r == NULL)
        return;
    mu__coord_reads_forget(r);
    mu__key_values_free(r->subjects);
    free(r);
}
