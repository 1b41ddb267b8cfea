/* Programs that resolvers have run: what they get, what they print, and their end. */
#include "runtime/uv/blocking.h"
#include "tests/real/asking.h"
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

enum { SOON_MS = 20000 };

/* Nobody waits for a program that still runs: it is killed. */
static void end(struct asking *a)
{
    asking_end(a);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD); /* no child is left, not even a dead one */
}

/* The words of a shell script, "a-c" and the script. */
static struct mu__request shell(const char *script)
{
    static char words[2048];
    int size =
        snprintf(words, sizeof words, "a-c%ca%s%cvOURS=one two%c", 0, script, 0, 0);

    return (struct mu__request){.kind = MU__REQUEST_PROGRAM,
                                .name = "sh",
                                .body = words,
                                .body_size = (size_t)size,
                                .timeout_ms = SOON_MS};
}

static void expect(const char *script, const char *output)
{
    struct mu__request request = shell(script);
    const struct mu__answer *answer;
    struct asking a;

    asking_begin(&a);
    answer = asking_get(&a, &request);
    if (answer->code != 0)
        fail_msg("%s", answer->error.message);
    assert_string_equal(answer->data, output);
    assert_int_equal(answer->size, strlen(output));
    end(&a);
}

static void expect_error(const struct mu__request *request, int code, const char *words)
{
    const struct mu__answer *answer;
    struct asking a;

    asking_begin(&a);
    answer = asking_get(&a, request);
    assert_int_equal(answer->code, code);
    if (strstr(answer->error.message, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, answer->error.message);
    assert_null(strstr(answer->error.message, "secret"));
    end(&a);
}

TEST(test_what_it_gets)
{
    struct mu__request request;

    (void)setenv("THEIRS", "three", 1);
    (void)setenv("OURS", "of the process", 1);
    expect("printf '%s|%s|' \"$OURS\" \"$THEIRS\"; cat; echo end", "one two|three|end\n");
    expect("exit 0", "");
    /* Signals that this process blocks or ignores are as usual there. */
    (void)signal(SIGPIPE, SIG_IGN);
    request = shell("kill -PIPE $$; echo alive");
    expect_error(&request, -MU_EPRECONDITION, "it has ended with signal 13");
}

/* A socket of the host that it lets any child have, say. */
TEST(test_files_of_the_host)
{
    int fd = dup2(STDERR_FILENO, 200);

    assert_int_equal(fd, 200);
    expect("[ -e /proc/$$/fd/2 ] && ! [ -e /proc/$$/fd/200 ] && echo gone", "gone\n");
    assert_int_equal(close(fd), 0);
}

TEST(test_failures)
{
    static const struct {
        const char *script;
        const char *words;
    } rows[] = {
        {"echo secret; echo first >&2; printf 'not \\033 signed in\\n\\n' >&2; exit 3",
         "program sh: it has ended with status 3: not ? signed in"},
        {"echo secret; exit 1", "it has ended with status 1"},
        {"kill -KILL $$", "it has ended with signal 9"},
        {"i=0; while [ $i -lt 3000 ]; do echo 123456789 >&2; i=$((i+1)); done; "
         "printf last >&2; exit 1",
         "status 1: last"},
        {"echo '{\"token\":\"secret-0123456789-0123456789-012\"} is old' >&2; exit 1",
         "status 1: ... is old"},
        {"printf 'no a\\tsecret%040d\\t/a/path/that/is/as/long/as/a/token/is' 1 >&2; "
         "exit 1",
         "status 1: no a ... /a/path/that/is/as/long/as/a/token/is"},
        {"printf 'is %0230dsecret and old' 1 >&2; exit 1", "status 1:  and old"},
        {"printf '%0600dsecret' 1 >&2; exit 1", "it has ended with status 1"},
    };
    struct mu__request request;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        request = shell(rows[i].script);
        expect_error(&request, -MU_EPRECONDITION, rows[i].words);
    }
    request = shell("exit 0");
    request.name = "no-such-program";
    expect_error(&request, -MU_ENOTFOUND, "program no-such-program: ");
    request.name = "/dev/null";
    expect_error(&request, -MU_EPERMISSION, "program /dev/null: ");
}

/* What goes on printing is killed, on either side. */
TEST(test_bounds)
{
    struct mu__request request = shell("exec yes secret");

    request.bytes_max = 100000;
    expect_error(&request, -MU_EEXHAUSTED, "it prints more than 100000 bytes");
    request = shell("exec yes secret >&2");
    request.timeout_ms = 300;
    expect_error(&request, -MU_EDEADLINE, "program sh: no answer within 300 ms");
}

static bool lives(pid_t pid)
{
    return kill(pid, 0) == 0;
}

/* A child of it has its output, and goes on: that is not waited for, nor killed. */
TEST(test_child_that_stays)
{
    struct mu__request request = shell("sleep 300 & echo $!");
    struct asking a;
    pid_t child;

    asking_begin(&a);
    child = atoi(asking_get(&a, &request)->data);
    assert_true(child > 1 && lives(child));
    end(&a);
    assert_int_equal(kill(child, SIGKILL), 0);
}

/* It and what it has started, when nobody wants its answer. */
TEST(test_killed_with_its_children)
{
    char path[] = "/tmp/muster-program-XXXXXX";
    char script[160];
    struct mu__request request;
    struct asking a;
    FILE *file;
    int child = 0;

    assert_int_equal(close(mkstemp(path)), 0);
    (void)snprintf(script, sizeof script, "sleep 300 & echo $! > %s; wait", path);
    request = shell(script);
    asking_begin(&a);
    asking_start(&a, &request, 1);
    for (int i = 0; i < 2000 && child == 0; i++) {
        uv_sleep(10);
        file = fopen(path, "r");
        assert_non_null(file);
        if (fscanf(file, "%d", &child) != 1)
            child = 0;
        (void)fclose(file);
    }
    assert_true(child > 0);
    assert_true(lives(child));
    end(&a);
    for (int i = 0; i < 2000 && lives(child); i++)
        uv_sleep(10); /* until whoever has inherited it has seen its end */
    assert_false(lives(child));
    assert_int_equal(unlink(path), 0);
}

/* One that waits for its turn, and is not wanted any more before that, is never started:
 * not when those before it have ended, and not by who comes later. */
TEST(test_taken_back)
{
    char folder[] = "/tmp/muster-program-XXXXXX";
    char path[64];
    char script[160];
    const struct mu__answer *answer;
    char bodies[MU__BLOCKING_THREADS_MAX][160];
    struct mu__request list[MU__BLOCKING_THREADS_MAX];
    struct mu__request request;
    struct asking others;
    struct asking a;

    assert_non_null(mkdtemp(folder));
    asking_begin(&others);
    asking_begin(&a);
    for (int i = 0; i < MU__BLOCKING_THREADS_MAX; i++) {
        int size =
            snprintf(bodies[i], sizeof bodies[i], "a-c%caexec sleep 30%d%c", 0, i, 0);

        list[i] = shell("");
        list[i].body = bodies[i];
        list[i].body_size = (size_t)size;
    }
    asking_start(&others, list, MU__BLOCKING_THREADS_MAX);
    uv_sleep(200);
    (void)snprintf(path, sizeof path, "%s/it-was-started", folder);
    (void)snprintf(script, sizeof script, "echo x > %s", path);
    request = shell(script);
    request.timeout_ms = 200;
    answer = asking_get(&a, &request);
    assert_int_equal(answer->code, -MU_EDEADLINE);
    assert_non_null(strstr(answer->error.message,
                           "it has not begun, since 8 others have not ended"));
    asking_end(&a);
    end(&others);
    expect("echo next", "next\n");
    assert_int_equal(rmdir(folder), 0); /* nothing is in it */
}

/* What is kept is given again, until another one is wanted. */
TEST(test_pinned)
{
    char path[] = "/tmp/muster-program-XXXXXX";
    struct mu__requests *requests;
    struct mu__sources_uv *other;
    struct mu__request request;
    struct asking a;
    char script[160];

    assert_int_equal(close(mkstemp(path)), 0);
    (void)snprintf(script, sizeof script, "echo x >> %s; wc -l < %s", path, path);
    request = shell(script);
    request.cache_ms = 600000;
    asking_begin(&a);
    for (unsigned i = 0; i < 3; i++) {
        const char *const numbers[] = {"1\n", "1\n", "2\n"};

        request.again = i == 2;
        assert_string_equal(asking_get(&a, &request)->data, numbers[i]);
        mu__requests_free(a.requests);
        assert_int_equal(
            mu__requests_new(mu__sources_uv_base(a.sources), NULL, &a.requests), 0);
    }
    request.again = 0;
    assert_string_equal(asking_get(&a, &request)->data, "2\n");

    /* Those that use its cache need not run it either. */
    assert_int_equal(mu__sources_uv_new(a.sources, &other), 0);
    assert_int_equal(mu__requests_new(mu__sources_uv_base(other), NULL, &requests), 0);
    assert_string_equal(mu__requests_get(requests, &request)->data, "2\n");
    mu__requests_free(requests);
    mu__sources_uv_free(other);
    end(&a);
    assert_int_equal(unlink(path), 0);
}

/* The host takes the ends of all its children before we do. */
TEST(test_host_that_reaps)
{
    (void)signal(SIGCHLD, SIG_IGN);
    expect("echo token", "token\n");
    (void)signal(SIGCHLD, SIG_DFL);
}

TEST_PROGRAM()
