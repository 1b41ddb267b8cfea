/* The bank of examples/bank/ on a chief, and tellers on workers that have it move money,
 * while workers die, stand still and lose it: what a teller is told has happened has,
 * what it is told has not has not, and no money is made or lost. */
#include "examples/bank/bank_actors.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"
#include "tests/support/users/actor_sim.h"

#include <inttypes.h>

enum { SEEDS = 200, WORKERS = 3, BUSY_MS = 20000, CALM_MS = 20000 };

enum reached { DONE, REFUSED, NOT_RUN, PERHAPS, REACHED };

static const char *const reached_words[REACHED] = {
    "transfers done", "refused by an account", "not begun", "perhaps done"};

/* Of the run. */
static struct {
    struct actor_sim *sim;
    mu_address bank;
    uint64_t *reached;
    bool over;
} town;

/* ---- A teller ---- */

static void order_transfer(mu_actor *self)
{
    mu_value *args = mu_value_list();

    (void)mu_value_append(args,
                          mu_value_int((int64_t)(mu_actor_random(self) % ACCOUNTS)));
    (void)mu_value_append(args,
                          mu_value_int((int64_t)(mu_actor_random(self) % ACCOUNTS)));
    (void)mu_value_append(args, mu_value_int((int64_t)(mu_actor_random(self) % 400)));
    (void)mu_actor_call(self, &town.bank, "transfer", args, 3000, 1);
    mu_value_free(args);
}

static int open_desk(mu_actor *self, void *state, const mu_value *args)
{
    (void)state;
    (void)args;
    return mu_actor_timer(self, 1 + mu_actor_random(self) % 50, 0);
}

static void hear_bank(mu_actor *self, void *state, const mu_notice *notice)
{
    (void)state;
    if (notice->kind == MU_NOTICE_TIMER && !town.over) {
        order_transfer(self);
        (void)mu_actor_timer(self, 1 + mu_actor_random(self) % 50, 0);
    }
    if (notice->kind != MU_NOTICE_ANSWER)
        return;
    if (notice->error == NULL)
        town.reached[DONE]++;
    else if (notice->error->ran == MU_RAN_YES)
        town.reached[REFUSED]++;
    else
        town.reached[notice->error->ran == MU_RAN_NO ? NOT_RUN : PERHAPS]++;
}

static const mu_actor_type teller_type = {
    .name = "teller",
    .start = open_desk,
    .notice = hear_bank,
};

static const mu_actor_type *const types[] = {&account_type, &bank_type, &teller_type,
                                             NULL};

/* ---- Runs ---- */

static void begin(struct actor_sim *sim, const char *type, unsigned index, void *user)
{
    mu_address teller;

    (void)user;
    if (strcmp(type, "worker") == 0)
        assert_true(actor_sim_spawn(sim, type, index, "teller", NULL, &teller));
    else
        assert_true(actor_sim_spawn(sim, type, index, "bank", NULL, &town.bank));
}

static mu_value *ask_for(const mu_address *who, const char *method)
{
    mu_error error = {0};
    mu_value *answer = actor_sim_call(town.sim, who, method, NULL, 5000, &error);

    if (answer == NULL)
        fail_msg("%s: %s", method, error.message);
    return answer;
}

static int64_t count_money(void)
{
    mu_value *accounts = ask_for(&town.bank, "accounts");
    int64_t sum = 0;

    for (size_t i = 0; i < mu_value_count(accounts); i++) {
        mu_address account;
        mu_value *shown;
        int64_t balance = 0;

        assert_int_equal(mu_value_get_actor(mu_value_at(accounts, i), &account), 0);
        shown = ask_for(&account, "show");
        assert_int_equal(mu_value_get_int(shown, &balance), 0);
        sum += balance;
        mu_value_free(shown);
    }
    mu_value_free(accounts);
    return sum;
}

static void run_one(uint64_t seed, bool show, void *sum,
                    struct seeds_verdict *ret_verdict)
{
    uint64_t again[REACHED] = {0};
    int64_t money;

    memset(&town, 0, sizeof town);
    town.reached = sum == NULL ? again : sum;
    town.sim = actor_sim_new(seed, WORKERS, types, begin, NULL);
    actor_sim_run(town.sim, 1000);
    actor_sim_break(town.sim, BUSY_MS);
    actor_sim_run(town.sim, BUSY_MS);
    town.over = true;
    actor_sim_run(town.sim, CALM_MS);
    money = count_money();
    ret_verdict->digest = actor_sim_digest(town.sim);
    ret_verdict->broken[0] = '\0';
    if (money != ACCOUNTS * FIRST)
        (void)snprintf(ret_verdict->broken, sizeof ret_verdict->broken,
                       "the accounts have %" PRId64 ", and had %d", money,
                       ACCOUNTS * FIRST);
    if (show)
        (void)fputs(actor_sim_trace(town.sim), stdout);
    actor_sim_free(town.sim);
}

static const struct seeds seeds = {
    .replay = "build/dev/tests/test_bank_seeds",
    .count = SEEDS,
    .repeat_every = 40,
    .seconds_max = 30,
    .run = run_one,
};

TEST(test_no_money_is_made_or_lost)
{
    uint64_t reached[REACHED] = {0};

    seeds_expect_well(&seeds, reached);
    for (int i = 0; i < REACHED; i++) {
        print_message("%12" PRIu64 " %s\n", reached[i], reached_words[i]);
        if (seeds_count() >= SEEDS)
            assert_true(reached[i] > 0);
    }
}

SEEDS_PROGRAM(seeds)
