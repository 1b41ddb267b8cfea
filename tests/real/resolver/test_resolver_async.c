/* Resolvers of the program's own with asynchronous functions: the program keeps a reply,
 * and finishes it once, when and where it likes. */
#include "tests/real/files.h"
#include "tests/real/nodes.h"

#include "runtime/uv/blocking.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <uv.h>

enum { SHORT_MS = 200, REPLIES_MAX = 64 };

static mu_error error;

static void expect_words(const char *part)
{
    if (strstr(error.message, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, error.message);
}

/* ---- A source that answers as it is told ---- */

enum answer {
    AT_ONCE,        /* within the call */
    LATER,          /* when the test says so */
    IN_CANCEL,      /* only when nobody waits any more */
    REFUSED         /* not at all: the function returns `code` */
};

static struct source {
    pthread_mutex_t lock;       /* guards what follows */
    pthread_cond_t changed;
    enum answer detecting;
    enum answer resolving;
    int code;
    const char *words;          /* of the error, NULL: none */
    const char *task_type;
    mu_resolver_reply *replies[REPLIES_MAX];
    unsigned replies_count;
    mu_resolver_reply *cancelled[REPLIES_MAX];
    unsigned cancelled_count;
    bool was_elsewhere;         /* on another thread than that of the test */
    pthread_t caller;
    int finished_in_cancel;     /* what finishing has returned there */
} source = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int finish(mu_resolver_reply *reply)
{
    mu_error words = {0};
    mu_resolution found;
    int rv;

    mu_resolution_init(&found);
    if (source.words != NULL)
        (void)mu_error_set(&words, source.code, "%s", source.words);
    if (source.code != 0)
        return mu_resolver_reply_finish(reply, source.code, &words, NULL);
    found.cluster = mu_cluster_new();
    assert_int_equal(mu_cluster_add(found.cluster, "chief", 0, "127.0.0.1:1", NULL), 0);
    (void)snprintf(found.task_type, sizeof found.task_type, "%s", source.task_type);
    found.task_index = 0;
    rv = mu_resolver_reply_finish(reply, 0, NULL, &found);
    if (rv != 0)
        mu_cluster_free(found.cluster);
    else
        assert_null(found.cluster);
    return rv;
}

/* How it is to be answered. */
static enum answer keep(mu_resolver_reply *reply, const enum answer *wanted)
{
    enum answer answer;

    (void)pthread_mutex_lock(&source.lock);
    answer = *wanted;
    assert_true(source.replies_count < REPLIES_MAX);
    source.replies[source.replies_count++] = reply;
    source.was_elsewhere |= pthread_equal(pthread_self(), source.caller) == 0;
    (void)pthread_cond_broadcast(&source.changed);
    (void)pthread_mutex_unlock(&source.lock);
    return answer;
}

static void answer_later(void)
{
    (void)pthread_mutex_lock(&source.lock);
    source.resolving = LATER;
    (void)pthread_mutex_unlock(&source.lock);
}

static int on_detect(void *user, mu_resolver_reply *reply)
{
    enum answer answer = keep(reply, &source.detecting);

    assert_ptr_equal(user, &source);
    if (answer == AT_ONCE)
        assert_int_equal(mu_resolver_reply_finish(reply, 1, NULL, NULL), 0);
    return answer == REFUSED ? source.code : 0;
}

static int on_resolve(void *user, int64_t timeout_ms, mu_resolver_reply *reply)
{
    enum answer answer = keep(reply, &source.resolving);

    assert_ptr_equal(user, &source);
    assert_true(timeout_ms >= -1);
    if (answer == AT_ONCE)
        assert_int_equal(finish(reply), 0);
    return answer == REFUSED ? source.code : 0;
}

static void on_cancel(void *user, mu_resolver_reply *reply)
{
    assert_ptr_equal(user, &source);
    (void)pthread_mutex_lock(&source.lock);
    assert_true(source.cancelled_count < REPLIES_MAX);
    source.cancelled[source.cancelled_count++] = reply;
    (void)pthread_cond_broadcast(&source.changed);
    (void)pthread_mutex_unlock(&source.lock);
    if (source.resolving == IN_CANCEL)
        source.finished_in_cancel = finish(reply);
}

static unsigned count_of(const unsigned *counter)
{
    unsigned count;

    (void)pthread_mutex_lock(&source.lock);
    count = *counter;
    (void)pthread_mutex_unlock(&source.lock);
    return count;
}

static mu_resolver_reply *wait_for_reply(unsigned number)
{
    mu_resolver_reply *reply;

    (void)pthread_mutex_lock(&source.lock);
    while (source.replies_count < number)
        (void)pthread_cond_wait(&source.changed, &source.lock);
    reply = source.replies[number - 1];
    (void)pthread_mutex_unlock(&source.lock);
    return reply;
}

static int set_up(void **state)
{
    (void)state;
    source.detecting = source.resolving = AT_ONCE;
    source.code = 0;
    source.words = NULL;
    source.task_type = "chief";
    source.replies_count = source.cancelled_count = 0;
    source.was_elsewhere = false;
    source.caller = pthread_self();
    source.finished_in_cancel = 1;
    memset(&error, 0, sizeof error);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return mu_resolver_unregister("source", NULL);
}

static mu_resolver *made(const char *name)
{
    mu_resolver *resolver = NULL;

    if (mu_resolver_new(name, &error, &resolver) != 0)
        fail_msg("%s", error.message);
    return resolver;
}

static mu_resolver *resolver_of(const char *name, bool detects)
{
    const mu_resolver_kind kind = {
        .name = "source", .user = &source, .resolve_async = on_resolve,
        .detect_async = detects ? on_detect : NULL, .cancel = on_cancel};

    assert_int_equal(mu_resolver_register(&kind, &error), 0);
    return made(name);
}

static int resolve(mu_resolver *resolver, int64_t timeout_ms)
{
    mu_resolution found;
    int rv = mu_resolver_resolve(resolver, timeout_ms, &error, &found);

    if (rv == 0) {
        assert_string_equal(found.task_type, "chief");
        assert_int_equal(mu_cluster_task_count(found.cluster, "chief"), 1);
        mu_cluster_free(found.cluster);
    }
    return rv;
}

static void expect_found(mu_resolver *resolver)
{
    if (resolve(resolver, SOON_MS) != 0)
        fail_msg("%s", error.message);
}

/* ---- One call ---- */

static void test_finished_within_the_call(void **state)
{
    mu_resolver *resolver = resolver_of("source", false);

    (void)state;
    expect_found(resolver);
    assert_int_equal(source.replies_count, 1);
    assert_int_equal(source.cancelled_count, 0);
    assert_false(source.was_elsewhere);
    mu_resolver_free(resolver);
}

static void *finish_later(void *arg)
{
    mu_resolver_reply *reply = wait_for_reply(1);

    (void)uv_sleep(20);
    *(int *)arg = finish(reply);
    return NULL;
}

static void test_finished_on_another_thread(void **state)
{
    mu_resolver *resolver = resolver_of("source", false);
    pthread_t thread;
    int rv = 1;

    (void)state;
    source.resolving = LATER;
    assert_int_equal(pthread_create(&thread, NULL, finish_later, &rv), 0);
    expect_found(resolver);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(rv, 0);
    assert_int_equal(source.cancelled_count, 0);
    mu_resolver_free(resolver);
}

static void test_finished_with_an_error(void **state)
{
    mu_resolver *resolver = resolver_of("source", false);

    (void)state;
    source.code = -MU_EPERMISSION;
    source.words = "the inventory wants a key";
    assert_int_equal(resolve(resolver, SOON_MS), -MU_EPERMISSION);
    assert_string_equal(error.message, "the inventory wants a key");
    source.words = NULL;
    assert_int_equal(resolve(resolver, SOON_MS), -MU_EPERMISSION);
    expect_words("resolver source: ");
    assert_int_equal(source.replies_count, 2);
    mu_resolver_free(resolver);
}

static void test_finished_with_a_bad_task(void **state)
{
    mu_resolver *resolver = resolver_of("source", false);

    (void)state;
    source.task_type = "No Type";
    assert_int_equal(resolve(resolver, SOON_MS), -MU_EINVALID);
    expect_words("resolver source: ");
    mu_resolver_free(resolver);
}

/* "Not now": it is asked again while there is time. */
static void test_asked_again(void **state)
{
    mu_resolver *resolver = resolver_of("source", false);

    (void)state;
    source.code = -MU_EUNAVAILABLE;
    source.words = "the inventory is being counted";
    assert_int_equal(resolve(resolver, 0), -MU_EUNAVAILABLE);
    assert_int_equal(source.replies_count, 1);
    assert_int_equal(resolve(resolver, SHORT_MS), -MU_EDEADLINE);
    expect_words("the inventory is being counted; tried for");
    assert_true(source.replies_count > 2);
    mu_resolver_free(resolver);
}

static void test_function_refuses(void **state)
{
    mu_resolver *resolver = resolver_of("source", false);

    (void)state;
    source.resolving = REFUSED;
    source.code = -MU_ENOTFOUND;
    assert_int_equal(resolve(resolver, SOON_MS), -MU_ENOTFOUND);
    expect_words("resolver source: ");
    source.code = 0;
    assert_int_equal(finish(source.replies[0]), -MU_EPRECONDITION);
    source.code = 1;
    assert_int_equal(resolve(resolver, SOON_MS), -MU_EINTERNAL);
    expect_words("resolver source: expected 0 or an error, got 1");
    assert_int_equal(source.cancelled_count, 0);
    mu_resolver_free(resolver);
}

/* ---- Too late ---- */

/* What is found when nobody waits any more is dropped; then it is asked again. */
static void test_finished_too_late(void **state)
{
    mu_resolver *resolver = resolver_of("source", false);

    (void)state;
    source.resolving = LATER;
    assert_int_equal(resolve(resolver, SHORT_MS), -MU_EDEADLINE);
    expect_words("resolver source: its reply was not finished (no answer within ");
    assert_int_equal(source.cancelled_count, 1);
    assert_ptr_equal(source.cancelled[0], source.replies[0]);
    assert_int_equal(resolve(resolver, 0), -MU_EUNAVAILABLE);
    expect_words("resolver source: its reply to the call before, which took too long, "
                 "was not finished yet");
    assert_int_equal(source.replies_count, 1);
    assert_int_equal(finish(source.replies[0]), 0);
    source.resolving = AT_ONCE;
    expect_found(resolver);
    assert_int_equal(source.replies_count, 2);
    assert_int_equal(source.cancelled_count, 1);
    mu_resolver_free(resolver);
}

static void test_finished_within_cancel(void **state)
{
    mu_resolver *resolver = resolver_of("source", false);

    (void)state;
    source.resolving = IN_CANCEL;
    assert_int_equal(resolve(resolver, SHORT_MS), -MU_EDEADLINE);
    assert_int_equal(source.finished_in_cancel, 0);
    source.resolving = AT_ONCE;
    expect_found(resolver);
    mu_resolver_free(resolver);
}

static void test_freed_while_a_reply_is_open(void **state)
{
    mu_resolver *resolver = resolver_of("source", false);

    (void)state;
    source.resolving = LATER;
    assert_int_equal(resolve(resolver, SHORT_MS), -MU_EDEADLINE);
    mu_resolver_free(resolver);
    assert_int_equal(mu_resolver_unregister("source", &error), 0);
    assert_int_equal(finish(source.replies[0]), 0);
    assert_int_equal(finish(source.replies[0]), -MU_EPRECONDITION);
    mu_resolver_free(resolver_of("source", false));
}

/* A thread and the limit meet: the call has one of both outcomes. */
static void *finish_at_once(void *arg)
{
    (void)arg;
    (void)finish(wait_for_reply(1));
    return NULL;
}

static void test_finished_at_the_limit(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        mu_resolver *resolver;
        pthread_t thread;
        int rv;

        (void)set_up(NULL);
        source.resolving = LATER;
        resolver = resolver_of("source", false);
        assert_int_equal(pthread_create(&thread, NULL, finish_at_once, NULL), 0);
        rv = resolve(resolver, 1);
        if (rv != 0)
            assert_int_equal(rv, -MU_EDEADLINE);
        if (count_of(&source.replies_count) == 0)
            (void)keep(NULL, &source.resolving);
        assert_int_equal(pthread_join(thread, NULL), 0);
        mu_resolver_free(resolver);
        assert_int_equal(tear_down(NULL), 0);
    }
    mu_resolver_free(resolver_of("source", false));
}

/* ---- Bad use ---- */

static void test_finished_twice(void **state)
{
    mu_resolver *resolver = resolver_of("source", false);

    (void)state;
    expect_found(resolver);
    assert_int_equal(finish(source.replies[0]), -MU_EPRECONDITION);
    source.resolving = LATER;
    assert_int_equal(resolve(resolver, SHORT_MS), -MU_EDEADLINE);
    assert_ptr_not_equal(source.replies[1], source.replies[0]);
    assert_int_equal(finish(source.replies[0]), -MU_EPRECONDITION);
    assert_int_equal(finish(source.replies[1]), 0);
    assert_int_equal(finish(source.replies[1]), -MU_EPRECONDITION);
    mu_resolver_free(resolver);
}

static void test_finished_with_what_is_none(void **state)
{
    mu_resolver *resolver = resolver_of("source", true);
    mu_resolver_reply *reply;
    mu_resolution found;

    (void)state;
    mu_resolution_init(&found);
    assert_int_equal(mu_resolver_reply_finish(NULL, 0, NULL, &found), -MU_EINVALID);
    source.resolving = LATER;
    assert_int_equal(resolve(resolver, SHORT_MS), -MU_EDEADLINE);
    reply = source.replies[0];
    assert_int_equal(mu_resolver_reply_finish(reply, 1, NULL, &found), -MU_EINVALID);
    assert_int_equal(mu_resolver_reply_finish(reply, 0, NULL, NULL), -MU_EINVALID);
    assert_int_equal(mu_resolver_reply_finish(reply, -MU_EABORTED, NULL, &found),
                     -MU_EINVALID);
    assert_int_equal(mu_resolver_reply_finish(reply, -MU_EABORTED, NULL, NULL), 0);
    mu_resolver_free(resolver);

    source.detecting = LATER;
    resolver = made("auto");
    assert_int_equal(resolve(resolver, SHORT_MS), -MU_EDEADLINE);
    expect_words("resolver source: its reply was not finished");
    reply = source.replies[1];
    assert_int_equal(mu_resolver_reply_finish(reply, 2, NULL, NULL), -MU_EINVALID);
    assert_int_equal(mu_resolver_reply_finish(reply, 1, NULL, &found), -MU_EINVALID);
    assert_int_equal(mu_resolver_reply_finish(reply, 1, NULL, NULL), 0);
    mu_resolver_free(resolver);
}

static int block(void *user, int64_t timeout_ms, mu_error *ret_error,
                 mu_resolution *ret_resolution)
{
    (void)user;
    (void)timeout_ms;
    (void)ret_error;
    (void)ret_resolution;
    return 0;
}

static int block_detect(void *user, mu_error *ret_why)
{
    (void)user;
    (void)ret_why;
    return 0;
}

static void test_forms_of_functions(void **state)
{
    const struct {
        mu_resolver_kind kind;
        const char *words;
    } rows[] = {
        {{.name = "bad"}, "expected a function `resolve`, got NULL"},
        {{.name = "bad", .detect_async = on_detect}, "expected a function `resolve`"},
        {{.name = "bad", .resolve = block, .resolve_async = on_resolve},
         "expected one of `resolve` and `resolve_async`, got both"},
        {{.name = "bad", .resolve_async = on_resolve, .detect = block_detect,
          .detect_async = on_detect},
         "expected one of `detect` and `detect_async` at most, got both"},
        {{.name = "bad", .resolve = block, .cancel = on_cancel},
         "expected an asynchronous function beside `cancel`, got none"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(mu_resolver_register(&rows[i].kind, &error), -MU_EINVALID);
        expect_words(rows[i].words);
    }
    mu_resolver_free(resolver_of("source", false));
}

/* ---- Detecting ---- */

static void test_detected(void **state)
{
    mu_resolver *resolver = resolver_of("auto", true);

    (void)state;
    expect_found(resolver);
    assert_int_equal(source.replies_count, 2);
    assert_false(source.was_elsewhere);
    mu_resolver_free(resolver);
}

static void *not_here(void *arg)
{
    const mu_error why = {.message = "no inventory is near"};

    *(int *)arg = mu_resolver_reply_finish(wait_for_reply(1), 0, &why, NULL);
    return NULL;
}

static void test_not_detected(void **state)
{
    mu_resolver *resolver = resolver_of("auto", true);
    mu_value *all;
    const char *text;
    pthread_t thread;
    size_t size;
    int rv = 1;

    (void)state;
    source.detecting = LATER;
    assert_int_equal(pthread_create(&thread, NULL, not_here, &rv), 0);
    assert_int_equal(resolve(resolver, SOON_MS), -MU_ENOTFOUND);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(rv, 0);
    all = mu_resolver_explain(resolver);
    assert_int_equal(
        mu_value_get_string(mu_value_find(mu_value_at(all, 0), "why"), &text, &size), 0);
    assert_string_equal(text, "no inventory is near");
    mu_value_free(all);
    mu_resolver_free(resolver);
}

static void test_detection_fails(void **state)
{
    mu_resolver *resolver = resolver_of("auto", true);

    (void)state;
    source.detecting = REFUSED;
    source.code = -MU_EPERMISSION;
    assert_int_equal(resolve(resolver, SOON_MS), -MU_EPERMISSION);
    expect_words("source: resolver source: ");
    source.code = 1;
    assert_int_equal(resolve(resolver, SOON_MS), -MU_EINTERNAL);
    mu_resolver_free(resolver);
}

/* ---- Several ---- */

static void *finish_all(void *arg)
{
    unsigned count = *(unsigned *)arg;

    (void)wait_for_reply(count);    /* all are asked before any has answered */
    for (unsigned i = 0; i < count; i++)
        (void)finish(source.replies[count - 1 - i]);
    return NULL;
}

/* More than there are threads for blocking functions, and all on the thread that asks. */
static void test_many_at_once(void **state)
{
    enum { MEMBERS = MU__BLOCKING_THREADS_MAX * 2 };
    mu_resolver *members[MEMBERS] = {resolver_of("source", false)};
    mu_resolver *whole = NULL;
    unsigned count = MEMBERS;
    pthread_t thread;

    (void)state;
    for (unsigned i = 1; i < MEMBERS; i++)
        members[i] = made("source");
    assert_int_equal(mu_resolver_new_union(members, MEMBERS, &error, &whole), 0);
    source.resolving = LATER;
    assert_int_equal(pthread_create(&thread, NULL, finish_all, &count), 0);
    assert_int_equal(resolve(whole, SOON_MS), -MU_EEXISTS);
    expect_words("is already that of");
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(source.replies_count, MEMBERS);
    assert_false(source.was_elsewhere);
    mu_resolver_free(whole);
}

/* ---- A node that looks again ---- */

static struct nodes nodes = {.log.lock = PTHREAD_MUTEX_INITIALIZER};

static mu_node *open_chief(mu_resolver *resolver)
{
    mu_node_options options;
    mu_node *node = NULL;

    nodes_options(&nodes, "chief", 0, &options);
    options.resolver = resolver;
    options.bind_address = "tcp://127.0.0.1:0";
    if (mu_node_open(&options, &error, &node) != 0)
        fail_msg("%s", error.message);
    return node;
}

/* A file, which changes, and the source, which knows nothing more than the file. */
static mu_resolver *watching(const char *path)
{
    mu_resolver *members[2] = {made("file"), made("source")};
    mu_resolver *whole = NULL;

    files_replace(path, "{\"worker\":[\"127.0.0.1:2\"]}");
    assert_int_equal(mu_resolver_set(members[0], "path", path, &error), 0);
    assert_int_equal(mu_resolver_new_union(members, 2, &error, &whole), 0);
    assert_int_equal(mu_resolver_set_task_type(whole, "chief", &error), 0);
    assert_int_equal(mu_resolver_set_task_index(whole, 0, &error), 0);
    return whole;
}

/* What is written before the path is watched is seen only seconds later. */
static void wait_for_look(const char *path, unsigned count)
{
    for (int i = 0; i < SOON_MS && count_of(&source.replies_count) < count; i++) {
        if (i % 100 == 0)
            files_replace(path, i % 200 == 0 ? "{\"worker\":[\"127.0.0.1:3\"]}"
                                             : "{\"worker\":[\"127.0.0.1:4\"]}");
        nodes_pause();
    }
    assert_true(count_of(&source.replies_count) >= count);
}

/* The node goes on with everything else, and closes without waiting; the reply is
 * finished when the node is gone. */
static void test_node_while_a_reply_is_open(void **state)
{
    static char folder[] = "/tmp/muster-async-XXXXXX";
    mu_value *devices = NULL;
    mu_resolver *resolver;
    uint64_t begin_ms;
    char path[64];
    mu_node *node;

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/cluster.json", folder);
    mu_resolver_free(resolver_of("source", false));
    resolver = watching(path);
    node = open_chief(resolver);
    (void)wait_for_reply(2);    /* to find the cluster, and to begin to watch it */
    answer_later();
    wait_for_look(path, count_of(&source.replies_count) + 1);

    if (mu_tasks_devices(node, SOON_MS, &error, &devices) != 0)
        fail_msg("%s", error.message);
    mu_value_free(devices);
    assert_int_equal(count_of(&source.cancelled_count), 0);
    begin_ms = uv_hrtime() / 1000000;
    assert_int_equal(mu_node_close(node, SOON_MS, NULL), 0);
    assert_in_range(uv_hrtime() / 1000000 - begin_ms, 0, MU_RESOLVER_CLOSE_TIMEOUT_MS);
    assert_int_equal(source.cancelled_count, 1);
    assert_true(source.was_elsewhere);
    mu_resolver_free(resolver);
    assert_int_equal(finish(source.cancelled[0]), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
#define ASYNC(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ASYNC(test_finished_within_the_call),
        ASYNC(test_finished_on_another_thread),
        ASYNC(test_finished_with_an_error),
        ASYNC(test_finished_with_a_bad_task),
        ASYNC(test_asked_again),
        ASYNC(test_function_refuses),
        ASYNC(test_finished_too_late),
        ASYNC(test_finished_within_cancel),
        ASYNC(test_freed_while_a_reply_is_open),
        ASYNC(test_finished_at_the_limit),
        ASYNC(test_finished_twice),
        ASYNC(test_finished_with_what_is_none),
        ASYNC(test_forms_of_functions),
        ASYNC(test_detected),
        ASYNC(test_not_detected),
        ASYNC(test_detection_fails),
        ASYNC(test_many_at_once),
        ASYNC(test_node_while_a_reply_is_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
