/* The output of `muster check`, as text and JSON. */
#include "cli/resolve/check.h"

#include "cli/chief_client.h"
#include "cli/output/print_json.h"
#include "node/member/member.h"
#include "node/member/service_options.h"
#include "resolver/spec/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    DOES_BYTES = 320,
    MATRIX_MAX = 16,        /* tasks in a matrix; for more only pairs are printed */
    PAIRS_SHOWN = 20,
    PROBLEMS_SHOWN = 20,    /* of each grade */
    TASKS_SHOWN = 40,       /* of more, only a few with the same result */
    ALIKE_SHOWN = 5,
    ALIKE_MAX = 16          /* different results */
};

/* Types that may be dialled, besides those that run closures. */
static const char *const types[] = {"chief", "evaluator", "ps"};

/* ---- what a task does ---- */

static void add_words(char *out, const char *comma, const char *words)
{
    size_t used = strlen(out);

    (void)snprintf(out + used, DOES_BYTES - used, "%s%s", used == 0 ? "" : comma, words);
}

static void add_work(const struct check *check, const struct check_task *task, char *out)
{
    static const char *const works[][2] = {
        {"chief", "schedules closures"},
        {"ps", "serves variables"},
        {"evaluator", "evaluates"},
        {"client", "is a client of the chief"},
    };

    if (mu__worker_types_has(&check->worker_types, task->type))
        add_words(out, ", ", "runs closures, trains");
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        if (strcmp(works[i][0], task->type) == 0)
            add_words(out, ", ", works[i][1]);
}

static bool is_host(const struct check *check, const struct check_task *task)
{
    return check->hosts != NULL && check->hosts[0] != '\0' &&
           mu__service_is_host(check->hosts, task->type, task->index);
}

/* Whether a task dials tasks of a type, and there are any. */
static bool dials(const struct check *check, const struct check_task *task,
                  const char *type)
{
    return mu_cluster_task_count(check->cluster, type) > 0 &&
           mu__member_dials(check->cluster, &check->worker_types, task->type, task->index,
                            type);
}

/* The i-th type that may be dialled; NULL past the end. */
static const char *type_at(const struct check *check, size_t i)
{
    size_t others = sizeof types / sizeof types[0];
    const struct mu__worker_types *own = &check->worker_types;

    if (i < others)
        return types[i];
    return i - others < own->count ? own->rows[i - others].name : NULL;
}

/* "schedules closures, ends the job; dials ps, worker". */
static void describe(const struct check *check, const struct check_task *task, char *out)
{
    bool dials_any = false;
    const char *type;

    out[0] = '\0';
    add_work(check, task, out);
    if (mu__member_ends_job(check->cluster, task->type, task->index))
        add_words(out, ", ", "ends the job");
    if (is_host(check, task))
        add_words(out, ", ", "hosts the coordination service");
    for (size_t i = 0; (type = type_at(check, i)) != NULL; i++) {
        if (!dials(check, task, type))
            continue;
        add_words(out, dials_any ? ", " : "; dials ", type);
        dials_any = true;
    }
    if (check->hosts != NULL && check->hosts[0] != '\0' && !is_host(check, task))
        add_words(out, dials_any ? ", " : "; dials ", "the service's host");
}

/* Neighbours that do the same are one line: "/job:worker/task:1 to 7". */
static void print_does(const struct check *check)
{
    (void)printf("\nwhat each task does\n");
    for (size_t i = 0, next; i < check->tasks_count; i = next) {
        const struct check_task *task = &check->tasks[i];
        char words[DOES_BYTES];
        char others[DOES_BYTES];

        describe(check, task, words);
        for (next = i + 1; next < check->tasks_count; next++) {
            if (strcmp(check->tasks[next].type, task->type) != 0)
                break;
            describe(check, &check->tasks[next], others);
            if (strcmp(words, others) != 0)
                break;
        }
        (void)printf("  %s", task->name);
        if (next > i + 1)
            (void)printf(" to %d", check->tasks[next - 1].index);
        (void)printf(": %s\n", words);
    }
}

/* ---- pairs ---- */

static const char *name_of(const mu_value *map, char *out)
{
    mu__task_name(out, CHECK_NAME_BYTES, cmd_map_text(map, "type"),
                  (int)cmd_map_number(map, "index"));
    return out;
}

static bool is_up(const mu_value *peer)
{
    return strcmp(cmd_map_text(peer, "state"), "up") == 0;
}

size_t check_pairs(const struct check *check, check_pair_fn visit, void *user)
{
    size_t count = 0;

    for (size_t i = 0; i < mu_value_count(check->peers); i++) {
        const mu_value *from = mu_value_at(check->peers, i);
        const mu_value *peers = mu_value_find(from, "peers");
        char names[2][CHECK_NAME_BYTES];

        for (size_t j = 0; j < mu_value_count(peers); j++) {
            const mu_value *peer = mu_value_at(peers, j);

            if (!cmd_map_bool(peer, "dialled") || is_up(peer))
                continue;
            count++;
            if (visit != NULL)
                visit(user, name_of(from, names[0]), name_of(peer, names[1]), peer);
        }
    }
    return count;
}

/* Why a peer is not reached. */
static const char *why_of(const mu_value *peer)
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
                 cmd_map_text(peer, "address"), why_of(peer),
                 cmd_duration(cmd_map_number(peer, "for_ms"), duration, sizeof duration));
}

/* ---- the matrix ---- */

static const mu_value *answer_of(const struct check *check, const char *name)
{
    char other[CHECK_NAME_BYTES];

    for (size_t i = 0; i < mu_value_count(check->peers); i++) {
        const mu_value *map = mu_value_at(check->peers, i);

        if (strcmp(name_of(map, other), name) == 0)
            return map;
    }
    return NULL;
}

/* "ok", "NO", or "-" when the tasks need no link. */
static const char *cell_of(const mu_value *peers, const char *to)
{
    char other[CHECK_NAME_BYTES];

    for (size_t i = 0; i < mu_value_count(peers); i++) {
        const mu_value *peer = mu_value_at(peers, i);

        if (strcmp(name_of(peer, other), to) == 0)
            return is_up(peer) ? "ok" : "NO";
    }
    return "-";
}

static void print_row(const struct check *check, size_t row)
{
    const mu_value *answer = answer_of(check, check->tasks[row].name);
    const mu_value *peers = mu_value_find(answer, "peers");
    bool has_answered = mu_value_count(peers) > 0;

    (void)printf("  %-24s", check->tasks[row].name);
    for (size_t i = 0; i < check->tasks_count; i++)
        (void)printf("%7s", i == row        ? "."
                            : !has_answered ? "?"
                                            : cell_of(peers, check->tasks[i].name));
    (void)printf("\n");
}

static void print_matrix(const struct check *check)
{
    (void)printf("  %-24s", "");
    for (size_t i = 0; i < check->tasks_count; i++) {
        char head[16];

        (void)snprintf(head, sizeof head, "%.1s%d", check->tasks[i].type,
                       check->tasks[i].index);
        (void)printf("%7s", head);
    }
    (void)printf("\n");
    for (size_t i = 0; i < check->tasks_count; i++)
        print_row(check, i);
    (void)printf("  (row reaches column: ok, NO; -: no link is wanted; ?: not heard)\n");
}

static void print_reach(const struct check *check)
{
    size_t count = check_pairs(check, NULL, NULL);
    size_t left = PAIRS_SHOWN;

    if (mu_value_count(check->peers) == 0)
        return;
    (void)printf("\nwho reaches whom\n");
    if (check->tasks_count <= MATRIX_MAX)
        print_matrix(check);
    (void)check_pairs(check, print_pair, &left);
    if (count > PAIRS_SHOWN)
        (void)printf("  and %zu more pairs, which -o json has\n", count - PAIRS_SHOWN);
    if (count == 0)
        (void)printf("  all that answer reach whom they dial\n");
}

/* ---- text ---- */

static void print_grade(const struct mu__problems *problems, int grade)
{
    static const char *const grades[] = {"error", "warning", "note"};
    size_t shown = 0;

    for (size_t i = 0; i < problems->count && shown < PROBLEMS_SHOWN; i++) {
        if ((int)problems->rows[i].grade != grade)
            continue;
        (void)printf("  %s: %s\n", grades[grade], problems->rows[i].text);
        shown++;
    }
    if (problems->of_grade[grade] > shown)
        (void)printf("  and %zu more of %ss\n", problems->of_grade[grade] - shown,
                     grades[grade]);
}

static void print_problems(const struct check *check)
{
    const struct mu__problems *problems = &check->problems;

    if (problems->count > 0)
        (void)printf("\nthe configuration\n");
    for (int grade = 0; grade < 3; grade++)
        print_grade(problems, grade);
}

/* Print a task's result. If its name has several addresses: the one with this result, and
 * the results of the others. */
static void print_outcome(const struct check_task *task)
{
    const char *at = task->probe->others[0] == '\0' ? "" : task->probe->at;
    bool is_fine = task->outcome == CHECK_FINE;

    if (is_fine)
        (void)printf(": answers%s%s", at[0] == '\0' ? "" : " at ", at);
    else
        (void)printf(": %s%s%s", at, at[0] == '\0' ? "" : ": ", task->words);
    (void)printf(" (%" PRIu32 " ms)%s%s\n", task->took_ms, at[0] == '\0' ? "" : "; ",
                 task->probe->others);
}

static void print_task(const struct check_task *task)
{
    bool names_it = task->probe != NULL && task->probe->found[0] != '\0' &&
                    strstr(task->address, task->probe->found) == NULL;

    (void)printf("  %s at %s", task->name, task->address);
    if (names_it)
        (void)printf(" (%s)", task->probe->found);
    if (task->outcome == CHECK_SKIPPED)
        (void)printf(": %s\n", task->words);
    else
        print_outcome(task);
}

/* Tasks with the same result. */
struct alike {
    const char *words;          /* the result; NULL: all other results */
    const char *first;          /* the first task that was not printed; NULL: none */
    const char *last;
    size_t printed;
    size_t left;
};

static const char *words_of(const struct check_task *task)
{
    return task->outcome == CHECK_FINE ? "answers" : task->words;
}

/* The row for a task's result; the last row is for results without one. */
static struct alike *alike_of(const struct check_task *task, struct alike *rows)
{
    const char *words = words_of(task);
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
static size_t print_tasks(const struct check *check)
{
    size_t most = check->tasks_count > TASKS_SHOWN ? ALIKE_SHOWN : TASKS_SHOWN;
    struct alike rows[ALIKE_MAX + 1] = {{.words = NULL}};
    size_t bad = 0;

    if (check->tasks_count > 0)
        (void)printf("\nwho answers\n");
    for (size_t i = 0; i < check->tasks_count; i++) {
        const struct check_task *task = &check->tasks[i];
        struct alike *row = alike_of(task, rows);

        bad += task->outcome != CHECK_FINE;
        if (row->printed < most) {
            row->printed++;
            print_task(task);
            continue;
        }
        row->first = row->first == NULL ? task->name : row->first;
        row->last = task->name;
        row->left++;
    }
    for (size_t i = 0; i <= ALIKE_MAX; i++)
        print_left(&rows[i]);
    return bad;
}

static void print_head(const struct check *check)
{
    const char *comma = " ";

    (void)printf("the cluster, by %s, has", check->source);
    for (size_t i = 0, count; i < check->tasks_count; i += count) {
        const char *type = check->tasks[i].type;

        count = mu_cluster_task_count(check->cluster, type);
        (void)printf("%s%zu %s", comma, count, type);
        comma = ", ";
    }
    (void)printf("%s\n", comma[0] == ' ' ? " no task" : "");
    if (check->own_type[0] != '\0')
        (void)printf("this task is /job:%s/task:%d\n", check->own_type, check->own_index);
}

void check_print_text(const struct check *check)
{
    size_t errors = check->problems.of_grade[MU__PROBLEM_ERROR];
    size_t pairs = check_pairs(check, NULL, NULL);
    size_t bad;

    print_head(check);
    print_problems(check);
    if (check->tasks_count > 0)
        print_does(check);
    bad = print_tasks(check);
    print_reach(check);
    if (errors == 0 && bad == 0 && pairs == 0 && !check->is_incomplete)
        (void)printf("\nall is well\n");
    else
        (void)printf("\n%zu error%s in the configuration; %zu of %zu tasks do not answer "
                     "as they should; %zu connection%s missing%s\n",
                     errors, errors == 1 ? "" : "s", bad, check->tasks_count, pairs,
                     pairs == 1 ? " is" : "s are",
                     check->is_incomplete ? "; not all tasks are there" : "");
}

/* ---- JSON ---- */

static cJSON *problems_json(const struct check *check)
{
    static const char *const grades[] = {"error", "warning", "note"};
    cJSON *list = cJSON_CreateArray();

    for (size_t i = 0; i < check->problems.count; i++) {
        const struct mu__problem *problem = &check->problems.rows[i];
        cJSON *map = cJSON_CreateObject();

        cmd_json_add_text(map, "grade", grades[problem->grade]);
        cmd_json_add_text(map, "text", problem->text);
        (void)cJSON_AddItemToArray(list, map);
    }
    return list;
}

static cJSON *task_json(const struct check *check, const struct check_task *task)
{
    static const char *const outcomes[] = {"answers", "wrong", "away", "not tried"};
    cJSON *map = cJSON_CreateObject();
    char words[DOES_BYTES];

    describe(check, task, words);
    cmd_json_add_text(map, "task", task->name);
    cmd_json_add_text(map, "address", task->address);
    cmd_json_add_text(map, "does", words);
    cmd_json_add_text(map, "resolves_to", task->probe == NULL ? "" : task->probe->found);
    if (task->probe != NULL && task->probe->others[0] != '\0') {
        cmd_json_add_text(map, "at", task->probe->at);
        cmd_json_add_text(map, "not_at", task->probe->others);
    }
    cmd_json_add_text(map, "state", outcomes[task->outcome]);
    cmd_json_add_text(map, "why", task->words);
    cmd_json_add_int(map, "took_ms", task->took_ms);
    return map;
}

static void add_pair(void *user, const char *from, const char *to, const mu_value *peer)
{
    cJSON *map = cJSON_CreateObject();

    cmd_json_add_text(map, "from", from);
    cmd_json_add_text(map, "to", to);
    cmd_json_add_text(map, "address", cmd_map_text(peer, "address"));
    cmd_json_add_text(map, "state", cmd_map_text(peer, "state"));
    cmd_json_add_text(map, "why", why_of(peer));
    cmd_json_add_int(map, "for_ms", cmd_map_number(peer, "for_ms"));
    (void)cJSON_AddItemToArray(user, map);
}

int check_print_json(const struct check *check)
{
    cJSON *root = cJSON_CreateObject();
    cJSON *tasks = cJSON_CreateArray();
    cJSON *pairs = cJSON_CreateArray();
    bool is_well =
        check->problems.of_grade[MU__PROBLEM_ERROR] == 0 && !check->is_incomplete;

    for (size_t i = 0; i < check->tasks_count; i++) {
        (void)cJSON_AddItemToArray(tasks, task_json(check, &check->tasks[i]));
        is_well = is_well && check->tasks[i].outcome == CHECK_FINE;
    }
    is_well = check_pairs(check, add_pair, pairs) == 0 && is_well;
    cmd_json_add_text(root, "source", check->source);
    if (check->own_type[0] != '\0') {
        cmd_json_add_text(root, "type", check->own_type);
        cmd_json_add_int(root, "index", check->own_index);
    }
    (void)cJSON_AddItemToObject(root, "problems", problems_json(check));
    (void)cJSON_AddItemToObject(root, "tasks", tasks);
    (void)cJSON_AddItemToObject(root, "unreached", pairs);
    (void)cJSON_AddItemToObject(root, "well", cJSON_CreateBool(is_well));
    return cmd_json_print(root);
}
