/* A finder that closes: what is under way then has its time, and no more. The resolver is
 * one of the test's own, whose questions nobody answers. */
#include "tests/real/nodes.h"

#include "node/finder.h"
#include "resolver/resolver.h"

#include <stdbool.h>
#include <uv.h>

enum { LIMIT_MS = 300, NEVER_MS = 60000 };

/* ---- A server that takes connections and says nothing ---- */

static char url[64];

/* ---- A resolver ---- */

static struct {
    unsigned announced;         /* how often it was to be told, */
    unsigned withdrawn;         /* and taken back */
    bool tells_once;            /* the next time has no end */
    bool takes_back;            /* at once */
} told;

/* Whatever is asked, it has no answer for longer than a test may take. */
static int ask_nobody(struct mu__notes *notes, mu_error *ret_error)
{
    const struct mu__question question = {
        .kind = MU__ASK_HTTP, .name = url, .limit_ms = NEVER_MS, .tries = 1};
    const struct mu__answer *answer = mu__ask(notes, &question);

    return answer == NULL ? MU__LATER : mu__answer_check(answer, "silent", ret_error);
}

static int on_resolve(struct mu__notes *notes, const struct mu__settings *settings,
                      mu_error *ret_error, mu_resolution *ret_resolution)
{
    (void)notes;
    (void)settings;
    ret_resolution->cluster = mu_cluster_new();
    return mu_cluster_add(ret_resolution->cluster, "chief", 0, "127.0.0.1:1", ret_error);
}

static int on_announce(struct mu__notes *notes, const struct mu__settings *settings,
                       const mu_announcement *announcement, mu_error *ret_error,
                       void **own, int *ret_index, uint32_t *ret_again_ms)
{
    (void)settings;
    (void)own;
    if (mu__notes_runs(notes) <= 1)
        told.announced++;
    *ret_index = announcement->index;
    *ret_again_ms = 1;
    return told.tells_once && told.announced == 1 ? 0 : ask_nobody(notes, ret_error);
}

static int on_withdraw(struct mu__notes *notes, const struct mu__settings *settings,
                       const mu_announcement *announcement, mu_error *ret_error,
                       void **own)
{
    (void)settings;
    (void)announcement;
    (void)own;
    if (mu__notes_runs(notes) <= 1)
        told.withdrawn++;
    return told.takes_back ? 0 : ask_nobody(notes, ret_error);
}

static const struct mu__setting_spec no_settings[] = {{.name = NULL}};

static const struct mu__resolver_kind silent = {
    .name = "silent", .summary = "nobody answers", .settings = no_settings,
    .resolve = on_resolve, .announce = on_announce, .withdraw = on_withdraw,
};

/* ---- A finder ---- */

struct desk {
    uv_loop_t loop;
    struct mu__finder *finder;
    mu_resolver *resolver;
    struct nodes_log log;
    bool is_found;
    bool is_closed;
};

static void on_found(void *owner, mu_resolution *resolution)
{
    ((struct desk *)owner)->is_found = true;
    mu_cluster_free(resolution->cluster);
}

static void on_failed(void *owner, const mu_error *error)
{
    (void)owner;
    fail_msg("%s", error->message);
}

static void on_log(void *owner, int level, const char *line)
{
    nodes_note(&((struct desk *)owner)->log, level, "", "", line);
}

static void on_closed(void *arg)
{
    ((struct desk *)arg)->is_closed = true;
}

static void desk_open(struct desk *desk)
{
    const mu_announcement announcement = {"muster", "chief", 0, "127.0.0.1:1", "0abc"};
    const struct mu__finder_config config = {
        .loop = &desk->loop, .announcement = &announcement, .limit_ms = SOON_MS,
        .found = on_found, .failed = on_failed, .log = on_log, .owner = desk};
    struct mu__finder_config own = config;
    mu_error error;

    memset(desk, 0, sizeof *desk);
    assert_int_equal(pthread_mutex_init(&desk->log.lock, NULL), 0);
    assert_int_equal(uv_loop_init(&desk->loop), 0);
    assert_int_equal(mu__resolver_new_kind(&silent, &error, &desk->resolver), 0);
    own.resolver = desk->resolver;
    assert_int_equal(mu__finder_open(&own, &error, &desk->finder), 0);
    while (!desk->is_found || told.announced < 2)
        (void)uv_run(&desk->loop, UV_RUN_ONCE);
}

/* How long it took. */
static uint64_t desk_close(struct desk *desk, bool withdraws)
{
    uint64_t begin_ms = uv_hrtime() / 1000000;

    mu__finder_close(desk->finder, withdraws, LIMIT_MS, on_closed, desk);
    (void)uv_run(&desk->loop, UV_RUN_DEFAULT);
    assert_true(desk->is_closed);
    assert_int_equal(uv_loop_close(&desk->loop), 0);
    mu_resolver_free(desk->resolver);
    return uv_hrtime() / 1000000 - begin_ms;
}

static bool has_logged(const struct desk *desk, const char *words)
{
    return strstr(desk->log.text, words) != NULL;
}

static struct desk desk;

/* An announcement that does not come to its end is cut short, and then taken back. */
static void test_announcement_is_cut_short(void **state)
{
    (void)state;
    memset(&told, 0, sizeof told);
    told.tells_once = told.takes_back = true;
    desk_open(&desk);
    assert_in_range(desk_close(&desk, true), 0, SOON_MS);
    assert_int_equal(told.withdrawn, 1);
    assert_false(has_logged(&desk, "cannot be told"));
}

/* So is taking back itself, and it is said. */
static void test_withdrawal_is_cut_short(void **state)
{
    (void)state;
    memset(&told, 0, sizeof told);
    told.tells_once = true;
    desk_open(&desk);
    assert_in_range(desk_close(&desk, true), 0, SOON_MS);
    assert_int_equal(told.withdrawn, 1);
    if (!has_logged(&desk, "cannot be told where this task is: silent: "))
        fail_msg("%s", desk.log.text);
}

/* Who takes nothing back waits for nothing. */
static void test_closed_without_withdrawing(void **state)
{
    (void)state;
    memset(&told, 0, sizeof told);
    told.tells_once = true;
    desk_open(&desk);
    assert_in_range(desk_close(&desk, false), 0, SOON_MS);
    assert_int_equal(told.withdrawn, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_announcement_is_cut_short),
        cmocka_unit_test(test_withdrawal_is_cut_short),
        cmocka_unit_test(test_closed_without_withdrawing),
    };
    int fd;
    int port = nodes_free_port(&fd);
    int failed;

    (void)listen(fd, 64);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)close(fd);
    return failed;
}
