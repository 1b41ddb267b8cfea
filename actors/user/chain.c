/* Chains of calls that wait for each other: an actor that handles a call, and has not
 * answered it, has made the next one. A chain is a text, as it is in messages and errors:
 *
 *     /job:worker/task:0#5d0c3a8e41f7b269.17 bank.transfer > .../task:1#... account.add
 *
 * The next call of it must not come back to one of its actors. */
#include "actors/user/actions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void mu__chain_unref(struct chain *chain)
{
    if (chain != NULL && --chain->refs == 0)
        free(chain);
}

struct chain *mu__chain_ref(struct chain *chain)
{
    if (chain != NULL)
        chain->refs++;
    return chain;
}

static struct chain *chain_new(size_t size)
{
    struct chain *chain =
        size > MU__ACTOR_CHAIN_MAX ? NULL : malloc(sizeof *chain + size + 1);

    if (chain == NULL)
        return NULL;
    *chain = (struct chain){.refs = 1, .size = (uint32_t)size};
    chain->text[size] = '\0';
    return chain;
}

struct chain *mu__chain_copy(struct mu__view text)
{
    struct chain *chain = chain_new(text.size);

    if (chain != NULL && text.size > 0)
        memcpy(chain->text, text.data, text.size);
    return chain;
}

struct chain *mu__chain_add(const struct chain *before, const mu_actor *actor,
                            const char *method)
{
    bool is_first = before == NULL || before->is_closed;
    mu_address address = mu__actor_address(actor->office, actor->number);
    char own[MU__ADDRESS_TEXT_MAX];
    char hop[MU__ADDRESS_TEXT_MAX + 2 * MU__ACTOR_NAME_MAX + 8];
    struct chain *chain;
    size_t at = is_first ? 0 : before->size;

    mu__address_write(&address, own);
    (void)snprintf(hop, sizeof hop, "%s%s %s.%s", is_first ? "" : " > ", own,
                   actor->type->name, method);
    chain = chain_new(at + strlen(hop));
    if (chain == NULL)
        return NULL;
    if (!is_first)
        memcpy(chain->text, before->text, at);
    memcpy(chain->text + at, hop, strlen(hop));
    return chain;
}

bool mu__chain_has(const struct chain *chain, const mu_address *address)
{
    char own[MU__ADDRESS_TEXT_MAX];
    const char *at;

    if (chain == NULL || chain->is_closed)
        return false;
    mu__address_write(address, own);
    for (at = strstr(chain->text, own); at != NULL; at = strstr(at + 1, own))
        if (at[strlen(own)] == ' ')
            return true;
    return false;
}
