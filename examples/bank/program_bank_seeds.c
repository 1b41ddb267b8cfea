/* The bank on a chief, and tellers on workers that have it move money, while workers die,
 * stand still and lose it: what a teller is told has happened has, what it is told has
 * not has not, and no money is made or lost. In half of the stories the accounts are kept
 * actors on the workers. In the simulator, by seeds:
 *
 *     bank_seeds [FIRST [COUNT]] */
#include "bank_actors.h"

#include <muster/sim.h>

#include <stdio.h>
#include <string.h>

enum { SEEDS = 100, BREAK_MS = 1000, CALM_MS = 21000, END_MS = 41000 };

enum outcome { DONE, REFUSED, NOT_RUN, PERHAPS, OUTCOMES };

/* Of the story that is told now; and of all. */
static struct {
    mu_address bank;
    int is_kept;
    int is_over;
} town;
static long outcomes[OUTCOMES];

/* ---- A teller ---- */

static void order_transfer(mu_actor *self)
{
    mu_value *args = mu_value_list();

    mu_value_append(args, mu_value_int((int64_t)(mu_actor_random(self) % ACCOUNTS)));
    mu_value_append(args, mu_value_int((int64_t)(mu_actor_random(self) % ACCOUNTS)));
    mu_value_append(args, mu_value_int((int64_t)(mu_actor_random(self) % 400)));
    mu_actor_call(self, &town.bank, "transfer", args, 3000, 1);
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
    if (notice->kind == MU_NOTICE_TIMER && !town.is_over) {
        order_transfer(self);
        mu_actor_timer(self, 1 + mu_actor_random(self) % 50, 0);
    }
    if (notice->kind != MU_NOTICE_ANSWER)
        return;
    if (notice->error == NULL)
        outcomes[DONE]++;
    else if (notice->error->ran == MU_RAN_YES)
        outcomes[REFUSED]++;
    else
        outcomes[notice->error->ran == MU_RAN_NO ? NOT_RUN : PERHAPS]++;
}

static const mu_actor_type teller_type = {
    .name = "teller",
    .start = open_desk,
    .notice = hear_bank,
};

static const mu_actor_type *const bank_types[] = {&account_type, &bank_type, NULL};
static const mu_actor_type *const head_types[] = {&bank_type, NULL};
static const mu_actor_type *const teller_types[] = {&teller_type, NULL};
static const mu_actor_type *const branch_types[] = {&teller_type, &account_type, NULL};

/* ---- The story ---- */

static void open_bank_on(mu_sim *sim, const char *task, void *user)
{
    mu_value *is_kept = mu_value_bool(town.is_kept);

    (void)user;
    mu_sim_spawn(sim, task, "bank", is_kept, NULL, &town.bank);
    mu_value_free(is_kept);
}

static void open_teller_on(mu_sim *sim, const char *task, void *user)
{
    mu_address teller;

    (void)user;
    mu_sim_spawn(sim, task, "teller", NULL, NULL, &teller);
}

static mu_value *ask_for(mu_sim *sim, const mu_address *who, const char *method)
{
    mu_error error = {0};
    mu_value *answer = NULL;

    if (mu_sim_request(sim, "chief:0", who, method, NULL, 5000, &error, &answer) != 0)
        mu_sim_fail(sim, "%s: %s", method, error.message);
    return answer;
}

static int64_t count_money(mu_sim *sim)
{
    mu_value *accounts = ask_for(sim, &town.bank, "accounts");
    int64_t sum = 0;

    for (size_t i = 0; i < mu_value_count(accounts); i++) {
        mu_address account;
        mu_value *shown = NULL;
        int64_t balance = 0;

        if (mu_value_get_actor(mu_value_at(accounts, i), &account) == 0)
            shown = ask_for(sim, &account, "show");
        mu_value_get_int(shown, &balance);
        sum += balance;
        mu_value_free(shown);
    }
    mu_value_free(accounts);
    return sum;
}

static int tell_story(mu_sim *sim, void *user)
{
    int64_t money;

    (void)user;
    memset(&town, 0, sizeof town);
    town.is_kept = (int)mu_sim_random(sim, 0, 1);
    mu_sim_add(sim, "chief:0", town.is_kept ? head_types : bank_types, open_bank_on,
               NULL);
    mu_sim_add(sim, "worker:0-2", town.is_kept ? branch_types : teller_types,
               open_teller_on, NULL);
    if (town.is_kept)
        mu_sim_service(sim, "chief:0");
    mu_sim_run_until(sim, BREAK_MS);
    mu_sim_spare(sim, "chief:0", MU_SIM_CRASH | MU_SIM_CRASH_MIDWAY);
    mu_sim_chaos(sim, 0, 0, 0, CALM_MS);
    mu_sim_run_until(sim, CALM_MS);
    town.is_over = 1;
    mu_sim_run_until(sim, END_MS);
    money = count_money(sim);
    if (money != ACCOUNTS * FIRST)
        mu_sim_fail(sim, "the accounts have %lld, and had %d", (long long)money,
                    ACCOUNTS * FIRST);
    return 0;
}

int main(int argc, char **argv)
{
    int rv = mu_sim_main(tell_story, NULL, SEEDS, argc, argv);

    printf("%ld transfers done, %ld refused, %ld not begun, %ld perhaps done\n",
           outcomes[DONE], outcomes[REFUSED], outcomes[NOT_RUN], outcomes[PERHAPS]);
    return rv;
}
