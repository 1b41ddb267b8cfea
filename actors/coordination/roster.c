#include "actors/coordination/roster.h"

#include "actors/packing.h"
#include "runtime/message/rights.h"

#include "muster/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tasks that are not coordinated, present and former: beyond it the slot of a former one
 * is reused. */
#ifdef MUSTER_TINY
enum { GUESTS_MAX = 64 };
#else
enum { GUESTS_MAX = 1 << 14 };
#endif
enum { FORMER_CLIENTS_MAX = 32 }; /* that are remembered, the last ones */

/* ---- lists ---- */

/* Of a CONNECTED task. */
static struct mu__list *list_by_heard(struct mu__roster *roster,
                                      const struct mu__roster_task *task)
{
    return task->suspect ? &roster->silent : &roster->heard;
}

/* Into `silent`, in order: most often at the end. */
static void list_silent(struct mu__roster *roster, struct mu__roster_task *task)
{
    struct mu__list_node *before = NULL;

    for (struct mu__list_node *at = roster->silent.last; at != NULL; at = at->prev) {
        if (MU__LIST_ENTRY(at, struct mu__roster_task, link.by_heard)->link.heard_ms <=
            task->link.heard_ms)
            break;
        before = at;
    }
    mu__list_insert(&roster->silent, before, &task->link.by_heard);
}

static void unlist_roster_task(struct mu__roster *roster, struct mu__roster_task *task)
{
    if (task->state != MU__TASK_CONNECTED)
        return;
    mu__list_remove(list_by_heard(roster, task), &task->link.by_heard);
    if (!task->link.up)
        mu__list_remove(&roster->down, &task->link.by_down);
}

/* ---- start and end ---- */

static struct mu__roster_task *add_roster_task(
    struct mu__roster *roster, const char *type, uint32_t index, bool coordinated);

static int add_roster_range(struct mu__roster *roster, const struct mu__task_range *range)
{
    for (uint32_t index = range->first;; index++) {
        if (add_roster_task(roster, range->type, index, true) == NULL)
            return -MU_ENOMEM;
        if (index == range->last)
            return 0;
    }
}

/* "ps,worker" */
static int read_recoverable(struct mu__roster *roster, const char *types)
{
    const char *at = types;

    roster->all_recoverable = strcmp(types, "all") == 0;
    if (roster->all_recoverable || strcmp(types, "none") == 0)
        return 0;
    while (*at != '\0') {
        size_t size = strcspn(at, ", ");
        char type[16] = "";
        int rv;

        if (size < sizeof type)
            memcpy(type, at, size);
        rv = size == 0 ? 0 : mu__task_set_add(&roster->recoverable, type, 0);
        if (rv != 0)
            return rv;
        at += size + (at[size] != '\0');
    }
    return 0;
}

struct mu__roster *mu__roster_new(const struct mu__task_set *coordinated,
                                  const char *recoverable)
{
    struct mu__roster *roster = calloc(1, sizeof *roster);
    int rv;

    if (roster == NULL)
        return NULL;
    rv = read_recoverable(roster, recoverable == NULL ? "all" : recoverable);
    for (uint32_t i = 0; rv == 0 && i < coordinated->count; i++)
        rv = add_roster_range(roster, &coordinated->ranges[i]);
    if (rv == 0)
        return roster;
    mu__roster_free(roster);
    return NULL;
}

void mu__roster_free(struct mu__roster *roster)
{
    if (roster == NULL)
        return;
    for (uint32_t i = 0; i < roster->count; i++) {
        mu_value_free(roster->tasks[i]->devices);
        free(roster->tasks[i]->failure.ended);
        free(roster->tasks[i]);
    }
    mu__free_array(roster->tasks);
    mu__map_done(&roster->nodes);
    mu__map_done(&roster->names);
    mu__task_set_done(&roster->recoverable);
    free(roster);
}

/* ---- finding ---- */

/* The key of `names` for type and index. 0: no task of this type is known. */
static uint64_t make_roster_key(const struct mu__roster *roster, const char *type,
                                uint32_t index)
{
    for (uint64_t i = 0; i < roster->types_count; i++)
        if (strcmp(roster->types[i], type) == 0)
            return (i + 1) << 32 | index;
    return 0;
}

/* Add a type, unless it is known. False: the table is full, or the name is invalid. */
static bool need_type(struct mu__roster *roster, const char *type)
{
    size_t length = strspn(type, "abcdefghijklmnopqrstuvwxyz0123456789_");

    if (make_roster_key(roster, type, 0) != 0)
        return true;
    if (length == 0 || type[length] != '\0' || length >= sizeof roster->types[0] ||
        roster->types_count == MU_CLUSTER_TYPES_MAX)
        return false;
    (void)snprintf(roster->types[roster->types_count++], sizeof roster->types[0], "%s",
                   type);
    return true;
}

struct mu__roster_task *mu__roster_find(const struct mu__roster *roster, const char *type,
                                        uint32_t index)
{
    uint64_t key = make_roster_key(roster, type, index);

    return key == 0 ? NULL : mu__map_get(&roster->names, key);
}

struct mu__roster_task *mu__roster_at_node(const struct mu__roster *roster, uint32_t node)
{
    return mu__map_get(&roster->nodes, (uint64_t)node + 1);
}

/* ---- adding ---- */

static bool reserve_roster_slot(struct mu__roster *roster)
{
    uint32_t size = roster->size == 0 ? 16 : roster->size * 2;

    if (roster->count < roster->size)
        return true;
    if (!mu__grow_array((void **)&roster->tasks, size, sizeof *roster->tasks))
        return false;
    roster->size = size;
    return true;
}

/* A task that is not coordinated is always recoverable. */
static bool is_task_recoverable(const struct mu__roster *roster,
                                const struct mu__roster_task *task)
{
    return !task->coordinated || roster->all_recoverable ||
           mu__task_set_has(&roster->recoverable, task->type, 0);
}

static void name_roster_task(struct mu__roster *roster, struct mu__roster_task *task,
                             const char *type, uint32_t index)
{
    (void)snprintf(task->type, sizeof task->type, "%s", type);
    (void)snprintf(task->name, sizeof task->name, "/job:%s/task:%" PRIu32, task->type,
                   index);
    task->index = index;
    task->recoverable = is_task_recoverable(roster, task);
}

static struct mu__roster_task *add_roster_task(
    struct mu__roster *roster, const char *type, uint32_t index, bool coordinated)
{
    struct mu__roster_task *task = need_type(roster, type) && reserve_roster_slot(roster)
                                       ? calloc(1, sizeof *task)
                                       : NULL;

    if (task == NULL)
        return NULL;
    if (mu__map_set(&roster->names, make_roster_key(roster, type, index), task) != 0) {
        free(task);
        return NULL;
    }
    task->coordinated = coordinated;
    name_roster_task(roster, task, type, index);
    task->slot = roster->count;
    roster->tasks[roster->count++] = task;
    roster->coordinated += coordinated;
    return task;
}

static bool is_former_guest(const struct mu__roster_task *task)
{
    return !task->coordinated && !task->link.up && task->state != MU__TASK_CONNECTED;
}

static bool is_former_client(const struct mu__roster_task *task)
{
    return is_former_guest(task) && task->seen &&
           strcmp(task->type, MU__CLIENT_TYPE) == 0;
}

/* The one that has been gone longest, and how many there are. NULL: there is none. */
static struct mu__roster_task *oldest_of(const struct mu__roster *roster,
                                         bool (*is)(const struct mu__roster_task *task),
                                         uint32_t *ret_count)
{
    struct mu__roster_task *oldest = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; i < roster->count; i++) {
        struct mu__roster_task *task = roster->tasks[i];

        if (!is(task))
            continue;
        count++;
        if (oldest == NULL || task->since_ms < oldest->since_ms)
            oldest = task;
    }
    *ret_count = count;
    return oldest;
}

/* The slot of a former guest, `task`, for a new one. */
static struct mu__roster_task *reuse_guest_slot(struct mu__roster *roster,
                                                struct mu__roster_task *task,
                                                const char *type, uint32_t index)
{
    if (task == NULL ||
        mu__map_set(&roster->names, make_roster_key(roster, type, index), task) != 0)
        return NULL;
    (void)mu__map_remove(&roster->names,
                         make_roster_key(roster, task->type, task->index));
    mu_value_free(task->devices);
    free(task->failure.ended);
    *task = (struct mu__roster_task){.slot = task->slot};
    name_roster_task(roster, task, type, index);
    return task;
}

struct mu__roster_task *mu__roster_add(struct mu__roster *roster, const char *type,
                                       uint32_t index)
{
    struct mu__roster_task *task = mu__roster_find(roster, type, index);
    struct mu__roster_task *former;
    uint32_t count;

    if (task != NULL || !need_type(roster, type))
        return task;
    former = oldest_of(roster, is_former_client, &count);
    if (count >= FORMER_CLIENTS_MAX)
        return reuse_guest_slot(roster, former, type, index);
    if (roster->count - roster->coordinated >= GUESTS_MAX)
        return reuse_guest_slot(roster, oldest_of(roster, is_former_guest, &count), type,
                                index);
    return add_roster_task(roster, type, index, false);
}

/* ---- changes ---- */

static void bump_task_version(struct mu__roster *roster, struct mu__roster_task *task)
{
    task->version = ++roster->version;
}

void mu__roster_coordinate(struct mu__roster *roster, struct mu__roster_task *task,
                           bool coordinated)
{
    bool is_connected = task->state == MU__TASK_CONNECTED;

    if (task->coordinated == coordinated)
        return;
    task->coordinated = coordinated;
    task->recoverable = is_task_recoverable(roster, task);
    if (coordinated) {
        roster->coordinated++;
        roster->connected += is_connected;
    } else {
        roster->coordinated--;
        roster->connected -= is_connected;
    }
    bump_task_version(roster, task);
}

void mu__roster_move(struct mu__roster *roster, struct mu__roster_task *task,
                     enum mu__task_state state, const mu_error *error, uint64_t now_ms)
{
    bool was = task->state == MU__TASK_CONNECTED;
    bool is = state == MU__TASK_CONNECTED;

    unlist_roster_task(roster, task);
    if (task->coordinated)
        roster->connected = roster->connected + is - was;
    task->state = state;
    task->suspect = false;
    task->lost = false;
    task->since_ms = now_ms;
    if (error != NULL)
        task->failure.error = *error;
    else
        mu__clear(&task->failure.error, sizeof task->failure.error);
    bump_task_version(roster, task);
    if (!is)
        return;
    task->seen = true;
    task->link.heard_ms = now_ms;
    mu__list_append(&roster->heard, &task->link.by_heard);
    if (task->link.up)
        return;
    task->link.down_ms = now_ms;
    mu__list_append(&roster->down, &task->link.by_down);
}

bool mu__roster_heard(struct mu__roster *roster, struct mu__roster_task *task,
                      uint64_t now_ms)
{
    bool better = task->suspect && task->link.up;

    task->link.heard_ms = now_ms;
    if (task->state != MU__TASK_CONNECTED)
        return false;
    mu__list_remove(list_by_heard(roster, task), &task->link.by_heard);
    if (better) {
        task->suspect = false;
        bump_task_version(roster, task);
    }
    mu__list_append(list_by_heard(roster, task), &task->link.by_heard);
    return better;
}

void mu__roster_suspect(struct mu__roster *roster, struct mu__roster_task *task)
{
    if (task->state != MU__TASK_CONNECTED || task->suspect)
        return;
    mu__list_remove(&roster->heard, &task->link.by_heard);
    task->suspect = true;
    list_silent(roster, task);
    bump_task_version(roster, task);
}

int mu__roster_link_up(struct mu__roster *roster, struct mu__roster_task *task,
                       uint32_t node, uint64_t now_ms)
{
    if (!task->link.up || task->link.node != node) {
        if (mu__map_set(&roster->nodes, (uint64_t)node + 1, task) != 0)
            return -MU_ENOMEM;
        if (task->link.up)
            (void)mu__map_remove(&roster->nodes, (uint64_t)task->link.node + 1);
    }
    if (task->state == MU__TASK_CONNECTED && !task->link.up)
        mu__list_remove(&roster->down, &task->link.by_down);
    task->link.up = true;
    task->link.node = node;
    (void)mu__roster_heard(roster, task, now_ms);
    return 0;
}

void mu__roster_link_down(struct mu__roster *roster, struct mu__roster_task *task,
                          uint64_t now_ms)
{
    if (!task->link.up)
        return;
    (void)mu__map_remove(&roster->nodes, (uint64_t)task->link.node + 1);
    task->link.up = false;
    task->link.down_ms = now_ms;
    if (task->state != MU__TASK_CONNECTED)
        return;
    mu__list_append(&roster->down, &task->link.by_down);
    mu__roster_suspect(roster, task);
}

void mu__roster_clear(struct mu__roster *roster, uint64_t now_ms)
{
    for (uint32_t i = 0; i < roster->count; i++) {
        struct mu__roster_task *task = roster->tasks[i];

        mu__roster_link_down(roster, task, now_ms);
        mu__roster_move(roster, task, MU__TASK_DISCONNECTED, NULL, now_ms);
        mu_value_free(task->devices);
        task->devices = NULL;
        task->seen = false;
        task->incarnation = 0;
        task->progress.count = 0;
    }
}

/* ---- as text ---- */

const char *mu__roster_state_word(const struct mu__roster_task *task)
{
    static const char *const state_names[] = {
        [MU__TASK_DISCONNECTED] = "disconnected",
        [MU__TASK_CONNECTED] = "connected",
        [MU__TASK_FAILED] = "error",
    };

    return task->suspect ? "suspect" : state_names[task->state];
}

/* "4,200" */
static void format_thousands(uint64_t number, char *out, size_t size)
{
    char digits[24];
    size_t count = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, number);
    size_t at = 0;

    for (size_t i = 0; i < count && at + 2 < size; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

static void describe_roster_task(const struct mu__roster_task *task, uint64_t now_ms,
                                 char *out, size_t size)
{
    const char *note = task->state == MU__TASK_FAILED ? "in error, " : "";
    char ago[32];

    if (task->state == MU__TASK_DISCONNECTED && task->seen)
        note = "has left, ";
    if (!task->seen) {
        (void)snprintf(out, size, "%s (never registered)", task->name);
        return;
    }
    format_thousands(now_ms - task->link.heard_ms, ago, sizeof ago);
    (void)snprintf(out, size, "%s (%slast heard %s ms ago)", task->name, note, ago);
}

enum { RANKS = 5 };

/* The order in which missing tasks are named: failed ones first. */
static int get_missing_rank(const struct mu__roster_task *task)
{
    if (task->state == MU__TASK_FAILED)
        return 0;
    if (task->state == MU__TASK_CONNECTED)
        return task->suspect ? 1 : 4;
    return task->seen ? 2 : 3;
}

static void append_description(char *out, size_t size, const char *text)
{
    size_t used = strlen(out);

    if (used < size)
        (void)snprintf(out + used, size - used, "%s", text);
}

uint32_t mu__roster_describe(const struct mu__roster *roster, uint64_t now_ms,
                             bool (*missing)(void *user,
                                             const struct mu__roster_task *task),
                             void *user, uint32_t most, char *out, size_t size)
{
    uint32_t count = 0;
    uint32_t named = 0;
    char text[128];

    out[0] = '\0';
    for (uint32_t i = 0; i < roster->count; i++)
        count += missing(user, roster->tasks[i]);
    for (int rank = 0; rank < RANKS; rank++)
        for (uint32_t i = 0; i < roster->count && named < most; i++) {
            if (get_missing_rank(roster->tasks[i]) != rank ||
                !missing(user, roster->tasks[i]))
                continue;
            describe_roster_task(roster->tasks[i], now_ms, text, sizeof text);
            append_description(out, size, ++named > 1 ? ", " : "");
            append_description(out, size, text);
        }
    if (count > most) {
        (void)snprintf(text, sizeof text, "%s%" PRIu32 " more", most > 0 ? " and " : "",
                       count - most);
        append_description(out, size, text);
    }
    return count;
}
