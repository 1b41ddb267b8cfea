/* Watching a path in a real file system: what comes, goes and is replaced is noticed. */
#include "node/discovery/path_watch.h"
#include "tests/support/test.h"

#include <sys/stat.h>
#include <unistd.h>

enum { SOON_MS = 20000 };

struct fixture {
    char folder[64];
    char path[96]; /* that is watched, in it */
    uv_loop_t loop;
    uv_timer_t timer;
    struct mu__path_watch watch;
    struct mu__path_watch other; /* of one test */
    bool has_changed;
    bool has_other_changed;
    bool is_late;
};

static struct fixture fixture;

static void on_change(void *owner)
{
    ((struct fixture *)owner)->has_changed = true;
}

static void on_other_change(void *owner)
{
    ((struct fixture *)owner)->has_other_changed = true;
}

static void on_late(uv_timer_t *timer)
{
    ((struct fixture *)timer->data)->is_late = true;
}

static int set_up(void **state)
{
    struct fixture *f = &fixture;

    memset(f, 0, sizeof *f);
    (void)snprintf(f->folder, sizeof f->folder, "/tmp/muster-watch-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    (void)snprintf(f->path, sizeof f->path, "%.60s/it", f->folder);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    (void)uv_timer_init(&f->loop, &f->timer);
    f->timer.data = f;
    mu__path_watch_init(&f->watch, &f->loop, on_change, f);
    mu__path_watch_init(&f->other, &f->loop, on_other_change, f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char command[128];

    uv_close((uv_handle_t *)&f->timer, NULL);
    uv_close((uv_handle_t *)&f->watch.event, NULL);
    uv_close((uv_handle_t *)&f->other.event, NULL);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    (void)snprintf(command, sizeof command, "rm -r %s", f->folder);
    return system(command);
}

static void in_folder(const struct fixture *f, const char *name, char *out, size_t size)
{
    (void)snprintf(out, size, "%s/%s", f->folder, name);
}

static void make_folder(const struct fixture *f, const char *name)
{
    char path[128];

    in_folder(f, name, path, sizeof path);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void make_file(const struct fixture *f, const char *name)
{
    char path[128];
    FILE *file;

    in_folder(f, name, path, sizeof path);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void move(const struct fixture *f, const char *from, const char *to)
{
    char paths[2][128];

    in_folder(f, from, paths[0], sizeof paths[0]);
    in_folder(f, to, paths[1], sizeof paths[1]);
    assert_int_equal(rename(paths[0], paths[1]), 0);
}

/* As one does before a look: what happened so far has been seen, or is seen by it. */
static void watch(struct fixture *f)
{
    mu__path_watch_start(&f->watch, f->path);
    while (uv_run(&f->loop, UV_RUN_NOWAIT) != 0 && f->has_changed)
        f->has_changed = false;
    mu__path_watch_start(&f->watch, f->path);
}

static void wait_for(struct fixture *f, const bool *has_changed)
{
    (void)uv_timer_start(&f->timer, on_late, SOON_MS, 0);
    while (!*has_changed && !f->is_late)
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    (void)uv_timer_stop(&f->timer);
    assert_true(*has_changed);
}

static void expect_change(struct fixture *f)
{
    wait_for(f, &f->has_changed);
    f->has_changed = false;
}

TEST_ON(test_folder, struct fixture *f, set_up, tear_down)
{
    make_folder(f, "it");
    watch(f);
    make_file(f, "it/a");
    expect_change(f);
    watch(f);
    move(f, "it/a", "it/b");
    expect_change(f);
    assert_true(f->watch.is_on);
}

/* It was not there at the begin, goes, and comes back as another one. */
TEST_ON(test_folder_that_comes, struct fixture *f, set_up, tear_down)
{
    watch(f);
    make_folder(f, "it");
    expect_change(f);
    watch(f);
    make_file(f, "it/a");
    expect_change(f);
    watch(f);
    move(f, "it", "away");
    expect_change(f);
    watch(f);
    make_folder(f, "it");
    expect_change(f);
    watch(f);
    make_file(f, "it/b");
    expect_change(f);
    assert_true(f->watch.is_on);
}

/* A file is replaced again and again; others in its folder do not count. */
TEST_ON(test_file, struct fixture *f, set_up, tear_down)
{
    watch(f);
    make_file(f, "other");
    for (unsigned i = 0; i < 3; i++) {
        make_file(f, "new");
        move(f, "new", "it");
        expect_change(f);
        watch(f);
    }
    make_file(f, "other");
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_false(f->has_changed);
}

/* Where it is now is watched, and where it was is not. */
TEST_ON(test_another_path, struct fixture *f, set_up, tear_down)
{
    make_folder(f, "it");
    make_folder(f, "other");
    watch(f);
    in_folder(f, "other", f->path, sizeof f->path);
    watch(f);
    make_file(f, "it/a");
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    assert_false(f->has_changed);
    make_file(f, "other/a");
    expect_change(f);
}

/* Two files of one folder, each by its own watch. */
TEST_ON(test_two_in_a_folder, struct fixture *f, set_up, tear_down)
{
    char path[128];

    in_folder(f, "other", path, sizeof path);
    mu__path_watch_start(&f->other, path);
    watch(f);
    make_file(f, "it");
    expect_change(f);
    assert_false(f->has_other_changed);
    watch(f);
    make_file(f, "other");
    wait_for(f, &f->has_other_changed);
    assert_false(f->has_changed);
    mu__path_watch_stop(&f->other);
    watch(f);
    make_file(f, "it");
    expect_change(f);
}

/* The other one, which sees the same, is the proof that there was something to notice. */
TEST_ON(test_stopped, struct fixture *f, set_up, tear_down)
{
    make_folder(f, "it");
    mu__path_watch_start(&f->other, f->path);
    watch(f);
    mu__path_watch_stop(&f->watch);
    assert_false(f->watch.is_on);
    make_file(f, "it/a");
    wait_for(f, &f->has_other_changed);
    assert_false(f->has_changed);
    watch(f);
    make_file(f, "it/b");
    expect_change(f);
}

TEST_PROGRAM()
