/* The output of `muster check`, as text and JSON. */
#include "cli/check/check.h"

#include "cli/output/print_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    MATRIX_MAX = 16, /* tasks in a matrix; for more only pairs are printed */
    PAIRS_SHOWN = 20,
    PROBLEMS_SHOWN = 20, /* of each grade */
    TASKS_SHOWN = 40,    /* of more, only a few with the same result */
    ALIKE_SHOWN = 5,
    ALIKE_MAX = 16 /* different results */
};

const mu_value *check_tasks(const struct check *check)
{
    return mu_value_find(check->report, "tasks");
}

bool check_is(const mu_value *task, const char *state)
{
    return strcmp(cmd_map_text(task, "state"), state) == 0;
}

size_t check_problems(const struct check *check, const char *grade)
{
    size_t count = 0;

    for (size_t i = 0; i < mu_value_count(check->problems); i++)
        count +=
            strcmp(cmd_map_text(mu_value_at(check->problems, i), "grade"), grade) == 0;
    return count;
}

/* The type of the i-th task, NULL past the end; and its index. */
static const char *task_at(const struct check *check, size_t i, int *ret_index)
{
    const char *address;
    const char *type;

    return mu_cluster_task_at(check->cluster, i, &type, ret_index, &address) == 0 ? type
                                                                                  : NULL;
}

/* ---- what a task does ---- */

/* Neighbours that do the same are one line: "/job:worker/task:1 to 7". */
static void print_does(const struct check *check)
{
    const mu_value *tasks = check_tasks(check);

    (void)printf("\nwhat each task does\n");
    for (size_t i = 0, next; i < mu_value_count(tasks); i = next) {
        const char *words = cmd_map_text(mu_value_at(tasks, i), "does");
        int index;
        int last = -1;
        const char *type = task_at(check, i, &index);

        for (next = i + 1; next < mu_value_count(tasks); next++) {
            int other;

            if (strcmp(task_at(check, next, &other), type) != 0 ||
                strcmp(cmd_map_text(mu_value_at(tasks, next), "does"), words) != 0)
                break;
            last = other;
        }
        (void)printf("  %s", cmd_map_text(mu_value_at(tasks, i), "task"));
        if (last >= 0)
            (void)printf(" to %d", last);
        (void)printf(": %s\n", words);
    }
}

/* ---- pairs ---- */

static const char *format_task_name(const mu_value *map, char *out)
{
    cmd_task_name(out, cmd_map_text(map, "type"), (int)cmd_map_number(map, "index"));
    return out;
}

static bool is_peer_up(const mu_value *peer)
{
    return strcmp(cmd_map_text(peer, "state"), "up") == 0;
}

size_t check_pairs(const struct check *check, check_pair_fn visit, void *user)
{
    const mu_value *list = mu_value_find(check->report, "peers");
    size_t count = 0;

    for (size_t i = 0; i < mu_value_count(list); i++) {
        const mu_value *from = mu_value_at(list, i);
        const mu_value *peers = mu_value_find(from, "peers");
        char names[2][CMD_TASK_BYTES];

        for (size_t j = 0; j < mu_value_count(peers); j++) {
            const mu_value *peer = mu_value_at(peers, j);

            if (!cmd_map_bool(peer, "dialled") || is_peer_up(peer))
                continue;
            count++;
            if (visit != NULL)
                visit(user, format_task_name(from, names[0]),
                      format_task_name(peer, names[1]), peer);
        }
    }
    return count;
}

/* Why a peer is not reached. */
static const char *get_unreached_reason(const mu_value *peer)
{
    const char *why = cmd_map_text(peer, "why");

    if (why[0] != '\0')
        return why;
    return strcmp(cmd_map_text(peer, "state"), "greeting") == 0
               ? "something answers, but does not say that it is that task"
               : "no attempt has ended yet";
}

static void print_pair(void *user, const char *from, const char *to, const mu_value *peer)
{
    size_t *left = user;
    char duration[32];

    if (*left == 0)
        return;
    (*left)--;
    (void)printf("  %s cannot reach %s at %s: %s (for %s)\n", from, to,
                 cmd_map_text(peer, "address"), get_unreached_reason(peer),
                 cmd_duration(cmd_map_number(peer, "for_ms"), duration, sizeof duration));
}

/* ---- the matrix ---- */

static const mu_value *answer_of(const struct check *check, const char *name)
{
    const mu_value *list = mu_value_find(check->report, "peers");
    char other[CMD_TASK_BYTES];

    for (size_t i = 0; i < mu_value_count(list); i++) {
        const mu_value *map = mu_value_at(list, i);

        if (strcmp(format_task_name(map, other), name) == 0)
            return map;
    }
    return NULL;
}

/* "ok", "NO", or "-" when the tasks need no link. */
static const char *cell_of(const mu_value *peers, const char *to)
{
    char other[CMD_TASK_BYTES];

    for (size_t i = 0; i < mu_value_count(peers); i++) {
        const mu_value *peer = mu_value_at(peers, i);

        if (strcmp(format_task_name(peer, other), to) == 0)
            return is_peer_up(peer) ? "ok" : "NO";
    }
    return "-";
}

static const char *name_at(const struct check *check, size_t i)
{
    return cmd_map_text(mu_value_at(check_tasks(check), i), "task");
}

static void print_matrix_row(const struct check *check, size_t row)
{
    const mu_value *answer = answer_of(check, name_at(check, row));
    const mu_value *peers = mu_value_find(answer, "peers");
    bool has_answered = mu_value_count(peers) > 0;

    (void)printf("  %-24s", name_at(check, row));
    for (size_t i = 0; i < mu_value_count(check_tasks(check)); i++)
        (void)printf("%7s", i == row        ? "."
                            : !has_answered ? "?"
                                            : cell_of(peers, name_at(check, i)));
    (void)printf("\n");
}

static void print_matrix(const struct check *check)
{
    const char *type;
    int index;

    (void)printf("  %-24s", "");
    for (size_t i = 0; (type = task_at(check, i, &index)) != NULL; i++) {
        char head[16];

        (void)snprintf(head, sizeof head, "%.1s%d", type, index);
        (void)printf("%7s", head);
    }
    (void)printf("\n");
    for (size_t i = 0; i < mu_value_count(check_tasks(check)); i++)
        print_matrix_row(check, i);
    (void)printf("  (row reaches column: ok, NO; -: no link is needed; ?: no answer)\n");
}

static void print_reach(const struct check *check)
{
    size_t count = check_pairs(check, NULL, NULL);
    size_t left = PAIRS_SHOWN;

    if (mu_value_count(mu_value_find(check->report, "peers")) == 0)
        return;
    (void)printf("\nwho reaches whom\n");
    if (mu_value_count(check_tasks(check)) <= MATRIX_MAX)
        print_matrix(check);
    (void)check_pairs(check, print_pair, &left);
    if (count > PAIRS_SHOWN)
        (void)printf("  and %zu more pairs, which -o json has\n", count - PAIRS_SHOWN);
    if (count == 0)
        (void)printf("  all that answer reach whom they dial\n");
}

/* ---- text ---- */

static void print_grade(const struct check *check, const char *grade)
{
    size_t count = check_problems(check, grade);
    size_t shown = 0;

    for (size_t i = 0; i < mu_value_count(check->problems) && shown < PROBLEMS_SHOWN;
         i++) {
        const mu_value *problem = mu_value_at(check->problems, i);

        if (strcmp(cmd_map_text(problem, "grade"), grade) != 0)
            continue;
        (void)printf("  %s: %s\n", grade, cmd_map_text(problem, "text"));
        shown++;
    }
    if (count > shown)
        (void)printf("  and %zu more of %ss\n", count - shown, grade);
}

static void print_problems(const struct check *check)
{
    if (mu_value_count(check->problems) > 0)
        (void)printf("\nthe configuration\n");
    print_grade(check, "error");
    print_grade(check, "warning");
    print_grade(check, "note");
}

/* Print a task's result. If its name has several addresses: the one with this result, and
 * the results of the others. */
static void print_probe_outcome(const mu_value *task)
{
    const char *at = cmd_map_text(task, "at");
    int64_t took_ms = cmd_map_number(task, "took_ms");

    if (check_is(task, "answers"))
        (void)printf(": answers%s%s", at[0] == '\0' ? "" : " at ", at);
    else
        (void)printf(": %s%s%s", at, at[0] == '\0' ? "" : ": ",
                     cmd_map_text(task, "why"));
    (void)printf(" (%" PRId64 " ms)%s%s\n", took_ms, at[0] == '\0' ? "" : "; ",
                 cmd_map_text(task, "not_at"));
}

static void print_check_task(const mu_value *task)
{
    const char *address = cmd_map_text(task, "address");
    const char *found = cmd_map_text(task, "resolves_to");

    (void)printf("  %s at %s", cmd_map_text(task, "task"), address);
    if (found[0] != '\0' && strstr(address, found) == NULL)
        (void)printf(" (%s)", found);
    if (check_is(task, "not tried"))
        (void)printf(": %s\n", cmd_map_text(task, "why"));
    else
        print_probe_outcome(task);
}

/* Tasks with the same result. */
struct alike {
    const char *words; /* the result; NULL: all other results */
    const char *first; /* the first task that was not printed; NULL: none */
    const char *last;
    size_t printed;
    size_t left;
};

static const char *get_outcome_words(const mu_value *task)
{
    return cmd_map_text(task, check_is(task, "answers") ? "state" : "why");
}

/* The row for a task's result; the last row is for results without one. */
static struct alike *alike_of(const mu_value *task, struct alike *rows)
{
    const char *words = get_outcome_words(task);
    size_t i = 0;

    while (i < ALIKE_MAX && rows[i].words != NULL && strcmp(rows[i].words, words) != 0)
        i++;
    if (i < ALIKE_MAX)
        rows[i].words = words;
    return &rows[i];
}

static void print_left(const struct alike *row)
{
    if (row->left == 0)
        return;
    (void)printf("  and %zu more, %s", row->left, row->first);
    if (row->left > 1)
        (void)printf(" to %s", row->last);
    (void)printf(": %s\n", row->words == NULL ? "as -o json has them" : row->words);
}

/* In a long list, print the first tasks of each result, and how many more there are.
 * Returns how many tasks do not answer as expected. */
static size_t print_check_tasks(const struct check *check)
{
    const mu_value *tasks = check_tasks(check);
    size_t count = mu_value_count(tasks);
    size_t most = count > TASKS_SHOWN ? ALIKE_SHOWN : TASKS_SHOWN;
    struct alike rows[ALIKE_MAX + 1] = {{.words = NULL}};
    size_t bad = 0;

    if (count > 0)
        (void)printf("\nwho answers\n");
    for (size_t i = 0; i < count; i++) {
        const mu_value *task = mu_value_at(tasks, i);
        struct alike *row = alike_of(task, rows);

        bad += !check_is(task, "answers");
        if (row->printed < most) {
            row->printed++;
            print_check_task(task);
            continue;
        }
        row->last = cmd_map_text(task, "task");
        row->first = row->first == NULL ? row->last : row->first;
        row->left++;
    }
    for (size_t i = 0; i <= ALIKE_MAX; i++)
        print_left(&rows[i]);
    return bad;
}

static void print_head(const struct check *check)
{
    const char *comma = " ";
    const char *type;

    (void)printf("the cluster, by %s, has", check->source);
    for (size_t i = 0; (type = mu_cluster_job_at(check->cluster, i)) != NULL; i++) {
        (void)printf("%s%zu %s", comma, mu_cluster_task_count(check->cluster, type),
                     type);
        comma = ", ";
    }
    (void)printf("%s\n", comma[0] == ' ' ? " no task" : "");
    if (check->own_type[0] != '\0')
        (void)printf("this task is /job:%s/task:%d\n", check->own_type, check->own_index);
}

void check_print_text(const struct check *check)
{
    size_t errors = check_problems(check, "error");
    size_t count = mu_value_count(check_tasks(check));
    size_t pairs = check_pairs(check, NULL, NULL);
    size_t bad;

    print_head(check);
    print_problems(check);
    if (count > 0)
        print_does(check);
    bad = print_check_tasks(check);
    print_reach(check);
    if (errors == 0 && bad == 0 && pairs == 0 && !check->is_incomplete)
        (void)printf("\nall is well\n");
    else
        (void)printf("\n%zu error%s in the configuration; %zu of %zu tasks do not answer "
                     "as they should; %zu connection%s missing%s\n",
                     errors, errors == 1 ? "" : "s", bad, count, pairs,
                     pairs == 1 ? " is" : "s are",
                     check->is_incomplete ? "; not all tasks are there" : "");
}

/* ---- JSON ---- */

static void add_pair(void *user, const char *from, const char *to, const mu_value *peer)
{
    cJSON *map = cJSON_CreateObject();

    cmd_json_add_text(map, "from", from);
    cmd_json_add_text(map, "to", to);
    cmd_json_add_text(map, "address", cmd_map_text(peer, "address"));
    cmd_json_add_text(map, "state", cmd_map_text(peer, "state"));
    cmd_json_add_text(map, "why", get_unreached_reason(peer));
    cmd_json_add_int(map, "for_ms", cmd_map_number(peer, "for_ms"));
    (void)cJSON_AddItemToArray(user, map);
}

int check_print_json(const struct check *check)
{
    const mu_value *tasks = check_tasks(check);
    cJSON *root = cJSON_CreateObject();
    cJSON *pairs = cJSON_CreateArray();
    bool is_well = check_problems(check, "error") == 0 && !check->is_incomplete;

    for (size_t i = 0; i < mu_value_count(tasks); i++)
        is_well = is_well && check_is(mu_value_at(tasks, i), "answers");
    is_well = check_pairs(check, add_pair, pairs) == 0 && is_well;
    cmd_json_add_text(root, "source", check->source);
    if (check->own_type[0] != '\0') {
        cmd_json_add_text(root, "type", check->own_type);
        cmd_json_add_int(root, "index", check->own_index);
    }
    (void)cJSON_AddItemToObject(root, "problems", cmd_json_value(check->problems));
    (void)cJSON_AddItemToObject(root, "tasks", cmd_json_value(tasks));
    (void)cJSON_AddItemToObject(root, "unreached", pairs);
    (void)cJSON_AddItemToObject(root, "well", cJSON_CreateBool(is_well));
    return cmd_json_print(root);
}
