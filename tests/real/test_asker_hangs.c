/* Look-ups of names that hang: nobody else waits for them, and nothing does that closes.
 * This program's getaddrinfo takes the place of the system's. */
#include "resolver/asker_uv.h"
#include "runtime/errands_uv.h"

#include <muster/error.h>

#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SHORT_MS = 300, SOON_MS = 20000, HANGING = MU__LANE_THREADS_MAX };

/* ---- The system ---- */

static struct {
    pthread_mutex_t lock;       /* guards all */
    pthread_cond_t changed;
    bool answers;
    unsigned entered;
    unsigned left;
} dns = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

MU_EXPORT int getaddrinfo(const char *restrict node, const char *restrict service,
                          const struct addrinfo *restrict hints,
                          struct addrinfo **restrict res)
{
    (void)node;
    (void)service;
    (void)hints;
    (void)res;
    (void)pthread_mutex_lock(&dns.lock);
    dns.entered++;
    (void)pthread_cond_broadcast(&dns.changed);
    while (!dns.answers)
        (void)pthread_cond_wait(&dns.changed, &dns.lock);
    dns.left++;
    (void)pthread_cond_broadcast(&dns.changed);
    (void)pthread_mutex_unlock(&dns.lock);
    return EAI_AGAIN;
}

static unsigned count_of(const unsigned *counter)
{
    unsigned count;

    (void)pthread_mutex_lock(&dns.lock);
    count = *counter;
    (void)pthread_mutex_unlock(&dns.lock);
    return count;
}

static void wait_for(const unsigned *counter, unsigned count)
{
    (void)pthread_mutex_lock(&dns.lock);
    while (*counter < count)
        (void)pthread_cond_wait(&dns.changed, &dns.lock);
    (void)pthread_mutex_unlock(&dns.lock);
}

static void answer(bool answers)
{
    (void)pthread_mutex_lock(&dns.lock);
    dns.answers = answers;
    (void)pthread_cond_broadcast(&dns.changed);
    (void)pthread_mutex_unlock(&dns.lock);
}

/* ---- Asking ---- */

struct desk {
    uv_loop_t loop;
    struct mu__asker_uv *asker;
    struct mu__notes *notes;
    bool is_closed;
};

static void on_closed(void *arg)
{
    ((struct desk *)arg)->is_closed = true;
}

static void desk_open(struct desk *desk)
{
    *desk = (struct desk){.is_closed = false};
    assert_int_equal(uv_loop_init(&desk->loop), 0);
    assert_int_equal(mu__asker_uv_open(&desk->loop, &desk->asker), 0);
    assert_int_equal(
        mu__notes_new(mu__asker_uv_asker(desk->asker), NULL, NULL, &desk->notes), 0);
}

/* Nothing is left in the loop, whatever hangs. */
static void desk_close(struct desk *desk)
{
    mu__notes_free(desk->notes);
    mu__asker_uv_close(desk->asker, on_closed, desk);
    assert_int_equal(uv_run(&desk->loop, UV_RUN_DEFAULT), 0);
    assert_true(desk->is_closed);
    assert_int_equal(uv_loop_close(&desk->loop), 0);
}

static struct mu__question name_question(unsigned number, uint32_t limit_ms, char *name)
{
    (void)snprintf(name, 32, "host-%u.test", number);
    return (struct mu__question){
        .kind = MU__ASK_ADDRESSES, .name = name, .limit_ms = limit_ms};
}

static const struct mu__answer *ask(struct desk *desk,
                                    const struct mu__question *question)
{
    const struct mu__answer *answer;

    while ((answer = mu__ask(desk->notes, question)) == NULL)
        (void)uv_run(&desk->loop, UV_RUN_ONCE);
    return answer;
}

/* All that may hang does, and more is waiting behind it. */
static void hang(struct desk *desk)
{
    char name[32];

    for (unsigned i = 0; i < HANGING + 4; i++) {
        const struct mu__question question = name_question(i, SOON_MS, name);

        assert_null(mu__ask(desk->notes, &question));
    }
    wait_for(&dns.entered, HANGING);
}

static void end_hanging(void)
{
    answer(true);
    wait_for(&dns.left, count_of(&dns.entered));
    answer(false);
    dns.entered = dns.left = 0;
}

/* ---- Tests ---- */

static void test_others_are_answered(void **state)
{
    static const char *const kinds[] = {"/dev/null", "10.1.2.3"};
    struct desk desk;
    char name[32];
    struct mu__question late = name_question(1000, SHORT_MS, name);
    const struct mu__answer *answer;

    (void)state;
    desk_open(&desk);
    hang(&desk);
    answer = ask(&desk, &(struct mu__question){.kind = MU__ASK_FILE, .name = kinds[0]});
    assert_int_equal(answer->code, 0);
    answer =
        ask(&desk, &(struct mu__question){.kind = MU__ASK_ADDRESSES, .name = kinds[1]});
    assert_string_equal(answer->data, "10.1.2.3\n");
    answer = ask(&desk, &(struct mu__question){.kind = MU__ASK_ADDRESSES,
                                               .name = "a.test",
                                               .dns_server = "127.0.0.1:1"});
    assert_int_equal(answer->code, -MU_EUNAVAILABLE);   /* nobody is there */
    answer = ask(&desk, &late);
    assert_int_equal(answer->code, -MU_EDEADLINE);
    assert_string_equal(answer->error.message,
                        "addresses of host-1000.test: no answer within 300 ms");
    assert_int_equal(count_of(&dns.entered), HANGING);
    desk_close(&desk);
    assert_int_equal(count_of(&dns.left), 0);
    end_hanging();
}

/* Those that nobody wants go on; those that wait behind them never begin. */
static void test_closing_waits_for_none(void **state)
{
    struct desk desks[2];

    (void)state;
    desk_open(&desks[0]);
    hang(&desks[0]);
    desk_open(&desks[1]);
    hang(&desks[1]);
    desk_close(&desks[0]);
    desk_close(&desks[1]);
    assert_int_equal(count_of(&dns.left), 0);
    end_hanging();
    assert_int_equal(count_of(&dns.entered), 0);
}

/* When they have returned, names can be looked up again. */
static void test_it_goes_on(void **state)
{
    struct desk desk;
    char name[32];
    struct mu__question question = name_question(0, SOON_MS, name);

    (void)state;
    desk_open(&desk);
    assert_null(mu__ask(desk.notes, &question));
    wait_for(&dns.entered, 1);
    answer(true);
    assert_int_equal(ask(&desk, &question)->code, -MU_EUNAVAILABLE);
    desk_close(&desk);
    end_hanging();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_are_answered),
        cmocka_unit_test(test_closing_waits_for_none),
        cmocka_unit_test(test_it_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
