/* Memory. A dialling is freed when its timer and its connections are closed. When it
 * ends it has no owner any more, and calling the event is the last thing that it does,
 * so that the owner may do anything in it. A look-up that still runs then belongs to
 * its thread. */
#include "transport/wire/uv/dialling.h"

#include "runtime/message/message.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_BYTES = 4 << 10 }; /* of TLS, read at a time */

_Static_assert((int)MU__ADDRESSES_MAX <= (int)MU__DIAL_ADDRESSES_MAX,
               "all addresses of a look-up are tried");

struct mu__dialling {
    struct mu__url url;
    struct mu__blocking_jobs *blocking_jobs;
    const struct mu__tls_source *tls;
    const struct mu__dialling_events *events;
    void *owner; /* NULL: it is over */
    void *arg;
    const struct mu__dial_tried *tried;
    uint32_t timeout_ms;
    struct mu__dial_plan plan;
    struct mu__dial_try tries[MU__DIAL_ADDRESSES_MAX];
    const char *no_name;
    uv_timer_t timer; /* until the plan's next move, or the look-up's timeout */
    struct mu__look_up_job *look_up; /* NULL: not begun, or over */
    unsigned holds;
};

static void drop_dialling_hold(struct mu__dialling *dialling)
{
    void (*closed)(void *arg) = dialling->events->closed;
    void *arg = dialling->arg;

    if (--dialling->holds > 0)
        return;
    free(dialling);
    closed(arg);
}

static void on_dialling_timer_closed(uv_handle_t *handle)
{
    drop_dialling_hold(handle->data);
}

/* ---- connections ---- */

static void on_connection_closed(uv_handle_t *handle)
{
    struct mu__dialling *dialling = handle->data;

    mu__connection_free((struct mu__connection *)handle);
    drop_dialling_hold(dialling);
}

static void close_connection(struct mu__dial_try *try)
{
    struct mu__connection *connection = try->connection;

    if (connection == NULL)
        return;
    try->connection = NULL;
    connection->connecting.dialling = NULL;
    uv_close(&connection->stream.handle, on_connection_closed);
}

static struct mu__connection *connection_new(struct mu__dialling *dialling,
                                             unsigned which)
{
    struct mu__connection *connection = calloc(1, sizeof *connection);

    if (connection == NULL)
        return NULL;
    if (mu__stream_init(dialling->timer.loop, dialling->url.ipc, &connection->stream) !=
        0) {
        free(connection);
        return NULL;
    }
    connection->stream.handle.data = dialling;
    connection->connecting.dialling = dialling;
    connection->connecting.which = which;
    dialling->holds++;
    return connection;
}

/* ---- the end ---- */

/* Its results can be read until the loop's next iteration. */
static void end_dialling(struct mu__dialling *dialling)
{
    dialling->owner = NULL;
    for (unsigned i = 0; i < dialling->plan.count; i++)
        close_connection(&dialling->tries[i]);
    if (dialling->look_up != NULL)
        mu__blocking_job_drop(&dialling->look_up->job);
    dialling->look_up = NULL;
    uv_close((uv_handle_t *)&dialling->timer, on_dialling_timer_closed);
}

static void lose_dialling(struct mu__dialling *dialling)
{
    void *owner = dialling->owner;

    end_dialling(dialling);
    dialling->events->lost(owner, dialling);
}

static void win_dialling(struct mu__dialling *dialling, struct mu__connection *connection)
{
    struct mu__dial_try *try = &dialling->tries[connection->connecting.which];
    void *owner = dialling->owner;

    (void)uv_read_stop(&connection->stream.stream);
    free(connection->connecting.records);
    connection->connecting.records = NULL;
    connection->connecting.dialling = NULL;
    connection->stream.handle.data = NULL;
    try->connection = NULL;
    try->state = MU__DIAL_GREETS;
    dialling->holds--; /* the timer holds it still */
    end_dialling(dialling);
    dialling->events->won(owner, dialling, connection);
}

/* ---- failing ---- */

static void step_dialling(struct mu__dialling *dialling);

static void note_dial_failure(struct mu__dial_try *try, enum mu__dial_state state,
                              const char *why)
{
    close_connection(try);
    try->state = state;
    try->why = why;
}

static void fail_dial_try(struct mu__connection *connection, enum mu__dial_state state,
                          const char *why)
{
    struct mu__dialling *dialling = connection->connecting.dialling;
    unsigned which = connection->connecting.which;

    note_dial_failure(&dialling->tries[which], state, why);
    mu__dial_plan_fail(&dialling->plan, which);
    step_dialling(dialling);
}

static void give_up_dial_try(struct mu__dial_try *try)
{
    if (try->state == MU__DIAL_CONNECTED)
        note_dial_failure(try, MU__DIAL_MUTE, "it is connected, and says nothing");
    else
        note_dial_failure(try, MU__DIAL_SILENT, "the attempt to connect timed out");
}

static enum mu__dial_state get_dial_state(int status)
{
    if (status == UV_ECONNREFUSED || status == UV_ENOENT)
        return MU__DIAL_REFUSED;
    return status == UV_ETIMEDOUT ? MU__DIAL_SILENT : MU__DIAL_NO_WAY;
}

static const char *get_dial_words(int status)
{
    if (status == UV_ECONNREFUSED)
        return "connection refused";
    if (status == UV_ENOENT)
        return "no such socket";
    if (status == UV_ETIMEDOUT)
        return "the attempt to connect timed out";
    return uv_strerror(status);
}

/* ---- the greeting ---- */

static void on_dial_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct mu__connection *connection = (struct mu__connection *)handle;
    struct mu__connecting *at = &connection->connecting;

    (void)suggested;
    if (connection->tls != NULL)
        *buf = uv_buf_init((char *)at->records, RECORDS_BYTES);
    else
        *buf = uv_buf_init((char *)at->heard + at->heard_size,
                           MU__SP_GREETING_BYTES - at->heard_size);
}

/* The protocol that answers, if its first bytes are known ones. */
static const char *describe_other_answer(const struct mu__connection *connection)
{
    static const struct {
        const char *bytes;
        const char *why;
    } others[] = {
        {"HTTP/", "what answers there is not muster (it speaks HTTP)"},
        {"SSH-", "what answers there is not muster (it speaks SSH)"},
        {"\x15\x03", "what answers there speaks TLS, and this node does not"},
    };

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        size_t size = strlen(others[i].bytes);

        if (connection->connecting.heard_size >= size &&
            memcmp(connection->connecting.heard, others[i].bytes, size) == 0)
            return others[i].why;
    }
    return "what answers there is not muster";
}

/* A node sends its greeting, which begins with a zero, and nothing else. */
static void take_greeting_bytes(struct mu__connection *connection, size_t size)
{
    connection->connecting.heard_size += (unsigned)size;
    if (connection->connecting.heard_size < MU__SP_GREETING_BYTES &&
        connection->connecting.heard[0] == 0)
        return;
    if (connection->connecting.heard_size == MU__SP_GREETING_BYTES &&
        mu__sp_is_greeting(connection->connecting.heard, MU__SP_ACCEPTS))
        win_dialling(connection->connecting.dialling, connection);
    else
        fail_dial_try(connection, MU__DIAL_OTHER, describe_other_answer(connection));
}

/* ---- TLS ---- */

static int send_dial_greeting(struct mu__connection *connection);

/* A copy of the session's own words lives on with the attempt. */
static void fail_secured(struct mu__connection *connection)
{
    struct mu__connecting *at = &connection->connecting;
    struct mu__dial_try *try = &at->dialling->tries[at->which];

    (void)mu__tls_flush(connection->tls, &connection->stream.stream);
    (void)snprintf(try->words, sizeof try->words, "%s", mu__tls_why(connection->tls));
    fail_dial_try(connection, MU__DIAL_UNPROVEN, try->words);
}

/* Whether what came first is neither a record of TLS nor the greeting of a plain node. */
static bool is_other(struct mu__connection *connection, size_t size)
{
    enum { RECORD_TYPE_FIRST = 0x14, RECORD_TYPE_LAST = 0x17 };
    uint8_t first = connection->connecting.records[0];

    if (connection->connecting.has_answered || first == 0 ||
        (first >= RECORD_TYPE_FIRST && first <= RECORD_TYPE_LAST))
        return false;
    connection->connecting.heard_size =
        size < MU__SP_GREETING_BYTES ? (unsigned)size : MU__SP_GREETING_BYTES;
    memcpy(connection->connecting.heard, connection->connecting.records,
           connection->connecting.heard_size);
    return true;
}

/* The greeting is said when the peer has proven itself; it greets when this node has. */
static void take_greeting_records(struct mu__connection *connection, size_t size)
{
    bool was_open = mu__tls_is_open(connection->tls);
    unsigned heard = 0;
    int rv;

    if (is_other(connection, size)) {
        fail_dial_try(connection, MU__DIAL_OTHER, describe_other_answer(connection));
        return;
    }
    connection->connecting.has_answered = true;
    if (!mu__tls_receive(connection->tls, connection->connecting.records, size)) {
        fail_dial_try(connection, MU__DIAL_NO_WAY, "out of memory");
        return;
    }
    do {
        unsigned had = connection->connecting.heard_size + heard;

        rv = mu__tls_read(connection->tls, connection->connecting.heard + had,
                          MU__SP_GREETING_BYTES - had);
        heard += rv > 0 ? (unsigned)rv : 0;
    } while (rv > 0 && connection->connecting.heard_size + heard < MU__SP_GREETING_BYTES);
    if (rv < 0) {
        fail_secured(connection);
        return;
    }
    if ((!was_open && mu__tls_is_open(connection->tls) &&
         send_dial_greeting(connection) != 0) ||
        mu__tls_flush(connection->tls, &connection->stream.stream) != 0 ||
        !mu__tls_keep_input(connection->tls)) {
        fail_dial_try(connection, MU__DIAL_NO_WAY, "out of memory");
        return;
    }
    if (heard > 0)
        take_greeting_bytes(connection, heard);
}

/* NULL, or why no session has begun. */
static const char *begin_tls(struct mu__connection *connection)
{
    const struct mu__tls_source *source = connection->connecting.dialling->tls;
    struct mu__tls_identity *identity = source->now(source->owner);

    if (identity == NULL)
        return "this node has no key for tcp (its log says why)";
    connection->connecting.records = malloc(RECORDS_BYTES);
    connection->tls = mu__tls_new(identity, false);
    if (connection->connecting.records == NULL || connection->tls == NULL ||
        mu__tls_begin(connection->tls) != 0 ||
        mu__tls_flush(connection->tls, &connection->stream.stream) != 0)
        return "out of memory";
    return NULL;
}

/* ---- both ---- */

static void on_dial_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    struct mu__connection *connection = (struct mu__connection *)stream;

    (void)buf;
    if (connection->connecting.dialling == NULL || size == 0)
        return;
    if (size < 0)
        fail_dial_try(
            connection, MU__DIAL_ENDED,
            connection->tls != NULL && !mu__tls_is_open(connection->tls)
                ? "the connection broke during the handshake of TLS: what answers there "
                  "is not muster, or speaks without TLS"
                : "the connection broke during the greeting");
    else if (connection->tls != NULL)
        take_greeting_records(connection, (size_t)size);
    else
        take_greeting_bytes(connection, (size_t)size);
}

static void on_dial_greeting_written(uv_write_t *request, int status)
{
    (void)request;
    (void)status; /* the reading side sees a broken connection too */
}

static int send_dial_greeting(struct mu__connection *connection)
{
    uv_buf_t buf = uv_buf_init((char *)connection->greeting, sizeof connection->greeting);

    mu__sp_greeting(connection->greeting, MU__SP_DIALS);
    if (connection->tls != NULL)
        return mu__tls_write(connection->tls, connection->greeting,
                             sizeof connection->greeting);
    return uv_write(&connection->greeting_request, &connection->stream.stream, &buf, 1,
                    on_dial_greeting_written);
}

/* Let the peer prove itself, where it has to, and greet. Not 0: it has failed. */
static int prove_and_greet(struct mu__connection *connection)
{
    struct mu__dialling *dialling = connection->connecting.dialling;
    char *words = dialling->tries[connection->connecting.which].words;
    const char *why = NULL;

    if (dialling->tls != NULL && dialling->url.ipc) {
        if (!mu__peer_is_user(&connection->stream, words, MU__PEER_USER_BYTES))
            why = words;
    } else if (dialling->tls != NULL) {
        why = begin_tls(connection);
    }
    if (why == NULL && connection->tls == NULL && send_dial_greeting(connection) != 0)
        why = "out of memory";
    if (why == NULL)
        return 0;
    fail_dial_try(connection, MU__DIAL_NO_WAY, why);
    return -MU_EPERMISSION;
}

static void on_connected(uv_connect_t *request, int status)
{
    struct mu__connection *connection = request->data;
    struct mu__connecting *at = &connection->connecting;

    if (connection->connecting.dialling == NULL)
        return;
    if (status != 0) {
        fail_dial_try(connection, get_dial_state(status), get_dial_words(status));
        return;
    }
    at->dialling->tries[at->which].state = MU__DIAL_CONNECTED;
    if (!connection->connecting.dialling->url.ipc)
        (void)uv_tcp_nodelay(&connection->stream.tcp, 1);
    if (prove_and_greet(connection) == 0 &&
        uv_read_start(&connection->stream.stream, on_dial_alloc, on_dial_read) != 0)
        fail_dial_try(connection, MU__DIAL_NO_WAY, "out of memory");
}

/* ---- attempts ---- */

static int connect_to(struct mu__dialling *dialling, struct mu__dial_try *try)
{
    struct mu__connection *connection = try->connection;

    connection->connecting.request.data = connection;
    if (!dialling->url.ipc)
        return uv_tcp_connect(&connection->connecting.request, &connection->stream.tcp,
                              &try->address.any, on_connected);
    uv_pipe_connect(&connection->connecting.request, &connection->stream.pipe,
                    dialling->url.path, on_connected);
    return 0;
}

static void begin_dial_try(struct mu__dialling *dialling, unsigned which)
{
    struct mu__dial_try *try = &dialling->tries[which];
    int rv = UV_ENOMEM;

    try->state = MU__DIAL_CONNECTING;
    try->connection = connection_new(dialling, which);
    if (try->connection != NULL)
        rv = connect_to(dialling, try);
    if (rv == 0)
        return;
    note_dial_failure(try, get_dial_state(rv),
                      rv == UV_ENOMEM ? "out of memory" : get_dial_words(rv));
    mu__dial_plan_fail(&dialling->plan, which);
}

static void on_dialling_timer(uv_timer_t *timer)
{
    step_dialling(timer->data);
}

static void step_dialling(struct mu__dialling *dialling)
{
    uint64_t now_ms = uv_now(dialling->timer.loop);
    struct mu__dial_step step = mu__dial_plan_step(&dialling->plan, now_ms);

    while (step.move == MU__DIAL_BEGIN || step.move == MU__DIAL_GIVE_UP) {
        if (step.move == MU__DIAL_BEGIN)
            begin_dial_try(dialling, step.which);
        else
            give_up_dial_try(&dialling->tries[step.which]);
        step = mu__dial_plan_step(&dialling->plan, now_ms);
    }
    if (step.move == MU__DIAL_OVER)
        lose_dialling(dialling);
    else
        (void)uv_timer_start(&dialling->timer, on_dialling_timer, step.until_ms - now_ms,
                             0);
}

/* ---- the name ---- */

/* A path or a numeric address is tried without a look-up. */
static void begin_single_try(struct mu__dialling *dialling)
{
    mu__dial_plan_init(&dialling->plan, 1, dialling->timeout_ms);
    step_dialling(dialling);
}

static bool is_tried(const struct mu__dialling *dialling,
                     const union mu__address *address)
{
    const struct mu__dial_try try = {.address = *address};

    return dialling->tried != NULL &&
           mu__dial_tried_has(dialling->tried, mu__dial_address_number(&try));
}

static void take_addresses(struct mu__dialling *dialling,
                           const struct mu__addresses *found)
{
    unsigned order[MU__ADDRESSES_MAX];
    bool are_v6[MU__ADDRESSES_MAX] = {false};
    bool are_tried[MU__ADDRESSES_MAX] = {false};

    for (unsigned i = 0; i < found->count; i++) {
        are_v6[i] = found->items[i].any.sa_family == AF_INET6;
        are_tried[i] = is_tried(dialling, &found->items[i]);
    }
    mu__dial_order(are_v6, are_tried, found->count, order);
    for (unsigned i = 0; i < found->count; i++)
        dialling->tries[i].address = found->items[order[i]];
    mu__dial_plan_init(&dialling->plan, found->count, dialling->timeout_ms);
}

static void on_dialled_name_looked_up(struct mu__blocking_job *job)
{
    struct mu__look_up_job *look_up = (struct mu__look_up_job *)job;
    struct mu__dialling *dialling = look_up->owner;

    dialling->look_up = NULL;
    dialling->no_name = "it has no address";
    if (look_up->status == 0)
        take_addresses(dialling, &look_up->addresses);
    else
        dialling->no_name = gai_strerror(look_up->status);
    free(look_up);
    step_dialling(dialling);
}

static void on_look_up_timeout(uv_timer_t *timer)
{
    struct mu__dialling *dialling = timer->data;

    dialling->no_name = "the name server does not answer";
    lose_dialling(dialling);
}

static void look_up_dialled_name(struct mu__dialling *dialling)
{
    struct mu__look_up_job *begun = mu__look_up_job_new(
        dialling->url.host, dialling->url.port, on_dialled_name_looked_up, dialling);

    if (begun == NULL || mu__blocking_start(dialling->blocking_jobs, &begun->job) != 0) {
        dialling->no_name = begun == NULL ? "out of memory" : "no thread for a look-up";
        free(begun);
        lose_dialling(dialling);
        return;
    }
    dialling->look_up = begun;
    (void)uv_timer_start(&dialling->timer, on_look_up_timeout, dialling->timeout_ms, 0);
}

/* Numeric addresses need no look-up, which would start a thread. */
static void on_dialling_start(uv_timer_t *timer)
{
    struct mu__dialling *dialling = timer->data;
    struct mu__dial_try *try = &dialling->tries[0];
    const struct mu__url *url = &dialling->url;

    if (url->ipc || uv_ip4_addr(url->host, url->port, &try->address.v4) == 0 ||
        uv_ip6_addr(url->host, url->port, &try->address.v6) == 0)
        begin_single_try(dialling);
    else
        look_up_dialled_name(dialling);
}

/* ---- interface ---- */

void mu__dial_name(const struct mu__dial_try *try, char *out, size_t size)
{
    if (uv_ip_name(&try->address.any, out, size) != 0)
        out[0] = '\0';
}

uint32_t mu__dial_address_number(const struct mu__dial_try *try)
{
    char name[INET6_ADDRSTRLEN];
    uint32_t hash;

    mu__dial_name(try, name, sizeof name);
    hash = mu__view_hash(mu__view_str(name));
    return hash == 0 ? 1 : hash;
}

int mu__dialling_start(const struct mu__dial_request *request,
                       struct mu__dialling **ret_dialling)
{
    struct mu__dialling *dialling = calloc(1, sizeof *dialling);

    if (dialling == NULL)
        return -MU_ENOMEM;
    dialling->url = *request->url;
    dialling->blocking_jobs = request->blocking_jobs;
    dialling->tls = request->tls;
    dialling->events = request->events;
    dialling->owner = request->owner;
    dialling->arg = request->arg;
    dialling->tried = request->tried;
    dialling->timeout_ms = request->timeout_ms;
    (void)uv_timer_init(request->loop, &dialling->timer);
    dialling->timer.data = dialling;
    dialling->holds = 1; /* the timer's */
    (void)uv_timer_start(&dialling->timer, on_dialling_start, 0, 0);
    *ret_dialling = dialling;
    return 0;
}

void mu__dialling_cancel(struct mu__dialling *dialling)
{
    end_dialling(dialling);
}

const struct mu__dial_try *mu__dialling_tries(const struct mu__dialling *dialling,
                                              unsigned *ret_count)
{
    *ret_count = dialling->plan.count;
    return dialling->tries;
}

const char *mu__dialling_no_name(const struct mu__dialling *dialling)
{
    return dialling->no_name;
}
