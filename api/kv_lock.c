/* Locks, on top of keys: a place in the queue is a key that is a lease, put once, so its
 * revision says who came first. The lowest one holds the lock. The others each watch only
 * the place before theirs, so one of them is woken when it is deleted. */
#include "actors/coordination/keys/lock_queue.h"
#include "api/internal.h"
#include "node/deadline.h"
#include "node/node.h"

#include "muster/coordination.h"
#include "runtime/message/arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    KEY_BYTES = 1024,
    LOOK_MS = 1000,          /* for a look at the holder, after the timeout */
    NOTE_FIRST_MS = 5000,    /* until a wait is first logged; then the step doubles, */
    NOTE_STEP_MAX_MS = 60000 /* up to this */
};

/* Whether a key is there, by the events of its watch. */
struct presence {
    mu_kv_watch *watch; /* NULL: not opened yet */
    bool known;
    bool there;
};

struct mu_lock {
    mu_node *node;       /* held: see mu__node_ref */
    uint64_t number;     /* the revision of our place; 0: none yet */
    struct presence own; /* whether our place is there */
    char name[KEY_BYTES];
    char directory[KEY_BYTES];
    char key[KEY_BYTES];
};

/* ---- Our place ---- */

/* A unique key: by this task, the time it was made, and a number of the process. */
static int name_queue_key(struct mu_lock *lock, mu_error *error)
{
    static atomic_uint_fast64_t numbers;
    struct timespec now;
    int size;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    size =
        snprintf(lock->key, sizeof lock->key, "%s/%s-%d-%llx%09lx-%llu", lock->directory,
                 lock->node->member.type, (int)lock->node->member.index,
                 (unsigned long long)now.tv_sec, (unsigned long)now.tv_nsec,
                 (unsigned long long)atomic_fetch_add(&numbers, 1));
    if (size < (int)sizeof lock->key)
        return 0;
    return mu_error_set(error, -MU_EINVALID,
                        "a lock's name has %zu bytes, which leaves "
                        "too few of the 1023 of a key",
                        strlen(lock->name));
}

static void done_nothing(void *user, const mu_kv_response *answer)
{
    (void)user;
    (void)answer;
}

/* Delete our place, whatever became of the put: the service makes changes in the order of
 * their requests. */
static void leave_lock_queue(const struct mu_lock *lock)
{
    const mu_kv_request removal = {
        .operation = MU_KV_DELETE, .key = lock->key, .timeout_ms = -1};

    (void)mu_kv_request_async(lock->node, &removal, done_nothing, NULL, NULL);
}

static int join_lock_queue(struct mu_lock *lock, uint64_t deadline_ns, mu_error *error)
{
    char host[64] = "";
    char value[MU__LOCK_HOLDER_BYTES];
    int rv = name_queue_key(lock, error);

    if (rv != 0)
        return rv;
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(value, sizeof value, "%s on %s, pid %ld", mu_node_task(lock->node),
                   host, (long)getpid());
    rv = mu_kv_put(lock->node, lock->key, value, strlen(value), MU_KV_LEASE, 0,
                   mu__deadline_left_ms(deadline_ns), error, &lock->number);
    if (rv == -MU_EDEADLINE)
        leave_lock_queue(lock);
    return rv;
}

/* ---- The queue ---- */

static int read_lock_queue(const struct mu_lock *lock, int64_t timeout_ms,
                           mu_error *error, struct mu__lock_queue *ret_queue)
{
    mu_value *items = NULL;
    int rv = mu_kv_list(lock->node, lock->directory, timeout_ms, error, &items);

    mu__lock_queue_read(rv == 0 ? items : NULL, lock->directory, lock->number, ret_queue);
    mu_value_free(items);
    return rv;
}

/* Wait until a key is not there. */
static int await_deleted(mu_node *node, const char *key, struct presence *presence,
                         uint64_t deadline_ns, mu_error *error)
{
    int rv = 0;

    if (presence->watch == NULL)
        rv = mu_kv_watch_open(node, key, 0, mu__deadline_left_ms(deadline_ns), error,
                              &presence->watch);
    while (rv == 0 && (!presence->known || presence->there)) {
        mu_kv_event event;

        rv = mu_kv_watch_next(presence->watch, mu__deadline_left_ms(deadline_ns), error,
                              &event);
        if (rv == -MU_EEXHAUSTED)
            rv = 0;
        else if (rv == 0) {
            presence->known = presence->known || event.type == MU_KV_EVENT_SYNCED;
            presence->there = event.type == MU_KV_EVENT_PUT ||
                              (presence->there && event.type != MU_KV_EVENT_DELETED);
            mu_kv_event_clear(&event);
        }
    }
    return rv;
}

/* Wait until the place before ours is deleted. */
static int await_before(const struct mu_lock *lock, const struct mu__lock_queue *queue,
                        uint64_t deadline_ns, mu_error *error)
{
    struct presence presence = {.watch = NULL};
    int rv = await_deleted(lock->node, queue->before_key, &presence, deadline_ns, error);

    mu_kv_watch_close(presence.watch);
    return rv;
}

/* The error of a timeout, with the holder of now; when that cannot be read, of the last
 * look. */
static void describe_holder(const struct mu_lock *lock, struct mu__lock_queue *queue,
                            int64_t timeout_ms, mu_error *error)
{
    struct mu__lock_queue now;

    if (read_lock_queue(lock, LOOK_MS, NULL, &now) == 0 && now.first != 0)
        *queue = now;
    (void)mu_error_set(error, -MU_EDEADLINE,
                       "lock \"%.100s\" was not free within %lld "
                       "ms: %s holds it, and %u wait before this one",
                       lock->name, (long long)timeout_ms, queue->holder,
                       queue->before_count - 1);
}

/* How long we have waited, by the monotonic clock: a wait without end is not silent. */
struct patience {
    uint64_t since_ns;
    uint64_t note_ns; /* when it is logged next */
    uint64_t deadline_ns;
};

/* The message has the line behind its body, in the same memory. */
static void post_note(const struct mu_lock *lock, const char *line)
{
    size_t size = strlen(line);
    struct mu__msg *msg =
        mu__msg_heap(MU__WAIT_NOTE, sizeof(struct mu__wait_note) + size);
    struct mu__wait_note *body;

    if (msg == NULL)
        return;
    body = (struct mu__wait_note *)(void *)msg->body;
    memcpy(body + 1, line, size);
    body->token = 0;
    body->message = (struct mu__view){body + 1, (uint32_t)size};
    (void)mu__node_post(lock->node, MU__AGENT, msg);
}

static void log_lock_wait(const struct mu_lock *lock, const struct mu__lock_queue *queue,
                          struct patience *patience)
{
    int64_t waited_ms = (int64_t)((uv_hrtime() - patience->since_ns) / 1000000);
    char line[MU__ERROR_TEXT_MAX];

    if (uv_hrtime() < patience->note_ns)
        return;
    (void)snprintf(line, sizeof line,
                   "lock \"%.100s\" is not free for %lld s: %s holds "
                   "it, and %u wait before this one",
                   lock->name, (long long)waited_ms / 1000, queue->holder,
                   queue->before_count - 1);
    post_note(lock, line);
    patience->note_ns =
        mu__deadline_in(waited_ms < NOTE_STEP_MAX_MS ? waited_ms : NOTE_STEP_MAX_MS);
}

static int await_turn(const struct mu_lock *lock, const struct mu__lock_queue *queue,
                      struct patience *patience, mu_error *error)
{
    bool is_noted = patience->note_ns < patience->deadline_ns;
    int rv;

    log_lock_wait(lock, queue, patience);
    rv = await_before(lock, queue, is_noted ? patience->note_ns : patience->deadline_ns,
                      error);
    return rv == -MU_EDEADLINE && is_noted ? 0 : rv;
}

/* Our place may be deleted while we wait, when this task was taken for lost: then we take
 * another one, as the last. */
static int acquire_lock(struct mu_lock *lock, int64_t timeout_ms, mu_error *error)
{
    struct patience patience = {
        .since_ns = uv_hrtime(),
        .note_ns = mu__deadline_in(NOTE_FIRST_MS),
        .deadline_ns = mu__deadline_in(timeout_ms),
    };
    struct mu__lock_queue queue = {.before = 0};
    int rv = join_lock_queue(lock, patience.deadline_ns, error);

    while (rv == 0) {
        enum mu__lock_step step;

        rv = read_lock_queue(lock, mu__deadline_left_ms(patience.deadline_ns), error,
                             &queue);
        step = mu__lock_queue_next(&queue);
        if (rv == 0 && step == MU__LOCK_HOLD)
            return 0;
        if (rv == 0)
            rv = step == MU__LOCK_COME
                     ? join_lock_queue(lock, patience.deadline_ns, error)
                     : await_turn(lock, &queue, &patience, error);
        if (rv == -MU_EDEADLINE && queue.before != 0)
            describe_holder(lock, &queue, timeout_ms, error);
    }
    if (lock->number != 0)
        leave_lock_queue(lock);
    return rv;
}

/* ---- What programs call ---- */

static int name_lock(struct mu_lock *lock, const char *name, mu_error *error)
{
    mu_error why;
    int size;
    int rv = mu__check_key(name, false, &why, lock->name);

    if (rv != 0)
        return mu_error_set(error, rv, "a lock's name is a key: %s", why.message);
    size = snprintf(lock->directory, sizeof lock->directory, MU_LOCK_DIRECTORY "/%s",
                    lock->name);
    if (size < (int)sizeof lock->directory)
        return 0;
    return mu_error_set(error, -MU_EINVALID,
                        "a lock's name has %zu bytes, which leaves "
                        "too few of the 1023 of a key",
                        strlen(lock->name));
}

static void free_lock(struct mu_lock *lock)
{
    mu_node *node = lock->node;

    mu_kv_watch_close(lock->own.watch);
    free(lock);
    mu__node_unref(node);
}

int mu_lock_acquire(mu_node *node, const char *name, int64_t timeout_ms,
                    mu_error *ret_error, mu_lock **ret_lock)
{
    MU__REQUIRE(ret_error, node, name, ret_lock);

    struct mu_lock *lock = calloc(1, sizeof *lock);
    int rv;

    if (lock == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a lock");
    lock->node = node;
    mu__node_ref(node);
    rv = name_lock(lock, name, ret_error);
    if (rv == 0)
        rv = acquire_lock(lock, timeout_ms, ret_error);
    if (rv == 0)
        *ret_lock = lock;
    else
        free_lock(lock);
    return rv;
}

uint64_t mu_lock_fencing_token(const mu_lock *lock)
{
    MU__REQUIRE_OR(0, lock);
    return lock->number;
}

const char *mu_lock_key(const mu_lock *lock)
{
    MU__REQUIRE_OR(NULL, lock);
    return lock->key;
}

int mu_lock_wait_lost(mu_lock *lock, int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE(ret_error, lock);

    return await_deleted(lock->node, lock->key, &lock->own, mu__deadline_in(timeout_ms),
                         ret_error);
}

int mu_lock_release(mu_lock *lock, int64_t timeout_ms, mu_error *ret_error)
{
    mu_kv_check check = {.type = MU_KV_IF_REVISION};
    mu_kv_change change = {.operation = MU_KV_DELETE};
    const mu_kv_transaction transaction = {&check, 1, &change, 1};
    mu_kv_transaction_result outcome;
    int rv;

    if (lock == NULL)
        return 0;
    check.key = lock->key;
    check.revision = lock->number;
    change.key = lock->key;
    rv = mu_kv_transact(lock->node, &transaction, timeout_ms, ret_error, &outcome);
    if (rv == -MU_EPRECONDITION && outcome.failed == 0)
        rv = mu_error_set(ret_error, -MU_EABORTED,
                          "lock \"%.100s\" was lost before it was released", lock->name);
    else if (rv == -MU_EDEADLINE)
        leave_lock_queue(lock);
    free_lock(lock);
    return rv;
}
