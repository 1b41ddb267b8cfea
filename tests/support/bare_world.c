#include "tests/support/bare_world.h"
#include "tests/support/test.h"

uint64_t bare_now_ms(struct mu__world *world)
{
    return ((struct bare_world *)world)->now_ms;
}

uint64_t bare_random(struct mu__world *world)
{
    (void)world;
    return 4711;
}

void bare_wake_at(struct mu__world *world, uint64_t due_ms)
{
    (void)world;
    (void)due_ms;
}

void bare_submit(struct mu__world *world, struct mu__work *work)
{
    (void)world;
    (void)work;
    fail_msg("nothing here needs the executor");
}

bool bare_withdraw(struct mu__world *world, struct mu__work *work)
{
    bare_submit(world, work);
    return false;
}

void bare_log(struct mu__world *world, enum mu__log_level level, const char *who,
              const char *line)
{
    (void)world;
    (void)level;
    (void)who;
    (void)line;
}
