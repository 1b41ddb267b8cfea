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

static struct chain *chain_new(size_t size, uint32_t hops)
{
    size_t before = sizeof(struct chain) + hops * sizeof(struct chain_hop);
    struct chain *chain = size > MU__ACTOR_CHAIN_MAX ? NULL : malloc(before + size + 1);

    if (chain == NULL)
        return NULL;
    *chain = (struct chain){.refs = 1, .size = (uint32_t)size, .hops_count = hops};
    chain->text = (char *)chain + before;
    chain->text[size] = '\0';
    return chain;
}

/* Every hop has one '#', since no name of a type or method may have one. */
static uint32_t count_hops(struct mu__view text)
{
    const char *bytes = text.data;
    uint32_t count = 0;

    for (uint32_t i = 0; i < text.size; i++)
        count += bytes[i] == '#';
    return count;
}

static void read_hops(struct chain *chain)
{
    const char *at = chain->text;

    for (uint32_t i = 0; i < chain->hops_count; i++) {
        char *end;

        at = strchr(at, '#') + 1;
        chain->hops[i].incarnation = strtoull(at, &end, 16);
        chain->hops[i].number = *end == '.' ? (uint32_t)strtoul(end + 1, NULL, 10) : 0;
    }
}

/* What a peer says: a zero in it ends it, as it does for people. */
struct chain *mu__chain_copy(struct mu__view text)
{
    const void *zero = text.size == 0 ? NULL : memchr(text.data, 0, text.size);
    struct chain *chain;

    if (zero != NULL)
        text.size = (uint32_t)((const char *)zero - (const char *)text.data);
    chain = chain_new(text.size, count_hops(text));
    if (chain == NULL)
        return NULL;
    if (text.size > 0)
        memcpy(chain->text, text.data, text.size);
    read_hops(chain);
    return chain;
}

struct chain *mu__chain_add(const struct chain *before, const mu_actor *actor,
                            const char *method)
{
    bool is_first = before == NULL || before->is_closed;
    uint32_t hops = is_first ? 0 : before->hops_count;
    mu_address address = mu__actor_address(actor->office, actor->number);
    char own[MU__ADDRESS_TEXT_MAX];
    char hop[MU__ADDRESS_TEXT_MAX + 2 * MU__ACTOR_NAME_MAX + 8];
    struct chain *chain;
    size_t at = is_first ? 0 : before->size;

    mu__address_write(&address, own);
    (void)snprintf(hop, sizeof hop, "%s%s %s.%s", is_first ? "" : " > ", own,
                   actor->type->name, method);
    chain = chain_new(at + strlen(hop), hops + 1);
    if (chain == NULL)
        return NULL;
    if (!is_first) {
        memcpy(chain->hops, before->hops, hops * sizeof before->hops[0]);
        memcpy(chain->text, before->text, at);
    }
    chain->hops[hops] = (struct chain_hop){address.incarnation, address.number};
    memcpy(chain->text + at, hop, strlen(hop));
    return chain;
}

static bool is_in_chain(const struct chain *chain, const mu_actor *actor)
{
    for (uint32_t i = 0; chain != NULL && !chain->is_closed && i < chain->hops_count; i++)
        if (chain->hops[i].number == actor->number &&
            chain->hops[i].incarnation == actor->office->config.incarnation)
            return true;
    return false;
}

/* What came from elsewhere does not know that an answer was given meanwhile. */
static bool is_waited_for(const mu_actor *actor)
{
    const mu_reply *reply = MU__LIST_FIRST(&actor->replies, mu_reply, node);

    while (reply != NULL && reply->chain == NULL)
        reply = MU__LIST_NEXT(reply, mu_reply, node);
    return reply != NULL;
}

bool mu__chain_comes_back(const mu_actor *actor, const struct mail *mail)
{
    return mail->chain != NULL && (actor->flags & MU_ACTOR_REENTRANT) == 0 &&
           is_waited_for(actor) && is_in_chain(mail->chain, actor);
}

void mu__chain_refusal(const mu_actor *actor, const struct mail *mail,
                       char ret_words[MU__CHAIN_WORDS])
{
    (void)snprintf(ret_words, MU__CHAIN_WORDS,
                   "the calls wait for each other: %s > %s.%s", mail->chain->text,
                   actor->type->name, mail->method->name);
}
