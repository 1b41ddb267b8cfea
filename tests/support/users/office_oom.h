/* Memory that is missing anywhere in the office of a node's actors: the office on a
 * kernel of its own with one actor, and a peer that the test plays. Include it in one
 * file. */
#ifndef MU_TESTS_OFFICE_OOM_H
#define MU_TESTS_OFFICE_OOM_H

#include "actors/user/actions.h"
#include "tests/support/fault.h"
#include "tests/support/test.h"

enum { PEER = 5, PEER_INCARNATION = 77, TIMEOUT_MS = 500, ALLOCATIONS_MAX = 2000 };

struct office_story {
    const mu_actor_type *type;
    struct mu__world *(*clear)(void); /* nothing has happened */
    struct mu__kernel **kernel;
    void (*pass)(uint64_t ms);
    void (*use)(uint32_t actor); /* all of it, once */
    void (*expect_once)(void);
    void (*expect_well)(uint32_t actor); /* with memory again, on the same office */
    long allocations_min;
};

static inline uint32_t office_story_begin(const struct office_story *story)
{
    static const struct mu__actors_config config = {
        .task = "/job:worker/task:0", .type = "worker", .incarnation = 1};
    struct mu__world *world = story->clear();
    mu_actor_options options;
    struct office *office;
    struct mail *start;
    uint32_t actor;

    assert_int_equal(mu__actors_read_options(NULL, NULL, &options), 0);
    assert_int_equal(mu__kernel_new(world, &mu__messages, story->kernel), 0);
    assert_int_equal(mu__spawn(*story->kernel, &mu__actors, MU__ACTORS, &config, NULL),
                     0);
    office = mu__actor_state(*story->kernel, (mu__pid){MU__NODE_SELF, MU__ACTORS});
    assert_int_equal(mu__types_add(office, story->type, NULL), 0);
    assert_int_equal(mu__spawn_user(office, mu__view_str(story->type->name), NULL, NULL,
                                    &options, NULL, &start),
                     0);
    actor = start->actor;
    mu__turn_do(office, start);
    mu__kernel_node_up(*story->kernel, PEER, "worker", 1, PEER_INCARNATION, "tcp://w:1");
    story->pass(1);
    return actor;
}

/* Each allocation fails once, in a story of its own. */
static inline void office_story_run(const struct office_story *story)
{
    bool failed = true;
    long n = 0;

    for (; failed; n++) {
        const uint32_t actor = office_story_begin(story);

        fault_arm(n);
        story->use(actor);
        story->pass(2 * TIMEOUT_MS);
        failed = fault_disarm();
        story->expect_once();
        story->expect_well(actor);
        story->expect_once();
        mu__kernel_free(*story->kernel);
        assert_true(n < ALLOCATIONS_MAX);
    }
    assert_true(n > story->allocations_min);
}

#endif
