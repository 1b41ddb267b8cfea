#include "tests/support/var_net.h"

#include "actors/views/views.h"
#include "tests/support/test.h"

/* ---- Processes ---- */

int var_spawn_server(struct net_process *p)
{
    const struct mu__ps_config config = {.index = p->index,
                                         .incarnation = p->incarnation,
                                         .leader = "chief",
                                         .limits = p->arg};

    return mu__spawn(p->kernel, &mu__ps, MU__PS, &config, NULL);
}

int var_spawn_program(struct net_process *p)
{
    return mu__spawn(p->kernel, &mu__variables, MU__VARIABLES, p->arg, NULL);
}

static int spawn_views(struct net_process *p)
{
    struct mu__views_options config = {.table = {.grace_ms = MU__VIEW_GRACE_MS,
                                                 .recovery_ms = MU__VIEW_RECOVERY_MS,
                                                 .backups = p->arg != NULL}};

    for (size_t i = 0; i < p->net->processes_count; i++)
        config.table.servers += strcmp(p->net->processes[i].type, "ps") == 0;
    return mu__spawn(p->kernel, &mu__views, MU__VIEWS, &config, NULL);
}

struct net_process *var_start(struct net *net, bool backups)
{
    struct net_process *chief = net_add(net, "chief", 0, spawn_views);

    chief->arg = backups ? net : NULL;
    for (size_t i = 0; i < net->processes_count; i++)
        net_start(&net->processes[i]);
    net_settle(net);
    return chief;
}

/* ---- The fixture ---- */

static int set_up_var_net(void **state, bool backups)
{
    struct var_net *f = calloc(1, sizeof *f);

    if (f == NULL)
        return -1;
    net_init(&f->net, 1);
    for (uint32_t i = 0; i < 3; i++)
        f->servers[i] = net_add(&f->net, "ps", i, var_spawn_server);
    f->alice = net_add(&f->net, "worker", 0, var_spawn_program);
    f->bob = net_add(&f->net, "worker", 1, var_spawn_program);
    f->chief = var_start(&f->net, backups);
    *state = f;
    return 0;
}

int var_set_up(void **state)
{
    return set_up_var_net(state, false);
}

int var_set_up_copies(void **state)
{
    return set_up_var_net(state, true);
}

int var_tear_down(void **state)
{
    struct var_net *f = *state;

    net_done(&f->net);
    free(f);
    return 0;
}

struct net_process *var_server_of(struct var_net *f, const char *name)
{
    return f->servers[mu__partition_home(mu__partition_of(mu__view_str(name), 0), 3)];
}

/* ---- Requests ---- */

static void set_done(struct mu__call *call)
{
    struct var_request *request = (struct var_request *)call;

    assert_false(request->done);
    request->done = true;
}

void var_post(struct net_process *p, struct var_request *request, int operation,
              int64_t timeout_ms)
{
    struct mu__msg *msg = mu__msg_heap(MU__CALL, sizeof(struct mu__call_msg));
    struct mu__call_msg *body;

    assert_non_null(msg);
    request->done = false;
    request->call.call.complete = set_done;
    request->call.call.operation = operation;
    request->call.call.timeout_ms = timeout_ms;
    body = mu__body(msg);
    body->call = request;
    msg->to.actor = MU__VARIABLES;
    net_deliver(p, msg);
}

struct var_request var_request_of(const struct net *net, const char *name,
                                  struct mu__shape shape)
{
    uint32_t servers = 0;

    for (size_t i = 0; i < net->processes_count; i++)
        servers += strcmp(net->processes[i].type, "ps") == 0;
    return (struct var_request){.call = {.name = name, .servers_count = servers},
                                .shape = shape};
}

void var_aim(struct var_request *request)
{
    request->call.shape = &request->shape;
    request->call.ids = request->ids;
}

int var_ask(struct net_process *p, struct var_request *request, int operation,
            int64_t timeout_ms)
{
    var_post(p, request, operation, timeout_ms);
    for (int i = 0; !request->done && i < 1000000; i++)
        if (!net_step(p->net))
            net_run_until(p->net, p->net->now_ms + 1);
    assert_true(request->done);
    return request->call.call.code;
}

void var_ask_ok(struct net_process *p, struct var_request *request, int operation)
{
    if (var_ask(p, request, operation, VAR_NEVER) != 0)
        fail_msg("%s", request->call.call.error.message);
}

void var_begin(struct net_process *p, struct var_request *request, int operation,
               int events)
{
    var_post(p, request, operation, 60000);
    for (int i = 0; i < events; i++)
        assert_true(net_step(p->net));
    assert_false(request->done);
}

float *var_numbers(size_t count, float first)
{
    float *data = malloc(count * sizeof *data);

    assert_non_null(data);
    for (size_t i = 0; i < count; i++)
        data[i] = first + (float)(i % 1000);
    return data;
}

void var_assert_reads(struct net_process *p, struct var_request *request,
                      const float *expected)
{
    size_t bytes = (size_t)mu__shape_bytes(&request->shape);
    float *data = malloc(bytes);

    assert_non_null(data);
    memset(data, 0xFF, bytes);
    request->call.target = data;
    var_ask_ok(p, request, MU__VARIABLE_READ);
    assert_memory_equal(data, expected, bytes);
    free(data);
}

struct var_request var_opened(struct net_process *p, const char *name,
                              struct mu__shape shape, const float *initial)
{
    struct var_request request = var_request_of(p->net, name, shape);

    var_aim(&request);
    request.call.source = initial;
    var_ask_ok(p, &request, MU__VARIABLE_OPEN);
    return request;
}

struct var_request var_asked(struct net_process *p, struct mu__shape shape,
                             unsigned flags, const float *initial)
{
    struct var_request request = var_request_of(p->net, "v", shape);

    request.call.flags = flags;
    request.call.source = initial;
    return request;
}

void var_assert_fails(const struct var_request *r, int code, const char *message)
{
    assert_true(r->done);
    assert_string_equal(r->call.call.error.message, message);
    assert_int_equal(r->call.call.code, code);
    assert_int_equal(r->call.call.error.code, code);
}
