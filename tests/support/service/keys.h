/* What agents ask the coordination service about keys, for tests on top of service.h. A
 * host answers at once; tasks that are silent are dead after 900 ms, or 600 when their
 * link is down. An agent that asks has all answers of before. */
#ifndef MU_TESTS_SERVICE_KEYS_H
#define MU_TESTS_SERVICE_KEYS_H

#include "actors/coordination/keys/internal.h"
#include "actors/coordination/keys/txn.h"
#include "tests/support/service/service.h"

enum { ONCE = 0, OVER = MU__PUT_OVERWRITE, COMPARE = MU__PUT_COMPARE };

static inline uint64_t put_sized(struct service_agent *agent, const char *key,
                                 const void *value, size_t size, uint32_t flags,
                                 uint64_t revision)
{
    TELL(agent, KEY_PUT, key_put, .token = ++agent->token, .done = agent->token,
         .key = mu__view_str(key), .value = {value, (uint32_t)size}, .flags = flags,
         .revision = revision);
    return agent->token;
}

static inline uint64_t put(struct service_agent *agent, const char *key,
                           const char *value, uint32_t flags)
{
    return put_sized(agent, key, value, strlen(value), flags, 0);
}

static inline uint64_t get(struct service_agent *agent, const char *key, bool wait)
{
    TELL(agent, KEY_GET, key_get, .token = ++agent->token, .key = mu__view_str(key),
         .wait = wait);
    return agent->token;
}

static inline uint64_t increment(struct service_agent *agent, const char *key, int64_t by)
{
    TELL(agent, KEY_INCREMENT, key_increment, .token = ++agent->token,
         .done = agent->token, .key = mu__view_str(key), .by = by);
    return agent->token;
}

static inline uint64_t delete (struct service_agent *agent, const char *key)
{
    TELL(agent, KEY_DELETE, key_delete, .token = ++agent->token, .done = agent->token,
         .key = mu__view_str(key));
    return agent->token;
}

static inline uint64_t watch(struct service_agent *agent, const char *key, bool below)
{
    TELL(agent, KEY_WATCH, key_watch, .token = ++agent->token, .key = mu__view_str(key),
         .below = below);
    return agent->token;
}

static inline uint64_t list(struct service_agent *agent, const char *key,
                            const char *after, bool names_only)
{
    TELL(agent, KEY_LIST, key_list, .token = ++agent->token, .key = mu__view_str(key),
         .after = mu__view_str(after), .names_only = names_only);
    return agent->token;
}

/* Asked with a token of its own; perhaps again. */
static inline void tell_put(struct service_agent *agent, uint64_t token, uint64_t done,
                            const char *key, const char *value, uint32_t flags)
{
    TELL(agent, KEY_PUT, key_put, .token = token, .done = done, .key = mu__view_str(key),
         .value = mu__view_str(value), .flags = flags);
}

static inline void tell_increment(struct service_agent *agent, uint64_t token,
                                  uint64_t done)
{
    TELL(agent, KEY_INCREMENT, key_increment, .token = token, .done = done,
         .key = mu__view_str("n"), .by = 1);
}

/* A transaction with a token of its own; perhaps again. */
static inline void tell_txn(struct service_agent *agent, uint64_t token, uint64_t done,
                            const struct mu__txn *txn)
{
    mu_value *content = mu__txn_write(txn);
    struct mu__packed packed;
    struct mu__buf *buf = mu__pack_value(content, &packed);

    assert_non_null(buf);
    TELL(agent, KEY_TXN, key_txn, .token = token, .done = done, .content = packed);
    mu__buf_unref(buf);
    mu_value_free(content);
}

/* What a key has now, by asking; "" when it is not there. */
static inline const char *value_of(struct service_agent *agent, const char *key)
{
    static char text[128];
    uint64_t token = get(agent, key, false);
    const struct service_said *said = service_answer(agent, MU__KEY_DONE, token);
    const struct mu__key_done *done;

    assert_non_null(said);
    done = (const void *)said->msg->body;
    assert_true(done->code == 0 || done->code == MU_ENOTFOUND);
    mu__view_copy(done->value, text, sizeof text);
    (void)service_text(agent);
    return text;
}

#define expect_key(agent, key, text) assert_string_equal(value_of(agent, key), text)

struct pair {
    struct service *s;
    struct service_agent *w0;
    struct service_agent *w1;
};

/* Two tasks that are registered: their next token is 2. */
static inline struct pair begin(const struct mu__store_kind *store)
{
    struct pair p = {.s = SERVICE(.store = store)};

    p.w0 = service_task(p.s, "worker", 0);
    p.w1 = service_task(p.s, "worker", 1);
    return p;
}

#endif
