/* Prime numbers as the stream of an actor, read by a thread: it finds at most so many
 * before they are read, and stops when nobody reads on.
 *
 *     primes [COUNT] */
#include <muster.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { TIMEOUT_MS = 10000, AHEAD = 16 };

/* ---- who gives them ---- */

struct primes {
    mu_stream *stream; /* NULL: nobody reads */
    int64_t next;
};

static bool is_prime(int64_t number)
{
    for (int64_t divisor = 2; divisor * divisor <= number; divisor++)
        if (number % divisor == 0)
            return false;
    return true;
}

static int give_primes(struct primes *primes)
{
    int rv = 0;

    while (rv == 0) {
        mu_value *item = mu_value_int(primes->next);

        rv = mu_stream_give(primes->stream, item);
        mu_value_free(item);
        while (rv == 0 && !is_prime(++primes->next))
            continue;
    }
    return rv == -MU_EAGAIN ? 0 : rv; /* a notice says when there is room */
}

static int find(mu_actor *self, void *state, const mu_value *args)
{
    struct primes *primes = state;

    (void)args;
    if (primes->stream != NULL)
        return mu_actor_fail(self, -MU_EEXHAUSTED, "somebody reads them already");
    primes->stream = mu_actor_stream(self, AHEAD, 0);
    primes->next = 2;
    return primes->stream == NULL ? -MU_ENOMEM : give_primes(primes);
}

static void hear(mu_actor *self, void *state, const mu_notice *notice)
{
    struct primes *primes = state;

    (void)self;
    if (notice->kind == MU_NOTICE_STREAM_ROOM)
        (void)give_primes(primes);
    if (notice->kind == MU_NOTICE_STREAM_CLOSED) {
        mu_stream_end(primes->stream, NULL);
        primes->stream = NULL;
    }
}

static const mu_actor_method methods[] = {{"find", find}, {NULL, NULL}};
static const mu_actor_type primes_type = {
    .name = "primes",
    .state_size = sizeof(struct primes),
    .methods = methods,
    .notice = hear,
};

/* ---- who reads them ---- */

static int read_some(mu_node *node, const mu_address *primes, int count, mu_error *error)
{
    mu_stream_reader *reader = NULL;
    int64_t last = 0;
    int rv = mu_actor_open_stream(node, primes, "find", NULL, TIMEOUT_MS, error, &reader);

    for (int i = 0; rv == 0 && i < count; i++) {
        mu_value *item = NULL;

        rv = mu_stream_next(reader, TIMEOUT_MS, error, &item);
        (void)mu_value_get_int(item, &last);
        mu_value_free(item);
    }
    mu_stream_close(reader);
    if (rv == 0)
        printf("prime number %d is %lld\n", count, (long long)last);
    return rv;
}

static int run_primes(mu_node *node, int count, mu_error *error)
{
    mu_address primes;
    int rv = mu_node_register_actor(node, &primes_type);

    if (rv == 0)
        rv = mu_node_spawn(node, "primes", NULL, NULL, TIMEOUT_MS, error, &primes);
    return rv == 0 ? read_some(node, &primes, count, error) : rv;
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
        rv = run_primes(node, argc > 1 ? atoi(argv[1]) : 1000, &error);
    if (rv != 0)
        fprintf(stderr, "primes: %s: %s\n", mu_strerror(rv), error.message);
    mu_node_close(node, 1000, NULL);
    return rv == 0 ? 0 : 1;
}
