/* Accounts and a bank as actors, in one process: transfers that are done or not done, and
 * never half; the money is counted at the end. With a journal the accounts are kept
 * actors: the next run finds what this one has left.
 *
 *     bank [TRANSFERS [JOURNAL]] */
#include "bank_actors.h"

#include <stdio.h>
#include <stdlib.h>

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

/* The one bank of the cluster: it is made, or it is there. */
static int open_bank(mu_node *node, int kept, mu_error *error, mu_address *ret_bank)
{
    mu_value *is_kept = mu_value_bool(kept);
    mu_actor_options options;
    int rv;

    mu_actor_options_init(&options);
    options.name = "bank";
    rv = mu_node_spawn(node, "bank", is_kept, &options, TIMEOUT_MS, error, ret_bank);
    mu_value_free(is_kept);
    return rv;
}

static int run_bank(mu_node *node, int transfers, int kept, mu_error *error)
{
    mu_address bank;
    int64_t sum = 0;
    int refused = 0;
    int rv = mu_node_register_actor(node, &account_type);

    if (rv == 0)
        rv = mu_node_register_actor(node, &bank_type);
    if (rv == 0)
        rv = open_bank(node, kept, error, &bank);
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
    char store[512];
    mu_node_options options;
    mu_node *node = NULL;
    mu_error error = {0};
    int rv;

    mu_node_options_init(&options);
    options.cluster = cluster;
    options.task_type = "chief";
    options.log_level = MU_LOG_WARN;
    if (argc > 2) {
        snprintf(store, sizeof store, "journal:%s", argv[2]);
        options.store = store;
    }
    rv = mu_cluster_add(cluster, "chief", 0, "127.0.0.1:0", &error);
    if (rv == 0)
        rv = mu_node_open(&options, &error, &node);
    mu_cluster_free(cluster);
    if (rv == 0)
        rv = run_bank(node, argc > 1 ? atoi(argv[1]) : 200, argc > 2, &error);
    if (rv != 0)
        fprintf(stderr, "bank: %s: %s\n", mu_strerror(rv), error.message);
    mu_node_close(node, 1000, NULL);
    return rv == 0 ? 0 : 1;
}
