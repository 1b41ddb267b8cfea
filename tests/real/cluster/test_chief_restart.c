/* A chief that is killed and started again on its journal, over real processes, and what
 * a journal that cannot be used says. */
#include "tests/real/cli.h"
#include "tests/real/nodes.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <sys/stat.h>

enum {
    CLOSURES = 2000, /* of 0 to 2 ms each, on two workers */
    OUTSTANDING = 64,
    KILL_AT = 700, /* runs */
    WORKERS = 2,
    SERVERS = 2,
    TASKS = 1 + WORKERS + SERVERS,
    PATH_BYTES = 256,
    TRACE_BYTES_MAX = 1 << 18
};

struct fixture {
    char folder[64];
    char journal[PATH_BYTES];
    char trace[PATH_BYTES];
    char plugin[PATH_BYTES];
    char closures[32];
    char outstanding[32];
    char json[512];
    struct cli tasks[TASKS]; /* the chief first */
};

static struct fixture fixture;
static char trace_text[TRACE_BYTES_MAX];

/* "<before><folder>/<name>" */
static void write_path(char out[PATH_BYTES], const char *before, const char *folder,
                       const char *name)
{
    int size = snprintf(out, PATH_BYTES, "%s%s/%s", before, folder, name);

    assert_true(size > 0 && size < PATH_BYTES);
}

static int set_up(void **state)
{
    struct fixture *f = &fixture;

    memset(f, 0, sizeof *f);
    cli_folder(f->folder, sizeof f->folder);
    write_path(f->journal, "", f->folder, "journal");
    write_path(f->trace, "trace=", f->folder, "trace");
    write_path(f->plugin, "", cli_variable("MUSTER_EXAMPLES"), "counter.so");
    (void)snprintf(f->closures, sizeof f->closures, "closures=%d", CLOSURES);
    (void)snprintf(f->outstanding, sizeof f->outstanding, "outstanding=%d", OUTSTANDING);
    nodes_write_cluster(f->json, sizeof f->json, WORKERS, SERVERS);
    for (size_t i = 0; i < TASKS; i++)
        f->tasks[i].ended = true;
    *state = f;
    return 0;
}

static void remove_file(const struct fixture *f, const char *name)
{
    char path[PATH_BYTES];

    write_path(path, "", f->folder, name);
    if (unlink(path) != 0)
        (void)rmdir(path);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < TASKS; i++)
        if (!f->tasks[i].ended) {
            cli_kill(&f->tasks[i], SIGKILL);
            (void)cli_wait(&f->tasks[i]);
        }
    remove_file(f, "journal");
    remove_file(f, "journal.new"); /* of a chief that was killed as it was made */
    remove_file(f, "trace");
    remove_file(f, "other");
    remove_file(f, "locked");
    assert_int_equal(rmdir(f->folder), 0);
    return 0;
}

/* ---- Processes ---- */

static void start(struct fixture *f, size_t i, const char *task, const char *journal)
{
    cli_start(&f->tasks[i], NULL, "node", "--cluster", f->json, "--task", task,
              "--plugin", f->plugin, "--set", f->closures, "--set", f->outstanding,
              "--set", "work_ms=2", "--set", f->trace, "--heartbeat-ms", "200",
              journal == NULL ? NULL : "--journal", journal, NULL);
}

static void start_all(struct fixture *f)
{
    start(f, 0, "chief:0", f->journal);
    start(f, 1, "worker:0", NULL);
    start(f, 2, "worker:1", NULL);
    start(f, 3, "ps:0", NULL);
    start(f, 4, "ps:1", NULL);
}

/* How often names were run, and how many names were. */
struct runs {
    unsigned all;
    unsigned names;
    unsigned most; /* runs of one name */
};

static struct runs read_runs(const struct fixture *f)
{
    static unsigned by_name[CLOSURES + 1];
    struct runs runs = {0};
    const char *path = strchr(f->trace, '=') + 1;
    const char *end;

    if (access(path, R_OK) != 0)
        return runs;
    memset(by_name, 0, sizeof by_name);
    cli_read_file(path, trace_text, sizeof trace_text);
    for (const char *line = trace_text; (end = strchr(line, '\n')) != NULL;
         line = end + 1) {
        unsigned long number = strtoul(line + strlen("count-"), NULL, 10);

        assert_true(number >= 1 && number <= CLOSURES);
        runs.all++;
        runs.names += by_name[number]++ == 0;
        if (by_name[number] > runs.most)
            runs.most = by_name[number];
    }
    return runs;
}

static void kill_chief_in_the_middle(struct fixture *f)
{
    uint64_t deadline_ms = cli_now_ms() + CLI_SOON_MS;

    while (read_runs(f).all < KILL_AT) {
        assert_true(cli_now_ms() < deadline_ms);
        for (size_t i = 0; i < TASKS; i++)
            cli_read(&f->tasks[i]);
        cli_pause();
    }
    cli_kill(&f->tasks[0], SIGKILL);
    cli_expect_code(&f->tasks[0], 128 + SIGKILL);
    assert_null(strstr(f->tasks[0].text, "the counter is"));
}

/* Every name is counted once; what had finished before is not run again, and what was
 * under way at most once more. */
TEST_ON(test_restart, struct fixture *f, set_up, tear_down)
{
    struct runs runs;
    unsigned known;
    unsigned left;
    const char *words;

    start_all(f);
    kill_chief_in_the_middle(f);
    start(f, 0, "chief:0", f->journal);
    words = cli_expect(&f->tasks[0], NULL, "the journal: ");
    assert_int_equal(
        sscanf(words, "%u named closures, %u of them to be run", &known, &left), 2);
    assert_true(left <= OUTSTANDING);
    assert_true(known - left >= KILL_AT - OUTSTANDING && known < CLOSURES);

    for (size_t i = 0; i < TASKS; i++)
        cli_expect_code(&f->tasks[i], 0);
    (void)cli_expect(&f->tasks[0], NULL, "the counter is 2000 after 2000 closures");
    runs = read_runs(f);
    assert_int_equal(runs.names, CLOSURES);
    assert_true(runs.all <= CLOSURES + left);
    assert_true(runs.most <= 2);
}

/* ---- Journals that cannot be used ---- */

TEST_ON(test_two_chiefs_on_one_journal, struct fixture *f, set_up, tear_down)
{
    char json[512];
    struct cli *second = &f->tasks[1];

    nodes_write_cluster(json, sizeof json, 1, 0);
    start(f, 0, "chief:0", f->journal);
    (void)cli_expect(&f->tasks[0], NULL, "is up at");
    cli_start(second, NULL, "node", "--cluster", json, "--task", "chief:0", "--plugin",
              f->plugin, "--journal", f->journal, NULL);
    cli_expect_code(second, 3);
    (void)cli_expect(second, NULL, f->journal);
    (void)cli_expect(second, NULL, ": in use by another process");

    cli_kill(&f->tasks[0], SIGKILL);
    cli_expect_code(&f->tasks[0], 128 + SIGKILL);
    start(f, 0, "chief:0", f->journal);
    (void)cli_expect(&f->tasks[0], NULL, "is up at");
}

static const struct row {
    const char *name; /* inside the folder */
    int code;
    const char *words;
} rows[] = {
    {"", 2, "illegal operation on a directory (EISDIR)"},
    {"missing/journal", 2, "no such file or directory (ENOENT); its folder must exist"},
    {"other/journal", 2, "not a directory (ENOTDIR); its folder must exist"},
    {"other", 2, "expected a journal of muster, found something else"},
    {"locked/journal", 3, "permission denied (EACCES)"},
};

static void make_places(const struct fixture *f)
{
    char path[PATH_BYTES];
    FILE *file;

    write_path(path, "", f->folder, "other");
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("What somebody else keeps.\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    write_path(path, "", f->folder, "locked");
    assert_int_equal(mkdir(path, 0500), 0);
}

/* The chief does not start, says which file it is about and why, and leaves it alone. */
TEST_ON(test_unusable_journals, struct fixture *f, set_up, tear_down)
{
    char path[PATH_BYTES];
    char text[64];

    make_places(f);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_path(path, "", f->folder, rows[i].name);
        start(f, 0, "chief:0", path);
        cli_expect_code(&f->tasks[0], rows[i].code);
        (void)cli_expect(&f->tasks[0], NULL, path);
        (void)cli_expect(&f->tasks[0], NULL, rows[i].words);
        assert_null(strstr(f->tasks[0].text, "is up at"));
    }
    write_path(path, "", f->folder, "other");
    cli_read_file(path, text, sizeof text);
    assert_string_equal(text, "What somebody else keeps.\n");
}

int main(void)
{
    /* Processes of root would be refused nothing. Others have nothing to give up. */
    (void)prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE);
    return tests_run(NULL, NULL);
}
