/* Why nng has no connection yet. It tells nobody, but counts: the counters of the dialer
 * are looked up in a snapshot of all that nng counts. For messages, which are few. */
#include "transport/wire/nng/dialers.h"

#include <string.h>

static nng_stat *find_child_stat(nng_stat *parent, const char *name)
{
    nng_stat *stat = nng_stat_child(parent);

    while (stat != NULL && strcmp(nng_stat_name(stat), name) != 0)
        stat = nng_stat_next(stat);
    return stat;
}

static bool is_dialer(nng_stat *stat, int id)
{
    nng_stat *number = find_child_stat(stat, "id");

    return strcmp(nng_stat_name(stat), "dialer") == 0 && number != NULL &&
           nng_stat_value(number) == (uint64_t)id;
}

/* Dialers stand at the top, or within their sockets. */
static nng_stat *find_dialer(nng_stat *parent, int id)
{
    for (nng_stat *stat = nng_stat_child(parent); stat != NULL;
         stat = nng_stat_next(stat)) {
        nng_stat *found = is_dialer(stat, id) ? stat : NULL;

        if (found == NULL && strcmp(nng_stat_name(stat), "socket") == 0)
            found = find_dialer(stat, id);
        if (found != NULL)
            return found;
    }
    return NULL;
}

const char *mu__nng_dialer_why(const struct mu__nng_dialer *own)
{
    static const struct {
        const char *counter;
        const char *words;
    } rows[] = {
        {"auth", "one end does not accept the certificate of the other"},
        {"proto", "what answers there is not muster"},
        {"disconnect", "the connection broke during the greeting"},
        {"timeout", "the attempt to connect timed out"},
        {"refused", "connection refused"},
        {"other", "there is no such host, address or socket"},
    };
    const char *words = "nng has no connection to it yet";
    nng_stat *all;
    nng_stat *dialer;

    if (nng_stats_get(&all) != 0)
        return words;
    dialer = find_dialer(all, nng_dialer_id(own->nng));
    for (size_t i = 0; dialer != NULL && i < sizeof rows / sizeof rows[0]; i++) {
        nng_stat *counter = find_child_stat(dialer, rows[i].counter);

        if (counter == NULL || nng_stat_value(counter) == 0)
            continue;
        words = rows[i].words;
        break;
    }
    nng_stats_free(all);
    return words;
}
