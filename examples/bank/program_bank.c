/* Accounts and a bank as actors, in one process: transfers that are done or not done, and
 * never half; the money is counted at the end.
 *
 *     bank [TRANSFERS] */
#include <muster.h>
#include <stdio.h>
#include <stdlib.h>

enum { ACCOUNTS = 16, FIRST = 1000, TIMEOUT_MS = 5000 };

/* ---- an account ---- */

struct account {
    int64_t balance;
};

static int open_account(mu_actor *self, void *state, const mu_value *args)
{
    struct account *account = state;

    if (mu_value_get_int(args, &account->balance) != 0)
        return mu_actor_fail(self, -MU_EINVALID, "an account opens with a whole number");
    return 0;
}

/* Decide first, change last: what fails has changed nothing. */
static int withdraw(mu_actor *self, void *state, const mu_value *args)
{
    struct account *account = state;
    int64_t amount = 0;

    if (mu_value_get_int(args, &amount) != 0 || amount < 0)
        return mu_actor_fail(self, -MU_EINVALID, "an amount is a whole number");
    if (amount > account->balance)
        return mu_actor_fail(self, -MU_EPRECONDITION, "there is only %lld",
                             (long long)account->balance);
    account->balance -= amount;
    return 0;
}

static int deposit(mu_actor *self, void *state, const mu_value *args)
{
    struct account *account = state;
    int64_t amount = 0;

    if (mu_value_get_int(args, &amount) != 0 || amount < 0)
        return mu_actor_fail(self, -MU_EINVALID, "an amount is a whole number");
    account->balance += amount;
    return 0;
}

static int show(mu_actor *self, void *state, const mu_value *args)
{
    const struct account *account = state;

    (void)args;
    mu_actor_reply(self, mu_value_int(account->balance));
    return 0;
}

static const mu_actor_method account_methods[] = {
    {"withdraw", withdraw}, {"deposit", deposit}, {"show", show}, {NULL, NULL}};

static const mu_actor_type account_type = {
    .name = "account",
    .state_size = sizeof(struct account),
    .methods = account_methods,
    .start = open_account,
};

/* ---- the bank ---- */

enum step { WITHDRAWS = 1, DEPOSITS = 2 };

struct transfer {
    mu_reply *reply; /* NULL: not in use */
    mu_address to;
    int64_t amount;
    enum step step;
};

struct bank {
    mu_address accounts[ACCOUNTS];
    struct transfer transfers[64];
};

static int open_bank(mu_actor *self, void *state, const mu_value *args)
{
    struct bank *bank = state;
    mu_value *first = mu_value_int(FIRST);
    int rv = 0;

    (void)args;
    for (int i = 0; rv == 0 && i < ACCOUNTS; i++)
        rv = mu_actor_spawn(self, "account", first, NULL, &bank->accounts[i]);
    mu_value_free(first);
    return rv;
}

/* [from, to, amount]: answered when the money has arrived, or when it has not left. */
static int transfer(mu_actor *self, void *state, const mu_value *args)
{
    struct bank *bank = state;
    int64_t from = 0, to = 0, amount = 0;
    uint64_t slot = 0;
    mu_value *value;
    int rv;

    if (mu_value_get_int(mu_value_at(args, 0), &from) != 0 ||
        mu_value_get_int(mu_value_at(args, 1), &to) != 0 ||
        mu_value_get_int(mu_value_at(args, 2), &amount) != 0 || from < 0 || to < 0 ||
        from >= ACCOUNTS || to >= ACCOUNTS)
        return mu_actor_fail(self, -MU_EINVALID, "transfer expects [from, to, amount]");
    while (slot < 64 && bank->transfers[slot].reply != NULL)
        slot++;
    if (slot == 64)
        return mu_actor_fail(self, -MU_EEXHAUSTED, "too many transfers at a time");
    value = mu_value_int(amount);
    rv = mu_actor_call(self, &bank->accounts[from], "withdraw", value, TIMEOUT_MS, slot);
    mu_value_free(value);
    if (rv != 0)
        return rv;
    bank->transfers[slot] = (struct transfer){mu_actor_reply_later(self),
                                              bank->accounts[to], amount, WITHDRAWS};
    return bank->transfers[slot].reply == NULL ? -MU_ENOMEM : 0;
}

/* An account has answered: the next step, or the end. */
static void on_answer(mu_actor *self, void *state, const mu_notice *notice)
{
    struct bank *bank = state;
    struct transfer *one = &bank->transfers[notice->token];
    mu_value *amount = mu_value_int(one->amount);

    if (notice->error == NULL && one->step == WITHDRAWS &&
        mu_actor_call(self, &one->to, "deposit", amount, TIMEOUT_MS, notice->token) ==
            0) {
        one->step = DEPOSITS;
    } else {
        mu_reply_give(one->reply, NULL, notice->error);
        one->reply = NULL;
    }
    mu_value_free(amount);
}

static int list_accounts(mu_actor *self, void *state, const mu_value *args)
{
    const struct bank *bank = state;
    mu_value *list = mu_value_list();

    (void)args;
    for (int i = 0; i < ACCOUNTS; i++)
        if (mu_value_append(list, mu_value_actor(&bank->accounts[i])) != 0)
            return -MU_ENOMEM;
    mu_actor_reply(self, list);
    return 0;
}

static const mu_actor_method bank_methods[] = {
    {"transfer", transfer}, {"accounts", list_accounts}, {NULL, NULL}};

static const mu_actor_type bank_type = {
    .name = "bank",
    .state_size = sizeof(struct bank),
    .methods = bank_methods,
    .start = open_bank,
    .notice = on_answer,
};

/* ---- the program ---- */

static int transfer_one(mu_node *node, const mu_address *bank, int number,
                        mu_error *error, int *refused)
{
    mu_value *args = mu_value_list();
    mu_remote_value *done = NULL;
    int rv;

    mu_value_append(args, mu_value_int(number % ACCOUNTS));
    mu_value_append(args, mu_value_int((number * 7 + 3) % ACCOUNTS));
    mu_value_append(args, mu_value_int(number * 37 % 400));
    rv = mu_actor_request(node, bank, "transfer", args, TIMEOUT_MS, error, &done);
    mu_value_free(args);
    if (rv == 0)
        rv = mu_remote_value_fetch(done, -1, error, NULL);
    mu_remote_value_free(done);
    if (rv != -MU_EPRECONDITION)
        return rv;
    ++*refused;
    return 0;
}

static int call_and_wait(mu_node *node, const mu_address *to, const char *method,
                         mu_error *error, mu_value **ret_value)
{
    mu_remote_value *done = NULL;
    int rv = mu_actor_request(node, to, method, NULL, TIMEOUT_MS, error, &done);

    if (rv == 0)
        rv = mu_remote_value_fetch(done, -1, error, ret_value);
    mu_remote_value_free(done);
    return rv;
}

static int count_money(mu_node *node, const mu_address *bank, mu_error *error,
                       int64_t *ret_sum)
{
    mu_value *accounts = NULL;
    int rv = call_and_wait(node, bank, "accounts", error, &accounts);

    for (size_t i = 0; rv == 0 && i < mu_value_count(accounts); i++) {
        mu_value *shown = NULL;
        mu_address account;
        int64_t balance = 0;

        rv = mu_value_get_actor(mu_value_at(accounts, i), &account);
        if (rv == 0)
            rv = call_and_wait(node, &account, "show", error, &shown);
        if (rv == 0)
            rv = mu_value_get_int(shown, &balance);
        *ret_sum += balance;
        mu_value_free(shown);
    }
    mu_value_free(accounts);
    return rv;
}

static int run_bank(mu_node *node, int transfers, mu_error *error)
{
    mu_address bank;
    int64_t sum = 0;
    int refused = 0;
    int rv = mu_node_register_actor(node, &account_type);

    if (rv == 0)
        rv = mu_node_register_actor(node, &bank_type);
    if (rv == 0)
        rv = mu_node_spawn(node, "bank", NULL, NULL, TIMEOUT_MS, error, &bank);
    for (int i = 0; rv == 0 && i < transfers; i++)
        rv = transfer_one(node, &bank, i, error, &refused);
    if (rv == 0)
        rv = count_money(node, &bank, error, &sum);
    if (rv == 0)
        printf("%d transfers, %d refused; the accounts have %lld\n", transfers, refused,
               (long long)sum);
    return rv == 0 && sum != ACCOUNTS * FIRST ? -MU_EDATALOSS : rv;
}

int main(int argc, char **argv)
{
    mu_cluster *cluster = mu_cluster_new();
    mu_node_options options;
    mu_node *node = NULL;
    mu_error error = {0};
    int rv;

    mu_node_options_init(&options);
    options.cluster = cluster;
    options.task_type = "chief";
    options.log_level = MU_LOG_WARN;
    rv = mu_cluster_add(cluster, "chief", 0, "127.0.0.1:0", &error);
    if (rv == 0)
        rv = mu_node_open(&options, &error, &node);
    mu_cluster_free(cluster);
    if (rv == 0)
        rv = run_bank(node, argc > 1 ? atoi(argv[1]) : 200, &error);
    if (rv != 0)
        fprintf(stderr, "bank: %s: %s\n", mu_strerror(rv), error.message);
    mu_node_close(node, 1000, NULL);
    return rv == 0 ? 0 : 1;
}
