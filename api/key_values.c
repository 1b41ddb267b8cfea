/* The public key-values. A request is one block of memory and one message to the node's
 * agent: a thread that waits does so on a semaphore of its own, which the answer's
 * callback posts. */
#include "api/internal.h"

#include "actors/messages.h"
#include "runtime/message/arguments.h"

#include <stdlib.h>
#include <string.h>

struct mu_kv_watch {
    mu_node *node; /* held: see mu__node_ref */
    struct mu__agent_watch *watch;
};

void mu_kv_item_clear(mu_kv_item *item)
{
    MU__REQUIRE_OR(, item);
    free(item->value);
    *item = (mu_kv_item){.value = NULL};
}

void mu_kv_event_clear(mu_kv_event *event)
{
    MU__REQUIRE_OR(, event);
    mu_kv_item_clear(&event->item);
    free(event->key);
    event->key = NULL;
}

/* ---- requests ---- */

static int check_request(const mu_kv_request *kv_request, mu_error *ret_error)
{
    const unsigned known = MU_KV_OVERWRITE | MU_KV_COMPARE | MU_KV_LEASE;

    if (kv_request->operation < MU_KV_PUT || kv_request->operation > MU_KV_DELETE)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "operation %d is not a valid mu_kv_operation",
                            kv_request->operation);
    if ((kv_request->flags & ~known) != 0)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "flags of a put are 0x%x, which has unknown flags",
                            kv_request->flags);
    if (kv_request->size > 0 && kv_request->value == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "a value of %zu bytes is NULL",
                            kv_request->size);
    if (kv_request->size > MU__KEY_VALUE_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "a value has %zu bytes, at most %d are kept",
                            kv_request->size, MU__KEY_VALUE_MAX);
    return 0;
}

int mu__kv_post(mu_node *node, const mu_kv_request *kv_request, mu_kv_done_fn done,
                void *user, mu_error *ret_error, uint64_t *ret_request)
{
    struct mu__msg *msg;
    uint64_t request = 0;
    int rv = mu__key_request_new(&node->member.agent, kv_request, done, user, ret_error,
                                 ret_request == NULL ? NULL : &request, &msg);

    if (rv != 0)
        return rv;
    rv = mu__node_try_post(node, MU__AGENT, msg);
    if (rv != 0) {
        mu__key_request_drop(msg);
        return mu_error_set(ret_error, rv, "%s is %s", mu_node_task(node),
                            mu_strerror(rv));
    }
    if (ret_request != NULL)
        *ret_request = request;
    return 0;
}

static int begin_kv_request(mu_node *node, const mu_kv_request *kv_request,
                            mu_kv_done_fn done, void *user, mu_error *ret_error,
                            uint64_t *ret_request)
{
    mu_kv_request copy = *kv_request;
    char key[1024];
    int rv = check_request(kv_request, ret_error);

    if (rv == 0)
        rv = mu__check_key(kv_request->key, false, ret_error, key);
    if (rv != 0)
        return rv;
    copy.key = key;
    if (copy.operation != MU_KV_PUT)
        copy.size = 0;
    return mu__kv_post(node, &copy, done, user, ret_error, ret_request);
}

int mu_kv_request_async(mu_node *node, const mu_kv_request *kv_request,
                        mu_kv_done_fn done, void *user, uint64_t *ret_request)
{
    MU__REQUIRE(NULL, node, kv_request, done);
    return begin_kv_request(node, kv_request, done, user, NULL, ret_request);
}

int mu_kv_cancel(mu_node *node, uint64_t request)
{
    MU__REQUIRE(NULL, node);

    struct mu__msg *msg = mu__msg_heap(MU__KEY_CANCEL, sizeof(struct mu__key_cancel));

    if (msg != NULL)
        ((struct mu__key_cancel *)(void *)msg->body)->token = request;
    return mu__node_post(node, MU__AGENT, msg);
}

/* ---- waiting for one ---- */

static int copy_value(struct mu__kv_wait *wait, const mu_kv_response *answer)
{
    char *value = malloc(answer->size + 1);

    if (value == NULL)
        return mu_error_set(&wait->error, -MU_ENOMEM, "no memory for a value");
    if (answer->size > 0)
        memcpy(value, answer->value, answer->size);
    value[answer->size] = '\0';
    wait->item = (mu_kv_item){value, answer->size, answer->revision};
    return 0;
}

static void wake_kv_wait(void *user, const mu_kv_response *answer)
{
    struct mu__kv_wait *wait = user;

    wait->code = answer->code;
    wait->revision = answer->revision;
    wait->number = answer->number;
    if (answer->code != 0)
        wait->error = *answer->error;
    else if (wait->needs_value)
        wait->code = copy_value(wait, answer);
    uv_sem_post(&wait->woken);
}

static int request_and_wait(mu_node *node, mu__kv_begin_fn begins, const void *what,
                            struct mu__kv_wait *wait)
{
    int rv;

    if (uv_sem_init(&wait->woken, 0) != 0)
        return mu_error_set(&wait->error, -MU_ENOMEM, "no memory to wait");
    mu__node_ref(node);
    rv = begins(node, what, wake_kv_wait, wait, &wait->error);
    if (rv == 0) {
        mu__spin_sem_wait(&node->calls.spin, &wait->woken, 0);
        rv = wait->code;
    }
    if (rv != 0)
        mu__node_note_error(node, &wait->error);
    mu__node_unref(node);
    uv_sem_destroy(&wait->woken);
    return rv;
}

int mu__kv_wait_for(mu_node *node, mu__kv_begin_fn begins, const void *what,
                    mu_error *ret_error, struct mu__kv_wait *wait)
{
    int rv = mu__node_may_wait(node, ret_error);

    if (rv != 0)
        return rv;
    rv = request_and_wait(node, begins, what, wait);
    if (rv != 0 && ret_error != NULL)
        *ret_error = wait->error;
    return rv;
}

static int begin_kv_wait(mu_node *node, const void *what, mu_kv_done_fn done, void *user,
                         mu_error *ret_error)
{
    return begin_kv_request(node, what, done, user, ret_error, NULL);
}

static int request_kv(mu_node *node, const mu_kv_request *kv_request, mu_error *ret_error,
                      struct mu__kv_wait *wait)
{
    return mu__kv_wait_for(node, begin_kv_wait, kv_request, ret_error, wait);
}

int mu_kv_put(mu_node *node, const char *key, const void *value, size_t size,
              unsigned flags, uint64_t revision, int64_t timeout_ms, mu_error *ret_error,
              uint64_t *ret_revision)
{
    MU__REQUIRE(ret_error, node, key);

    const mu_kv_request kv_request = {
        .operation = MU_KV_PUT,
        .flags = flags,
        .key = key,
        .value = value,
        .size = size,
        .revision = revision,
        .timeout_ms = timeout_ms,
    };
    struct mu__kv_wait wait = {.needs_value = false};
    int rv = request_kv(node, &kv_request, ret_error, &wait);

    if (rv == 0 && ret_revision != NULL)
        *ret_revision = wait.revision;
    return rv;
}

static int get_kv_item(mu_node *node, int operation, const char *key, int64_t timeout_ms,
                       mu_error *ret_error, mu_kv_item *ret_item)
{
    const mu_kv_request kv_request = {
        .operation = operation, .key = key, .timeout_ms = timeout_ms};
    struct mu__kv_wait wait = {.needs_value = true};
    int rv = request_kv(node, &kv_request, ret_error, &wait);

    if (rv == 0)
        *ret_item = wait.item;
    return rv;
}

int mu_kv_get(mu_node *node, const char *key, int64_t timeout_ms, mu_error *ret_error,
              mu_kv_item *ret_item)
{
    MU__REQUIRE(ret_error, node, key, ret_item);
    return get_kv_item(node, MU_KV_GET, key, timeout_ms, ret_error, ret_item);
}

int mu_kv_try_get(mu_node *node, const char *key, int64_t timeout_ms, mu_error *ret_error,
                  mu_kv_item *ret_item)
{
    MU__REQUIRE(ret_error, node, key, ret_item);
    return get_kv_item(node, MU_KV_TRY_GET, key, timeout_ms, ret_error, ret_item);
}

int mu_kv_increment(mu_node *node, const char *key, int64_t by, int64_t timeout_ms,
                    mu_error *ret_error, int64_t *ret_number)
{
    MU__REQUIRE(ret_error, node, key, ret_number);

    const mu_kv_request kv_request = {
        .operation = MU_KV_INCREMENT, .key = key, .by = by, .timeout_ms = timeout_ms};
    struct mu__kv_wait wait = {.needs_value = false};
    int rv = request_kv(node, &kv_request, ret_error, &wait);

    if (rv == 0)
        *ret_number = wait.number;
    return rv;
}

int mu_kv_delete(mu_node *node, const char *key, int64_t timeout_ms, mu_error *ret_error,
                 uint64_t *ret_count)
{
    MU__REQUIRE(ret_error, node, key);

    const mu_kv_request kv_request = {
        .operation = MU_KV_DELETE, .key = key, .timeout_ms = timeout_ms};
    struct mu__kv_wait wait = {.needs_value = false};
    int rv = request_kv(node, &kv_request, ret_error, &wait);

    if (rv == 0 && ret_count != NULL)
        *ret_count = (uint64_t)wait.number;
    return rv;
}

int mu_kv_list(mu_node *node, const char *directory, int64_t timeout_ms,
               mu_error *ret_error, mu_value **ret_items)
{
    MU__REQUIRE(ret_error, node, directory, ret_items);

    struct mu__agent_call call = {.number = 0};
    char key[1024];
    int rv = mu__check_key(directory, true, ret_error, key);

    if (rv != 0)
        return rv;
    call.name = key;
    rv = mu__agent_call_and_wait(node, &call, MU__AGENT_LIST, timeout_ms, ret_error);
    if (rv == 0)
        *ret_items = call.content;
    return rv;
}

/* ---- watches ---- */

static void watch_free(struct mu_kv_watch *watch)
{
    mu_node *node = watch->node;

    mu__agent_watch_unref(watch->watch);
    free(watch);
    mu__node_unref(node);
}

int mu_kv_watch_open(mu_node *node, const char *key, int below, int64_t timeout_ms,
                     mu_error *ret_error, mu_kv_watch **ret_watch)
{
    MU__REQUIRE(ret_error, node, key, ret_watch);

    struct mu__agent_call call = {.below = below != 0};
    struct mu_kv_watch *watch;
    char normal[1024];
    int rv = mu__check_key(key, below != 0, ret_error, normal);

    if (rv != 0)
        return rv;
    watch = calloc(1, sizeof *watch);
    if (watch != NULL)
        watch->watch = mu__agent_watch_new();
    if (watch == NULL || watch->watch == NULL) {
        free(watch);
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for a watch");
    }
    watch->node = node;
    mu__node_ref(node);
    call.name = normal;
    call.watch = watch->watch;
    rv = mu__agent_call_and_wait(node, &call, MU__AGENT_WATCH, timeout_ms, ret_error);
    if (rv == 0)
        *ret_watch = watch;
    else
        watch_free(watch);
    return rv;
}

int mu_kv_watch_next(mu_kv_watch *watch, int64_t timeout_ms, mu_error *ret_error,
                     mu_kv_event *ret_event)
{
    MU__REQUIRE(ret_error, watch, ret_event);

    struct mu__agent_call call = {.watch = watch->watch};
    int rv = mu__agent_call_and_wait(watch->node, &call, MU__AGENT_WATCH_NEXT, timeout_ms,
                                     ret_error);

    if (rv == 0)
        *ret_event = call.event;
    return rv;
}

static void on_kv_watch_closed(struct mu__pending *pending)
{
    struct mu__agent_detached *detached = (struct mu__agent_detached *)(void *)pending;

    watch_free(detached->watch);
    mu__agent_detached_free(detached);
}

/* Nothing is waited for. Without memory, or when the node is closed, the agent lets go of
 * its side at its end. */
void mu_kv_watch_close(mu_kv_watch *watch)
{
    struct mu__agent_detached *detached;

    if (watch == NULL)
        return;
    detached = mu__agent_detached_new(MU__AGENT_WATCH_CLOSE, "");
    if (detached != NULL) {
        detached->call.watch = watch->watch;
        detached->watch = watch;
        if (mu__node_call_later(watch->node, MU__AGENT, &detached->pending,
                                &detached->call.call, on_kv_watch_closed) == 0)
            return;
        mu__agent_detached_free(detached);
    }
    watch_free(watch);
}
