/* Servers that are told their cluster spec: the pure checks, and the job actors of both
 * sides in virtual time. */
#include "node/member/offer_check.h"
#include "node/member/session_config.h"
#include "resolver/spec/cluster.h"
#include "runtime/message/codec.h"
#include "tests/support/story.h"

/* ---- The checks ---- */

static mu_cluster *spec_of(const char *json)
{
    mu_cluster *cluster = NULL;

    assert_int_equal(mu_cluster_parse(json, strlen(json), "test", NULL, &cluster), 0);
    return cluster;
}

/* A server that listens, and one that is in a cluster, are offered this. */
static const struct offer_row {
    const char *json;
    const char *type;
    uint32_t index;
    int waits;         /* what a server at 10.0.0.1:5 says, */
    const char *words; /* and why */
    int serves;        /* what worker 0 of the first row's cluster says */
} offer_rows[] = {
    {"{\"worker\":[\"10.0.0.1:5\"],\"ps\":[\"10.0.0.2:6\"]}", "worker", 0, 0, "", 0},
    {"{\"ps\":{\"0\":\"tcp://10.0.0.2:6\"},\"worker\":[\"10.0.0.1:5\"]}", "worker", 0, 0,
     "", 0},
    {"{\"worker\":[\"10.0.0.1:5\"],\"ps\":[\"10.0.0.2:7\"]}", "worker", 0, 0, "",
     -MU_EPRECONDITION},
    {"{\"worker\":[\"10.0.0.1:5\"]}", "worker", 0, 0, "", -MU_EPRECONDITION},
    {"{\"worker\":[\"10.0.0.1:5\"],\"ps\":[\"10.0.0.2:6\"]}", "ps", 0, -MU_EINVALID,
     "the offered cluster has /job:ps/task:0 at tcp://10.0.0.2:6, but the server is at "
     "tcp://10.0.0.1:5",
     -MU_EPRECONDITION},
    {"{\"worker\":[\"10.0.0.1:5\"],\"ps\":[\"10.0.0.2:6\"]}", "worker", 1, -MU_EINVALID,
     NULL, -MU_EINVALID},
    {"{\"worker\":[\"10.0.0.1:5\"],\"ps\":[\"10.0.0.2:6\"]}", "client", 0, -MU_EINVALID,
     "the offered cluster has no address for /job:client/task:0, which the server shall "
     "be",
     -MU_EPRECONDITION},
    {"{\"worker\":[\"10.0.0.1:5\"],\"ps\":[\"10.0.0.2:6\"]}", "master", 0, -MU_EINVALID,
     NULL, -MU_EINVALID},
    {"{\"worker\":[\"10.0.0.1:5\"]}", "worker", 4000000000U, -MU_EINVALID,
     "the offered cluster spec: task index 4000000000 is too large", -MU_EINVALID},
    {"{\"worker\":[\"machine.test:5\"]}", "worker", 0, 0, "", -MU_EPRECONDITION},
    {"{\"worker\":[\"machine.test:6\"]}", "worker", 0, -MU_EINVALID, NULL,
     -MU_EPRECONDITION},
    {"{\"worker\":[\"ipc:///tmp/x\"]}", "worker", 0, -MU_EINVALID, NULL,
     -MU_EPRECONDITION},
    {"{}", "worker", 0, -MU_EINVALID, NULL, -MU_EINVALID},
    {"{\"worker\":[\"10.0.0.1:5\"", "worker", 0, -MU_EINVALID, NULL, -MU_EINVALID},
    {"{\"worker\":[\"nowhere\"]}", "worker", 0, -MU_EINVALID, NULL, -MU_EINVALID},
    {"{\"wroker\":[\"10.0.0.1:5\"]}", "worker", 0, -MU_EINVALID, NULL, -MU_EINVALID},
    {"[]", "worker", 0, -MU_EINVALID, NULL, -MU_EINVALID},
    {"", "worker", 0, -MU_EINVALID, NULL, -MU_EINVALID},
};

TEST(test_checks)
{
    mu_cluster *cluster = spec_of(offer_rows[0].json);
    struct mu__offer_own own = {cluster, "worker", 0};
    struct mu__offer_urls place = {"tcp://10.0.0.1:5", NULL};

    for (size_t i = 0; i < sizeof offer_rows / sizeof offer_rows[0]; i++) {
        const struct offer_row *row = &offer_rows[i];
        const struct mu__offer offer = {
            .cluster = mu__view_str(row->json),
            .type = mu__view_str(row->type),
            .index = row->index,
        };
        mu_error error = {0};
        int rv = mu__offer_check_new(&place, &offer, &error);

        if (rv != row->waits ||
            (row->words != NULL && strcmp(error.message, row->words) != 0))
            fail_msg("row %zu, waiting: %d \"%s\"", i, rv, error.message);
        assert_true(rv == 0 || error.message[0] != '\0');
        error = (mu_error){0};
        rv = mu__offer_check_own(&own, &offer, &error);
        if (rv != row->serves)
            fail_msg("row %zu, serving: %d \"%s\"", i, rv, error.message);
        assert_true(rv == 0 || error.message[0] != '\0');
    }
    mu_cluster_free(cluster);
}

static const struct place_row {
    const char *url;
    const char *listens;
    const char *advertised;
    bool is_at;
} place_rows[] = {
    {"tcp://10.0.0.1:5", "tcp://10.0.0.1:5", NULL, true},
    {"tcp://10.0.0.1:5", "tcp://10.0.0.1:6", NULL, false},
    {"tcp://10.0.0.1:5", "tcp://10.0.0.2:5", NULL, false},
    {"tcp://10.0.0.1:5", "tcp://0.0.0.0:5", NULL, true},
    {"tcp://10.0.0.1:5", "tcp://0.0.0.0:6", NULL, false},
    {"tcp://10.0.0.1:5", "tcp://[::]:5", NULL, true},
    {"tcp://[fd00::1]:5", "tcp://[fd00::1]:5", NULL, true},
    {"tcp://[fd00::1]:5", "tcp://[fd00::2]:5", NULL, false},
    {"tcp://10.0.0.1:5", "tcp://localhost:5", NULL, true},
    {"tcp://w0.test:5", "tcp://10.0.0.1:5", NULL, true},
    {"tcp://10.0.0.1:5", "tcp://10.0.0.9:7", "tcp://10.0.0.1:5", true},
    {"tcp://10.0.0.1:5", "tcp://10.0.0.9:7", "tcp://10.0.0.1:6", false},
    {"ipc:///tmp/a", "ipc:///tmp/a", NULL, true},
    {"ipc:///tmp/a", "ipc:///tmp/b", NULL, false},
    {"ipc:///tmp/a", "tcp://10.0.0.1:5", NULL, false},
    {"nonsense", "tcp://10.0.0.1:5", NULL, false},
    {"tcp://10.0.0.1:5", "nonsense", "nonsense", false},
};

TEST(test_places)
{
    for (size_t i = 0; i < sizeof place_rows / sizeof place_rows[0]; i++) {
        const struct place_row *row = &place_rows[i];
        const struct mu__offer_urls place = {row->listens, row->advertised};

        if (mu__offer_is_at(row->url, &place) != row->is_at)
            fail_msg("row %zu: %s", i, row->url);
    }
}

/* ---- Session configs ---- */

static mu_value *list_of(const char *text)
{
    mu_value *list = mu_value_list();

    assert_int_equal(mu_value_append(list, mu_value_string(text)), 0);
    return list;
}

TEST(test_config_round_trip)
{
    static const char *const filters[] = {"/job:ps", "/job:worker/task:3"};
    const mu_session_config config = {sizeof config, 4, 2, filters, 2};
    const mu_session_config fewer = {sizeof fewer, 4, 2, filters, 1};
    const mu_session_config other = {sizeof other, 4, 3, filters, 2};
    mu_value *value = mu__session_config_value(&config);
    mu_session_config read = {0};
    mu_session_config copy = {0};
    char *text;

    assert_int_equal(mu__session_config_read(value, NULL, &read), 0);
    assert_true(mu__session_config_same(&read, &config));
    assert_false(mu__session_config_same(&read, &fewer));
    assert_false(mu__session_config_same(&read, &other));
    assert_int_equal(mu__session_config_copy(&read, &copy), 0);
    assert_true(mu__session_config_same(&copy, &config));
    text = mu__session_config_filters(&copy);
    assert_string_equal(text, "/job:ps,/job:worker/task:3");
    free(text);
    mu__session_config_done(&copy);
    mu__session_config_done(&read);
    mu_value_free(value);

    /* None is the empty one, and so is nil. */
    assert_int_equal(mu__session_config_read(NULL, NULL, &read), 0);
    assert_true(mu__session_config_same(&read, &(mu_session_config){0}));
}

TEST(test_config_errors)
{
    static const struct {
        const char *key;
        const char *text; /* in a list; NULL: `number` */
        int64_t number;
        const char *words;
    } rows[] = {
        {"inter_op_threads", NULL, -1,
         "session config: inter_op_threads: expected a whole number of 0 to 4096"},
        {"inter_op_threads", NULL, 4097,
         "session config: inter_op_threads: expected a whole number of 0 to 4096"},
        {"intra_op_threads", "x", 0,
         "session config: intra_op_threads: expected a whole number of 0 to 4096"},
        {"device_filters", NULL, 3, "session config: device_filters: expected a list"},
        {"device_filters", "worker:1", 0,
         "session config: device_filters[0] is \"worker:1\", expected a task type or a "
         "task, as \"/job:ps\" or \"/job:worker/task:1\""},
        {"device_filters", "/job:wroker", 0, NULL},
        {"device_filters", "/job:worker/task:", 0, NULL},
        {"device_filters", "/job:worker/task:-1", 0, NULL},
        {"device_filters", "/job:worker/gpu:1", 0, NULL},
        {"device_filters", "/job:a-very-long-type-name/task:1", 0, NULL},
        {"device_filters", "", 0, NULL},
    };
    mu_session_config config = {.inter_op_threads = 77};
    mu_value *text = mu_value_string("x");
    mu_error error;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_value *map = mu_value_map();

        assert_int_equal(mu_value_set(map, rows[i].key,
                                      rows[i].text == NULL ? mu_value_int(rows[i].number)
                                                           : list_of(rows[i].text)),
                         0);
        if (mu__session_config_read(map, &error, &config) != -MU_EINVALID)
            fail_msg("row %zu passes", i);
        if (rows[i].words != NULL)
            assert_string_equal(error.message, rows[i].words);
        mu_value_free(map);
    }
    assert_int_equal(mu__session_config_read(text, &error, &config), -MU_EINVALID);
    assert_string_equal(error.message, "session config: expected a map");
    assert_int_equal(config.inter_op_threads, 77);
    mu_value_free(text);
}

/* ---- Both sides ---- */

/* A server that waits at tcp://s0:1, or is worker 0 of the cluster of both. */
struct stage {
    struct cluster *cluster;
    mu_cluster *none;
    mu_cluster *spec;
    char *json;
    struct mu__offer_own own;
    struct mu__offer_urls place;
    struct cluster_task *server;
    struct cluster_task *offerers[3];
    struct cluster_call *take;
};

static void become_waiting(struct stage *stage)
{
    struct cluster_task *server = stage->server;

    server->type = MU__LINK_UNKNOWN;
    server->spec = stage->none;
    server->only = MU__OFFER_TYPE;
    server->only_why = "it waits";
    server->offer_check = mu__offer_check_new;
    server->offer_owner = &stage->place;
    server->takes_offer = true;
}

static void become_worker(struct stage *stage)
{
    struct cluster_task *server = stage->server;

    server->type = "worker";
    server->spec = stage->spec;
    server->only = NULL;
    server->offer_check = mu__offer_check_own;
    server->offer_owner = &stage->own;
    server->takes_offer = false;
}

static void stage_init(struct stage *stage)
{
    static const char *const names[] = {"o0", "o1", "o2"};

    stage->cluster = MAKE(.workers = 0);
    stage->none = mu_cluster_new();
    stage->spec = spec_of("{\"worker\":[\"s0:1\",\"w1:1\"]}");
    stage->json = mu_cluster_to_json(stage->spec);
    stage->own = (struct mu__offer_own){stage->spec, "worker", 0};
    stage->place = (struct mu__offer_urls){"tcp://s0:1", NULL};
    stage->server = cluster_add(stage->cluster, "worker", 0, "s0");
    become_waiting(stage);
    for (uint32_t i = 0; i < 3; i++) {
        stage->offerers[i] =
            cluster_add(stage->cluster, MU__OFFER_TYPE, 500 + i, names[i]);
        stage->offerers[i]->spec = stage->none;
        stage->offerers[i]->dials_any = "tcp://s0:1";
    }
}

static void stage_done(struct stage *stage)
{
    cluster_free(stage->cluster);
    mu_cluster_free(stage->none);
    mu_cluster_free(stage->spec);
    free(stage->json);
}

static struct cluster_call *take(struct stage *stage, int64_t timeout_ms)
{
    const struct mu__job_call wanted = {
        .call.operation = MU__JOB_TAKE,
        .call.timeout_ms = timeout_ms,
    };

    return cluster_job_ask(stage->server, &wanted);
}

static struct cluster_call *offer_as(struct cluster_task *task, const char *json,
                                     const char *type, uint32_t index, int64_t timeout_ms)
{
    const struct mu__job_call wanted = {
        .call.operation = MU__JOB_OFFER,
        .call.timeout_ms = timeout_ms,
        .offer = {mu__view_str(json), mu__view_str(type), index, {.head = NULL}},
        .recipient = "/job:worker/task:0 at tcp://s0:1",
    };

    return cluster_job_ask(task, &wanted);
}

static struct cluster_call *offer(struct stage *stage, unsigned who, int64_t timeout_ms)
{
    return offer_as(stage->offerers[who], stage->json, "worker", 0, timeout_ms);
}

/* What the server was told: the first row's worker 0. */
static void expect_taken(struct stage *stage, struct cluster_call *call)
{
    assert_int_equal(cluster_wait(call), 0);
    assert_string_equal(call->of.job.cluster, stage->json);
    assert_string_equal(call->of.job.type, "worker");
    assert_int_equal(call->of.job.index, 0);
    assert_null(call->of.job.config);
    free(call->of.job.cluster);
}

static void expect_error(struct cluster_call *call, int code, const char *words)
{
    assert_int_equal(cluster_wait(call), code);
    assert_string_equal(call->of.call.error.message, words);
}

TEST(test_offer)
{
    struct stage stage;
    struct cluster_call *taking;
    struct cluster_call *offering;

    stage_init(&stage);
    cluster_start(stage.server);
    cluster_start(stage.offerers[0]);
    taking = take(&stage, -1);
    offering = offer(&stage, 0, 1000);
    assert_int_equal(cluster_wait(offering), 0);
    expect_taken(&stage, taking);
    assert_true(taking->done_ms < offering->done_ms);
    stage_done(&stage);
}

/* The answer says that it was taken; the server that is there then says so, too. */
TEST(test_again)
{
    struct stage stage;
    struct cluster_call *taking;

    stage_init(&stage);
    cluster_start(stage.server);
    cluster_start(stage.offerers[0]);
    cluster_start(stage.offerers[1]);
    taking = take(&stage, -1);
    assert_int_equal(cluster_wait(offer(&stage, 0, 1000)), 0);
    expect_taken(&stage, taking);
    assert_int_equal(cluster_wait(offer(&stage, 0, 1000)), 0);
    assert_int_equal(cluster_wait(offer(&stage, 1, 1000)), 0);
    expect_error(offer_as(stage.offerers[1], "{\"worker\":[\"s0:1\"]}", "worker", 0,
                          1000),
                 -MU_EPRECONDITION,
                 "the server has got another cluster spec: as /job:worker/task:0");

    /* It closes, and opens as what it was told. */
    become_worker(&stage);
    assert_int_equal(sim_restart(stage.server->node), 0);
    run_for(stage.cluster, 3000);
    assert_int_equal(cluster_wait(offer(&stage, 0, 10000)), 0);
    cluster_start(stage.offerers[2]);
    assert_int_equal(cluster_wait(offer(&stage, 2, 10000)), 0);
    expect_error(offer_as(stage.offerers[2], "{\"worker\":[\"s0:1\"]}", "worker", 0,
                          1000),
                 -MU_EPRECONDITION,
                 "the server serves /job:worker/task:0 of another cluster spec");
    expect_error(offer_as(stage.offerers[2], stage.json, "worker", 1, 1000),
                 -MU_EPRECONDITION,
                 "the server serves /job:worker/task:0 of this "
                 "cluster, not what was offered");
    stage_done(&stage);
}

/* Two clients, two specs: the first that comes counts, the other is told. */
TEST(test_two_clients)
{
    struct stage stage;
    struct cluster_call *taking;
    struct cluster_call *calls[2];

    stage_init(&stage);
    cluster_start(stage.server);
    cluster_start(stage.offerers[0]);
    cluster_start(stage.offerers[1]);
    taking = take(&stage, -1);
    calls[0] = offer(&stage, 0, 1000);
    calls[1] = offer_as(stage.offerers[1], "{\"worker\":[\"s0:1\"]}", "worker", 0, 1000);
    assert_int_equal(cluster_wait(calls[0]), 0);
    assert_int_equal(cluster_wait(calls[1]), -MU_EPRECONDITION);
    expect_taken(&stage, taking);
    stage_done(&stage);
}

/* What is refused leaves the server as it was: it goes on waiting. */
TEST(test_refused)
{
    static const struct {
        const char *json;
        const char *type;
        uint32_t index;
    } rows[] = {
        {"nonsense", "worker", 0},
        {"{\"worker\":[\"s0:2\"]}", "worker", 0},
        {"{\"worker\":[\"s0:1\"]}", "ps", 0},
        {"{\"worker\":[\"s0:1\"]}", "worker", 7},
    };
    struct stage stage;
    struct cluster_call *taking;

    stage_init(&stage);
    cluster_start(stage.server);
    cluster_start(stage.offerers[0]);
    taking = take(&stage, -1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(cluster_wait(offer_as(stage.offerers[0], rows[i].json,
                                               rows[i].type, rows[i].index, 1000)),
                         -MU_EINVALID);
    assert_false(taking->done);
    assert_int_equal(cluster_wait(offer(&stage, 0, 1000)), 0);
    expect_taken(&stage, taking);
    stage_done(&stage);
}

/* Clients that die in the middle, at every moment. */
TEST(test_client_dies)
{
    for (uint64_t at_ms = 0; at_ms < 120; at_ms += 5) {
        struct stage stage;
        struct cluster_call *taking;

        stage_init(&stage);
        cluster_start(stage.server);
        cluster_start(stage.offerers[0]);
        taking = take(&stage, -1);
        (void)offer(&stage, 0, 1000);
        sim_run_until(stage.cluster->sim, at_ms);
        sim_crash(stage.offerers[0]->node);
        run_for(stage.cluster, 1000);
        if (!taking->done) {
            cluster_start(stage.offerers[1]);
            assert_int_equal(cluster_wait(offer(&stage, 1, 5000)), 0);
        }
        expect_taken(&stage, taking);
        stage_done(&stage);
    }
}

/* The server dies before it has answered; the one that is started again is told. */
TEST(test_server_dies)
{
    struct stage stage;
    struct cluster_call *taking;
    struct cluster_call *offering;

    stage_init(&stage);
    cluster_start(stage.offerers[0]);
    offering = offer(&stage, 0, 60000);
    sim_run_until(stage.cluster->sim, 2000);
    for (uint64_t i = 0; i < 20 && !offering->done; i++) {
        cluster_start(stage.server);
        run_for(stage.cluster, 30 + i);
        if (offering->done)
            break;
        sim_crash(stage.server->node);
        run_for(stage.cluster, 20);
        if (offering->done) /* by the one that has died since */
            offering = offer(&stage, 0, 60000);
    }
    if (!offering->done)
        cluster_start(stage.server);
    assert_int_equal(cluster_wait(offering), 0);
    taking = take(&stage, 1000);
    expect_taken(&stage, taking);
    stage_done(&stage);
}

/* Tasks of a cluster that is up already dial the server: they are told that it waits, and
 * are linked once it is what they dial. */
TEST(test_others_dial)
{
    struct stage stage;
    struct cluster_task *ps;
    struct cluster_task *worker;
    mu_cluster *spec = spec_of("{\"worker\":[\"w9:1\"],\"ps\":[\"s0:1\"]}");
    struct mu__offer_own own = {spec, "ps", 0};
    char *json = mu_cluster_to_json(spec);
    struct cluster_call *taking;

    stage_init(&stage);
    ps = stage.server;
    worker = cluster_add(stage.cluster, "worker", 0, "w9");
    worker->spec = spec;
    cluster_start(ps);
    cluster_start(worker);
    taking = take(&stage, -1);
    sim_run_until(stage.cluster->sim, 100);
    expect_trace(stage.cluster,
                 "[   40] w9 links: /job:ps/task:0: it refused us: it waits\n");
    assert_int_equal(cluster_links(ps), 0);
    cluster_start(stage.offerers[0]);
    assert_int_equal(cluster_wait(offer_as(stage.offerers[0], json, "ps", 0, 1000)), 0);
    assert_int_equal(cluster_wait(taking), 0);
    free(taking->of.job.cluster);
    become_worker(&stage);
    ps->type = "ps";
    ps->spec = spec;
    ps->offer_owner = &own;
    sim_crash(stage.offerers[0]->node);
    assert_int_equal(sim_restart(ps->node), 0);
    run_for(stage.cluster, 10000);
    assert_int_equal(cluster_links(worker), 1);
    stage_done(&stage);
    mu_cluster_free(spec);
    free(json);
}

/* Who is not an offering client may not, nor may it offer to who takes none. */
TEST(test_permission)
{
    struct stage stage;
    struct cluster_task *client;
    struct mu__cluster_offer body = {.token = 1};
    struct cluster_call *taking;

    stage_init(&stage);
    cluster_start(stage.server);
    cluster_start(stage.offerers[0]);
    run_for(stage.cluster, 200);
    body.cluster = mu__view_str(stage.json);
    body.type = mu__view_str("worker");
    for (uint32_t node = 1; node < 5; node++) {
        taking = take(&stage, 10);
        forge(stage.offerers[0], (mu__pid){node, MU__JOB}, MU__JOB, MU__CLUSTER_OFFER,
              &body, sizeof body);
        forge(stage.server, (mu__pid){node + 7, MU__JOB}, MU__JOB, MU__CLUSTER_OFFER,
              &body, sizeof body);
        expect_error(taking, -MU_EDEADLINE,
                     "no client has offered a cluster spec to "
                     "/job:server/task:0 within 10 ms");
    }

    /* A cluster of another name. */
    stage.offerers[1]->cluster_name = "another";
    cluster_start(stage.offerers[1]);
    expect_error(
        offer(&stage, 1, 1000), -MU_EDEADLINE,
        "/job:worker/task:0 at tcp://s0:1 did not get its cluster spec within 1000 ms: "
        "it is "
        "not connected: it refused us: cluster name \"another\", but /job:server/task:0 "
        "belongs to cluster \"test\"");

    /* Nobody is there. */
    sim_crash(stage.server->node);
    expect_error(offer(&stage, 0, 1000), -MU_EDEADLINE,
                 "/job:worker/task:0 at tcp://s0:1 did not get its cluster spec within "
                 "1000 ms: it is "
                 "not connected: its connection broke: closed by the peer");

    /* A task that plays its part, and was made to take none. */
    client = cluster_add(stage.cluster, "worker", 0, "w1");
    client->spec = stage.spec;
    cluster_start(client);
    stage.offerers[2]->dials_any = "tcp://w1:1";
    cluster_start(stage.offerers[2]);
    expect_error(offer(&stage, 2, 1000), -MU_EPERMISSION,
                 "/job:worker/task:0 takes no cluster spec");
    stage_done(&stage);
}

/* The config travels, and is checked before it is taken. */
TEST(test_config_travels)
{
    static const char *const filters[] = {"/job:ps"};
    static const char *const wrong[] = {"gpu"};
    const mu_session_config configs[] = {{0, 3, 0, wrong, 1}, {0, 3, 2, filters, 1}};
    struct stage stage;
    struct cluster_call *taking;
    mu_session_config read;

    stage_init(&stage);
    cluster_start(stage.server);
    cluster_start(stage.offerers[0]);
    taking = take(&stage, -1);
    for (size_t i = 0; i < 2; i++) {
        mu_value *value = mu__session_config_value(&configs[i]);
        struct mu__packed packed;
        struct mu__buf *buf = mu__pack_value(value, &packed);
        struct mu__job_call wanted = {
            .call.operation = MU__JOB_OFFER,
            .call.timeout_ms = 1000,
            .offer = {mu__view_str(stage.json), mu__view_str("worker"), 0, packed},
            .recipient = "it",
        };

        assert_int_equal(cluster_wait(cluster_job_ask(stage.offerers[0], &wanted)),
                         i == 0 ? -MU_EINVALID : 0);
        mu__buf_unref(buf);
        mu_value_free(value);
    }
    assert_int_equal(cluster_wait(taking), 0);
    assert_int_equal(mu__session_config_read(taking->of.job.config, NULL, &read), 0);
    assert_true(mu__session_config_same(&read, &configs[1]));
    mu__session_config_done(&read);
    mu_value_free(taking->of.job.config);
    free(taking->of.job.cluster);
    stage_done(&stage);
}

TEST_PROGRAM()
