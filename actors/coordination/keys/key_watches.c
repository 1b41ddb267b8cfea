/* Watches, and gets that wait: their events and values, and snapshots in pages. */
#include "actors/coordination/keys/internal.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/replies.h"
#include "actors/packing.h"

#include <stdlib.h>
#include <string.h>

/* ---- Messages ---- */

void mu__coord_key_send_value(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                              uint64_t token, const struct mu__key_value *entry)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__KEY_DONE);
    struct mu__key_done *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = token;
    body->revision = entry->revision;
    body->value = entry->value;
    if (entry->backing != NULL)
        msg->backing = mu__buf_ref(entry->backing);
    mu__coord_send(ctx, c, node, msg);
}

/* Copy key and value of a change to one buffer, for all its events. NULL: no memory. */
static struct mu__buf *make_event(struct mu__key_value *entry)
{
    struct mu__buf *buf = mu__buf_new((size_t)entry->key.size + entry->value.size + 1);

    if (buf == NULL)
        return NULL;
    memcpy(buf->data, entry->key.data, entry->key.size);
    if (entry->value.size > 0)
        memcpy(buf->data + entry->key.size, entry->value.data, entry->value.size);
    entry->key.data = buf->data;
    entry->value.data = buf->data + entry->key.size;
    entry->backing = buf;
    return buf;
}

/* False: no memory, or too many messages wait for the store. */
static bool send_event(struct mu__ctx *ctx, struct coordination *c,
                       const struct coord_wait *wait, const struct mu__key_value *entry,
                       bool deleted)
{
    bool is_full = c->commits.later_count >= COORD_LATER_EVENTS;
    struct mu__msg *msg = is_full ? NULL : mu__msg_new(ctx, MU__KEY_EVENT);
    struct mu__key_event *body;

    if (msg == NULL)
        return false;
    body = mu__body(msg);
    body->token = wait->token;
    body->key = entry->key;
    body->value = entry->value;
    body->revision = entry->revision;
    body->deleted = deleted;
    msg->backing = mu__buf_ref(entry->backing);
    mu__coord_send(ctx, c, wait->reader->node, msg);
    return true;
}

static void send_complete(struct mu__ctx *ctx, struct coordination *c,
                          const struct coord_wait *wait)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__KEY_EVENT);
    struct mu__key_event *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = wait->token;
    body->complete = true;
    mu__coord_send(ctx, c, wait->reader->node, msg);
}

void mu__coord_key_refuse_watch(struct mu__ctx *ctx, struct coordination *c,
                                uint32_t node, uint64_t token, const mu_error *error)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__KEY_EVENT);
    struct mu__key_event *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = token;
    body->code = (uint32_t)-error->code;
    body->message = mu__view_str(error->message);
    mu__coord_back(msg, &body->message, NULL);
    mu__coord_key_send_refusal(ctx, c, node, error->code, msg);
}

void mu__coord_key_refuse_list(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                               uint64_t token, const mu_error *error)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__KEY_LISTED);
    struct mu__key_listed *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = token;
    body->code = (uint32_t)-error->code;
    body->message = mu__view_str(error->message);
    mu__coord_back(msg, &body->message, NULL);
    mu__coord_key_send_refusal(ctx, c, node, error->code, msg);
}

/* End a watch that would miss an event; its program may begin another. */
static void end_overflowed_watch(struct mu__ctx *ctx, struct coordination *c,
                                 struct coord_wait *wait)
{
    mu_error error;

    (void)mu_error_set(
        &error, -MU_EEXHAUSTED,
        "watch closed: out of memory, or too many events wait for the store");
    mu__coord_key_refuse_watch(ctx, c, wait->reader->node, wait->token, &error);
    mu__coord_key_end_wait(c->keys->reads, wait);
}

/* ---- Changes: the views of `entry` point into entry->backing; NULL: there was no memory
 * for that, and the gets and watches end with that error ---- */

static void answer_waiting_get(struct mu__ctx *ctx, struct coordination *c,
                               struct coord_wait *wait, const struct mu__key_value *entry)
{
    mu_error error;

    if (entry->backing != NULL) {
        mu__coord_key_send_value(ctx, c, wait->reader->node, wait->token, entry);
    } else {
        (void)mu_error_set(&error, -MU_ENOMEM, "no memory for a value");
        mu__coord_key_refuse(ctx, c, wait->reader->node, wait->token, &error);
    }
    mu__coord_key_end_wait(c->keys->reads, wait);
}

static void send_watch(struct mu__ctx *ctx, struct coordination *c,
                       struct coord_wait *wait, const struct mu__key_value *entry,
                       bool deleted)
{
    struct mu__view cursor = {wait->cursor, wait->cursor_size};

    /* A later page will have this key. */
    if (wait->cursor != NULL && mu__key_compare(entry->key, cursor) > 0)
        return;
    if (entry->backing == NULL || !send_event(ctx, c, wait, entry, deleted))
        end_overflowed_watch(ctx, c, wait);
}

static void send_subject(struct mu__ctx *ctx, struct coordination *c,
                         struct subject *subject, enum wait_kind kind,
                         const struct mu__key_value *entry, bool deleted)
{
    struct coord_wait *next;

    subject->count++; /* keeps it during the walk */
    for (struct coord_wait *wait =
             MU__LIST_FIRST(&subject->waits[kind], struct coord_wait, link);
         wait != NULL; wait = next) {
        next = MU__LIST_NEXT(wait, struct coord_wait, link);
        if (kind == WAIT_GET)
            answer_waiting_get(ctx, c, wait, entry);
        else
            send_watch(ctx, c, wait, entry, deleted);
    }
    subject->count--;
    mu__coord_key_drop_subject(c->keys->reads, subject);
}

/* The buffer is made for the first event. */
static void send_at(struct mu__ctx *ctx, struct coordination *c, struct mu__view key,
                    enum wait_kind kind, struct mu__key_value *entry, bool deleted)
{
    struct coord_reads *r = c->keys->reads;
    struct subject *subject =
        r->counts[kind] == 0 ? NULL : mu__coord_key_find_subject(r, key);

    if (subject == NULL || mu__list_is_empty(&subject->waits[kind]))
        return;
    if (entry->backing == NULL)
        (void)make_event(entry);
    send_subject(ctx, c, subject, kind, entry, deleted);
}

/* Events of the watches of the directories above the key: "a" and "" for "a/b". */
static void send_above(struct mu__ctx *ctx, struct coordination *c,
                       struct mu__key_value *entry, bool deleted)
{
    struct mu__view above = entry->key;
    const char *at = above.data;

    while (above.size > 0) {
        do
            above.size--;
        while (above.size > 0 && at[above.size] != '/');
        send_at(ctx, c, above, WAIT_WATCH_BELOW, entry, deleted);
    }
}

static void send_change(struct mu__ctx *ctx, struct coordination *c,
                        struct mu__key_value *entry, bool deleted)
{
    struct mu__view key = entry->key;

    entry->backing = NULL;
    send_at(ctx, c, key, WAIT_WATCH, entry, deleted);
    if (c->keys->reads->counts[WAIT_WATCH_BELOW] > 0)
        send_above(ctx, c, entry, deleted);
    if (!deleted)
        send_at(ctx, c, key, WAIT_GET, entry, false);
    mu__buf_unref(entry->backing);
}

void mu__coord_reads_changed(struct mu__ctx *ctx, struct coordination *c,
                             const struct mu__key_value *entry)
{
    struct mu__key_value copy = *entry;

    send_change(ctx, c, &copy, false);
}

void mu__coord_reads_deleted(struct mu__ctx *ctx, struct coordination *c,
                             struct mu__view key, uint64_t revision)
{
    struct mu__key_value removed = {.revision = revision, .key = key};

    send_change(ctx, c, &removed, true);
}

/* ---- Watches ---- */

/* False: no memory; the first key of a watch takes some. */
static bool set_cursor(struct coord_wait *wait, struct mu__view key)
{
    char *cursor = wait->cursor != NULL ? wait->cursor : malloc(MU__KEY_MAX);

    if (cursor == NULL)
        return false;
    memcpy(cursor, key.data, key.size);
    wait->cursor = cursor;
    wait->cursor_size = key.size;
    return true;
}

/* Send one entry of a snapshot; false: no memory. */
static bool send_entry(struct mu__ctx *ctx, struct coordination *c,
                       const struct coord_wait *wait, const struct mu__key_value *entry)
{
    struct mu__key_value copy = *entry;
    struct mu__buf *buf = make_event(&copy);
    bool sent;

    if (buf == NULL)
        return false;
    sent = send_event(ctx, c, wait, &copy, false);
    mu__buf_unref(buf);
    return sent;
}

/* Send one page of the keys below the watch's, behind `from`. 1: these were all, 0:
 * *ret_last is the last key that was sent, negative: no memory. */
static int send_page(struct mu__ctx *ctx, struct coordination *c,
                     const struct coord_wait *wait, struct mu__view from,
                     struct mu__view *ret_last)
{
    struct mu__key_value entry;
    uint64_t bytes = 0;
    unsigned count = 0;

    while (mu__key_values_next(c->keys->kv, from, true, &entry) &&
           mu__key_is_below(entry.key, mu__coord_key_key_of(wait))) {
        if (count >= COORD_SNAPSHOT_ITEMS || bytes > COORD_SNAPSHOT_BYTES) {
            *ret_last = from;
            return 0;
        }
        if (!send_entry(ctx, c, wait, &entry))
            return -MU_ENOMEM;
        bytes += entry.key.size + entry.value.size;
        count++;
        from = entry.key;
    }
    return 1;
}

/* The first page is sent at once, the others with the ticks. */
static void begin_below(struct mu__ctx *ctx, struct coordination *c,
                        struct coord_wait *wait)
{
    struct mu__view last;
    int rv = send_page(ctx, c, wait, mu__coord_key_key_of(wait), &last);

    if (rv > 0) {
        send_complete(ctx, c, wait);
        return;
    }
    if (rv < 0 || !set_cursor(wait, last)) {
        end_overflowed_watch(ctx, c, wait);
        return;
    }
    mu__list_append(&c->keys->reads->pages, &wait->page_link);
    mu__coord_reads_try_within(ctx, c, 1);
}

static void next_page(struct mu__ctx *ctx, struct coordination *c,
                      struct coord_wait *wait)
{
    struct coord_reads *r = c->keys->reads;
    struct mu__view last;
    int rv = send_page(ctx, c, wait, (struct mu__view){wait->cursor, wait->cursor_size},
                       &last);

    if (rv < 0) {
        end_overflowed_watch(ctx, c, wait);
        return;
    }
    if (rv > 0) {
        mu__coord_key_leave_pages(r, wait);
        send_complete(ctx, c, wait);
        return;
    }
    (void)set_cursor(wait, last);
    mu__list_remove(&r->pages, &wait->page_link);
    mu__list_append(&r->pages, &wait->page_link);
}

/* Who is behind goes to the end of the list. */
bool mu__coord_key_next_pages(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_reads *r = c->keys->reads;
    const struct mu__list_node *last = r->pages.last;
    const struct mu__list_node *at = NULL;
    unsigned pages = 0;

    for (unsigned looks = 0;
         looks < COORD_SNAPSHOT_LOOKS && pages < COORD_SNAPSHOT_PAGES && at != last &&
         !mu__list_is_empty(&r->pages);
         looks++) {
        struct coord_wait *wait = MU__LIST_FIRST(&r->pages, struct coord_wait, page_link);

        at = &wait->page_link;
        if (!mu__is_behind(ctx, wait->reader->node)) {
            next_page(ctx, c, wait);
            pages++;
            continue;
        }
        mu__list_remove(&r->pages, &wait->page_link);
        mu__list_append(&r->pages, &wait->page_link);
    }
    return pages > 0;
}

void mu__coord_key_watch(struct mu__ctx *ctx, struct coordination *c,
                         const struct mu__msg *msg)
{
    const struct mu__key_watch *body = (const void *)msg->body;
    struct mu__key_value entry;
    struct coord_wait *wait;
    mu_error error;
    int rv;

    wait = mu__coord_key_find_wait(c->keys->reads, msg->from.node, body->token);
    if (wait != NULL)
        mu__coord_key_end_wait(c->keys->reads, wait);
    rv = mu__coord_key_add_wait(c->keys->reads, msg->from.node, body->token,
                                body->below ? WAIT_WATCH_BELOW : WAIT_WATCH, body->key,
                                &error, &wait);
    if (rv != 0) {
        mu__coord_key_refuse_watch(ctx, c, msg->from.node, body->token, &error);
        return;
    }
    if (body->below) {
        begin_below(ctx, c, wait);
        return;
    }
    if (mu__key_values_find(c->keys->kv, body->key, &entry) &&
        !send_entry(ctx, c, wait, &entry)) {
        end_overflowed_watch(ctx, c, wait);
        return;
    }
    send_complete(ctx, c, wait);
}
