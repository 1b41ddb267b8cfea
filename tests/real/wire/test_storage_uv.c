/* The contract of storages over a real file, and what only files and processes have:
 * locks, links, permissions, full disks, kills. */
#include "actors/coordination/store/journal.h"
#include "actors/messages.h"
#include "runtime/uv/file_storage.h"
#include "tests/support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/contract/storage.h"

/* A folder of its own with one file in it. */
struct place {
    char folder[64];
    char path[128];
    bool sync;
    struct mu__storage *storage;
};

/* ---- The fixture ---- */

static struct mu__storage *open_or_fail(const char *path, bool sync)
{
    struct mu__storage *storage = NULL;
    mu_error error;

    if (mu__storage_uv_open(path, sync, &error, &storage) != 0)
        fail_msg("%s", error.message);
    return storage;
}

static struct place *place_new(bool sync)
{
    struct place *place = calloc(1, sizeof *place);

    assert_non_null(place);
    place->sync = sync;
    (void)snprintf(place->folder, sizeof place->folder, "/tmp/muster-storage-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->path, sizeof place->path, "%s/journal", place->folder);
    place->storage = open_or_fail(place->path, sync);
    return place;
}

static void *place_open(void)
{
    return place_new(false);
}

static void *place_open_sync(void)
{
    return place_new(true);
}

/* The folder has nothing in it but the file, so nothing was left behind. */
static void place_close(void *arg)
{
    struct place *place = arg;

    mu__storage_uv_close(place->storage);
    assert_int_equal(unlink(place->path), 0);
    assert_int_equal(rmdir(place->folder), 0);
    free(place);
}

static struct mu__storage *place_storage(void *arg)
{
    return ((struct place *)arg)->storage;
}

/* A close writes nothing, so it leaves what a kill would. */
static void place_restart(void *arg)
{
    struct place *place = arg;

    mu__storage_uv_close(place->storage);
    place->storage = open_or_fail(place->path, place->sync);
}

/* No file may grow beyond this: writes answer EFBIG. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void place_set_full(void *arg, bool full)
{
    (void)arg;
    limit_files(full ? 0 : RLIM_INFINITY);
}

static const struct contract_storage fixture = {
    .open = place_open,
    .close = place_close,
    .storage = place_storage,
    .restart = place_restart,
    .set_full = place_set_full,
};

static const struct contract_storage sync_fixture = {
    .open = place_open_sync,
    .close = place_close,
    .storage = place_storage,
    .restart = place_restart,
    .set_full = place_set_full,
};

/* ---- Helpers ---- */

static int set_up(void **state)
{
    *state = place_new(false);
    return 0;
}

static int tear_down(void **state)
{
    place_close(*state);
    return 0;
}

static void append(struct mu__storage *storage, const char *text)
{
    assert_int_equal(storage->ops->append(storage, text, strlen(text), NULL), 0);
}

static void flush(struct mu__storage *storage)
{
    assert_int_equal(storage->ops->flush(storage, NULL), 0);
}

static void replace(struct mu__storage *storage, const char *text)
{
    assert_int_equal(storage->ops->replace(storage, text, strlen(text), NULL), 0);
}

static void expect_content(struct mu__storage *storage, const char *text)
{
    struct mu__buf *content = NULL;

    assert_int_equal(storage->ops->load(storage, 0, UINT32_MAX, NULL, &content), 0);
    assert_non_null(content);
    assert_int_equal(content->size, strlen(text));
    assert_memory_equal(content->data, text, content->size);
    mu__buf_unref(content);
}

/* Opening fails with this code, and words with the path and these. */
static void expect_refused(const char *path, int code, const char *words)
{
    struct mu__storage *storage = NULL;
    mu_error error = {0};
    int rv = mu__storage_uv_open(path, false, &error, &storage);

    assert_null(storage);
    assert_int_equal(error.code, rv);
    if (rv != code || strstr(error.message, words) == NULL ||
        strstr(error.message, path) == NULL)
        fail_msg("%s: %d, expected %d and \"%s\": %s", path, rv, code, words,
                 error.message);
}

static const char *beside(struct place *place, const char *name)
{
    static char path[160];

    (void)snprintf(path, sizeof path, "%s/%s", place->folder, name);
    return path;
}

static off_t file_size(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return status.st_size;
}

/* ---- What cannot be opened ---- */

LISTED_TEST(test_bad_paths)
{
    struct place *place = *state;
    const char *fifo = beside(place, "fifo");

    expect_refused("/tmp/no-such-folder-of-muster/journal", -MU_ENOTFOUND,
                   "its folder must exist");
    expect_refused(place->folder, -MU_EINVALID, "EISDIR");
    expect_refused("/dev/null", -MU_EINVALID, "expected a plain file");
    expect_refused("", -MU_ENOTFOUND, "ENOENT");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect_refused(fifo, -MU_EINVALID, "expected a plain file");
    assert_int_equal(unlink(fifo), 0);
    expect_refused(beside(place, "journal/journal"), -MU_EINVALID, "its folder must");
}

/* In a child, which stops being root, whom nothing is forbidden. */
LISTED_TEST(test_no_permission)
{
    struct place *place = *state;
    struct mu__storage *storage = NULL;
    mu_error error = {0};
    int status;
    pid_t child;

    assert_int_equal(chmod(place->folder, 0500), 0);
    child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(2);
        _exit(mu__storage_uv_open(beside(place, "other"), false, &error, &storage) ==
                          -MU_EPERMISSION &&
                      strstr(error.message, "EACCES") != NULL
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(place->folder, 0700), 0);
    assert_int_equal(status, 0);
}

/* ---- One owner ---- */

LISTED_TEST(test_second_open_is_refused)
{
    struct place *place = *state;

    expect_refused(place->path, -MU_EEXISTS, "in use by another process");
    replace(place->storage, "new");
    expect_refused(place->path, -MU_EEXISTS, "in use by another process");
    append(place->storage, " and on");
    flush(place->storage);
    place_restart(place);
    expect_content(place->storage, "new and on");
}

static void work_replace(struct mu__storage *storage)
{
    (void)storage->ops->replace(storage, "replaced", 8, NULL);
}

/* Another process has the file, and replaces it again and again until it is killed, or
 * this one is gone. */
static pid_t start_owner(struct place *place)
{
    pid_t parent = getpid();
    int ends[2];
    char byte;
    pid_t child;

    mu__storage_uv_close(place->storage);
    place->storage = NULL;
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        struct mu__storage *storage;

        if (mu__storage_uv_open(place->path, place->sync, NULL, &storage) != 0)
            _exit(1);
        work_replace(storage);
        if (write(ends[1], "", 1) != 1)
            _exit(1);
        while (getppid() == parent)
            work_replace(storage);
        _exit(0);
    }
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    (void)close(ends[0]);
    return child;
}

static void kill_owner(pid_t child)
{
    int status;

    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

/* The owner replaces the file all the time, and it is never free in between; once it is
 * dead the file is. */
LISTED_TEST(test_lock_survives_replace_not_its_process)
{
    struct place *place = *state;
    pid_t child = start_owner(place);

    for (int i = 0; i < 20000; i++)
        expect_refused(place->path, -MU_EEXISTS, "in use by another process");
    kill_owner(child);
    place->storage = open_or_fail(place->path, false);
    expect_content(place->storage, "replaced");
    (void)unlink(beside(place, "journal.new"));
}

static void work_flush_and_stop(struct mu__storage *storage)
{
    char line[32];

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(line, sizeof line, "line %d\n", i);
        (void)storage->ops->append(storage, line, strlen(line), NULL);
        if (i % 10 == 0)
            (void)storage->ops->flush(storage, NULL);
    }
    (void)storage->ops->flush(storage, NULL);
    (void)storage->ops->append(storage, "not flushed", 11, NULL);
    (void)raise(SIGKILL);
}

/* No clean end of any kind: what was flushed is there. */
LISTED_TEST(test_flushed_survives_a_kill)
{
    struct place *place = *state;
    struct mu__buf *content = NULL;
    char *expected = calloc(1000, 16);
    size_t size = 0;
    int status;
    pid_t child;

    assert_non_null(expected);
    for (int i = 0; i < 1000; i++)
        size += (size_t)snprintf(expected + size, 16, "line %d\n", i);
    child = fork();
    if (child == 0) {
        work_flush_and_stop(place->storage);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    place_restart(place);
    assert_int_equal(
        place->storage->ops->load(place->storage, 0, UINT32_MAX, NULL, &content), 0);
    assert_non_null(content);
    assert_true(content->size >= size && content->size <= size + 11);
    assert_memory_equal(content->data, expected, size);
    mu__buf_unref(content);
    free(expected);
}

/* ---- Journals ---- */

/* What the journal must begin with, and how much of it was seen. */
static int visit_next(void *owner, struct mu__msg *msg)
{
    uint64_t *count = owner;
    struct mu__journal_removed *body = (void *)msg->body;

    return msg->kind == MU__JOURNAL_REMOVED && body->number == (*count)++ ? 0
                                                                          : -MU_EDATALOSS;
}

/* Opens the journal and goes on with it for ever; each number is told once flushed. */
static void write_journal(const char *path, int told)
{
    struct mu__storage *storage;
    struct mu__journal *journal;
    struct mu__pool pool;
    struct mu__msg *msg =
        mu__msg_heap(MU__JOURNAL_REMOVED, sizeof(struct mu__journal_removed));
    struct mu__journal_removed *body = (void *)msg->body;

    mu__pool_init(&pool);
    if (mu__storage_uv_open(path, false, NULL, &storage) != 0 ||
        mu__journal_open(storage, &mu__messages, &pool, visit_next, &body->number, NULL,
                         NULL, &journal) != 0)
        _exit(1);
    for (;; body->number++)
        if (mu__journal_append(journal, msg, NULL) != 0 ||
            mu__journal_flush(journal, NULL) != 0 ||
            write(told, &body->number, sizeof body->number) != sizeof body->number)
            _exit(1);
}

/* One life of that process, killed after `count` numbers. Returns the last one told. */
static uint64_t write_journal_and_die(const char *path, int count)
{
    uint64_t number = 0;
    int ends[2];
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        (void)close(ends[0]);
        (void)signal(SIGPIPE, SIG_DFL);
        write_journal(path, ends[1]);
    }
    (void)close(ends[1]);
    for (int i = 0; i < count; i++)
        assert_int_equal(read(ends[0], &number, sizeof number), sizeof number);
    kill_owner(child);
    while (read(ends[0], &number, sizeof number) == sizeof number)
        continue;
    (void)close(ends[0]);
    return number;
}

/* Killed at any moment, it keeps all that was flushed, and the next life goes on. */
LISTED_TEST(test_journal_survives_kills)
{
    struct place *place = *state;
    struct mu__journal *journal;
    struct mu__pool pool;

    mu__pool_init(&pool);
    for (int i = 1; i <= 10; i++) {
        uint64_t count = 0;
        uint64_t last;

        mu__storage_uv_close(place->storage);
        last = write_journal_and_die(place->path, 37 * i);
        place->storage = open_or_fail(place->path, false);
        assert_int_equal(mu__journal_open(place->storage, &mu__messages, &pool,
                                          visit_next, &count, NULL, NULL, &journal),
                         0);
        assert_true(count > last);
        mu__journal_close(journal);
    }
    mu__pool_done(&pool);
}

/* ---- Full disks ---- */

/* The write stops in its middle: nothing of it stays in the file. */
LISTED_TEST(test_half_a_write_is_cut_back)
{
    struct place *place = *state;
    struct mu__storage *storage = place->storage;
    mu_error error;

    append(storage, "0123456789");
    flush(storage);
    append(storage, "abcdefghij");
    limit_files(15);
    assert_int_equal(storage->ops->flush(storage, &error), -MU_EEXHAUSTED);
    limit_files(RLIM_INFINITY);
    assert_non_null(strstr(error.message, "cannot write 10 bytes at byte 10"));
    assert_non_null(strstr(error.message, "EFBIG"));
    assert_non_null(strstr(error.message, "cut back to what was there"));
    assert_int_equal(file_size(place->path), 10);
    expect_content(storage, "0123456789");
    append(storage, "klm");
    flush(storage);
    expect_content(storage, "0123456789abcdefghijklm");
}

LISTED_TEST(test_half_a_replace_leaves_nothing)
{
    struct place *place = *state;
    mu_error error;

    replace(place->storage, "old");
    limit_files(5);
    assert_int_equal(place->storage->ops->replace(place->storage, "longer", 6, &error),
                     -MU_EEXHAUSTED);
    limit_files(RLIM_INFINITY);
    assert_non_null(strstr(error.message, "the old content stays"));
    expect_content(place->storage, "old");
    assert_int_equal(access(beside(place, "journal.new"), F_OK), -1);
}

/* ---- Names ---- */

/* What an earlier process left in the way of a replace, and what cannot be moved away. */
LISTED_TEST(test_something_in_the_way)
{
    struct place *place = *state;
    const char *path = beside(place, "journal.new");
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    mu_error error;

    assert_true(file >= 0);
    assert_int_equal(write(file, "half of it, and longer", 22), 22);
    (void)close(file);
    replace(place->storage, "whole");
    place_restart(place);
    expect_content(place->storage, "whole");

    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(place->storage->ops->replace(place->storage, "x", 1, &error),
                     -MU_EINVALID);
    assert_non_null(strstr(error.message, path));
    assert_int_equal(rmdir(path), 0);
    expect_content(place->storage, "whole");
}

/* The link stays one, and the folder we were in does not matter later. */
LISTED_TEST(test_links_and_folders)
{
    struct place *place = *state;
    const char *link = beside(place, "link");
    struct stat status;
    char before[1024];

    mu__storage_uv_close(place->storage);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(symlink(place->path, link), 0);
    assert_int_equal(chdir(place->folder), 0);
    place->storage = open_or_fail("./link", false);
    assert_int_equal(chdir(before), 0);
    replace(place->storage, "through a link");
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(unlink(link), 0);
    place_restart(place);
    expect_content(place->storage, "through a link");
    assert_string_equal(place->storage->name, place->path);
}

LISTED_TEST(test_permissions_stay)
{
    struct place *place = *state;
    struct stat status;

    assert_int_equal(stat(place->path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(chmod(place->path, 0640), 0);
    replace(place->storage, "new");
    assert_int_equal(stat(place->path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
}

static void expect_lost(int rv, const mu_error *error, const char *words)
{
    assert_int_equal(rv, -MU_EUNAVAILABLE);
    assert_non_null(strstr(error->message, words));
}

/* What is written to a file without a name would be gone with the process: nothing is
 * acknowledged until the file has its name again, and no other file is touched. */
LISTED_TEST(test_file_that_lost_its_name)
{
    struct place *place = *state;
    const struct mu__storage_ops *ops = place->storage->ops;
    char away[160];
    mu_error error;
    int other;

    (void)snprintf(away, sizeof away, "%s.away", place->path);
    assert_int_equal(ops->append(place->storage, "kept", 4, &error), 0);
    assert_int_equal(ops->flush(place->storage, &error), 0);

    assert_int_equal(rename(place->path, away), 0);
    assert_int_equal(ops->append(place->storage, " late", 5, &error), 0);
    expect_lost(ops->flush(place->storage, &error), &error, "was removed");
    expect_lost(ops->replace(place->storage, "x", 1, &error), &error, "was removed");

    other = open(place->path, O_WRONLY | O_CREAT, 0600);
    assert_true(other >= 0);
    assert_int_equal(write(other, "backup", 6), 6);
    (void)close(other);
    expect_lost(ops->flush(place->storage, &error), &error, "was replaced");
    expect_lost(ops->replace(place->storage, "x", 1, &error), &error, "was replaced");

    assert_int_equal(rename(away, place->path), 0);
    assert_int_equal(ops->flush(place->storage, &error), 0);
    place_restart(place);
    expect_content(place->storage, "kept late");
}

#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(test_bad_paths),
        FILE_TEST(test_file_that_lost_its_name),
        FILE_TEST(test_no_permission),
        FILE_TEST(test_second_open_is_refused),
        FILE_TEST(test_lock_survives_replace_not_its_process),
        FILE_TEST(test_flushed_survives_a_kill),
        FILE_TEST(test_journal_survives_kills),
        FILE_TEST(test_half_a_write_is_cut_back),
        FILE_TEST(test_half_a_replace_leaves_nothing),
        FILE_TEST(test_something_in_the_way),
        FILE_TEST(test_links_and_folders),
        FILE_TEST(test_permissions_stay),
    };

    (void)signal(SIGXFSZ, SIG_IGN);
    return contract_storage_run("storage_uv contract", &fixture) +
           contract_storage_run("storage_uv contract, synced", &sync_fixture) +
           cmocka_run_group_tests_name("storage_uv", tests, NULL, NULL);
}
