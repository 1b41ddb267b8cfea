/* Look-ups of names that hang: nobody else waits for them, and nothing does that
 * closes. */
#define _GNU_SOURCE /* pthread_setattr_default_np */

#include "runtime/uv/blocking.h"
#include "tests/real/asking.h"
#include "tests/real/hanging_dns.h"
#include "tests/support/test.h"

#include <muster/error.h>

#include <netdb.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SHORT_MS = 300,
    SOON_MS = 20000,
    HANGING = MU__BLOCKING_THREADS_MAX,
    ALL = HANGING + 4
};

/* ---- The system ---- */

/* Nobody has room for such a stack. */
static void refuse_threads(bool are_refused)
{
    static pthread_attr_t usual;
    pthread_attr_t huge;

    if (!are_refused) {
        assert_int_equal(pthread_setattr_default_np(&usual), 0);
        return;
    }
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_init(&huge), 0);
    assert_int_equal(pthread_attr_setstacksize(&huge, SIZE_MAX / 4), 0);
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    (void)pthread_attr_destroy(&huge);
}

/* The child of a test has threads of its own. */
MU_EXPORT const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

/* ---- Asking ---- */

static struct mu__request name_question(unsigned number, uint32_t timeout_ms, char *name)
{
    (void)snprintf(name, 32, "host-%u.test", number);
    return (struct mu__request){
        .kind = MU__REQUEST_ADDRESSES, .name = name, .timeout_ms = timeout_ms};
}

/* Who asks for names, and waits. */
struct desk {
    struct asking asking;
    char names[ALL][32];
    struct mu__request list[ALL];
};

static void desk_open(struct desk *desk, unsigned count)
{
    asking_begin(&desk->asking);
    for (unsigned i = 0; i < count; i++)
        desk->list[i] = name_question(i, SOON_MS, desk->names[i]);
    asking_start(&desk->asking, desk->list, count);
}

/* All that may hang does, and more is waiting behind it. */
static void hang(struct desk *desk)
{
    desk_open(desk, ALL);
    dns_wait(&dns.entered, HANGING);
}

/* It does not wait for what hangs. */
static void desk_close(struct desk *desk)
{
    asking_end(&desk->asking);
}

static void end_hanging(void)
{
    dns_answer(true);
    dns_wait(&dns.left, dns_count(&dns.entered));
    dns_answer(false);
    dns.entered = dns.left = 0;
}

/* ---- Tests ---- */

/* The first two are the first: no thread of another test is about to end. */

/* Where no thread can be had at all, that is the answer; and later there may be one. */
TEST(test_no_thread)
{
    const struct mu__request request = {
        .kind = MU__REQUEST_FILE, .name = "/dev/null", .timeout_ms = SOON_MS};
    const struct mu__request again = {
        .kind = MU__REQUEST_FILE, .name = "/dev/null", .timeout_ms = SOON_MS, .again = 1};
    const struct mu__answer *answer;
    struct asking a;

    asking_begin(&a);
    refuse_threads(true);
    answer = asking_get(&a, &request);
    refuse_threads(false);
    assert_int_equal(answer->code, -MU_EUNAVAILABLE);
    assert_string_equal(answer->error.message,
                        "file /dev/null: no thread can be started");
    assert_int_equal(asking_get(&a, &again)->code, 0);
    asking_end(&a);
}

/* Where there is one, it does what others were to do. */
TEST(test_one_thread)
{
    struct asking a;
    struct desk desk;
    char names[2][32];
    struct mu__request late = name_question(1, SHORT_MS, names[0]);
    struct mu__request second = name_question(2, SOON_MS, names[1]);

    desk_open(&desk, 1);
    asking_begin(&a);
    dns_wait(&dns.entered, 1);
    refuse_threads(true);
    assert_string_equal(asking_get(&a, &late)->error.message,
                        "addresses of host-1.test: no answer within 300 ms: it has not "
                        "begun, since 1 others have not ended");
    refuse_threads(false);
    dns_answer(true);
    assert_int_equal(asking_get(&a, &second)->code, -MU_EUNAVAILABLE);
    assert_int_equal(dns_count(&dns.entered), 2);
    asking_end(&a);
    desk_close(&desk);
    end_hanging();
}

/* ---- Threads that have nothing to do ---- */

static pthread_key_t key;
static unsigned keys_freed;

static void free_slowly(void *value)
{
    (void)value;
    (void)usleep(100000);
    keys_freed++;
}

/* A library, as OpenSSL, that keeps something for each thread. */
static void run_with_key(struct mu__blocking_job *job)
{
    (void)job;
    (void)pthread_setspecific(key, &keys_freed);
}

static void ignore(struct mu__blocking_job *job)
{
    (void)job;
}

/* When the last owner of jobs is closed, they have ended, whole. */
TEST(test_idle_threads_have_ended)
{
    struct mu__blocking_job job = {.pool = MU__BLOCKING_FILES,
                                   .run = run_with_key,
                                   .done = ignore,
                                   .dropped = ignore};
    struct mu__blocking_jobs *jobs;

    assert_int_equal(pthread_key_create(&key, free_slowly), 0);
    assert_int_equal(mu__blocking_open(NULL, &jobs), 0);
    assert_int_equal(mu__blocking_start(jobs, &job), 0);
    mu__blocking_wait(jobs, UINT64_MAX);
    mu__blocking_close(jobs, NULL, NULL);
    assert_int_equal(keys_freed, 1);
    assert_int_equal(pthread_key_delete(key), 0);
}

TEST(test_others_are_answered)
{
    const struct mu__request file = {.kind = MU__REQUEST_FILE, .name = "/dev/null"};
    const struct mu__request number = {.kind = MU__REQUEST_ADDRESSES, .name = "10.1.2.3"};
    const struct mu__request of_server = {
        .kind = MU__REQUEST_ADDRESSES, .name = "a.test", .dns_server = "127.0.0.1:1"};
    struct asking a;
    struct desk desk;
    char name[32];
    struct mu__request late = name_question(1000, SHORT_MS, name);

    hang(&desk);
    asking_begin(&a);
    assert_int_equal(asking_get(&a, &file)->code, 0);
    assert_string_equal(asking_get(&a, &number)->data, "10.1.2.3\n");
    assert_int_equal(asking_get(&a, &of_server)->code, -MU_EUNAVAILABLE);
    assert_int_equal(asking_get(&a, &late)->code, -MU_EDEADLINE);
    assert_string_equal(asking_get(&a, &late)->error.message,
                        "addresses of host-1000.test: no answer within 300 ms: it has "
                        "not begun, since 8 others have not ended");
    assert_int_equal(dns_count(&dns.entered), HANGING);
    asking_end(&a);
    desk_close(&desk);
    assert_int_equal(dns_count(&dns.left), 0);
    end_hanging();
}

/* Those that nobody wants go on; those that wait behind them never begin. */
TEST(test_closing_waits_for_none)
{
    struct desk desks[2];

    hang(&desks[0]);
    hang(&desks[1]);
    desk_close(&desks[0]);
    desk_close(&desks[1]);
    assert_int_equal(dns_count(&dns.left), 0);
    end_hanging();
    assert_int_equal(dns_count(&dns.entered), 0);
}

/* The threads of who forks stay behind, and what they do: the child has all to itself. */
TEST(test_child)
{
    struct desk desk;
    char name[32];
    struct mu__request request = name_question(2000, SOON_MS, name);
    int status = -1;
    pid_t child;

    hang(&desk);
    (void)pthread_mutex_lock(&dns.lock);
    child = fork();
    (void)pthread_mutex_unlock(&dns.lock);
    if (child == 0) {
        struct asking own;

        (void)alarm(SOON_MS / 1000);
        dns.changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
        dns.answers = true;
        asking_begin(&own);
        _exit(asking_get(&own, &request)->code == -MU_EUNAVAILABLE ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    desk_close(&desk);
    end_hanging();
}

/* ---- A program that ends ---- */

static char *self;

/* Nobody waits for what hangs. */
static int end_while_it_hangs(void)
{
    struct desk desk;

    hang(&desk);
    desk_close(&desk);
    return dns_count(&dns.left) == 0 ? 0 : 1;
}

TEST(test_program_ends)
{
    char *arguments[] = {self, (char[]){"end"}, NULL};
    int status = -1;
    pid_t child;

    assert_int_equal(posix_spawn(&child, self, NULL, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* When they have returned, names can be looked up again. */
TEST(test_it_goes_on)
{
    struct desk desk;

    desk_open(&desk, 1);
    dns_wait(&dns.entered, 1);
    dns_answer(true);
    assert_int_equal(pthread_join(desk.asking.thread, NULL), 0);
    desk.asking.is_started = false;
    assert_int_equal(asking_get(&desk.asking, &desk.list[0])->code, -MU_EUNAVAILABLE);
    desk_close(&desk);
    end_hanging();
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1)
        return end_while_it_hangs();
    return tests_run(NULL, NULL);
}
