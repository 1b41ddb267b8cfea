/* Key-values of the coordination service: what reads them.
 *
 * A subject is a key, or what is below it, that somebody waits for: gets that wait until
 * the key is there, watches of the key, watches of what is below. Each wait is in the
 * lists of its subject, where a change finds it, and in the map of its node, where what
 * that node says finds it. A node that is down, or a service that does not lead any more,
 * has forgotten its waits: agents ask again.
 *
 * What a watch of a large directory finds at its begin is told in pages, one in a tick,
 * so that a link is never full with them. A change behind the page that was told last
 * will be found by a later page, and is not told by itself.
 *
 * While the store does not say for certain that this node holds it, reads wait in the
 * order in which they came. */
#include "actors/coordination/keys/internal.h"
#include "actors/packing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_AGAIN_MS = 50 };

enum wait_kind { WAIT_GET, WAIT_WATCH, WAIT_WATCH_BELOW, WAIT_KINDS };

struct wait_list {
    struct coord_wait *first;
    struct coord_wait *last;
};

struct subject {
    struct wait_list waits[WAIT_KINDS];
    uint32_t count;
    uint32_t key_size;
    char key[];
};

/* A node, and what it waits for. */
struct key_reader {
    uint32_t node;
    struct mu__map waits;       /* by token */
};

struct coord_wait {
    uint64_t token;
    enum wait_kind kind;
    struct key_reader *reader;
    struct subject *subject;
    struct coord_wait *next;            /* in the subject's list of the kind */
    struct coord_wait *before;
    struct coord_wait *page_next;       /* of those whose snapshot is not whole */
    char *cursor;                       /* the last key that it was told; NULL: all */
    uint32_t cursor_size;
};

struct coord_reads {
    struct mu__pool *pool;
    uint64_t secret;                    /* agents choose tokens */
    struct mu__key_values *subjects;    /* a value is a pointer to a struct subject */
    struct mu__map readers;             /* by node + 1 */
    uint64_t counts[WAIT_KINDS];
    struct coord_wait *pages;           /* whose snapshot is not whole */
    struct coord_wait **pages_end;
    struct mu__msg *held;               /* reads that wait for the store */
    struct mu__msg **held_end;
    uint32_t held_count;
};

/* ---- Subjects ---- */

static struct subject *find_subject(const struct coord_reads *r, struct mu__view key)
{
    struct mu__key_value entry;
    struct subject *subject;

    if (!mu__key_values_find(r->subjects, key, &entry))
        return NULL;
    assert(entry.value.size == sizeof subject);
    memcpy(&subject, entry.value.data, sizeof subject);
    return subject;
}

static struct subject *add_subject(struct coord_reads *r, struct mu__view key)
{
    struct subject *subject = calloc(1, sizeof *subject + key.size);
    struct mu__key_value entry = {.key = key, .value = {&subject, sizeof subject}};

    if (subject == NULL)
        return NULL;
    subject->key_size = key.size;
    if (key.size > 0)
        memcpy(subject->key, key.data, key.size);
    if (mu__key_values_put(r->subjects, &entry, NULL) == 0)
        return subject;
    free(subject);
    return NULL;
}

static void drop_subject(struct coord_reads *r, struct subject *subject)
{
    if (subject->count > 0)
        return;
    (void)mu__key_values_remove(r->subjects,
                                (struct mu__view){subject->key, subject->key_size});
    free(subject);
}

static struct mu__view key_of(const struct coord_wait *wait)
{
    return (struct mu__view){wait->subject->key, wait->subject->key_size};
}

/* ---- Waits ---- */

static struct key_reader *find_reader(const struct coord_reads *r, uint32_t node)
{
    return mu__map_get(&r->readers, (uint64_t)node + 1);
}

static struct key_reader *add_reader(struct coord_reads *r, uint32_t node)
{
    struct key_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL)
        return NULL;
    reader->node = node;
    mu__map_seed(&reader->waits, r->secret);
    if (mu__map_set(&r->readers, (uint64_t)node + 1, reader) == 0)
        return reader;
    free(reader);
    return NULL;
}

static void list_wait(struct coord_wait *wait)
{
    struct wait_list *list = &wait->subject->waits[wait->kind];

    wait->before = list->last;
    if (list->last != NULL)
        list->last->next = wait;
    else
        list->first = wait;
    list->last = wait;
    wait->subject->count++;
}

static void unlist_wait(struct coord_wait *wait)
{
    struct wait_list *list = &wait->subject->waits[wait->kind];

    if (wait->before != NULL)
        wait->before->next = wait->next;
    else
        list->first = wait->next;
    if (wait->next != NULL)
        wait->next->before = wait->before;
    else
        list->last = wait->before;
    wait->subject->count--;
}

static void leave_pages(struct coord_reads *r, struct coord_wait *wait)
{
    struct coord_wait **link = &r->pages;

    if (wait->cursor == NULL)
        return;
    while (*link != wait)
        link = &(*link)->page_next;
    *link = wait->page_next;
    if (r->pages_end == &wait->page_next)
        r->pages_end = link;
    free(wait->cursor);
    wait->cursor = NULL;
}

/* It is in its reader's map no more. */
static void free_wait(struct coord_reads *r, struct coord_wait *wait)
{
    struct subject *subject = wait->subject;

    leave_pages(r, wait);
    unlist_wait(wait);
    r->counts[wait->kind]--;
    drop_subject(r, subject);
    free(wait);
}

static void end_wait(struct coord_reads *r, struct coord_wait *wait)
{
    (void)mu__map_remove(&wait->reader->waits, wait->token);
    free_wait(r, wait);
}

static int refuse_memory(mu_error *error)
{
    return mu_error_set(error, -MU_ENOMEM, "no memory for one more that waits");
}

/* The subject is there, if there is memory, even when the wait is not: it is dropped. */
static int make_wait(struct coord_reads *r, struct key_reader *reader, uint64_t token,
                     enum wait_kind kind, struct mu__view key,
                     struct coord_wait **ret_wait)
{
    struct subject *subject = find_subject(r, key);
    struct coord_wait *wait = calloc(1, sizeof *wait);

    if (wait != NULL && subject == NULL)
        subject = add_subject(r, key);
    if (wait == NULL || subject == NULL) {
        free(wait);
        return -MU_ENOMEM;
    }
    if (mu__map_set(&reader->waits, token, wait) != 0) {
        free(wait);
        drop_subject(r, subject);
        return -MU_ENOMEM;
    }
    wait->token = token;
    wait->kind = kind;
    wait->reader = reader;
    wait->subject = subject;
    list_wait(wait);
    r->counts[kind]++;
    *ret_wait = wait;
    return 0;
}

/* -MU_EEXISTS: this was asked before, and waits. */
static int add_wait(struct coord_reads *r, uint32_t node, uint64_t token,
                    enum wait_kind kind, struct mu__view key, mu_error *error,
                    struct coord_wait **ret_wait)
{
    struct key_reader *reader = find_reader(r, node);

    if (token == 0)
        return mu_error_set(error, -MU_EINVALID, "0 is no token");
    if (reader == NULL)
        reader = add_reader(r, node);
    if (reader == NULL)
        return refuse_memory(error);
    if (mu__map_get(&reader->waits, token) != NULL)
        return -MU_EEXISTS;
    if (reader->waits.count >= COORD_WAITS_MAX)
        return mu_error_set(error, -MU_EEXHAUSTED, "this task waits for keys %d times, "
                            "gets and watches together, as often as it may",
                            COORD_WAITS_MAX);
    if (make_wait(r, reader, token, kind, key, ret_wait) != 0)
        return refuse_memory(error);
    return 0;
}

static struct coord_wait *find_wait(const struct coord_reads *r, uint32_t node,
                                    uint64_t token)
{
    struct key_reader *reader = find_reader(r, node);

    return reader == NULL ? NULL : mu__map_get(&reader->waits, token);
}

/* ---- What is said ---- */

static void send_value(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
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

/* Key and value of a change in one buffer, for all who hear of it. NULL: no memory. */
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

/* False: no memory, or too much waits for the store. */
static bool send_event(struct mu__ctx *ctx, struct coordination *c,
                      const struct coord_wait *wait, const struct mu__key_value *entry,
                      bool deleted)
{
    bool is_full = c->later_count >= COORD_LATER_EVENTS;
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

static void refuse_watch(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                         uint64_t token, const mu_error *error)
{
    struct mu__msg *msg = mu__msg_new(ctx, MU__KEY_EVENT);
    struct mu__key_event *body;

    if (msg == NULL)
        return;
    body = mu__body(msg);
    body->token = token;
    body->code = (uint32_t)-error->code;
    body->message = mu__view_str(error->message);
    if (!mu__coord_back(msg, (struct mu__view *[]){&body->message}, 1))
        body->message.size = 0;
    mu__coord_key_send_refusal(ctx, c, node, error->code, msg);
}

static void refuse_list(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
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
    if (!mu__coord_back(msg, (struct mu__view *[]){&body->message}, 1))
        body->message.size = 0;
    mu__coord_key_send_refusal(ctx, c, node, error->code, msg);
}

/* One that would miss something is over, and its program may begin another. */
static void end_watch(struct mu__ctx *ctx, struct coordination *c,
                      struct coord_wait *wait)
{
    mu_error error;

    (void)mu_error_set(&error, -MU_EEXHAUSTED,
                       "no memory for what a watch is told, or too much waits for the "
                       "store: it is over");
    refuse_watch(ctx, c, wait->reader->node, wait->token, &error);
    end_wait(c->keys->reads, wait);
}

/* ---- Changes: `entry->backing` is what its views point into; NULL: there was no memory
 * for that, so whoever should hear of the change is told that ---- */

static void answer_get(struct mu__ctx *ctx, struct coordination *c,
                       struct coord_wait *wait, const struct mu__key_value *entry)
{
    mu_error error;

    if (entry->backing != NULL) {
        send_value(ctx, c, wait->reader->node, wait->token, entry);
    } else {
        (void)mu_error_set(&error, -MU_ENOMEM, "no memory for a value");
        mu__coord_key_refuse(ctx, c, wait->reader->node, wait->token, &error);
    }
    end_wait(c->keys->reads, wait);
}

static void send_watch(struct mu__ctx *ctx, struct coordination *c,
                       struct coord_wait *wait, const struct mu__key_value *entry,
                       bool deleted)
{
    struct mu__view cursor = {wait->cursor, wait->cursor_size};

    /* What a page to come will find is not told now. */
    if (wait->cursor != NULL && mu__key_compare(entry->key, cursor) > 0)
        return;
    if (entry->backing == NULL || !send_event(ctx, c, wait, entry, deleted))
        end_watch(ctx, c, wait);
}

static void send_subject(struct mu__ctx *ctx, struct coordination *c,
                         struct subject *subject, enum wait_kind kind,
                         const struct mu__key_value *entry, bool deleted)
{
    struct coord_wait *wait = subject->waits[kind].first;

    subject->count++;       /* it stays while it is walked over */
    while (wait != NULL) {
        struct coord_wait *next = wait->next;

        if (kind == WAIT_GET)
            answer_get(ctx, c, wait, entry);
        else
            send_watch(ctx, c, wait, entry, deleted);
        wait = next;
    }
    subject->count--;
    drop_subject(c->keys->reads, subject);
}

/* The buffer is made for the first who hears of it. */
static void send_at(struct mu__ctx *ctx, struct coordination *c, struct mu__view key,
                    enum wait_kind kind, struct mu__key_value *entry, bool deleted)
{
    struct coord_reads *r = c->keys->reads;
    struct subject *subject = r->counts[kind] == 0 ? NULL : find_subject(r, key);

    if (subject == NULL || subject->waits[kind].first == NULL)
        return;
    if (entry->backing == NULL)
        (void)make_event(entry);
    send_subject(ctx, c, subject, kind, entry, deleted);
}

/* Those who watch what is above the key: "a" and "" for "a/b". */
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

/* ---- Gets ---- */

static void get(struct mu__ctx *ctx, struct coordination *c, const struct mu__msg *msg)
{
    const struct mu__key_get *body = (const void *)msg->body;
    uint32_t node = msg->from.node;
    struct mu__key_value entry;
    struct coord_wait *wait;
    mu_error error;
    int rv;

    if (mu__key_values_find(c->keys->kv, body->key, &entry)) {
        send_value(ctx, c, node, body->token, &entry);
        return;
    }
    if (body->wait)
        rv = add_wait(c->keys->reads, node, body->token, WAIT_GET, body->key, &error,
                      &wait);
    else
        rv = mu__coord_key_error(&error, -MU_ENOTFOUND, body->key, "is not there");
    if (rv != 0 && rv != -MU_EEXISTS)
        mu__coord_key_refuse(ctx, c, node, body->token, &error);
}

/* ---- Lists ---- */

/* A key is a string where it can be, and else bytes. */
static mu_value *key_value(struct mu__view key)
{
    char text[MU__KEY_MAX + 1];
    mu_value *value;

    mu__view_copy(key, text, sizeof text);
    value = mu_value_string(text);
    return value != NULL ? value : mu_value_bytes(key.data, key.size);
}

static mu_value *item_of(const struct mu__key_value *entry, bool names_only)
{
    mu_value *item = mu_value_map();
    int rv = item == NULL ? -MU_ENOMEM : 0;

    if (rv == 0)
        rv = mu_value_set(item, "key", key_value(entry->key));
    if (rv == 0 && !names_only)
        rv = mu_value_set(item, "value", mu_value_bytes(entry->value.data,
                                                        entry->value.size));
    if (rv == 0)
        rv = mu_value_set(item, "revision", mu_value_int((int64_t)entry->revision));
    if (rv == 0)
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
        if (mu_value_append(items, item_of(&entry, body->names_only)) != 0) {
            mu_value_free(items);
            return NULL;
        }
        more = mu__key_values_next(c->keys->kv, entry.key, true, &entry);
    }
    *ret_more = false;
    return items;
}

static void list(struct mu__ctx *ctx, struct coordination *c, const struct mu__msg *msg)
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
    refuse_list(ctx, c, msg->from.node, body->token, &error);
}

/* ---- Watches ---- */

/* Without memory the watch is over. */
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

/* Tell one entry of a snapshot; false: no memory. */
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

/* Tell what is below the watch's key behind `from`, as far as one page goes. 1: that was
 * all, 0: *ret_last is the last key that was told, negative: no memory. */
static int send_page(struct mu__ctx *ctx, struct coordination *c,
                     const struct coord_wait *wait, struct mu__view from,
                     struct mu__view *ret_last)
{
    struct mu__key_value entry;
    uint64_t bytes = 0;
    unsigned count = 0;

    while (mu__key_values_next(c->keys->kv, from, true, &entry) &&
           mu__key_is_below(entry.key, key_of(wait))) {
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

/* The first page at once; what does not fit one follows with the ticks. */
static void begin_below(struct mu__ctx *ctx, struct coordination *c,
                        struct coord_wait *wait)
{
    struct coord_reads *r = c->keys->reads;
    struct mu__view last;
    int rv = send_page(ctx, c, wait, key_of(wait), &last);

    if (rv > 0) {
        send_complete(ctx, c, wait);
        return;
    }
    if (rv < 0 || !set_cursor(wait, last)) {
        end_watch(ctx, c, wait);
        return;
    }
    wait->page_next = NULL;
    *r->pages_end = wait;
    r->pages_end = &wait->page_next;
    mu__coord_wake_at(ctx, c, mu__coord_clock(ctx, c) + 1);
}

/* The next page of the watch that has waited for the longest time. */
static void next_page(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_reads *r = c->keys->reads;
    struct coord_wait *wait = r->pages;
    struct mu__view last;
    int rv = send_page(ctx, c, wait,
                       (struct mu__view){wait->cursor, wait->cursor_size}, &last);

    if (rv < 0) {
        end_watch(ctx, c, wait);
        return;
    }
    if (rv > 0) {
        leave_pages(r, wait);
        send_complete(ctx, c, wait);
        return;
    }
    (void)set_cursor(wait, last);
    r->pages = wait->page_next;
    if (r->pages == NULL)
        r->pages_end = &r->pages;
    wait->page_next = NULL;
    *r->pages_end = wait;
    r->pages_end = &wait->page_next;
}

/* Asked again it begins again: its agent has not taken what it was told since. */
static void watch(struct mu__ctx *ctx, struct coordination *c, const struct mu__msg *msg)
{
    const struct mu__key_watch *body = (const void *)msg->body;
    struct mu__key_value entry;
    struct coord_wait *wait;
    mu_error error;
    int rv;

    wait = find_wait(c->keys->reads, msg->from.node, body->token);
    if (wait != NULL)
        end_wait(c->keys->reads, wait);
    rv = add_wait(c->keys->reads, msg->from.node, body->token,
                  body->below ? WAIT_WATCH_BELOW : WAIT_WATCH, body->key, &error, &wait);
    if (rv != 0) {
        refuse_watch(ctx, c, msg->from.node, body->token, &error);
        return;
    }
    if (body->below) {
        begin_below(ctx, c, wait);
        return;
    }
    if (mu__key_values_find(c->keys->kv, body->key, &entry) &&
        !send_entry(ctx, c, wait, &entry)) {
        end_watch(ctx, c, wait);
        return;
    }
    send_complete(ctx, c, wait);
}

/* ---- Reads, and when ---- */

/* How one kind of read is done and refused. All bodies begin with the token, and then
 * have the key. */
struct read_kind {
    uint16_t kind;
    bool may_be_empty;
    void (*read)(struct mu__ctx *ctx, struct coordination *c, const struct mu__msg *msg);
    void (*refuse)(struct mu__ctx *ctx, struct coordination *c, uint32_t node,
                   uint64_t token, const mu_error *error);
};

static const struct read_kind read_kinds[] = {
    {MU__KEY_GET, false, get, mu__coord_key_refuse},
    {MU__KEY_LIST, true, list, refuse_list},
    {MU__KEY_WATCH, true, watch, refuse_watch},
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

static const struct read_kind *kind_of(const struct mu__msg *msg)
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
    return mu_error_set(error, -MU_EINVALID, "a key is not in its normal form: it is "
                        "empty, too long, has slashes too many or control characters");
}

static void do_read(struct mu__ctx *ctx, struct coordination *c,
                    const struct mu__msg *msg)
{
    const struct read_kind *kind = kind_of(msg);
    mu_error error;

    if (check_read(ctx, c, kind, msg, &error) == 0)
        kind->read(ctx, c, msg);
    else
        kind->refuse(ctx, c, msg->from.node, head_of(msg).token, &error);
}

static void hold(struct mu__ctx *ctx, struct coordination *c, struct mu__msg *msg)
{
    struct coord_reads *r = c->keys->reads;
    mu_error error;

    if (r->held_count >= COORD_HELD_MAX) {
        (void)mu_error_set(&error, -MU_EEXHAUSTED, "%d reads wait until it is certain "
                           "that %s holds its store", COORD_HELD_MAX, c->config.task);
        kind_of(msg)->refuse(ctx, c, msg->from.node, head_of(msg).token, &error);
        return;
    }
    msg = mu__claim(ctx);
    msg->next = NULL;
    *r->held_end = msg;
    r->held_end = &msg->next;
    r->held_count++;
    mu__coord_wake_at(ctx, c, mu__coord_clock(ctx, c) + HELD_AGAIN_MS);
}

static bool may_read(struct mu__ctx *ctx, const struct coordination *c)
{
    return c->store->ops->may_read(c->store, ctx);
}

static void on_read(struct mu__ctx *ctx, struct coordination *c, struct mu__msg *msg)
{
    if (c->keys->reads->held == NULL && may_read(ctx, c))
        do_read(ctx, c, msg);
    else
        hold(ctx, c, msg);
}

static void release_held(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_reads *r = c->keys->reads;

    while (r->held != NULL && may_read(ctx, c)) {
        struct mu__msg *msg = r->held;

        r->held = msg->next;
        if (r->held == NULL)
            r->held_end = &r->held;
        r->held_count--;
        do_read(ctx, c, msg);
        mu__msg_free(ctx, msg);
    }
}

/* Drop those of a node; with a token, only that. */
static void drop_held(struct coord_reads *r, uint32_t node, uint64_t token)
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

/* One for each watch, and not too many. */
static unsigned pages_due(const struct coord_reads *r)
{
    unsigned count = 0;

    for (const struct coord_wait *wait = r->pages;
         wait != NULL && count < COORD_SNAPSHOT_PAGES; wait = wait->page_next)
        count++;
    return count;
}

void mu__coord_reads_tick(struct mu__ctx *ctx, struct coordination *c)
{
    struct coord_reads *r = c->keys->reads;
    uint64_t now_ms = mu__coord_clock(ctx, c);

    release_held(ctx, c);
    for (unsigned pages = pages_due(r); pages > 0 && r->pages != NULL; pages--)
        next_page(ctx, c);
    if (r->pages != NULL)
        mu__coord_wake_at(ctx, c, now_ms + 1);
    else if (r->held != NULL)
        mu__coord_wake_at(ctx, c, now_ms + HELD_AGAIN_MS);
}

/* ---- Handlers ---- */

void mu__coord_on_key_get(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    on_read(ctx, state, msg);
}

void mu__coord_on_key_list(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    on_read(ctx, state, msg);
}

void mu__coord_on_key_watch(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    on_read(ctx, state, msg);
}

static void cancel(struct coord_reads *r, uint32_t node, uint64_t token)
{
    struct coord_wait *wait = token == 0 ? NULL : find_wait(r, node, token);

    if (wait != NULL)
        end_wait(r, wait);
    else if (token != 0 && r->held != NULL)
        drop_held(r, node, token);
}

void mu__coord_on_key_cancel(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__key_cancel *body = mu__body(msg);

    (void)ctx;
    cancel(c->keys->reads, msg->from.node, body->token);
}

void mu__coord_on_key_unwatch(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct coordination *c = state;
    const struct mu__key_unwatch *body = mu__body(msg);

    (void)ctx;
    cancel(c->keys->reads, msg->from.node, body->token);
}

/* ---- Its life ---- */

struct coord_reads *mu__coord_reads_new(uint64_t secret, struct mu__pool *pool)
{
    struct coord_reads *r = calloc(1, sizeof *r);

    if (r == NULL)
        return NULL;
    r->pool = pool;
    r->secret = secret;
    r->pages_end = &r->pages;
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
            free_wait(r, reader->waits.entries[i].value);
    mu__map_done(&reader->waits);
    free(reader);
}

void mu__coord_reads_node_down(struct coord_reads *r, uint32_t node)
{
    struct key_reader *reader = mu__map_remove(&r->readers, (uint64_t)node + 1);

    drop_held(r, node, 0);
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
