/* A discovery that waits for others, and what it watches changes: it looks at once. The
 * clock of its looks stands still here, so that no pause between them ends by itself:
 * each look beyond the first is one for a change. */
#include "resolver/engine/exchange.h"
#include "tests/real/desk.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

enum { BURST = 50, TIMEOUT_MS = 30000 };

/* ---- The clock ---- */

static atomic_bool stands_still;

MU_EXPORT uint64_t uv_hrtime(void)
{
    static atomic_uint_fast64_t last;
    struct timespec now;

    if (!atomic_load(&stands_still) && clock_gettime(CLOCK_MONOTONIC, &now) == 0)
        atomic_store(&last, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    return atomic_load(&last);
}

/* ---- A resolver for which all are there when there is a file ---- */

static struct {
    char folder[64];
    char watched[80];
    char file[96]; /* in what is watched */
    atomic_uint looks;
    atomic_uint failed;  /* of these */
    bool is_tried_again; /* the file is, within a look */
} source;

static int on_resolve(const struct mu__pass *pass, mu_error *ret_error,
                      mu_resolution *ret_resolution)
{
    const struct mu__request request = {.kind = MU__REQUEST_FILE,
                                        .name = source.file,
                                        .retry_missing = source.is_tried_again};
    const struct mu__answer *answer;

    source.looks++;
    answer = mu__requests_get(pass->requests, &request);
    if (answer->code != 0) {
        source.failed++;
        return mu_error_set(ret_error, -MU_EUNAVAILABLE, "worker:0 is not there");
    }
    ret_resolution->cluster = mu_cluster_new();
    return mu_cluster_add(ret_resolution->cluster, "chief", 0, "127.0.0.1:1", ret_error);
}

static int on_announce(const struct mu__pass *pass, const mu_announcement *announcement,
                       mu_error *ret_error, void **own, int *ret_index,
                       uint32_t *ret_again_ms)
{
    (void)pass;
    (void)ret_error;
    (void)own;
    *ret_index = announcement->index;
    *ret_again_ms = 0;
    return 0;
}

static const char *watched_path(const struct mu__pass *pass)
{
    (void)pass;
    return source.watched;
}

static const struct mu__setting_spec no_settings[] = {{.name = NULL}};

static const struct mu__resolver_kind folder_kind = {
    .name = "changing",
    .summary = "a file in a folder",
    .settings = no_settings,
    .resolve = on_resolve,
    .announce = on_announce,
    .watch_ms = 60000,
    .watched_path = watched_path,
};

/* Before it in a union: a path of its own is watched, in which nothing changes. */
static struct {
    char folder[64];
    bool is_watched;
} quiet;

static int on_resolve_quiet(const struct mu__pass *pass, mu_error *ret_error,
                            mu_resolution *ret_resolution)
{
    (void)pass;
    (void)ret_error;
    (void)ret_resolution;
    return 0;
}

static const char *watched_quiet(const struct mu__pass *pass)
{
    (void)pass;
    return quiet.is_watched ? quiet.folder : NULL;
}

static const struct mu__resolver_kind quiet_kind = {
    .name = "quiet",
    .summary = "nobody",
    .settings = no_settings,
    .resolve = on_resolve_quiet,
    .watch_ms = 60000,
    .watched_path = watched_quiet,
};

/* ---- A discovery ---- */

static struct desk desk;

/* Of what is waited for, in the same loop: timers of it go by the real clock. */
static struct {
    uv_timer_t timer;
    bool is_over;
} limit;

static void make_resolver(mu_resolver **ret_resolver)
{
    mu_error error;

    assert_int_equal(mu__resolver_new_kind(&folder_kind, &error, ret_resolver), 0);
}

/* The quiet one is the member of this number. */
static void make_union(size_t number, mu_resolver **ret_resolver)
{
    mu_resolver *members[2];
    mu_error error;

    (void)snprintf(quiet.folder, sizeof quiet.folder, "%.60s", source.folder);
    quiet.is_watched = true;
    (void)snprintf(source.watched, sizeof source.watched, "%s/0", source.folder);
    assert_int_equal(mkdir(source.watched, 0700), 0);
    (void)snprintf(source.file, sizeof source.file, "%s/0/all", source.folder);
    assert_int_equal(mu__resolver_new_kind(&quiet_kind, &error, &members[number]), 0);
    make_resolver(&members[1 - number]);
    assert_int_equal(mu_resolver_new_union(members, 2, &error, ret_resolver), 0);
}

static void make_quiet_first(mu_resolver **ret_resolver)
{
    make_union(0, ret_resolver);
}

static void make_quiet_last(mu_resolver **ret_resolver)
{
    make_union(1, ret_resolver);
}

static int set_up_with(void (*make)(mu_resolver **ret_resolver))
{
    mu_resolver *resolver;

    memset(&source, 0, sizeof source);
    (void)snprintf(source.folder, sizeof source.folder, "/tmp/muster-change-XXXXXX");
    assert_non_null(mkdtemp(source.folder));
    (void)snprintf(source.watched, sizeof source.watched, "%s", source.folder);
    (void)snprintf(source.file, sizeof source.file, "%s/all", source.folder);
    make(&resolver);
    (void)uv_hrtime();
    atomic_store(&stands_still, true);
    desk_open(&desk, resolver, -1);
    (void)uv_timer_init(&desk.loop, &limit.timer);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return set_up_with(make_resolver);
}

static int set_up_quiet_first(void **state)
{
    (void)state;
    return set_up_with(make_quiet_first);
}

static int set_up_quiet_last(void **state)
{
    (void)state;
    return set_up_with(make_quiet_last);
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    atomic_store(&stands_still, false);
    uv_close((uv_handle_t *)&limit.timer, NULL);
    desk_close(&desk, false, 0);
    (void)snprintf(command, sizeof command, "rm -rf %s", source.folder);
    return system(command);
}

static void on_limit(uv_timer_t *timer)
{
    (void)timer;
    limit.is_over = true;
}

static void begin_limit(void)
{
    limit.is_over = false;
    (void)uv_timer_start(&limit.timer, on_limit, TIMEOUT_MS, 0);
}

static void run_once(const char *missing)
{
    (void)uv_run(&desk.loop, UV_RUN_ONCE);
    if (limit.is_over)
        fail_msg("not within %d ms: %s; what was logged: %s", (int)TIMEOUT_MS, missing,
                 desk.log.text);
}

static void wait_for_words(const char *words)
{
    begin_limit();
    while (!desk_has_logged(&desk, words))
        run_once(words);
    (void)uv_timer_stop(&limit.timer);
}

static void wait_for_failed(unsigned count)
{
    begin_limit();
    while (source.failed < count)
        run_once("another look that fails");
    (void)uv_timer_stop(&limit.timer);
}

static void wait_for_looks(unsigned count)
{
    begin_limit();
    while (source.looks < count)
        run_once("another look");
    (void)uv_timer_stop(&limit.timer);
}

static void wait_until_found(void)
{
    begin_limit();
    while (!desk.is_found)
        run_once("the cluster is found");
    (void)uv_timer_stop(&limit.timer);
}

static void make_folder_in(const char *parent, unsigned number)
{
    char path[96];

    (void)snprintf(path, sizeof path, "%.80s/%u", parent, number);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* One change: a folder is made, which is no file that is read. */
static void make_other(unsigned number)
{
    make_folder_in(source.folder, number);
}

/* One change as well. */
static void make_file(void)
{
    char other[80];
    FILE *file;

    (void)snprintf(other, sizeof other, "%s.new", source.folder);
    file = fopen(other, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(other, source.file), 0);
}

/* ---- Tests ---- */

TEST_WITH(test_between_two_looks, set_up, tear_down)
{
    wait_for_words("worker:0 is not there, try 1, again in ");
    assert_int_equal(source.looks, 1);
    make_file();
    wait_until_found();
    assert_int_equal(source.looks, 2);
}

/* What is tried again within a look is read at once, and the look goes on. */
TEST_WITH(test_within_a_look, set_up, tear_down)
{
    source.is_tried_again = true;
    wait_for_words("/all failed (");
    make_file();
    wait_until_found();
    assert_int_equal(source.looks, 1);
}

/* Many changes that bring nothing are one look; the next one is another. */
TEST_WITH(test_many_changes, set_up, tear_down)
{
    wait_for_words("try 1, again in ");
    for (unsigned i = 0; i < BURST; i++)
        make_other(i);
    wait_for_failed(2);
    assert_false(desk.is_found);
    make_file();
    wait_until_found();
    assert_int_equal(source.looks, 3);
}

/* What is watched is not there yet: its coming is a change, and what comes in it. */
TEST_WITH(test_folder_that_comes, set_up, tear_down)
{
    (void)snprintf(source.watched, sizeof source.watched, "%s/0", source.folder);
    (void)snprintf(source.file, sizeof source.file, "%s/0/all", source.folder);
    wait_for_words("try 1, again in ");
    make_other(0);
    wait_for_failed(2);
    make_file();
    wait_until_found();
    assert_int_equal(source.looks, 3);
}

/* Of a union what any member watches is watched. */
TEST_WITH(test_second_member, set_up_quiet_first, tear_down)
{
    wait_for_words("try 1, again in ");
    make_file();
    wait_until_found();
    assert_int_equal(source.looks, 2);
}

static void count_watch(uv_handle_t *handle, void *arg)
{
    if (handle->type == UV_FS_EVENT && uv_is_active(handle))
        ++*(unsigned *)arg;
}

static unsigned watches_count(void)
{
    unsigned count = 0;

    uv_walk(&desk.loop, count_watch, &count);
    return count;
}

/* What a look says no more of is not watched from the next one on. */
TEST_WITH(test_path_that_goes, set_up_quiet_last, tear_down)
{
    wait_for_words("try 1, again in ");
    assert_int_equal(watches_count(), 2);
    quiet.is_watched = false;
    make_file();
    wait_until_found();
    make_folder_in(source.watched, 1);
    wait_for_looks(3);
    assert_int_equal(watches_count(), 1);
}

TEST_PROGRAM()
