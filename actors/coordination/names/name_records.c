/* The names in the store: a record for each, among the service's own keys, below the
 * directory of the job's run. */
#include "actors/coordination/job_runs.h"
#include "actors/coordination/keys/key_map.h"
#include "actors/coordination/keys/keys.h"
#include "actors/coordination/names/coord_names.h"
#include "actors/coordination/names/record_bytes.h"
#include "actors/packing.h"

#include "muster/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

static void make_name_key(const struct coordination *c, const char *name,
                          char out[MU__RUN_KEY_MAX])
{
    char what[MU__ACTOR_NAME_MAX + 8];

    (void)snprintf(what, sizeof what, "actor/%s", name);
    (void)mu__coord_run_key(c, what, out);
}

/* ---- writing ---- */

static int set_record_number(mu_value *map, const char *key, uint64_t number)
{
    return mu_value_set(map, key, mu_value_int((int64_t)number));
}

static int add_definition(mu_value *map, const struct name_definition *definition)
{
    int rv = mu_value_set(map, "type", mu_value_string(definition->type));

    if (rv == 0)
        rv = mu_value_set(map, "task_type", mu_value_string(definition->task_type));
    if (rv == 0)
        rv = set_record_number(map, "flags", definition->flags);
    if (rv == 0)
        rv = set_record_number(map, "mailbox", definition->mailbox_max);
    if (rv == 0)
        rv = set_record_number(map, "mailbox_bytes", definition->mailbox_bytes_max);
    if (rv == 0)
        rv = set_record_number(map, "policy", definition->limits.policy);
    if (rv == 0)
        rv = set_record_number(map, "restarts", definition->limits.restarts);
    if (rv == 0)
        rv = set_record_number(map, "within_ms", definition->limits.within_ms);
    if (rv == 0)
        rv = set_record_number(map, "maker", definition->maker);
    if (rv == 0)
        rv = set_record_number(map, "token", definition->maker_token);
    return rv;
}

static int add_record_args(mu_value *map, const struct name_definition *definition)
{
    mu_value *args = NULL;
    char why[128];
    int rv;

    if (definition->backing == NULL)
        return 0;
    rv = mu__value_unpack(&definition->args, why, sizeof why, &args);
    return rv == 0 ? mu_value_set(map, "args", args) : rv;
}

static int add_record_owner(mu_value *map, const struct coord_name *name)
{
    const struct name_host *owner = name->owner;
    int rv = set_record_number(map, "state", name->state);

    if (rv == 0)
        rv = set_record_number(map, "started", name->restarts);
    if (rv == 0)
        rv = set_record_number(map, "code", (uint64_t)-name->code);
    if (rv == 0)
        rv = mu_value_set(map, "why", mu_value_string(name->why));
    if (rv != 0 || owner == NULL)
        return rv;
    rv = mu_value_set(map, "owner_type", mu_value_string(owner->type));
    if (rv == 0)
        rv = set_record_number(map, "owner_index", owner->index);
    if (rv == 0)
        rv = set_record_number(map, "owner", owner->incarnation);
    return rv;
}

static mu_value *make_name_record(const struct coord_name *name, uint64_t epoch)
{
    mu_value *map = mu_value_map();
    int rv = map == NULL ? -MU_ENOMEM : add_definition(map, &name->definition);

    if (rv == 0)
        rv = set_record_number(map, "epoch", epoch);
    if (rv == 0)
        rv = set_record_number(map, "made", name->made);
    if (rv == 0)
        rv = set_record_number(map, "born", name->is_born);
    if (rv == 0)
        rv = add_record_args(map, &name->definition);
    if (rv == 0)
        rv = add_record_owner(map, name);
    if (rv == 0)
        return map;
    mu_value_free(map);
    return NULL;
}

static int put_name_record(struct mu__ctx *ctx, struct coordination *c,
                           const struct coord_name *name, uint64_t epoch,
                           mu_error *ret_error)
{
    mu_value *map = make_name_record(name, epoch);
    char key[MU__RUN_KEY_MAX];
    uint8_t *bytes = NULL;
    size_t size = 0;
    int rv = map == NULL ? -MU_ENOMEM
                         : mu__name_record_pack(&c->names->crc, map,
                                                mu__view_str(name->text), &bytes, &size);

    mu_value_free(map);
    make_name_key(c, name->text, key);
    if (rv == 0 && size > MU__KEY_VALUE_MAX)
        rv = -MU_EEXHAUSTED;
    if (rv == 0)
        rv = mu__coord_keys_put_own(ctx, c, key, bytes, size);
    free(bytes);
    if (rv != 0)
        return mu_error_set(ret_error, rv, "the record of the actor \"%s\": %s",
                            name->text, mu_strerror(rv));
    return 0;
}

int mu__coord_name_write(struct mu__ctx *ctx, struct coordination *c,
                         const struct coord_name *name, mu_error *ret_error,
                         uint64_t *ret_revision)
{
    uint64_t revision = mu__coord_next_revision(c);
    int rv = put_name_record(ctx, c, name, revision, ret_error);

    if (rv == 0)
        *ret_revision = revision;
    return rv;
}

int mu__coord_name_write_born(struct mu__ctx *ctx, struct coordination *c,
                              struct coord_name *name, mu_error *ret_error)
{
    name->is_born = true;
    return put_name_record(ctx, c, name, name->epoch, ret_error);
}

void mu__coord_name_delete(struct mu__ctx *ctx, struct coordination *c,
                           const struct coord_name *name)
{
    char key[MU__RUN_KEY_MAX];

    make_name_key(c, name->text, key);
    (void)mu__coord_keys_delete_own(ctx, c, key);
}

bool mu__coord_name_has_record(struct coordination *c, const char *name)
{
    struct mu__key_value entry;
    char key[MU__RUN_KEY_MAX];

    make_name_key(c, name, key);
    return mu__coord_keys_get_own(c, key, &entry);
}

/* ---- reading ---- */

static uint64_t read_record_number(const mu_value *map, const char *key, int *rv)
{
    int64_t number = 0;

    if (mu_value_get_int(mu_value_find(map, key), &number) != 0)
        *rv = -MU_EDATALOSS;
    return (uint64_t)number;
}

static void read_record_text(const mu_value *map, const char *key, char *out, size_t size,
                             int *rv)
{
    const char *text;
    size_t length;

    if (mu_value_get_string(mu_value_find(map, key), &text, &length) != 0 ||
        length >= size) {
        *rv = -MU_EDATALOSS;
        return;
    }
    memcpy(out, text, length + 1);
}

static int read_definition(const mu_value *map, struct name_definition *definition)
{
    const mu_value *args = mu_value_find(map, "args");
    int rv = 0;

    read_record_text(map, "type", definition->type, sizeof definition->type, &rv);
    read_record_text(map, "task_type", definition->task_type,
                     sizeof definition->task_type, &rv);
    definition->flags = (uint32_t)read_record_number(map, "flags", &rv);
    definition->mailbox_max = (uint32_t)read_record_number(map, "mailbox", &rv);
    definition->mailbox_bytes_max = read_record_number(map, "mailbox_bytes", &rv);
    definition->limits.policy = (uint32_t)read_record_number(map, "policy", &rv);
    definition->limits.restarts = (uint32_t)read_record_number(map, "restarts", &rv);
    definition->limits.within_ms = (uint32_t)read_record_number(map, "within_ms", &rv);
    definition->maker = read_record_number(map, "maker", &rv);
    definition->maker_token = read_record_number(map, "token", &rv);
    if (rv != 0 || args == NULL)
        return rv;
    definition->backing = mu__pack_value(args, &definition->args);
    return definition->backing == NULL ? -MU_ENOMEM : 0;
}

/* Its owner may come back, as long as its lease can last. */
static int read_record_owner(struct mu__ctx *ctx, struct coordination *c,
                             const mu_value *map, struct coord_name *name)
{
    struct name_host *host;
    char type[16];
    int rv = 0;
    uint64_t state = read_record_number(map, "state", &rv);
    uint64_t incarnation;
    uint32_t index;

    name->restarts = (uint32_t)read_record_number(map, "started", &rv);
    name->code = -(int)(uint8_t)read_record_number(map, "code", &rv);
    read_record_text(map, "why", name->why, sizeof name->why, &rv);
    name->state = state == MU__NAME_FAILED ? MU__NAME_FAILED : MU__NAME_WAITS;
    if (rv != 0 || name->state == MU__NAME_FAILED)
        return rv;
    if (mu_value_find(map, "owner") == NULL) {
        mu__coord_name_wait(c, name, mu__coord_clock(ctx, c));
        return 0;
    }
    read_record_text(map, "owner_type", type, sizeof type, &rv);
    index = (uint32_t)read_record_number(map, "owner_index", &rv);
    incarnation = read_record_number(map, "owner", &rv);
    if (rv != 0 || incarnation == 0)
        return -MU_EDATALOSS;
    host = mu__coord_name_host(ctx, c, incarnation, type, index);
    if (host == NULL)
        return -MU_ENOMEM;
    mu__coord_name_give(name, host);
    return 0;
}

static int read_name_record(struct mu__ctx *ctx, struct coordination *c,
                            struct mu__view text, const struct mu__key_value *entry)
{
    mu_value *map = NULL;
    struct coord_name *name;
    int rv = mu__name_check(text, NULL);

    if (rv == 0)
        rv = mu__name_record_unpack(&c->names->crc, entry->value, text, &map);
    if (rv != 0)
        return rv;
    name = mu__coord_name_get(c, text);
    rv = name == NULL ? -MU_ENOMEM : read_definition(map, &name->definition);
    if (rv == 0) {
        name->is_made = true;
        name->epoch = read_record_number(map, "epoch", &rv);
        name->made = read_record_number(map, "made", &rv);
        name->is_born = read_record_number(map, "born", &rv) != 0;
    }
    if (rv == 0)
        rv = name->epoch == 0 ? -MU_EDATALOSS : read_record_owner(ctx, c, map, name);
    mu_value_free(map);
    if (rv != 0 && name != NULL)
        mu__coord_name_free(c, name);
    return rv;
}

void mu__coord_names_read(struct mu__ctx *ctx, struct coordination *c)
{
    char key[MU__RUN_KEY_MAX];
    struct mu__view directory = {key, (uint32_t)mu__coord_run_key(c, "actor", key)};
    struct mu__key_value entry = {.key = directory};

    if (c->names->is_read || !c->leads)
        return;
    c->names->is_read = true;
    while (mu__coord_keys_next_own(c, entry.key, &entry) &&
           mu__key_is_below(entry.key, directory)) {
        const struct mu__view text = {
            (const char *)entry.key.data + directory.size + 1,
            entry.key.size - directory.size - 1,
        };
        int rv = read_name_record(ctx, c, text, &entry);

        if (rv != 0)
            mu__log(ctx, MU__LOG_WARN, "names of actors: key \"%.*s\" is passed over: %s",
                    (int)entry.key.size, (const char *)entry.key.data, mu_strerror(rv));
    }
    mu__coord_names_review_kept(ctx, c);
}

/* ---- beginning and end ---- */

int mu__coord_names_init(struct mu__ctx *ctx, struct coordination *c)
{
    c->names = calloc(1, sizeof *c->names);
    if (c->names == NULL)
        return -MU_ENOMEM;
    mu__crc32c_init(&c->names->crc);
    c->names->names.secret = mu__random(ctx);
    mu__map_seed(&c->names->hosts, mu__secret(ctx));
    c->names->lease_ms = c->names->placing_ms = UINT64_MAX;
    return 0;
}

void mu__coord_names_forget(struct coordination *c)
{
    struct coord_names *names = c->names;
    struct mu__text_node *node;

    while ((node = mu__text_map_next(&names->names, NULL)) != NULL)
        mu__coord_name_free(c, (struct coord_name *)(void *)node);
    for (size_t i = 0; i < names->hosts.capacity; i++) {
        struct name_host *host =
            names->hosts.entries[i].key == 0 ? NULL : names->hosts.entries[i].value;

        if (host == NULL)
            continue;
        free((void *)host->types.data);
        free(host);
    }
    mu__map_done(&names->hosts);
    names->waiting = (struct mu__list){0};
    names->lease_ms = names->placing_ms = UINT64_MAX;
    names->is_read = false;
}

void mu__coord_names_done(struct coordination *c)
{
    if (c->names == NULL)
        return;
    mu__coord_names_forget(c);
    mu__text_map_done(&c->names->names);
    free(c->names);
    c->names = NULL;
}
