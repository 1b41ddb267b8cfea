/* Coming to hold the store: look for a holder; if there is none, get a lease and the
 * leader's key; then apply the batch that the former holder has staged; then read all.
 *
 * During the reading the leader's key keeps all other nodes from writing, if our lease
 * was alive when the last page was requested: that is checked before the owner is
 * told. */
#include "actors/coordination/store/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_ENTRIES = 256 };

static void enter_phase(struct etcd_store *store, enum etcd_phase phase)
{
    store->phase = phase;
}

/* A random eighth to quarter of the lease, so that waiting nodes do not all ask at
 * once. */
static void rest_before_retry(struct etcd_store *store, struct mu__ctx *ctx)
{
    uint32_t part = store->lease_ms / 8 + 1;

    store->retry.due_ms = mu__now_ms(ctx) + part + mu__random(ctx) % part;
    enter_phase(store, ETCD_RESTING);
}

static uint64_t ttl_s_of(const struct etcd_store *store)
{
    return ((uint64_t)store->lease_ms + 999) / 1000;
}

static bool read_text_number(struct mu__view text, uint64_t *ret_number)
{
    char digits[24];
    char *end;

    if (text.size == 0 || text.size > 20)
        return false;
    mu__view_copy(text, digits, sizeof digits);
    *ret_number = strtoull(digits, &end, 10);
    return *end == '\0' && *ret_number != 0;
}

/* ---- DROPPING: give back a lease that is not needed any more ---- */

static void build_dropping(struct etcd_store *store)
{
    mu__etcd_revoke(&store->main.body, store->lease.id);
}

static int on_lease_dropped(struct etcd_store *store, struct mu__ctx *ctx,
                            const struct mu__etcd_answer *answer, mu_error *ret_error)
{
    (void)answer;
    (void)ret_error;
    store->lease.id = 0;
    rest_before_retry(store, ctx);
    return 0;
}

/* ---- LOOKING: is there a leader? ---- */

static void build_looking(struct etcd_store *store)
{
    char key[ETCD_KEY_MAX + 1];

    mu__etcd_range(&store->main.body, mu__etcd_key(store, "leader", key),
                   (struct mu__view){"", 0}, 0);
}

static void another_leads(struct etcd_store *store, struct mu__ctx *ctx,
                          const struct mu__etcd_entry *leader)
{
    char who[ETCD_LEADER_MAX];

    mu__view_copy(leader->value, who, sizeof who);
    who[strcspn(who, " ")] = '\0';
    if (strcmp(who, store->logged.leader) != 0)
        mu__log(ctx, MU__LOG_INFO, "%s waits for %s: %s holds it", store->task,
                store->prefix, who);
    (void)snprintf(store->logged.leader, sizeof store->logged.leader, "%s", who);
    if (store->lease.id == 0)
        rest_before_retry(store, ctx);
    else
        enter_phase(store, ETCD_DROPPING);
}

static int on_leader_looked_up(struct etcd_store *store, struct mu__ctx *ctx,
                               const struct mu__etcd_answer *answer, mu_error *ret_error)
{
    struct mu__etcd_entries entries;
    struct mu__etcd_entry leader;
    int rv = mu__etcd_ranged(answer, ret_error, &entries);
    int found = rv != 0 ? rv : mu__etcd_next_entry(&entries, ret_error, &leader);

    if (found < 0)
        return found;
    if (found == 0)
        enter_phase(store, ETCD_GRANTING);
    else
        another_leads(store, ctx, &leader);
    return 0;
}

/* ---- GRANTING: get a lease ---- */

static void build_granting(struct etcd_store *store)
{
    mu__etcd_grant(&store->main.body, 0, ttl_s_of(store));
}

static int on_lease_granted(struct etcd_store *store, struct mu__ctx *ctx,
                            const struct mu__etcd_answer *answer, mu_error *ret_error)
{
    uint64_t ttl_s;
    int rv = mu__etcd_granted(answer, ret_error, &store->lease.id, &ttl_s);

    (void)ctx;
    if (rv != 0)
        return rv;
    store->lease.ttl_ms = ttl_s > UINT32_MAX / 1000 ? UINT32_MAX : (uint32_t)ttl_s * 1000;
    store->lease.sent_ms = store->main.sent_ms;
    store->lease.due_ms = store->lease.sent_ms + store->lease.ttl_ms / 3;
    enter_phase(store, ETCD_ELECTING);
    return 0;
}

/* ---- ELECTING: put the leader's key, if it is not there ---- */

static void build_electing(struct etcd_store *store)
{
    struct mu__build *body = &store->main.body;
    char key[ETCD_KEY_MAX + 1];
    struct mu__view leader = mu__etcd_key(store, "leader", key);

    store->leader.writes = 0;
    mu__etcd_leader_value(store);
    mu__etcd_txn_begin(body);
    mu__etcd_txn_compare(body, MU__ETCD_CREATE, leader, 0);
    mu__etcd_txn_then(body);
    mu__etcd_txn_put(body, leader, mu__view_str(store->leader.value), store->lease.id);
    mu__etcd_txn_else(body);
    mu__etcd_txn_range(body, leader);
    mu__etcd_txn_end(body);
}

static void note_election(struct etcd_store *store, uint64_t created, uint64_t version)
{
    store->leader.created = created;
    store->leader.version = version;
    store->leader.writes = 1;
    enter_phase(store, ETCD_SURVEYING);
}

/* A leader's key with our lease is our own: only the answer to a former try was lost. */
static int not_elected(struct etcd_store *store, struct mu__ctx *ctx,
                       const struct mu__etcd_answer *answer, mu_error *ret_error)
{
    struct mu__etcd_entries entries;
    struct mu__etcd_entry leader;
    int rv = mu__etcd_txn_ranged(answer, 0, ret_error, &entries);
    int found = rv != 0 ? rv : mu__etcd_next_entry(&entries, ret_error, &leader);

    if (found < 0)
        return found;
    if (found == 0)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd says that %s/leader is there, and does not show it",
                            store->prefix);
    if (leader.lease == store->lease.id)
        note_election(store, leader.create_revision, leader.version);
    else
        another_leads(store, ctx, &leader);
    return 0;
}

/* The revision of a transaction is that of all keys that it has created. */
static int on_election_tried(struct etcd_store *store, struct mu__ctx *ctx,
                             const struct mu__etcd_answer *answer, mu_error *ret_error)
{
    bool succeeded = false;
    uint64_t revision = 0;
    int rv = mu__etcd_succeeded(answer, ret_error, &succeeded);

    if (rv == 0 && !succeeded)
        return not_elected(store, ctx, answer, ret_error);
    if (rv == 0)
        rv = mu__etcd_revision(answer, ret_error, &revision);
    if (rv == 0 && revision == 0)
        rv = mu_error_set(ret_error, -MU_EDATALOSS,
                          "etcd's answer to a transaction has no revision");
    if (rv == 0)
        note_election(store, revision, 1);
    return rv;
}

/* ---- Pages of entries ---- */

static void begin_pages(struct etcd_store *store, const char *section)
{
    store->pages.from_size = mu__etcd_key(store, section, store->pages.from).size;
    store->pages.entries = PAGE_ENTRIES;
}

/* The keys from pages.from on that begin with "PREFIX/section". `section` ends with '/',
 * and the character behind that is '0'. */
static void build_page(struct etcd_store *store, const char *section)
{
    char end[ETCD_KEY_MAX + 1];
    struct mu__view view = mu__etcd_key(store, section, end);

    end[view.size - 1] = '0';
    mu__etcd_range(&store->main.body,
                   (struct mu__view){store->pages.from, store->pages.from_size}, view,
                   store->pages.entries);
}

/* The next possible key is this one with a zero at its end. */
static int page_behind(struct etcd_store *store, struct mu__view key, mu_error *ret_error)
{
    if (key.size >= ETCD_KEY_MAX)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd has a key of %u bytes below %s", key.size,
                            store->prefix);
    memcpy(store->pages.from, key.data, key.size);
    store->pages.from[key.size] = '\0';
    store->pages.from_size = key.size + 1;
    return 0;
}

bool mu__etcd_shrink_pages(struct etcd_store *store)
{
    if ((store->phase != ETCD_GATHERING && store->phase != ETCD_READING) ||
        store->pages.entries == 1)
        return false;
    store->pages.entries = (store->pages.entries + 3) / 4;
    return true;
}

/* Whether the entry's key is "PREFIX/below...": the rest of it. */
static bool rest_of(const struct etcd_store *store, const char *below,
                    const struct mu__etcd_entry *entry, struct mu__view *ret_rest)
{
    char key[ETCD_KEY_MAX + 1];
    struct mu__view begin = mu__etcd_key(store, below, key);

    if (entry->key.size < begin.size ||
        memcmp(entry->key.data, begin.data, begin.size) != 0)
        return false;
    *ret_rest = (struct mu__view){(const char *)entry->key.data + begin.size,
                                  entry->key.size - begin.size};
    return true;
}

/* ---- SURVEYING: the content's number, and whether changes were staged ---- */

static void build_surveying(struct etcd_store *store)
{
    begin_pages(store, "meta/");
    build_page(store, "meta/");
}

static int survey_entry(struct etcd_store *store, const struct mu__etcd_entry *entry,
                        mu_error *ret_error)
{
    struct mu__view name;
    uint64_t *number;

    if (!rest_of(store, "meta/", entry, &name))
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd shows another key than one below %s/meta/",
                            store->prefix);
    if (mu__view_is(name, "number"))
        number = &store->content.number;
    else if (mu__view_is(name, "staged"))
        number = &store->content.staged;
    else
        return 0;
    if (!read_text_number(entry->value, number))
        return mu_error_set(ret_error, -MU_EDATALOSS, "%s/meta/%.*s is no number",
                            store->prefix, (int)name.size, (const char *)name.data);
    return 0;
}

static void begin_settling(struct etcd_store *store, enum etcd_stage stage)
{
    store->queue.work.active = true;
    store->queue.work.stage = stage;
    store->queue.work.at = 0;
    enter_phase(store, ETCD_SETTLING);
}

static int on_store_surveyed(struct etcd_store *store, struct mu__ctx *ctx,
                             const struct mu__etcd_answer *answer, mu_error *ret_error)
{
    struct mu__etcd_entries entries;
    struct mu__etcd_entry entry;
    int rv = mu__etcd_ranged(answer, ret_error, &entries);

    if (rv != 0)
        return rv;
    store->content.number = 0;
    store->content.staged = 0;
    while ((rv = mu__etcd_next_entry(&entries, ret_error, &entry)) == 1) {
        rv = survey_entry(store, &entry, ret_error);
        if (rv != 0)
            return rv;
    }
    if (rv < 0)
        return rv;
    store->content.is_new = store->content.number == 0;
    if (store->content.is_new)
        store->content.number = mu__random(ctx) | 1;
    begin_pages(store, "staged/");
    if (store->content.staged > 0)
        enter_phase(store, ETCD_GATHERING);
    else
        begin_settling(store, ETCD_CLEARING);
    return 0;
}

/* ---- GATHERING: read the staged changes, to be applied now ---- */

static void build_gathering(struct etcd_store *store)
{
    build_page(store, "staged/");
}

static int gather_entry(struct etcd_store *store, const struct mu__etcd_entry *entry,
                        mu_error *ret_error)
{
    struct mu__view key;

    if (!rest_of(store, "staged/", entry, &key) || key.size == 0)
        return mu_error_set(ret_error, -MU_EDATALOSS,
                            "etcd shows another key than one below %s/staged/",
                            store->prefix);
    if (store->queue.work.batch == NULL)
        store->queue.work.batch = mu__etcd_batch_new();
    if (store->queue.work.batch == NULL ||
        mu__etcd_batch_add(store->queue.work.batch, key, entry->value) != 0)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    return page_behind(store, entry->key, ret_error);
}

/* Hand each entry of a page to `take`. After a failure all begins anew. */
static int visit_etcd_page(struct etcd_store *store, struct mu__ctx *ctx,
                           const struct mu__etcd_answer *answer, mu_error *ret_error,
                           int (*take)(struct etcd_store *store,
                                       const struct mu__etcd_entry *entry,
                                       mu_error *ret_error),
                           bool *ret_more)
{
    struct mu__etcd_entries entries;
    struct mu__etcd_entry entry;
    int rv = mu__etcd_ranged(answer, ret_error, &entries);

    if (rv != 0)
        return rv;
    *ret_more = entries.more;
    while ((rv = mu__etcd_next_entry(&entries, ret_error, &entry)) == 1) {
        rv = take(store, &entry, ret_error);
        if (rv != 0)
            break;
    }
    if (rv < 0)
        mu__etcd_abandon(store, ctx, "%s", ret_error->message);
    return 0;
}

static int on_staged_gathered(struct etcd_store *store, struct mu__ctx *ctx,
                              const struct mu__etcd_answer *answer, mu_error *ret_error)
{
    bool more = false;
    int rv = visit_etcd_page(store, ctx, answer, ret_error, gather_entry, &more);
    size_t count = store->queue.work.batch == NULL ? 0 : store->queue.work.batch->count;

    if (rv != 0 || more || store->phase != ETCD_GATHERING)
        return rv;
    if (count == store->content.staged)
        begin_settling(store, ETCD_APPLYING);
    else
        mu__etcd_abandon(store, ctx,
                         "%s/staged/ has %zu changes, and %s/meta/staged says %" PRIu64,
                         store->prefix, count, store->prefix, store->content.staged);
    return 0;
}

/* ---- READING ---- */

static const struct {
    const char *below;
    uint16_t kind;
} sections[] = {
    {"deleted/", MU__STORE_CHANGE},
    {"keys/", MU__STORE_CHANGE},
    {"results/", MU__STORE_RESULT},
};

enum { SECTIONS = sizeof sections / sizeof sections[0] };

static void build_reading(struct etcd_store *store)
{
    build_page(store, sections[store->pages.section].below);
}

static int remember_result(struct etcd_store *store, const struct mu__msg *record,
                           struct mu__view packed)
{
    const struct mu__store_result *result = (const void *)record->body;

    if (record->kind != MU__STORE_RESULT)
        return 0;
    return mu__etcd_results_add(store->queue.results, result->agent, result->token,
                                result->done, packed);
}

/* Visit the next record of a value. Kinds of a newer muster are skipped. */
static int visit_next_record(struct etcd_store *store, struct mu__buf *value,
                             size_t *offset, mu_error *ret_error)
{
    struct mu__msg *record = NULL;
    size_t begin = *offset;
    char why[128] = "";
    int rv =
        mu__decode(store->schema, store->pool, value, offset, why, sizeof why, &record);

    if (rv == 0 && record == NULL)
        return 0;
    if (rv == 0 && record->kind != sections[store->pages.section].kind) {
        (void)snprintf(why, sizeof why, "it is of another kind");
        rv = -MU_EDATALOSS;
    }
    if (rv == 0)
        rv = remember_result(store, record,
                             (struct mu__view){value->data + begin,
                                               (uint32_t)(*offset - begin)});
    if (rv == 0)
        rv = store->up.visit(store->up.owner, record);
    mu__pool_put(store->pool, record);
    if (rv == 0)
        return 0;
    return mu_error_set(ret_error, rv, "a record below %s/%s cannot be read: %s",
                        store->prefix, sections[store->pages.section].below,
                        why[0] != '\0' ? why : mu_strerror(rv));
}

static int read_entry(struct etcd_store *store, const struct mu__etcd_entry *entry,
                      mu_error *ret_error)
{
    struct mu__buf *value = mu__buf_new(entry->value.size + 1);
    size_t offset = 0;
    int rv = 0;

    if (value == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    if (entry->value.size > 0)
        memcpy(value->data, entry->value.data, entry->value.size);
    value->size = entry->value.size;
    while (rv == 0 && offset < value->size)
        rv = visit_next_record(store, value, &offset, ret_error);
    mu__buf_unref(value);
    return rv != 0 ? rv : page_behind(store, entry->key, ret_error);
}

static void hold_etcd_store(struct etcd_store *store, struct mu__ctx *ctx)
{
    mu__etcd_results_read(store->queue.results);
    if (!mu__etcd_is_certain(store, ctx)) {
        mu__etcd_abandon(store, ctx, "it took longer than the lease to read it");
        return;
    }
    store->logged.trouble[0] = '\0';
    store->logged.leader[0] = '\0';
    enter_phase(store, ETCD_HOLDING);
    mu__log(ctx, MU__LOG_INFO, "%s holds %s at %s: epoch %" PRIu64, store->task,
            store->prefix, store->endpoints.list[store->endpoints.next].url,
            store->leader.created);
    store->up.held(store->up.owner, ctx, store->leader.created, store->content.number);
}

static int on_section_read(struct etcd_store *store, struct mu__ctx *ctx,
                           const struct mu__etcd_answer *answer, mu_error *ret_error)
{
    bool more = false;
    int rv = visit_etcd_page(store, ctx, answer, ret_error, read_entry, &more);

    if (rv != 0 || more || store->phase != ETCD_READING)
        return rv;
    store->pages.section++;
    if (store->pages.section < SECTIONS)
        begin_pages(store, sections[store->pages.section].below);
    else
        hold_etcd_store(store, ctx);
    return 0;
}

static void begin_reading(struct etcd_store *store, struct mu__ctx *ctx)
{
    mu__etcd_results_free(store->queue.results);
    store->queue.results = mu__etcd_results_new();
    if (store->queue.results == NULL) {
        mu__etcd_abandon(store, ctx, "out of memory");
        return;
    }
    store->pages.section = 0;
    begin_pages(store, sections[0].below);
    enter_phase(store, ETCD_READING);
    store->up.reading(store->up.owner);
}

/* ---- The phases ---- */

const struct etcd_phase_row mu__etcd_phases[] = {
    [ETCD_DROPPING] = {MU__ETCD_REVOKE, "give back a lease", build_dropping,
                       on_lease_dropped},
    [ETCD_LOOKING] = {MU__ETCD_RANGE, "look for a leader", build_looking,
                      on_leader_looked_up},
    [ETCD_GRANTING] = {MU__ETCD_GRANT, "get a lease", build_granting, on_lease_granted},
    [ETCD_ELECTING] = {MU__ETCD_TXN, "become the leader", build_electing,
                       on_election_tried},
    [ETCD_SURVEYING] = {MU__ETCD_RANGE, "read", build_surveying, on_store_surveyed},
    [ETCD_GATHERING] = {MU__ETCD_RANGE, "read", build_gathering, on_staged_gathered},
    [ETCD_SETTLING] = {MU__ETCD_TXN, "write", mu__etcd_write_build,
                       mu__etcd_write_answered},
    [ETCD_READING] = {MU__ETCD_RANGE, "read", build_reading, on_section_read},
    [ETCD_HOLDING] = {MU__ETCD_TXN, "write", mu__etcd_write_build,
                      mu__etcd_write_answered},
};

bool mu__etcd_next(struct etcd_store *store, struct mu__ctx *ctx)
{
    if (store->phase == ETCD_RESTING)
        enter_phase(store, ETCD_LOOKING);
    if (store->phase == ETCD_SETTLING && !store->queue.work.active)
        begin_reading(store, ctx);
    if (store->phase == ETCD_HOLDING)
        return mu__etcd_queue_take(&store->queue);
    return store->phase != ETCD_RESTING;
}
