/* Stories about the coordination service, in virtual time.
 *
 * A host is a process of the simulator with the real actor in a kernel of its own; there
 * are up to three, each with storage that survives its crashes. Agents are not processes:
 * the test is all of them. It says with service_tell, or a helper below, what one of them
 * sends to a host, and looks at what hosts said to it. A message takes no time in either
 * direction but goes through the codec, so that what could not travel is found; links
 * come and go when the test says so. So all times that are seen are the service's own,
 * and ten thousand agents are cheap.
 *
 *     struct service *s = SERVICE(.tasks = "worker:0-1");
 *     struct service_agent *w0 = service_agent(s, "worker", 0);
 *
 *     expect_ok(w0, service_register(w0, false, 0));
 *     service_run_until(s, 500);
 *     expect_said(w0, "[  500] task_error 14 ...\n");
 *     service_end(s);
 *
 * Agents of a story do nothing by themselves, but for heartbeats, which those send that
 * have `beats` set: at every multiple of heartbeat_ms. */
#ifndef MU_TESTS_SERVICE_H
#define MU_TESTS_SERVICE_H

#include "tests/support/service/hosts.h"

/* ---- Agents and their links ---- */

static inline void service_link_up(struct service_agent *agent, unsigned number)
{
    struct service_host *host = &agent->service->hosts[number];

    if (agent->home == (int)number || agent->nodes[number] != 0 || host->kernel == NULL)
        return;
    agent->nodes[number] = ++host->nodes_count;
    assert_int_equal(mu__map_set(&host->agents, agent->nodes[number], agent), 0);
    mu__kernel_node_up(host->kernel, agent->nodes[number], agent->type, agent->index,
                       agent->incarnation, "tcp://agent:1");
    service_wake(host);
    service_settle(agent->service);
}

static inline void service_link_down(struct service_agent *agent, unsigned number,
                                     const char *reason)
{
    struct service_host *host = &agent->service->hosts[number];

    if (agent->nodes[number] == 0)
        return;
    (void)mu__map_remove(&host->agents, agent->nodes[number]);
    mu__kernel_node_down(host->kernel, agent->nodes[number], reason, false);
    agent->nodes[number] = 0;
    service_wake(host);
    service_settle(agent->service);
}

/* A task's process, with links to all hosts that run. */
static inline struct service_agent *service_agent(struct service *service,
                                                  const char *type, uint32_t index)
{
    struct service_agent *agent = calloc(1, sizeof *agent);

    assert_non_null(agent);
    agent->service = service;
    agent->index = index;
    agent->incarnation = service_incarnation(service);
    agent->home = -1;
    agent->said_end = &agent->said;
    (void)snprintf(agent->type, sizeof agent->type, "%s", type);
    agent->next = service->agents;
    service->agents = agent;
    for (unsigned i = 0; i < service->hosts_count; i++) {
        struct service_host *host = &service->hosts[i];

        if (strcmp(host->type, type) == 0 && host->index == index) {
            agent->home = (int)i;
            agent->incarnation = host->incarnation;
            host->at_home = agent;
        } else {
            service_link_up(agent, i);
        }
    }
    return agent;
}

/* Its process ends without a word, and all links with it. And begins again: with another
 * incarnation, new links, and counting tokens from 1. */
static inline void service_agent_crash(struct service_agent *agent)
{
    agent->beats = false;
    for (unsigned i = 0; i < agent->service->hosts_count; i++)
        service_link_down(agent, i, "connection reset");
}

static inline void service_agent_restart(struct service_agent *agent)
{
    service_agent_crash(agent);
    service_forget_said(agent);
    agent->token = 0;
    agent->since = 0;
    agent->incarnation = service_incarnation(agent->service);
    for (unsigned i = 0; i < agent->service->hosts_count; i++)
        service_link_up(agent, i);
}

/* ---- What agents say ---- */

static inline bool service_reaches(const struct service_agent *agent, unsigned number)
{
    return agent->service->hosts[number].kernel != NULL &&
           (agent->home == (int)number || agent->nodes[number] != 0);
}

/* Send a message of `kind` to a host; what the host says to that is there when this
 * returns. Nothing is sent when there is no link. */
static inline void service_tell(struct service_agent *agent, unsigned number,
                                uint16_t kind, const void *body, size_t size)
{
    struct service *service = agent->service;
    struct service_host *host = &service->hosts[number];
    struct mu__msg *msg = mu__msg_heap(kind, size);

    assert_non_null(msg);
    memcpy(msg->body, body, size);
    if (!service->options.fast) {
        struct mu__msg *copy = service_travel(service, msg);

        mu__pool_put(&service->pool, msg);
        /* The kernel's pool frees it: it must be of no other. */
        msg = mu__msg_heap(kind, size);
        assert_non_null(msg);
        memcpy(msg->body, copy->body, size);
        msg->backing = copy->backing;
        copy->backing = NULL;
        mu__pool_put(&service->pool, copy);
    }
    if (!service_reaches(agent, number)) {
        mu__pool_put(&service->pool, msg);
        return;
    }
    msg->from = (mu__pid){agent->nodes[number], MU__AGENT};
    msg->to = (mu__pid){MU__NODE_SELF, MU__COORDINATION};
    assert_int_equal(mu__kernel_deliver(host->kernel, msg), 0);
    service_wake(host);
    if (!service->options.fast)
        service_settle(service);
}

/* A message to host 0: TELL(agent, KEY_PUT, key_put, .token = 1, ...) */
#define TELL(agent, KIND, name, ...) TELL_HOST(agent, 0, KIND, name, __VA_ARGS__)
#define TELL_HOST(agent, number, KIND, name, ...)                              \
    service_tell(agent, number, MU__##KIND, &(struct mu__##name){__VA_ARGS__}, \
                 sizeof(struct mu__##name))

/* The helpers that return a token ask host 0 with a new one. */
static inline uint64_t service_register(struct service_agent *agent, bool barrier,
                                        uint64_t timeout_ms)
{
    TELL(agent, TASK_REGISTER, task_register, .token = ++agent->token, .barrier = barrier,
         .timeout_ms = timeout_ms, .since = agent->since);
    return agent->token;
}

static inline void service_heartbeat(struct service_agent *agent, unsigned host)
{
    TELL_HOST(agent, host, TASK_HEARTBEAT, task_heartbeat, .progress = agent->progress);
}

static inline uint64_t service_report(struct service_agent *agent, int code,
                                      const char *message)
{
    TELL(agent, TASK_REPORT, task_report, .token = ++agent->token,
         .code = (uint32_t)-code, .message = mu__view_str(message));
    return agent->token;
}

static inline uint64_t service_reset(struct service_agent *agent)
{
    TELL(agent, TASK_RESET, task_reset, .token = ++agent->token);
    return agent->token;
}

static inline uint64_t service_leave_now(struct service_agent *agent)
{
    TELL(agent, TASK_LEAVE, task_leave, .token = ++agent->token, .now = true);
    return agent->token;
}

static inline uint64_t service_leave(struct service_agent *agent, uint64_t timeout_ms)
{
    TELL(agent, TASK_LEAVE, task_leave, .token = ++agent->token,
         .timeout_ms = timeout_ms);
    return agent->token;
}

static inline uint64_t service_tasks_get(struct service_agent *agent, uint32_t what,
                                         const char *tasks, uint64_t version,
                                         uint64_t timeout_ms)
{
    TELL(agent, TASKS_GET, tasks_get, .token = ++agent->token, .what = what,
         .tasks = mu__view_str(tasks), .version = version, .timeout_ms = timeout_ms);
    return agent->token;
}

/* ---- Time ---- */

static inline void service_beat(struct service *service)
{
    for (struct service_agent *agent = service->agents; agent != NULL;
         agent = agent->next)
        for (unsigned i = 0; agent->beats && i < service->hosts_count; i++)
            if (service_reaches(agent, i))
                service_heartbeat(agent, i);
    service->beat_ms += service->options.heartbeat_ms;
}

static inline void service_run_until(struct service *service, uint64_t until_ms)
{
    while (service->beat_ms <= until_ms) {
        sim_run_until(service->sim, service->beat_ms);
        service_beat(service);
    }
    sim_run_until(service->sim, until_ms);
}

static inline void service_run(struct service *service, uint64_t ms)
{
    service_run_until(service, sim_now_ms(service->sim) + ms);
}

/* ---- Looking at what was said ---- */

/* The next message to an agent, of a kind or (0) any; what came before it is skipped.
 * NULL: none. Valid until the next look at this agent. */
static inline const struct service_said *service_next(struct service_agent *agent,
                                                      uint16_t kind)
{
    while (agent->said != NULL) {
        struct service_said *said = agent->said;

        service_free_said(agent, agent->looked);
        agent->looked = said;
        agent->said = said->next;
        if (agent->said == NULL)
            agent->said_end = &agent->said;
        if (kind == 0 || said->msg->kind == kind)
            return said;
    }
    return NULL;
}

/* The answer to a token, of a kind of message that begins with its token; what else was
 * said stays. NULL: there is none. */
static inline const struct service_said *service_answer(const struct service_agent *agent,
                                                        uint16_t kind, uint64_t token)
{
    for (const struct service_said *said = agent->said; said != NULL; said = said->next)
        if (said->msg->kind == kind && *(const uint64_t *)said->msg->body == token)
            return said;
    return NULL;
}

/* Take an answer out: it will not be in service_text. */
static inline void service_take(struct service_agent *agent, uint16_t kind,
                                uint64_t token)
{
    for (struct service_said **link = &agent->said; *link != NULL;
         link = &(*link)->next) {
        struct service_said *said = *link;

        if (said->msg->kind != kind || *(const uint64_t *)said->msg->body != token)
            continue;
        *link = said->next;
        if (agent->said_end == &said->next)
            agent->said_end = link;
        service_free_said(agent, said);
        return;
    }
}

static inline void service_print_view(char *out, size_t size, const struct mu__view *view)
{
    (void)snprintf(out, size, "\"%.*s\"", (int)view->size, (const char *)view->data);
}

/* A field that is not zero, " name=1"; "" when it is. */
static inline void service_print_field(
    const struct mu__msg *msg, const struct mu__field *field, char *out, size_t size)
{
    const uint8_t *at = msg->body + field->offset;
    char text[1200] = "";

    if (field->type == MU__FIELD_u64 && *(const uint64_t *)at != 0)
        (void)snprintf(text, sizeof text, "%" PRIu64, *(const uint64_t *)at);
    if (field->type == MU__FIELD_i64 && *(const int64_t *)at != 0)
        (void)snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)at);
    if (field->type == MU__FIELD_u32 && *(const uint32_t *)at != 0)
        (void)snprintf(text, sizeof text, "%" PRIu32, *(const uint32_t *)at);
    if (field->type == MU__FIELD_flag && *(const bool *)at)
        (void)snprintf(text, sizeof text, "yes");
    if ((field->type == MU__FIELD_str || field->type == MU__FIELD_bytes) &&
        ((const struct mu__view *)at)->size > 0)
        service_print_view(text, sizeof text, (const struct mu__view *)at);
    if (field->type == MU__FIELD_value && ((const struct mu__packed *)at)->head_size > 0)
        (void)snprintf(text, sizeof text, "...");
    (void)snprintf(out, size, text[0] == '\0' ? "%s%s" : " %s=%s",
                   text[0] == '\0' ? "" : field->name, text);
}

/* All that was said to an agent since the last look, a line for each message: its time,
 * name, and fields that are not zero. */
static inline const char *service_text(struct service_agent *agent)
{
    struct service *service = agent->service;
    const struct service_said *said;
    size_t used = 0;

    service->text[0] = '\0';
    while ((said = service_next(agent, 0)) != NULL) {
        const struct mu__row *row = &mu__messages.rows[said->msg->kind];

        used += (size_t)snprintf(service->text + used, sizeof service->text - used,
                                 "[%5" PRIu64 "] %s", said->at_ms, row->name);
        for (unsigned i = 0; i < row->fields_count; i++) {
            assert_true(used + 1300 < sizeof service->text);
            service_print_field(said->msg, &row->fields[i], service->text + used,
                                sizeof service->text - used);
            used += strlen(service->text + used);
        }
        used += (size_t)snprintf(service->text + used, sizeof service->text - used, "\n");
    }
    return service->text;
}

#define expect_said(agent, words) assert_string_equal(service_text(agent), words)

/* ---- Answers about tasks ---- */

static inline const struct mu__tasks_answer *service_tasks_answer(
    const struct service_agent *agent, uint64_t token)
{
    const struct service_said *said = service_answer(agent, MU__TASKS_ANSWER, token);

    return said == NULL ? NULL : (const void *)said->msg->body;
}

#define expect_waits(agent, token) \
    assert_null(service_answer(agent, MU__TASKS_ANSWER, token))

#define expect_error(agent, token, wanted_code, words)                         \
    do {                                                                       \
        uint64_t token_of_it = (token);                                        \
        const struct mu__tasks_answer *answer_of_it =                          \
            service_tasks_answer(agent, token_of_it);                          \
        char words_of_it[512];                                                 \
                                                                               \
        assert_non_null(answer_of_it);                                         \
        mu__view_copy(answer_of_it->message, words_of_it, sizeof words_of_it); \
        assert_string_equal(words_of_it, words);                               \
        assert_int_equal(-(int)answer_of_it->code, wanted_code);               \
    } while (0)

#define expect_ok(agent, token) expect_error(agent, token, 0, "")

/* When the answer came. */
static inline uint64_t service_answered_ms(const struct service_agent *agent,
                                           uint64_t token)
{
    const struct service_said *said = service_answer(agent, MU__TASKS_ANSWER, token);

    return said == NULL ? UINT64_MAX : said->at_ms;
}

/* The content of an answer; the caller's. */
static inline mu_value *service_content(const struct service_agent *agent, uint64_t token)
{
    const struct mu__tasks_answer *answer = service_tasks_answer(agent, token);
    mu_value *content = NULL;

    assert_non_null(answer);
    assert_int_equal(answer->code, 0);
    assert_int_equal(mu__value_unpack(&answer->content, NULL, 0, &content), 0);
    return content;
}

/* A task's process that has registered, and sends heartbeats. */
static inline struct service_agent *service_task(struct service *service,
                                                 const char *type, uint32_t index)
{
    struct service_agent *agent = service_agent(service, type, index);

    expect_ok(agent, service_register(agent, false, 0));
    (void)service_text(agent);
    agent->beats = true;
    return agent;
}

#endif
