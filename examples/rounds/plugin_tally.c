#include "plugin_tally.h"

enum { RESTARTS = 64, WITHIN_MS = 1000 };

/* ---- The type ---- */

struct tally {
    int64_t sum;
};

/* What there is changes by records alone: they are what is kept. */
static int add(mu_actor *self, void *state, const mu_value *args)
{
    int64_t number = 0;
    int rv = mu_value_get_int(args, &number);

    if (rv == 0)
        rv = mu_actor_record(self, args);
    if (rv != 0)
        return mu_actor_fail(self, rv, "add expects a whole number");
    mu_actor_reply(self, mu_value_int(((struct tally *)state)->sum));
    return 0;
}

static int get(mu_actor *self, void *state, const mu_value *args)
{
    (void)args;
    mu_actor_reply(self, mu_value_int(((struct tally *)state)->sum));
    return 0;
}

static int replay(void *state, const mu_value *record)
{
    int64_t number = 0;
    int rv = mu_value_get_int(record, &number);

    ((struct tally *)state)->sum += number;
    return rv;
}

static int save(void *state, mu_value **ret_saved)
{
    *ret_saved = mu_value_int(((struct tally *)state)->sum);
    return *ret_saved == NULL ? -MU_ENOMEM : 0;
}

static int load(mu_actor *self, void *state, const mu_value *saved, unsigned version)
{
    (void)self;
    (void)version;
    return mu_value_get_int(saved, &((struct tally *)state)->sum);
}

static const mu_actor_method methods[] = {{"add", add}, {"get", get}, {NULL, NULL}};

const mu_actor_type tally_type = {
    .name = "tally",
    .state_size = sizeof(struct tally),
    .methods = methods,
    .save = save,
    .load = load,
    .replay = replay,
    .version = 1,
};

/* ---- Calls ---- */

int tally_open(mu_node *node, const char *name, int64_t timeout_ms, mu_error *error)
{
    mu_actor_options options;
    mu_address address;

    mu_actor_options_init(&options);
    options.name = name;
    options.flags = MU_ACTOR_KEPT;
    options.restarts = RESTARTS;
    options.restarts_within_ms = WITHIN_MS;
    return mu_node_spawn(node, "tally", NULL, &options, timeout_ms, error, &address);
}

int tally_begin(mu_node *node, const char *name, const char *method, int64_t timeout_ms,
                mu_error *error, mu_remote_value **ret_call)
{
    mu_value *one = mu_value_int(1);
    mu_address address;
    int rv = mu_actor_find(node, name, &address);

    if (rv == 0)
        rv = mu_actor_request(node, &address, method, one, timeout_ms, error, ret_call);
    mu_value_free(one);
    return rv;
}

int tally_end(mu_remote_value *call, mu_error *error, int64_t *ret_number)
{
    mu_value *answer = NULL;
    int rv = mu_remote_value_fetch(call, -1, error, &answer);

    if (rv == 0)
        rv = mu_value_get_int(answer, ret_number);
    mu_value_free(answer);
    mu_remote_value_free(call);
    return rv;
}
