/* How many messages wait for the actors of names, as their processes say with each
 * renewal of their leases. */
#include "actors/coordination/names/coord_names.h"

#include <stdlib.h>
#include <string.h>

static void clear_loads(struct name_host *host)
{
    for (struct coord_name *name =
             MU__LIST_FIRST(&host->names, struct coord_name, of_owner);
         name != NULL; name = MU__LIST_NEXT(name, struct coord_name, of_owner))
        name->load.mailbox = 0;
    host->has_loads = false;
}

/* "3 1200 total"; false: it is something else. */
static bool read_load(char *line, uint32_t *ret_mailbox, uint64_t *ret_oldest_ms,
                      struct mu__view *ret_name)
{
    char *end;

    if (line[0] < '0' || line[0] > '9')
        return false;
    *ret_mailbox = (uint32_t)strtoul(line, &end, 10);
    if (end[0] != ' ' || end[1] < '0' || end[1] > '9')
        return false;
    *ret_oldest_ms = strtoull(end + 1, &end, 10) % (UINT64_C(1) << 32);
    if (end[0] != ' ')
        return false;
    *ret_name = mu__view_str(end + 1);
    return true;
}

void mu__coord_names_loads(struct coordination *c, struct name_host *host,
                           struct mu__view loads)
{
    char text[MU__NAME_LOADS_MAX + 1];
    char *line = text;
    char *end;

    if (host->has_loads)
        clear_loads(host);
    if (loads.size > 0)
        memcpy(text, loads.data, loads.size);
    text[loads.size] = '\0';
    while ((end = strchr(line, '\n')) != NULL) {
        struct coord_name *name;
        struct mu__view view;
        uint64_t oldest_ms;
        uint32_t mailbox;

        *end = '\0';
        if (!read_load(line, &mailbox, &oldest_ms, &view))
            return;
        name = mu__coord_name_find(c, view);
        if (name != NULL && name->owner == host) {
            name->load.mailbox = mailbox;
            name->load.oldest_ms = oldest_ms;
            host->has_loads = true;
        }
        line = end + 1;
    }
}
