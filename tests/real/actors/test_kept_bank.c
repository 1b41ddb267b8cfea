#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
/* The bank of examples/bank with kept accounts: their owners and the process that keeps
 * them are killed amid transfers, and no money is made or lost. */
#include "examples/bank/bank_actors.h"
#include "tests/real/fleet.h"

enum { ROUNDS = 6, TRANSFERS = 24, LONG_MS = 2 * KEPT_TIMEOUT_MS };

static const mu_actor_type *const types[] = {&account_type, NULL};

static mu_remote_value *begin_request(struct fleet *f, const mu_address *to,
                                      const char *method, mu_value *args)
{
    mu_remote_value *value = NULL;
    mu_error error = {0};

    check(mu_actor_request(f->node, to, method, args, LONG_MS, &error, &value), &error);
    mu_value_free(args);
    return value;
}

static mu_address open_kept_bank(struct fleet *f)
{
    mu_value *is_kept = mu_value_bool(1);
    mu_address bank;
    mu_error error = {0};

    check(mu_node_spawn(f->node, "bank", is_kept, NULL, LONG_MS, &error, &bank), &error);
    mu_value_free(is_kept);
    return bank;
}

static mu_remote_value *begin_transfer(struct fleet *f, const mu_address *bank,
                                       int number)
{
    mu_value *args = mu_value_list();

    (void)mu_value_append(args, mu_value_int(number % ACCOUNTS));
    (void)mu_value_append(args, mu_value_int((number * 7 + 3) % ACCOUNTS));
    (void)mu_value_append(args, mu_value_int(number * 37 % 400));
    return begin_request(f, bank, "transfer", args);
}

/* It is done, or there was too little money. */
static void end_transfer(mu_remote_value *value)
{
    mu_error error = {0};
    int rv = mu_remote_value_fetch(value, LONG_MS, &error, NULL);

    if (rv != -MU_EPRECONDITION)
        check(rv, &error);
    mu_remote_value_free(value);
}

static int64_t show_account(struct fleet *f, int number)
{
    mu_remote_value *value;
    mu_value *shown = NULL;
    mu_error error = {0};
    mu_address account;
    int64_t balance = 0;
    char name[32];

    (void)snprintf(name, sizeof name, "account-%d", number);
    assert_int_equal(mu_actor_find(f->node, name, &account), 0);
    value = begin_request(f, &account, "show", NULL);
    check(mu_remote_value_fetch(value, LONG_MS, &error, &shown), &error);
    assert_int_equal(mu_value_get_int(shown, &balance), 0);
    assert_true(balance >= 0);
    mu_value_free(shown);
    mu_remote_value_free(value);
    return balance;
}

/* A worker, and each third time the chief, in the middle of them. */
static void transfer_amid_kills(struct fleet *f, const mu_address *bank, int round)
{
    int victim = round % 3 == 2 ? FLEET_WORKERS : round % 2;
    mu_remote_value *values[TRANSFERS];

    for (int i = 0; i < TRANSFERS; i++) {
        values[i] = begin_transfer(f, bank, round * TRANSFERS + i);
        if (i == TRANSFERS / 2)
            (void)kill(f->pids[victim], SIGKILL);
    }
    for (int i = 0; i < TRANSFERS; i++)
        end_transfer(values[i]);
}

TEST(test_no_money_is_made_or_lost)
{
    struct fleet f;
    mu_address bank;
    int64_t sum = 0;

    fleet_begin(&f, types, &bank_type);
    bank = open_kept_bank(&f);
    for (int round = 0; round < ROUNDS; round++)
        transfer_amid_kills(&f, &bank, round);
    for (int i = 0; i < ACCOUNTS; i++)
        sum += show_account(&f, i);
    assert_int_equal(sum, ACCOUNTS * FIRST);
    fleet_end(&f);
}

TEST_PROGRAM()
