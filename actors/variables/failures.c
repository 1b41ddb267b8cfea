/* How an operation fails: the text of its error, and the server that it names. */
#include "actors/variables/actions.h"
#include "actors/variables/batches.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    NAMED_MAX = 3,        /* servers that an error names */
    SERVER_TEXT_MAX = 384 /* a task and its address */
};

static const char NOT_SERVED[] = "has not served its partition";

/* ---- Texts ---- */

static void task_text(uint32_t server, char *out, size_t size)
{
    (void)snprintf(out, size, "/job:ps/task:%" PRIu32, server);
}

/* "/job:ps/task:1 (tcp://host:port)" */
static void server_text(const struct variables *v, uint32_t server, char *out,
                        size_t size)
{
    const char *address = v->servers[server]->address;

    if (address == NULL)
        task_text(server, out, size);
    else
        (void)snprintf(out, size, "/job:ps/task:%" PRIu32 " (%s)", server, address);
}

/* A text that is appended to, and cut at the size of a message. */
struct line {
    char text[sizeof((mu_error *)NULL)->message];
    size_t length;
};

static void line_add(struct line *line, const char *text)
{
    size_t room = sizeof line->text - 1 - line->length;
    size_t size = strlen(text);

    if (size > room)
        size = room;
    memcpy(line->text + line->length, text, size);
    line->length += size;
    line->text[line->length] = '\0';
}

/* "/job:ps/task:1, /job:ps/task:2": the servers of the parts that are picked, each once;
 * returns the first, or UINT32_MAX. */
static uint32_t line_add_tasks(struct line *line, const struct variables *v,
                               const struct operation *op,
                               bool (*is_picked)(const struct op_part *part))
{
    uint32_t named[NAMED_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < op->parts_count; i++) {
        uint32_t server = server_of(v, op->parts[i].partition);
        uint32_t before = 0;
        char text[64];

        while (before < count && named[before] != server)
            before++;
        if (!is_picked(&op->parts[i]) || before < count)
            continue;
        if (count == NAMED_MAX) {
            line_add(line, " and others");
            break;
        }
        named[count++] = server;
        task_text(server, text, sizeof text);
        line_add(line, count == 1 ? "" : ", ");
        line_add(line, text);
    }
    return count == 0 ? UINT32_MAX : named[0];
}

/* Why an operation waits for a server: what the server has not done, and a reason, or
 * "". `unserved`: the partition that the operation waits for, if the server is up and
 * does not serve it, or NULL. */
static void line_add_server(struct line *line, const struct variables *v, uint32_t server,
                            const struct placement *unserved, uint64_t waited_ms)
{
    const struct variable_server *s = v->servers[server];
    const char *what = s->up ? "has not answered" : "not reached";
    const char *reason = s->up ? "" : s->trouble;
    char server_name[SERVER_TEXT_MAX];
    char text[SERVER_TEXT_MAX + TROUBLE_BYTES_MAX + 64];

    if (unserved != NULL) {
        what = NOT_SERVED;
        reason = unserved->generation == 0 ? "the chief has not placed it" : "";
    }
    server_text(v, server, server_name, sizeof server_name);
    (void)snprintf(text, sizeof text, "%s%s %s for %" PRIu64 ".%" PRIu64 " s%s%s%s",
                   line->length == 0 ? "" : ", ", server_name, what, waited_ms / 1000,
                   waited_ms % 1000 / 100, reason[0] == '\0' ? "" : " (", reason,
                   reason[0] == '\0' ? "" : ")");
    line_add(line, text);
}

void mu__vars_server_words(struct mu__ctx *ctx, const struct variables *v,
                           uint32_t partition, uint64_t since_ms, char *out, size_t size)
{
    const struct placement *placement = &v->placements[partition];
    const struct variable_server *s = v->servers[placement->server];
    struct line line = {.length = 0};

    line_add_server(&line, v, placement->server,
                    s->up && !placement->served ? placement : NULL,
                    mu__now_ms(ctx) - (s->up ? since_ms : s->down_ms));
    (void)snprintf(out, size, "%s", line.text);
}

/* ---- Failing ---- */

static void end_with_error(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                           const mu_error *error)
{
    v->pump_all_due = true;
    if (op->run != NULL) {
        mu__vars_fail_run(ctx, v, op, error);
        return;
    }
    for (uint32_t i = 0; i < op->parts_count; i++)
        mu__vars_abandon_part(ctx, v, &op->parts[i]);
    op->call->call.error = *error;
    mu__vars_complete(ctx, v, op, error->code);
}

/* The error came from `server`. */
static void end_failed(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                       uint32_t server, mu_error *error)
{
    task_text(server, error->task, sizeof error->task);
    error->kind = MU_ERROR_SERVER;
    end_with_error(ctx, v, op, error);
}

static void set_operation_error(const struct operation *op, int code, const char *reason,
                                mu_error *ret_error)
{
    if (op->writer.table != NULL)
        (void)mu_error_set(ret_error, code, "table %s: %s", op->writer.table->name,
                           reason);
    else if (op->run != NULL)
        (void)mu_error_set(ret_error, code, "what the run wrote: %s", reason);
    else
        (void)mu_error_set(ret_error, code, "variable %s: %s: %s", op->call->name,
                           op->rule->verb, reason);
}

void mu__vars_fail(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                   uint32_t server, int code, const char *reason)
{
    mu_error error;

    set_operation_error(op, code, reason, &error);
    end_failed(ctx, v, op, server, &error);
}

void mu__vars_fail_at(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                      uint32_t server, int code, const char *before, const char *after)
{
    char text[SERVER_TEXT_MAX + MU__ERROR_TEXT_MAX + 128];
    char server_name[SERVER_TEXT_MAX];

    server_text(v, server, server_name, sizeof server_name);
    (void)snprintf(text, sizeof text, "%s%s%s", before, server_name, after);
    mu__vars_fail(ctx, v, op, server, code, text);
}

void mu__vars_fail_by_answer(struct mu__ctx *ctx, struct variables *v,
                             struct operation *op, uint32_t partition, uint32_t code,
                             struct mu__view reason)
{
    uint32_t server = server_of(v, partition);
    char message[MU__ERROR_TEXT_MAX + 1];
    char text[sizeof message + 64];

    mu__view_copy(reason, message, sizeof message);
    if (op->run != NULL) {
        (void)snprintf(text, sizeof text, " refused it: %s", message);
        mu__vars_fail_at(ctx, v, op, server, -(int)code, "", text);
        return;
    }
    (void)snprintf(text, sizeof text, "on /job:ps/task:%" PRIu32 ": %s", server, message);
    mu__vars_fail(ctx, v, op, server, -(int)code, text);
}

void mu__vars_fail_forgotten(struct mu__ctx *ctx, struct variables *v,
                             struct operation *op, uint32_t partition)
{
    mu__vars_fail_by_answer(ctx, v, op, partition, MU_ENOTFOUND,
                            mu__view_str("the server was restarted, or the variable "
                                         "created anew: it does not have it"));
}

void mu__vars_fail_bad_answer(struct mu__ctx *ctx, struct variables *v,
                              struct op_part *part)
{
    mu__vars_fail_at(ctx, v, part->op, server_of(v, part->partition), -MU_EDATALOSS, "",
                     " answered something else than was asked");
}

void mu__vars_fail_unknown(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                           uint32_t partition)
{
    mu__vars_fail_at(ctx, v, op, server_of(v, partition), -MU_EUNAVAILABLE, "",
                     " was lost before it answered: the outcome is unknown");
}

void mu__vars_fail_replaced(struct mu__ctx *ctx, struct variables *v,
                            struct op_part *part)
{
    mu__vars_fail_at(ctx, v, part->op, server_of(v, part->partition), -MU_EUNAVAILABLE,
                     "the variable was created anew on ",
                     " before all of it was written: the outcome is unknown");
}

/* The text of a call is the inner error's without "variable w: open: ". */
void mu__vars_fail_as(struct mu__ctx *ctx, struct variables *v, struct operation *op,
                      const struct mu__variable_call *inner)
{
    const char *reason =
        op->run != NULL ? NULL : strstr(inner->call.error.message, ": open: ");
    mu_error error;

    set_operation_error(
        op, inner->call.error.code,
        reason == NULL ? inner->call.error.message : reason + strlen(": open: "), &error);
    error.kind = inner->call.error.kind;
    memcpy(error.task, inner->call.error.task, sizeof error.task);
    end_with_error(ctx, v, op, &error);
}

static bool is_absent(const struct op_part *part)
{
    return part->absent;
}

static bool is_made(const struct op_part *part)
{
    return part->made;
}

void mu__vars_fail_lost(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    struct line line = {.length = 0};
    uint32_t server = line_add_tasks(&line, v, op, op->creates ? is_made : is_absent);
    mu_error error;

    (void)mu_error_set(&error, -MU_EDATALOSS,
                       "variable \"%s\" lost its shards on %s in a restart; others have "
                       "theirs (MU_VARIABLE_RECREATE writes all of it anew)",
                       op->call->name, line.text);
    end_failed(ctx, v, op, server, &error);
}

/* ---- Lost servers and timeouts ---- */

static bool needs_server(const struct variables *v, const struct op_part *part)
{
    bool reached = v->servers[server_of(v, part->partition)]->up;

    if (!reached && is_open(part->op) && !part->opened)
        return true;
    return part->step != RESTING && !part->absent;
}

bool mu__vars_waits_for(const struct variables *v, const struct operation *op,
                        uint32_t server)
{
    for (struct write_batch *batch = op->batches; batch != NULL; batch = batch->sibling)
        if (server_of(v, batch->partition) == server)
            return true;
    for (uint32_t i = 0; i < op->parts_count; i++)
        if (server_of(v, op->parts[i].partition) == server &&
            needs_server(v, &op->parts[i]))
            return true;
    return false;
}

/* A partition that an operation waits for, of a server that is up and does not serve it;
 * NULL: there is none. */
static const struct placement *unserved_by(const struct variables *v,
                                           const struct operation *op, uint32_t server)
{
    const struct placement *found = NULL;

    for (uint32_t i = 0; i < op->parts_count && v->servers[server]->up; i++) {
        const struct placement *placement = &v->placements[op->parts[i].partition];

        if (placement->server == server && !placement->served &&
            needs_server(v, &op->parts[i]))
            found = placement;
    }
    return found;
}

/* The states of a server that errors tell apart. */
static bool is_up(struct mu__ctx *ctx, const struct variables *v, uint32_t server)
{
    (void)ctx;
    return v->servers[server]->up;
}

static bool is_down(struct mu__ctx *ctx, const struct variables *v, uint32_t server)
{
    return !is_up(ctx, v, server);
}

/* It was connected: its process, or the way to it, is gone. */
static bool is_away(struct mu__ctx *ctx, const struct variables *v, uint32_t server)
{
    return is_down(ctx, v, server) && v->servers[server]->was_up;
}

/* Names the servers in one state that an operation waits for; returns the first, or
 * UINT32_MAX. */
static uint32_t name_servers(
    struct mu__ctx *ctx, const struct variables *v, const struct operation *op,
    bool (*fits)(struct mu__ctx *ctx, const struct variables *v, uint32_t server),
    struct line *line)
{
    uint32_t first = UINT32_MAX;
    uint32_t count = 0;

    for (uint32_t i = 0; i < v->servers_count && count <= NAMED_MAX; i++) {
        uint64_t since_ms = v->servers[i]->up ? op->began_ms : v->servers[i]->down_ms;

        if (!fits(ctx, v, i) || !mu__vars_waits_for(v, op, i))
            continue;
        if (count++ == 0)
            first = i;
        if (count <= NAMED_MAX)
            line_add_server(line, v, i, unserved_by(v, op, i),
                            mu__now_ms(ctx) - since_ms);
        else
            line_add(line, ", and others");
    }
    return first;
}

void mu__vars_fail_by_loss(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    struct line line = {.length = 0};
    uint32_t server = name_servers(ctx, v, op, mu__vars_is_lost, &line);

    mu__vars_fail(ctx, v, op, server, -MU_EUNAVAILABLE, line.text);
}

/* The shards that an open waits for were not created. */
static void fail_absent(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    struct line line = {.length = 0};
    uint32_t server = line_add_tasks(&line, v, op, is_absent);
    mu_error error;

    (void)mu_error_set(&error, -MU_EDEADLINE,
                       "variable \"%s\" does not exist on %s (it waits for its creator)",
                       op->call->name, line.text);
    end_failed(ctx, v, op, server, &error);
}

/* A run's servers are up, and one has not taken its batch. */
static void fail_slow(struct mu__ctx *ctx, struct variables *v, struct operation *op)
{
    const struct write_batch *batch = op->batches;
    const char *how = "has not answered";
    char text[96];

    while (batch->sibling != NULL)
        batch = batch->sibling;
    if (!v->placements[batch->partition].served)
        how = NOT_SERVED;
    else if (batch->rested && batch->refused == 0)
        how = "knows no supervisor and has refused it";
    else if (batch->rested)
        how = "has no room and has refused it";
    (void)snprintf(text, sizeof text, " %s for %" PRIu32 ".%" PRIu32 " s", how,
                   v->effect_wait_ms / 1000, v->effect_wait_ms % 1000 / 100);
    mu__vars_fail_at(ctx, v, op, server_of(v, batch->partition),
                     batch->rested && batch->refused != 0 ? batch->refused
                                                          : -MU_EUNAVAILABLE,
                     "", text);
}

/* Names lost servers before those that never were there, then missing shards, then slow
 * servers. However short the timeout is, a server that is gone is unavailable. */
void mu__vars_fail_by_timeout(struct mu__ctx *ctx, struct variables *v,
                              struct operation *op)
{
    bool is_run = op->run != NULL && op->writer.table == NULL;
    struct line line = {.length = 0};
    uint32_t server = name_servers(ctx, v, op, is_run ? is_down : is_away, &line);

    if (server != UINT32_MAX) {
        mu__vars_fail(ctx, v, op, server, -MU_EUNAVAILABLE, line.text);
        return;
    }
    if (is_run) {
        fail_slow(ctx, v, op);
        return;
    }
    server = name_servers(ctx, v, op, is_down, &line);
    if (server == UINT32_MAX && mu__vars_has_absent(op) &&
        has_flag(op, MU_VARIABLE_EXISTING)) {
        fail_absent(ctx, v, op);
        return;
    }
    if (server == UINT32_MAX)
        server = name_servers(ctx, v, op, is_up, &line);
    mu__vars_fail(ctx, v, op, server, -MU_EDEADLINE, line.text);
}
