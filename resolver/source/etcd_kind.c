/* The resolver etcd: tasks register themselves under a lease. Keys are
 * PREFIX/CLUSTER/tasks/TYPE/INDEX, values are entries (resolver/source/entry.h) without
 * a time: a key goes with its lease.
 *
 * The lease's number is made of the process's incarnation, so that etcd knows a second
 * grant (when the answer was lost, say) as the same lease. */
#include "resolver/engine/expected.h"
#include "resolver/source/entry.h"
#include "resolver/source/etcd_talk.h"
#include "resolver/spec/cluster.h"
#include "runtime/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME_TO_LIVE "/v3/lease/timetolive"

enum {
    PREFIX = MU__TALK_SETTINGS_COUNT,
    CLUSTER_NAME,
    TASKS,
    TTL,
    TASK_TYPE,
    TASK_INDEX,
    KEY_BYTES = 512,
    PAGE_TASKS = 4096,
    CROWD_TASKS = 64, /* with more expected tasks, all keys are only read
                         after a change */
    CACHE_MS = 60000, /* of the keys that were read */
    CHOICES_MAX = 16, /* tries of a free index, when others take it first */
    WATCH_MS = 3000
};

static const struct mu__setting_spec settings_of[] = {
    MU__TALK_SETTINGS,
    MU__SETTING(PREFIX, "prefix", "MUSTER_ETCD_PREFIX", "/muster",
                "what the keys begin with"),
    MU__SETTING(CLUSTER_NAME, "cluster_name", "MUSTER_CLUSTER_NAME", "muster",
                "the cluster's name"),
    MU__SETTING(TASKS, "tasks", "MUSTER_TASKS", NULL,
                "who is expected, \"chief=1,worker=3,ps=2\"; without it, who is there is "
                "the cluster"),
    MU__SETTING_WITHIN(TTL, "ttl", "MUSTER_ETCD_TTL", "10", 2, 3600,
                       "seconds after which a task that is not heard of is gone"),
    MU__TASK_SETTINGS(TASK_TYPE, TASK_INDEX),
    {.name = NULL},
};

static int detect_etcd(const struct mu__pass *pass, mu_error *ret_why)
{
    return mu__setting_detect(pass, MU__TALK_ENDPOINTS, ret_why);
}

/* ---- One run ---- */

/* The state of one pass. */
struct talk {
    struct mu__etcd_talk etcd;
    char folder[KEY_BYTES / 2]; /* "PREFIX/CLUSTER/tasks/" */
    struct mu__jobs shape;
};

/* A '/' in a cluster's name is escaped: its keys must not be those of another cluster. */
static int write_folder(struct talk *talk)
{
    const char *prefix = mu__setting(talk->etcd.pass, PREFIX);
    const char *name = mu__setting(talk->etcd.pass, CLUSTER_NAME);
    size_t room = sizeof talk->folder;
    size_t at = strlen(prefix);

    if (at > 128 || at == 0 || prefix[at - 1] == '/')
        return mu_error_set(talk->etcd.error, -MU_EINVALID,
                            "etcd: prefix: expected 1 to 128 bytes without \"/\" at the "
                            "end, got %zu bytes",
                            at);
    at = (size_t)snprintf(talk->folder, room, "%s/", prefix);
    for (; *name != '\0' && at + 12 < room; name++)
        at += (size_t)snprintf(talk->folder + at, room - at,
                               *name == '/' || *name == '%' ? "%%%02X" : "%c", *name);
    if (*name != '\0')
        return mu_error_set(talk->etcd.error, -MU_EINVALID,
                            "etcd: the cluster's name is too long");
    (void)snprintf(talk->folder + at, room - at, "/tasks/");
    return 0;
}

static int begin_etcd_pass(const struct mu__pass *pass, mu_error *ret_error,
                           struct talk *talk)
{
    int rv;

    memset(talk, 0, sizeof *talk);
    rv = mu__etcd_talk_begin(pass, ret_error, &talk->etcd);
    if (rv == 0)
        rv = write_folder(talk);
    return rv != 0 ? rv : mu__expected_parse(pass, TASKS, ret_error, &talk->shape);
}

static int post_etcd_task(struct talk *talk, const char *path, struct mu__build *body,
                          unsigned again, struct mu__etcd_answer **ret_answer)
{
    int rv = mu__etcd_talk_post(&talk->etcd, path, body, again, ret_answer);
    mu_error inner;

    if (rv != -MU_EPERMISSION)
        return rv;
    inner = *talk->etcd.error;
    return mu_error_set(talk->etcd.error, rv,
                        "%.380s; expected a role with readwrite for the keys that begin "
                        "with %s",
                        inner.message, talk->folder);
}

/* ---- Reading ---- */

static int read_etcd_task(struct talk *talk, const struct mu__etcd_entry *at,
                          mu_resolution *resolution)
{
    size_t folder = strlen(talk->folder);
    const char *name = (const char *)at->key.data + folder;
    char source[KEY_BYTES];
    struct mu__task_entry entry;
    char type[16];
    int index;
    int rv;

    if (at->key.size < folder || memcmp(at->key.data, talk->folder, folder) != 0)
        return mu_error_set(talk->etcd.error, -MU_EDATALOSS,
                            "etcd: expected keys below %s only", talk->folder);
    rv = mu__entry_task(name, at->key.size - folder, '/', talk->folder, talk->etcd.error,
                        type, &index);
    if (rv != 0)
        return rv;
    (void)snprintf(source, sizeof source, "etcd: %s%s/%d", talk->folder, type, index);
    rv =
        mu__entry_parse(at->value.data, at->value.size, source, talk->etcd.error, &entry);
    return rv != 0
               ? rv
               : mu__entry_add(&entry, source, type, index, talk->etcd.error, resolution);
}

/* The begin of the next page, if there is one. */
struct key_page {
    char from[KEY_BYTES];
    size_t from_size;
    bool more;
};

static int read_etcd_page(struct talk *talk, const struct mu__etcd_answer *answer,
                          struct key_page *page, mu_resolution *resolution)
{
    struct mu__etcd_entries entries;
    struct mu__etcd_entry entry;
    int rv = mu__etcd_ranged(answer, talk->etcd.error, &entries);

    page->more = rv == 0 && entries.more;
    while (rv == 0 &&
           (rv = mu__etcd_next_entry(&entries, talk->etcd.error, &entry)) == 1) {
        rv = read_etcd_task(talk, &entry, resolution);
        if (rv != 0)
            break;
        /* The shortest key behind this one: its size is known by now. */
        memcpy(page->from, entry.key.data, entry.key.size);
        page->from[entry.key.size] = '\0';
        page->from_size = entry.key.size + 1;
    }
    return rv;
}

/* A read of all keys below the folder, page by page. */
struct range {
    struct key_page page; /* what is read next */
    char end[KEY_BYTES];
    size_t end_size;
    uint64_t limit;
};

static void begin_range(const struct talk *talk, struct range *range)
{
    size_t size = strlen(talk->folder);

    *range = (struct range){
        .page = {.from_size = size, .more = true}, .end_size = size, .limit = PAGE_TASKS};
    memcpy(range->page.from, talk->folder, size);
    memcpy(range->end, talk->folder, size);
    range->end[size - 1]++;
}

static struct mu__view view_of(const char *bytes, size_t size)
{
    return (struct mu__view){bytes, (uint32_t)size};
}

/* Find out whether the keys have changed: the newest revision and the number of keys
 * tell every change, since keys are only made and deleted. The limit of the read is
 * made of both: it reads the same as any other, but makes it the same request, which
 * the cache answers, until there is a change. */
static int check_etcd_revision(struct talk *talk, struct range *range)
{
    struct mu__etcd_answer *answer = NULL;
    struct mu__etcd_entries entries;
    struct mu__etcd_entry newest;
    struct mu__build body = {0};
    int rv;

    mu__etcd_range_newest(&body, view_of(range->page.from, range->page.from_size),
                          view_of(range->end, range->end_size));
    rv = post_etcd_task(talk, MU__ETCD_RANGE, &body, 0, &answer);
    if (rv == 0)
        rv = mu__etcd_ranged(answer, talk->etcd.error, &entries);
    if (rv == 0)
        rv = mu__etcd_next_entry(&entries, talk->etcd.error, &newest);
    mu__etcd_answer_free(answer);
    if (rv != 1)
        return rv;
    if (entries.count <= PAGE_TASKS && newest.mod_revision > 0 &&
        newest.mod_revision < INT64_MAX / (2 * PAGE_TASKS))
        range->limit = newest.mod_revision * 2 * PAGE_TASKS + entries.count;
    return 0;
}

static bool is_crowd(const struct talk *talk)
{
    unsigned count = 0;

    for (unsigned i = 0; i < talk->shape.rows_count; i++)
        count += talk->shape.rows[i].count;
    return count > CROWD_TASKS;
}

static int read_etcd_tasks(struct talk *talk, mu_resolution *resolution)
{
    struct range range;
    struct key_page *page = &range.page;
    int rv;

    begin_range(talk, &range);
    rv = is_crowd(talk) ? check_etcd_revision(talk, &range) : 0;
    if (rv == 0 && range.limit > PAGE_TASKS)
        talk->etcd.cache_ms = CACHE_MS;
    while (rv == 0 && page->more) {
        struct mu__etcd_answer *answer = NULL;
        struct mu__build body = {0};

        mu__etcd_range(&body, view_of(page->from, page->from_size),
                       view_of(range.end, range.end_size), range.limit);
        rv = post_etcd_task(talk, MU__ETCD_RANGE, &body, 0, &answer);
        if (rv == 0)
            rv = read_etcd_page(talk, answer, page, resolution);
        mu__etcd_answer_free(answer);
    }
    talk->etcd.cache_ms = 0;
    return rv;
}

static int resolve_etcd(const struct mu__pass *pass, mu_error *ret_error,
                        mu_resolution *ret_resolution)
{
    struct talk talk;
    char source[KEY_BYTES];
    mu_error inner;
    int rv = begin_etcd_pass(pass, ret_error, &talk);

    if (rv == 0)
        rv = mu__task_setting(pass, TASK_TYPE, ret_error, ret_resolution);
    if (rv == 0)
        rv = read_etcd_tasks(&talk, ret_resolution);
    if (rv != 0)
        return rv;
    (void)snprintf(source, sizeof source, "etcd: %s", talk.folder);
    rv = mu__cluster_check(ret_resolution->cluster, &inner);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "%s: %s", source, inner.message);
    return mu__expected_check(&talk.shape, source, ret_resolution->cluster, ret_error);
}

/* ---- Announcing ---- */

/* State between calls. */
struct own_key {
    bool taken;            /* this process has held the place */
    unsigned endpoint;     /* that answered last: waiting for one that hangs each
                              time would take longer than the lease lives */
    uint64_t holder_lease; /* of another process in the place, */
    uint64_t holder_term;  /* and the raft term in which that was read: */
    uint64_t holder_ttl_s; /* how long it had to live when it was last seen, */
    uint64_t holder_end_s; /* and when it would have ended when it was first seen */
};

/* One announcement under way. */
struct slot {
    const mu_announcement *announcement;
    mu_resolution task; /* type and index */
    uint64_t lease;
    long ttl_s;
    struct own_key *own;
    char key[KEY_BYTES];
    int index;
};

/* FNV-1a, in 63 bits and not 0. */
static uint64_t lease_of(const char *incarnation)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *incarnation != '\0'; incarnation++)
        hash = (hash ^ (uint8_t)*incarnation) * UINT64_C(1099511628211);
    hash &= INT64_MAX;
    return hash == 0 ? 1 : hash;
}

static void write_key(struct talk *talk, struct slot *slot, int index)
{
    slot->index = index;
    (void)snprintf(slot->key, sizeof slot->key, "%s%s/%d", talk->folder,
                   slot->task.task_type, index);
}

/* Renew the lease; *ret_stored is false when it has ended. */
static int keep_etcd_lease(struct talk *talk, const struct slot *slot, bool *ret_stored)
{
    struct mu__etcd_answer *answer = NULL;
    struct mu__build body = {0};
    uint64_t ttl_s = 0;
    int rv;

    mu__etcd_keep(&body, slot->lease);
    rv = post_etcd_task(talk, MU__ETCD_KEEP, &body, 0, &answer);
    if (rv == 0)
        rv = mu__etcd_lease_ttl(answer, talk->etcd.error, &ttl_s);
    mu__etcd_answer_free(answer);
    *ret_stored = ttl_s > 0;
    return rv;
}

static int grant_etcd_lease(struct talk *talk, const struct slot *slot)
{
    struct mu__etcd_answer *answer = NULL;
    struct mu__build body = {0};
    int rv;

    mu__etcd_grant(&body, slot->lease, (uint64_t)slot->ttl_s);
    rv = post_etcd_task(talk, MU__ETCD_GRANT, &body, 0, &answer);
    mu__etcd_answer_free(answer);
    return rv == -MU_EPRECONDITION ? 0 : rv; /* it was granted before, and the answer
                                                lost */
}

static int read_holder(struct talk *talk, const struct slot *slot,
                       const struct mu__etcd_answer *answer, uint64_t *ret_lease,
                       struct mu__task_entry *ret_entry)
{
    struct mu__etcd_entries entries;
    struct mu__etcd_entry entry;
    int rv = mu__etcd_txn_ranged(answer, 0, talk->etcd.error, &entries);

    if (rv == 0)
        rv = mu__etcd_next_entry(&entries, talk->etcd.error, &entry);
    if (rv == 0)
        return mu_error_set(talk->etcd.error, -MU_EUNAVAILABLE,
                            "etcd: %s was given back a moment ago", slot->key);
    if (rv < 0)
        return rv;
    *ret_lease = entry.lease;
    return mu__entry_parse(entry.value.data, entry.value.size, slot->key,
                           talk->etcd.error, ret_entry);
}

/* How long a lease still lives, s; 0 when it has ended. */
static int request_ttl(struct talk *talk, uint64_t lease, uint64_t *ret_term,
                       uint64_t *ret_ttl_s)
{
    struct mu__etcd_answer *answer = NULL;
    struct mu__build body = {0};
    uint64_t id = 0;
    int rv;

    *ret_ttl_s = 0;
    mu__etcd_keep(&body, lease);
    rv = post_etcd_task(talk, TIME_TO_LIVE, &body, 0, &answer);
    if (rv == 0)
        rv = mu__etcd_term(answer, talk->etcd.error, ret_term);
    if (rv == 0)
        (void)mu__etcd_granted(answer, NULL, &id, ret_ttl_s);
    mu__etcd_answer_free(answer);
    return rv;
}

static uint64_t now_s(struct talk *talk)
{
    const struct mu__request clock = {.kind = MU__REQUEST_CLOCK};
    const struct mu__answer *answer = mu__requests_get(talk->etcd.pass->requests, &clock);

    return answer->code == 0 ? strtoull(answer->data, NULL, 10) : 0;
}

/* The error when another process holds the place. If its lease grows longer while we
 * look, or is still there when it should have ended, that process lives. An etcd that
 * has restarted prolongs all leases by itself, and one that stood still has yet to end
 * them: neither says anything of their owners. */
static int refuse_etcd_holder(struct talk *talk, struct slot *slot, uint64_t lease,
                              const struct mu__task_entry *entry)
{
    struct own_key *own = slot->own;
    uint64_t now = now_s(talk);
    uint64_t term = 0;
    uint64_t ttl_s = 0;
    bool known;
    bool is_live;
    int rv = lease == 0 ? 0 : request_ttl(talk, lease, &term, &ttl_s);

    if (rv != 0)
        return rv;
    known = own->holder_lease == lease && own->holder_term == term;
    is_live =
        known && ttl_s > 0 && (ttl_s > own->holder_ttl_s || now > own->holder_end_s + 1);
    if (lease == 0 || own->taken || is_live)
        return mu_error_set(talk->etcd.error, -MU_EEXISTS,
                            "etcd: %s is another process's, at %s%s", slot->key,
                            entry->address,
                            lease == 0   ? ", without a lease: remove the key"
                            : own->taken ? ", which has taken this one's place"
                                         : ", which lives");
    if (!known)
        own->holder_end_s = now + ttl_s;
    own->holder_lease = lease;
    own->holder_term = term;
    own->holder_ttl_s = ttl_s;
    return mu_error_set(talk->etcd.error, -MU_EUNAVAILABLE,
                        "etcd: %s is another process's, at %s: it is not known yet "
                        "whether it lives, for %" PRIu64 " s at most",
                        slot->key, entry->address, ttl_s);
}

static void write_take(const struct slot *slot, struct mu__build *body)
{
    struct mu__view key = mu__view_str(slot->key);
    struct mu__task_entry entry = {.until_s = 0};
    char text[MU__ENTRY_BYTES_MAX];

    MU__COPY_TEXT(entry.address, slot->announcement->address);
    MU__COPY_TEXT(entry.who, slot->announcement->incarnation);
    mu__entry_write(&entry, text);
    mu__etcd_txn_begin(body);
    mu__etcd_txn_compare(body, MU__ETCD_CREATE, key, 0);
    mu__etcd_txn_then(body);
    mu__etcd_txn_put(body, key, mu__view_str(text), slot->lease);
    mu__etcd_txn_else(body);
    mu__etcd_txn_range(body, key);
    mu__etcd_txn_end(body);
}

/* Put the key if there is none. *ret_taken: it is this process's, now or since before;
 * else `ret_lease` and `ret_entry` are its holder's. */
static int try_slot(struct talk *talk, const struct slot *slot, bool *ret_taken,
                    uint64_t *ret_lease, struct mu__task_entry *ret_entry)
{
    struct mu__etcd_answer *answer = NULL;
    struct mu__build body = {0};
    int rv;

    write_take(slot, &body);
    rv = post_etcd_task(talk, MU__ETCD_TXN, &body, 0, &answer);
    if (rv == -MU_ENOTFOUND) /* the next try grants another one */
        rv = mu_error_set(talk->etcd.error, -MU_EUNAVAILABLE,
                          "etcd: the lease for %s has ended already", slot->key);
    if (rv == 0)
        rv = mu__etcd_succeeded(answer, talk->etcd.error, ret_taken);
    if (rv == 0 && !*ret_taken) {
        rv = read_holder(talk, slot, answer, ret_lease, ret_entry);
        *ret_taken =
            rv == 0 && strcmp(ret_entry->who, slot->announcement->incarnation) == 0;
    }
    mu__etcd_answer_free(answer);
    return rv;
}

static int take_given(struct talk *talk, struct slot *slot)
{
    struct mu__task_entry entry;
    uint64_t lease = 0;
    bool taken = false;
    int rv;

    write_key(talk, slot, slot->task.task_index);
    rv = try_slot(talk, slot, &taken, &lease, &entry);
    return rv != 0 || taken ? rv : refuse_etcd_holder(talk, slot, lease, &entry);
}

/* Take the first free index. */
static int take_free_etcd_slot(struct talk *talk, struct slot *slot)
{
    const char *type = slot->task.task_type;
    unsigned count = mu__expected_count(&talk->shape, type);
    mu_resolution there;
    unsigned choices = 0;
    bool taken = false;
    int rv;

    mu_resolution_init(&there);
    rv = read_etcd_tasks(talk, &there);
    for (int index = 0; rv == 0 && !taken; index++) {
        struct mu__task_entry entry;
        uint64_t lease;

        if (index > MU_CLUSTER_INDEX_MAX || (count > 0 && index >= (int)count) ||
            choices == CHOICES_MAX) {
            rv = mu_error_set(talk->etcd.error, -MU_EUNAVAILABLE,
                              "etcd: all places of %s%s/ are taken (%d)", talk->folder,
                              type, index);
            break;
        }
        if (mu_cluster_address(there.cluster, type, index) != NULL &&
            strcmp(mu_cluster_address(there.cluster, type, index),
                   slot->announcement->address) != 0)
            continue;
        write_key(talk, slot, index);
        choices++;
        rv = try_slot(talk, slot, &taken, &lease, &entry);
    }
    mu_cluster_free(there.cluster);
    return rv;
}

static int take_etcd_slot(struct talk *talk, struct slot *slot)
{
    bool stored = false;
    int rv = keep_etcd_lease(talk, slot, &stored);

    if (rv == 0 && !stored)
        rv = grant_etcd_lease(talk, slot);
    if (rv != 0)
        return rv;
    return slot->task.task_index >= 0 ? take_given(talk, slot)
                                      : take_free_etcd_slot(talk, slot);
}

/* Timeout of a request, short enough to try several endpoints that hang while the lease
 * lives. */
static uint32_t request_ms(const struct slot *slot, const struct talk *talk)
{
    uint32_t part_ms = (uint32_t)slot->ttl_s * 1000 / 4;

    return part_ms < talk->etcd.request_ms ? part_ms : talk->etcd.request_ms;
}

static int begin_slot(struct talk *talk, struct slot *slot, void **own)
{
    int rv;

    if (*own == NULL)
        *own = calloc(1, sizeof(struct own_key));
    slot->own = *own;
    if (slot->own == NULL)
        return mu_error_set(talk->etcd.error, -MU_ENOMEM, "etcd: out of memory");
    rv = mu__setting_number(talk->etcd.pass, TTL, talk->etcd.error, &slot->ttl_s);
    if (rv != 0)
        return rv;
    talk->etcd.first = slot->own->endpoint;
    talk->etcd.request_ms = request_ms(slot, talk);
    return mu__task_announced(talk->etcd.pass, TASK_TYPE, slot->announcement,
                              talk->etcd.error, &slot->task);
}

static int announce_in_etcd(const struct mu__pass *pass,
                            const mu_announcement *announcement, mu_error *ret_error,
                            void **own, int *ret_index, uint32_t *ret_again_ms)
{
    struct slot slot = {
        .announcement = announcement,
        .lease = lease_of(announcement->incarnation),
    };
    struct talk talk;
    int rv = begin_etcd_pass(pass, ret_error, &talk);

    if (rv == 0)
        rv = begin_slot(&talk, &slot, own);
    if (rv == 0)
        rv = take_etcd_slot(&talk, &slot);
    if (slot.own == NULL)
        return rv;
    slot.own->endpoint = talk.etcd.first;
    if (rv != 0)
        return rv;
    slot.own->taken = true;
    *ret_index = slot.index;
    *ret_again_ms = (uint32_t)slot.ttl_s * 1000 / 3;
    return 0;
}

/* The key goes with the lease. */
static int withdraw_from_etcd(const struct mu__pass *pass,
                              const mu_announcement *announcement, mu_error *ret_error,
                              void **own)
{
    struct mu__etcd_answer *answer = NULL;
    struct mu__build body = {0};
    struct talk talk;
    int rv = begin_etcd_pass(pass, ret_error, &talk);

    if (rv != 0 || *own == NULL)
        return rv;
    talk.etcd.first = ((const struct own_key *)*own)->endpoint;
    mu__etcd_revoke(&body, lease_of(announcement->incarnation));
    rv = post_etcd_task(&talk, MU__ETCD_REVOKE, &body, 0, &answer);
    mu__etcd_answer_free(answer);
    return rv == -MU_ENOTFOUND ? 0 : rv; /* it has ended by itself */
}

const struct mu__resolver_kind mu__resolver_etcd = {
    .name = "etcd",
    .summary = "etcd, where tasks register themselves under a lease",
    .settings = settings_of,
    .detect = detect_etcd,
    .resolve = resolve_etcd,
    .announce = announce_in_etcd,
    .withdraw = withdraw_from_etcd,
    .watch_ms = WATCH_MS,
};
