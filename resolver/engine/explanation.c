/* The explanation of what was tried, as a value; NULL when out of memory. */
#include "resolver/engine/internal.h"
#include "runtime/base/text.h"

#include <string.h>

enum { WORDS_BYTES = 1024 };

/* As UTF-8: texts may have names from outside, which need not be that. */
static mu_value *new_clean_text(const char *words)
{
    char clean[WORDS_BYTES];
    size_t used = 0;
    const char *end = words + strlen(words);

    while (words < end && used + 4 < sizeof clean) {
        size_t length = mu__utf8_length(words, end);

        if (length == 0)
            clean[used] = '?';
        else
            memcpy(clean + used, words, length);
        used += length == 0 ? 1 : length;
        words += length == 0 ? 1 : length;
    }
    clean[used] = '\0';
    mu__hide_control(clean);
    return mu_value_string(clean);
}

static int add_requests(const struct mu__requests *requests, const char *who,
                        mu_value *list)
{
    const struct mu__exchange *exchange;
    char words[WORDS_BYTES];
    int rv = 0;

    for (size_t i = 0; rv == 0 && (exchange = mu__requests_at(requests, i)) != NULL;
         i++) {
        if (exchange->who == NULL || strcmp(exchange->who, who) != 0)
            continue;
        mu__exchange_describe(exchange, words, sizeof words);
        rv = mu_value_append(list, new_clean_text(words));
    }
    return rv;
}

/* The resolver's own lines: "RESOLVER: text". */
static int add_explanation(const struct mu__requests *requests, const char *who,
                           mu_value *list)
{
    size_t length = strlen(who);
    const char *line;
    int rv = 0;

    for (size_t i = 0; rv == 0 && (line = mu__requests_explanation(requests, i)) != NULL;
         i++)
        if (strncmp(line, who, length) == 0 && strncmp(line + length, ": ", 2) == 0)
            rv = mu_value_append(list, new_clean_text(line + length + 2));
    return rv;
}

static int fill_explained_entry(mu_value *map, const char *name, const char *state,
                                const char *why, const struct mu__requests *requests)
{
    mu_value *requested = mu_value_list();
    int rv = requested == NULL ? -MU_ENOMEM : 0;

    if (rv == 0 && requests != NULL)
        rv = add_requests(requests, name, requested);
    if (rv == 0 && requests != NULL)
        rv = add_explanation(requests, name, requested);
    if (rv == 0)
        rv = mu_value_set(map, "resolver", mu_value_string(name));
    if (rv == 0)
        rv = mu_value_set(map, "state", mu_value_string(state));
    if (rv == 0)
        rv = mu_value_set(map, "why", new_clean_text(why));
    if (rv != 0) {
        mu_value_free(requested);
        return rv;
    }
    return mu_value_set(map, "asked", requested);
}

static int add_explained_entry(mu_value *list, const char *name, const char *state,
                               const char *why, const struct mu__requests *requests)
{
    mu_value *map = mu_value_map();
    int rv =
        map == NULL ? -MU_ENOMEM : fill_explained_entry(map, name, state, why, requests);

    if (rv != 0) {
        mu_value_free(map);
        return rv;
    }
    return mu_value_append(list, map);
}

static int explain_tree(const mu_resolver *resolver, const struct mu__requests *requests,
                        mu_value *list)
{
    static const char *const states[] = {
        [MU__ENTRY_NOT_TRIED] = "not asked",
        [MU__ENTRY_TAKEN] = "taken",
        [MU__ENTRY_NOT_HERE] = "not here",
        [MU__ENTRY_FAILED] = "failed",
    };
    const struct mu__entry *entry;
    int rv = 0;

    if (resolver->shape == MU__SHAPE_FIXED)
        rv = add_explained_entry(list, "static", "taken", "", NULL);
    for (size_t i = 0; rv == 0 && (entry = mu__resolver_entry(resolver, i)) != NULL; i++)
        rv = add_explained_entry(list, mu__entry_name(entry), states[entry->state],
                                 entry->why, requests);
    for (size_t i = 0; rv == 0 && i < resolver->members_count; i++)
        rv = explain_tree(resolver->members[i], requests, list);
    return rv;
}

mu_value *mu__resolver_explained(const mu_resolver *resolver,
                                 const struct mu__requests *requests)
{
    mu_value *list = mu_value_list();

    if (list == NULL || explain_tree(resolver, requests, list) == 0)
        return list;
    mu_value_free(list);
    return NULL;
}

void mu__resolver_set_explained(mu_resolver *resolver, mu_value *explained)
{
    mu_value_free(resolver->explained);
    resolver->explained = explained;
}

mu_value *mu_resolver_explain(const mu_resolver *resolver)
{
    if (resolver == NULL)
        return NULL;
    return resolver->explained == NULL ? mu_value_list()
                                       : mu_value_ref(resolver->explained);
}
