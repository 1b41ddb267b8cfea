/* A discovery that closes: what is under way then has its time, and no more. The
 * resolver is one of the test's own, whose requests nobody answers. */
#include "resolver/engine/exchange.h"
#include "tests/real/desk.h"

#include <stdatomic.h>

enum { TIMEOUT_MS = 300, NEVER_MS = 60000 };

/* ---- A server that takes connections and says nothing ---- */

static char url[64];

/* ---- A resolver ---- */

static struct {
    atomic_uint announced; /* how often it was to be told, */
    atomic_uint withdrawn; /* and taken back */
    bool tells_once;       /* the next time has no end */
    bool takes_back;       /* at once */
} told;

/* Whatever is asked, it has no answer for longer than a test may take. */
static int request_nobody(struct mu__requests *requests, mu_error *ret_error)
{
    const struct mu__request request = {
        .kind = MU__REQUEST_HTTP, .name = url, .timeout_ms = NEVER_MS, .tries = 1};

    return mu__answer_check(mu__requests_get(requests, &request), "silent", ret_error);
}

static int on_resolve(const struct mu__pass *pass, mu_error *ret_error,
                      mu_resolution *ret_resolution)
{
    (void)pass;
    ret_resolution->cluster = mu_cluster_new();
    return mu_cluster_add(ret_resolution->cluster, "chief", 0, "127.0.0.1:1", ret_error);
}

static int on_announce(const struct mu__pass *pass, const mu_announcement *announcement,
                       mu_error *ret_error, void **own, int *ret_index,
                       uint32_t *ret_again_ms)
{
    (void)own;
    told.announced++;
    *ret_index = announcement->index;
    *ret_again_ms = 1;
    return told.tells_once && told.announced == 1
               ? 0
               : request_nobody(pass->requests, ret_error);
}

static int on_withdraw(const struct mu__pass *pass, const mu_announcement *announcement,
                       mu_error *ret_error, void **own)
{
    (void)announcement;
    (void)own;
    told.withdrawn++;
    return told.takes_back ? 0 : request_nobody(pass->requests, ret_error);
}

static const struct mu__setting_spec no_settings[] = {{.name = NULL}};

static const struct mu__resolver_kind silent = {
    .name = "silent",
    .summary = "nobody answers",
    .settings = no_settings,
    .resolve = on_resolve,
    .announce = on_announce,
    .withdraw = on_withdraw,
};

/* ---- A discovery ---- */

static struct desk desk;

static void open_desk(void)
{
    mu_resolver *resolver;
    mu_error error;

    assert_int_equal(mu__resolver_new_kind(&silent, &error, &resolver), 0);
    desk_open(&desk, resolver, SOON_MS);
    while (!desk.is_found || told.announced < 2) {
        (void)uv_run(&desk.loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
}

/* How long it took. */
static uint64_t close_desk(bool withdraws)
{
    uint64_t begin_ms = uv_hrtime() / 1000000;

    desk_close(&desk, withdraws, TIMEOUT_MS);
    return uv_hrtime() / 1000000 - begin_ms;
}

/* An announcement that does not come to its end is cut short, and then taken back. */
LISTED_TEST(test_announcement_is_cut_short)
{
    memset(&told, 0, sizeof told);
    told.tells_once = told.takes_back = true;
    open_desk();
    assert_in_range(close_desk(true), 0, SOON_MS);
    assert_int_equal(told.withdrawn, 1);
    assert_false(desk_has_logged(&desk, "cannot be told"));
}

/* So is taking back itself, and it is said. */
LISTED_TEST(test_withdrawal_is_cut_short)
{
    memset(&told, 0, sizeof told);
    told.tells_once = true;
    open_desk();
    assert_in_range(close_desk(true), 0, SOON_MS);
    assert_int_equal(told.withdrawn, 1);
    if (!desk_has_logged(&desk, "this task cannot be announced: silent: "))
        fail_msg("%s", desk.log.text);
}

/* Who takes nothing back waits for nothing. */
LISTED_TEST(test_closed_without_withdrawing)
{
    memset(&told, 0, sizeof told);
    told.tells_once = true;
    open_desk();
    assert_in_range(close_desk(false), 0, SOON_MS);
    assert_int_equal(told.withdrawn, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_announcement_is_cut_short),
        cmocka_unit_test(test_withdrawal_is_cut_short),
        cmocka_unit_test(test_closed_without_withdrawing),
    };
    int port;
    int fd = ports_bound(&port);
    int failed;

    (void)listen(fd, 64);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)close(fd);
    return failed;
}
