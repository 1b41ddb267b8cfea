/* Spinning before a sleep: when a thread does, what it costs in vain, and which cores a
 * process may use. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "tests/support/test.h"

#include "runtime/uv/spin.h"

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SPIN_US = 200, WAIT_NS = 2000000000, LOOKS = 3, ROUNDS_MS = 300 };

static void note_short_waits(struct mu__spin *spin)
{
    for (int i = 0; i < 8; i++)
        mu__spin_slept(spin, uv_hrtime());
}

static void note_long_waits(struct mu__spin *spin)
{
    for (int i = 0; i < 8; i++)
        mu__spin_slept(spin, uv_hrtime() - WAIT_NS);
}

struct looks {
    unsigned count;
    unsigned ready_at; /* 0: never */
};

static bool look(void *arg)
{
    struct looks *looks = arg;

    return ++looks->count == looks->ready_at;
}

/* Tries until it spins: another thread may want the core just then. */
static bool spins_at_last(struct mu__spin *spin, struct looks *looks)
{
    uint64_t end_ns = uv_hrtime() + 10 * (uint64_t)WAIT_NS;
    uint64_t begun_ns;

    while (uv_hrtime() < end_ns) {
        looks->count = 0;
        if (mu__spin_wait(spin, look, looks, &begun_ns))
            return true;
        uv_sleep(1);
    }
    return false;
}

LISTED_TEST(test_spins_after_short_waits)
{
    struct looks looks = {0, LOOKS};
    struct mu__spin spin;
    uint64_t begun_ns;

    mu__spin_init(&spin, SPIN_US);
    uv_sleep(50);
    assert_false(mu__spin_wait(&spin, look, &looks, &begun_ns));
    assert_int_equal(looks.count, 0);

    note_short_waits(&spin);
    assert_true(spins_at_last(&spin, &looks));
    assert_int_equal(looks.count, LOOKS);

    note_long_waits(&spin);
    looks.count = 0;
    assert_false(mu__spin_wait(&spin, look, &looks, &begun_ns));
    assert_int_equal(looks.count, 0);
}

LISTED_TEST(test_one_of_those_that_share_it)
{
    struct looks looks = {0, LOOKS};
    struct mu__spin spin;
    uint64_t begun_ns;

    mu__spin_init(&spin, SPIN_US);
    note_short_waits(&spin);
    assert_true(spins_at_last(&spin, &looks));
    atomic_store(&spin.taken, true);
    looks.count = 0;
    assert_false(mu__spin_wait(&spin, look, &looks, &begun_ns));
    assert_int_equal(looks.count, 0);
}

LISTED_TEST(test_never)
{
    struct looks looks = {0, 1};
    struct mu__spin spin;
    uint64_t begun_ns;

    mu__spin_init(&spin, 0);
    note_short_waits(&spin);
    assert_false(mu__spin_wait(&spin, look, &looks, &begun_ns));
    assert_int_equal(looks.count, 0);
}

/* However short the waits are said to be, and however free the cores: what never comes
 * is spun for during at most a twentieth of the time. The last spin, which another thread
 * may have interrupted, is not counted. */
LISTED_TEST(test_in_vain_costs_little)
{
    struct looks looks = {0, 0};
    struct mu__spin spin;
    uint64_t begin_ns = uv_hrtime();
    uint64_t in_spins_ns = 0;
    uint64_t last_ns = 0;
    uint64_t end_ns = begin_ns;

    mu__spin_init(&spin, SPIN_US);
    while (end_ns - begin_ns < ROUNDS_MS * (uint64_t)1000000) {
        unsigned looked = looks.count;
        uint64_t begun_ns;

        note_short_waits(&spin);
        atomic_store(&spin.blocked_until_ns, 0);
        assert_false(mu__spin_wait(&spin, look, &looks, &begun_ns));
        end_ns = uv_hrtime();
        if (looks.count == looked)
            continue;
        in_spins_ns += last_ns;
        last_ns = end_ns - begun_ns;
    }
    assert_true(looks.count > 0);
    assert_true(in_spins_ns < (end_ns - begin_ns) / 20);
}

struct posting {
    uv_sem_t sem;
    uv_sem_t back;
    unsigned rounds;
};

static void post_back(void *arg)
{
    struct posting *posting = arg;

    for (unsigned i = 0; i < posting->rounds; i++) {
        uv_sem_wait(&posting->sem);
        uv_sem_post(&posting->back);
    }
}

LISTED_TEST(test_semaphore)
{
    struct posting posting = {.rounds = 2000};
    struct mu__spin spin;
    uv_thread_t thread;

    mu__spin_init(&spin, SPIN_US);
    assert_int_equal(uv_sem_init(&posting.sem, 0), 0);
    assert_int_equal(uv_sem_init(&posting.back, 0), 0);
    assert_int_equal(uv_thread_create(&thread, post_back, &posting), 0);
    for (unsigned i = 0; i < posting.rounds; i++) {
        uv_sem_post(&posting.sem);
        mu__spin_sem_wait(&spin, &posting.back, 0);
    }
    assert_int_equal(uv_thread_join(&thread), 0);
    assert_int_equal(uv_sem_trywait(&posting.back), UV_EAGAIN);
    uv_sem_destroy(&posting.sem);
    uv_sem_destroy(&posting.back);
}

/* Who has spun already does not spin again, and its wait is noted as any other. */
LISTED_TEST(test_semaphore_after_a_spin)
{
    struct mu__spin spin;
    uint64_t filled_ns;
    uv_sem_t sem;

    mu__spin_init(&spin, SPIN_US);
    filled_ns = atomic_load(&spin.filled_ns);
    note_short_waits(&spin);
    atomic_store(&spin.history, 0xfe);
    assert_int_equal(uv_sem_init(&sem, 1), 0);
    mu__spin_sem_wait(&spin, &sem, uv_hrtime());
    assert_int_equal(atomic_load(&spin.filled_ns), filled_ns);
    assert_int_equal(atomic_load(&spin.history) & 1, 1);
    uv_sem_destroy(&sem);
}

/* ---- Cores ---- */

#ifdef __linux__
LISTED_TEST(test_off_with_one_core)
{
    struct mu__spin spin;
    cpu_set_t all;
    cpu_set_t one;
    size_t first = 0;

    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(mu__spin_cores(), 1);
    mu__spin_init(&spin, MU__SPIN_AUTO);
    assert_int_equal(spin.length_ns, 0);
    mu__spin_init(&spin, SPIN_US);
    assert_int_equal(spin.length_ns, SPIN_US * 1000);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}
#endif

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

LISTED_TEST(test_quota)
{
    static const struct {
        const char *groups;
        const char *outer;
        const char *inner;
        unsigned cores;
    } rows[] = {
        {"0::/a/b\n", "max 100000\n", "max 100000\n", 0},
        {"0::/a/b\n", "max 100000\n", "150000 100000\n", 1},
        {"0::/a/b\n", "200000 100000\n", "max 100000\n", 2},
        {"0::/a/b\n", "200000 100000\n", "400000 100000\n", 2},
        {"0::/a/b\n", "max 100000\n", "50000 100000\n", 1},
        {"0::/a/b\n", "what is\n", "-1 0\n", 0},
        {"0::/a\n", "300000 100000\n", "100000 100000\n", 3},
        {"0::/\n", "300000 100000\n", "100000 100000\n", 0},
        {"7:cpu:/a/b\n", "300000 100000\n", "100000 100000\n", 0},
    };
    char folder[] = "/tmp/muster-test-spin-XXXXXX";
    char path[512];

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/a", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/a/b", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/groups", folder);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_file(folder, "groups", rows[i].groups);
        write_file(folder, "a/cpu.max", rows[i].outer);
        write_file(folder, "a/b/cpu.max", rows[i].inner);
        assert_int_equal(mu__spin_quota(path, folder), rows[i].cores);
    }
    assert_int_equal(mu__spin_quota("/nowhere", folder), 0);
    (void)snprintf(path, sizeof path, "rm -r '%s'", folder);
    assert_int_equal(system(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spins_after_short_waits),
        cmocka_unit_test(test_one_of_those_that_share_it),
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_in_vain_costs_little),
        cmocka_unit_test(test_semaphore),
        cmocka_unit_test(test_semaphore_after_a_spin),
#ifdef __linux__
        cmocka_unit_test(test_off_with_one_core),
#endif
        cmocka_unit_test(test_quota),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
