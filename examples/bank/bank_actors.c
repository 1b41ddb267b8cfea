#include "bank_actors.h"

#include <stdio.h>

/* ---- an account ---- */

struct account {
    int64_t balance;
};

/* A change, now and when a kept account goes on elsewhere. */
static int replay(void *state, const mu_value *record)
{
    int64_t amount = 0;
    int rv = mu_value_get_int(record, &amount);

    ((struct account *)state)->balance += amount;
    return rv;
}

/* A kept account changes by records alone; another one has no need of them. */
static int change(mu_actor *self, struct account *account, int64_t amount)
{
    mu_value *record = mu_value_int(amount);
    int rv = mu_actor_record(self, record);

    if (rv == -MU_EPRECONDITION)
        rv = replay(account, record);
    mu_value_free(record);
    return rv;
}

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
    return change(self, account, -amount);
}

static int deposit(mu_actor *self, void *state, const mu_value *args)
{
    struct account *account = state;
    int64_t amount = 0;

    if (mu_value_get_int(args, &amount) != 0 || amount < 0)
        return mu_actor_fail(self, -MU_EINVALID, "an amount is a whole number");
    return change(self, account, amount);
}

static int show(mu_actor *self, void *state, const mu_value *args)
{
    const struct account *account = state;

    (void)args;
    mu_actor_reply(self, mu_value_int(account->balance));
    return 0;
}

static int save(void *state, mu_value **ret_saved)
{
    *ret_saved = mu_value_int(((struct account *)state)->balance);
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

static int load(mu_actor *self, void *state, const mu_value *saved, unsigned version)
{
    (void)self;
    (void)version;
    return mu_value_get_int(saved, &((struct account *)state)->balance);
}

static const mu_actor_method account_methods[] = {
    {"withdraw", withdraw}, {"deposit", deposit}, {"show", show}, {NULL, NULL}};

const mu_actor_type account_type = {
    .name = "account",
    .state_size = sizeof(struct account),
    .methods = account_methods,
    .start = open_account,
    .save = save,
    .load = load,
    .replay = replay,
    .version = 1,
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
    int64_t timeout_ms; /* of a call to an account */
    mu_address accounts[ACCOUNTS];
    struct transfer transfers[64];
};

static int open_bank(mu_actor *self, void *state, const mu_value *args)
{
    struct bank *bank = state;
    mu_value *first = mu_value_int(FIRST);
    mu_actor_options options;
    char name[32];
    int kept = 0;
    int rv = 0;

    (void)mu_value_get_bool(args, &kept);
    bank->timeout_ms = kept ? KEPT_TIMEOUT_MS : TIMEOUT_MS;
    for (int i = 0; rv == 0 && i < ACCOUNTS; i++) {
        mu_actor_options_init(&options);
        if (kept) {
            snprintf(name, sizeof name, "account-%d", i);
            options.name = name;
            options.flags = MU_ACTOR_KEPT;
            options.restarts = 60;
            options.restarts_within_ms = 1000;
        }
        rv = mu_actor_spawn(self, "account", first, &options, &bank->accounts[i]);
    }
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
    rv = mu_actor_call(self, &bank->accounts[from], "withdraw", value, bank->timeout_ms,
                       slot);
    mu_value_free(value);
    if (rv != 0)
        return rv;
    bank->transfers[slot] = (struct transfer){mu_actor_reply_later(self),
                                              bank->accounts[to], amount, WITHDRAWS};
    return bank->transfers[slot].reply == NULL ? -MU_ENOMEM : 0;
}

/* The money has left one account: it goes to the other one, however often that is tried.
 */
static void deposit_money(mu_actor *self, struct bank *bank, uint64_t token)
{
    struct transfer *one = &bank->transfers[token];
    mu_value *amount = mu_value_int(one->amount);

    if (mu_actor_call(self, &one->to, "deposit", amount, bank->timeout_ms, token) != 0)
        mu_actor_timer(self, 10, token);
    mu_value_free(amount);
}

static void end_transfer(struct transfer *one, const mu_error *error)
{
    mu_reply_give(one->reply, NULL, error);
    one->reply = NULL;
}

/* An account has answered: the next step, or the end. A deposit that did not run is
 * made again. */
static void on_notice(mu_actor *self, void *state, const mu_notice *notice)
{
    struct bank *bank = state;
    struct transfer *one = &bank->transfers[notice->token];

    if (notice->kind == MU_NOTICE_TIMER) {
        deposit_money(self, bank, notice->token);
    } else if (notice->kind == MU_NOTICE_ANSWER && one->step == WITHDRAWS) {
        one->step = DEPOSITS;
        if (notice->error == NULL)
            deposit_money(self, bank, notice->token);
        else
            end_transfer(one, notice->error);
    } else if (notice->kind == MU_NOTICE_ANSWER) {
        if (notice->error != NULL && notice->error->ran == MU_RAN_NO)
            mu_actor_timer(self, 10, notice->token);
        else
            end_transfer(one, notice->error);
    }
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

const mu_actor_type bank_type = {
    .name = "bank",
    .state_size = sizeof(struct bank),
    .methods = bank_methods,
    .start = open_bank,
    .notice = on_notice,
};
