/* Leases of a task that has left, or was reset, where its host did not hear of it: the
 * process is the same one when it registers again, and holds nothing of before. */
#include "tests/support/service/keys.h"

/* A host with a lease of w0 in its store, and the next one, where w0 has a link. */
static struct pair begin_next(void)
{
    struct pair p = begin(&mu__store_journal);

    (void)put_sized(p.w0, "l", "mine", 4, OVER | MU__PUT_LEASE, 0);
    (void)put_sized(p.w1, "k", "mine", 4, OVER | MU__PUT_LEASE, 0);
    service_crash(p.s, 0);
    service_start(p.s, 0);
    service_link_up(p.w0, 0);
    service_link_up(p.w1, 0);
    (void)service_text(p.w0);
    return p;
}

static void come_back(struct service_agent *agent)
{
    expect_ok(agent, service_register(agent, false, 0));
    (void)service_text(agent);
}

/* What is there for who did neither. */
TEST(test_registered_again)
{
    struct pair p = begin_next();

    come_back(p.w0);
    come_back(p.w1);
    service_run(p.s, 2000);
    expect_key(p.w1, "l", "mine");
    service_end(p.s);
}

TEST(test_left_at_the_next_host)
{
    struct pair p = begin_next();

    (void)service_leave_now(p.w0);
    come_back(p.w0);
    come_back(p.w1);
    expect_key(p.w1, "l", "");
    expect_key(p.w1, "k", "mine");
    service_end(p.s);
}

TEST(test_reset_at_the_next_host)
{
    struct pair p = begin_next();

    (void)service_reset(p.w0);
    come_back(p.w0);
    come_back(p.w1);
    expect_key(p.w1, "l", "");
    expect_key(p.w1, "k", "mine");
    service_end(p.s);
}

/* Who is registered with another incarnation loses nothing by it. */
TEST(test_left_by_a_former_process)
{
    struct pair p = begin_next();
    struct service_agent *former = service_agent(p.s, "worker", 1);

    come_back(p.w0);
    come_back(p.w1);
    (void)service_leave_now(former);
    (void)service_reset(former);
    expect_key(p.w0, "k", "mine");
    service_end(p.s);
}

TEST_PROGRAM()
