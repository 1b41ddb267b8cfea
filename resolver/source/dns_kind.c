/* The resolver dns: the tasks of a job are the addresses of a name, or the targets of
 * its SRV records.
 *
 * All names of the plan are requested at once; a list of tasks is made of the answers,
 * and this machine is looked for in it. */
#include "resolver/source/dns_plan.h"
#include "resolver/spec/address.h"
#include "runtime/base/array.h"
#include "runtime/base/text.h"
#include "runtime/document/refuse.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OWN_NAME_MS = 3000, /* timeout for this machine's addresses */
    WATCH_MS = 5000
};

struct task {
    const struct mu__dns_row *row;
    int index;
    unsigned priority;
    unsigned port;
    char name[MU__DNS_NAME_BYTES]; /* "" when it is only known by address */
    char address[48];              /* "" when it is only known by name */
};

/* The state of one pass. */
struct dns_pass {
    struct mu__requests *requests;
    struct mu__dns_plan *plan;
    mu_error *error;
    struct task *items; /* owned, as the plan is */
    size_t count;
    size_t room;
    int next[MU__DNS_TYPES_MAX]; /* by type: the index of its next task */
};

/* ---- Requesting ---- */

static struct mu__request make_dns_request(const struct dns_pass *dns,
                                           enum mu__request_kind kind, const char *name)
{
    return (struct mu__request){.kind = kind,
                                .name = name,
                                .retry_missing = true,
                                .dns_server = dns->plan->server};
}

static struct mu__request request_of_row(const struct dns_pass *dns,
                                         const struct mu__dns_row *row)
{
    return make_dns_request(
        dns, row->port == 0 ? MU__REQUEST_SERVICES : MU__REQUEST_ADDRESSES, row->name);
}

static struct mu__request request_of_target(const struct dns_pass *dns,
                                            const struct task *task)
{
    return make_dns_request(dns, MU__REQUEST_ADDRESSES, task->name);
}

static int dns_no_memory(const struct dns_pass *dns)
{
    return mu_error_set(dns->error, -MU_ENOMEM, "out of memory");
}

/* All rows are looked up at the same time, */
static int request_rows(const struct dns_pass *dns)
{
    unsigned count = dns->plan->rows_count;
    struct mu__request *list = calloc(count + 1, sizeof *list);

    if (list == NULL)
        return dns_no_memory(dns);
    for (unsigned i = 0; i < count; i++)
        list[i] = request_of_row(dns, &dns->plan->rows[i]);
    mu__requests_get_all(dns->requests, list, count);
    free(list);
    return 0;
}

/* and all tasks that are known by name. */
static int request_targets(const struct dns_pass *dns)
{
    struct mu__request *list = calloc(dns->count + 1, sizeof *list);
    size_t count = 0;

    if (list == NULL)
        return dns_no_memory(dns);
    for (size_t i = 0; i < dns->count; i++)
        if (dns->items[i].address[0] == '\0')
            list[count++] = request_of_target(dns, &dns->items[i]);
    mu__requests_get_all(dns->requests, list, count);
    free(list);
    return 0;
}

/* Describe a row for messages: "worker: workers.example". */
static void describe_dns_row(const struct mu__dns_row *row, char *out, size_t size)
{
    (void)snprintf(out, size, "%s: %s", row->type_name, row->name);
}

/* ---- From answers to tasks ---- */

static struct task *new_dns_task(struct dns_pass *dns, const struct mu__dns_row *row)
{
    if (!MU__ARRAY_RESERVE(&dns->items, &dns->room, dns->count, 64))
        return NULL;
    dns->items[dns->count] = (struct task){.row = row, .port = row->port};
    return &dns->items[dns->count++];
}

static bool has_address_family(const char *text, size_t size, bool v6)
{
    return size > 0 && (memchr(text, ':', size) != NULL) == v6;
}

static bool holds_v4(const char *text)
{
    const char *line;
    size_t size;

    while (mu__next_line(&text, &line, &size))
        if (has_address_family(line, size, false))
            return true;
    return false;
}

/* The next address of the plan's family; NULL past the end. */
static const char *next_address(const struct mu__dns_plan *plan, const char *text,
                                const char *at, size_t *ret_size)
{
    bool needs_ipv4 = plan->family != MU__DNS_ONLY_6;
    bool needs_ipv6 = plan->family == MU__DNS_ONLY_6 || plan->family == MU__DNS_ALL ||
                      (plan->family == MU__DNS_AUTO && !holds_v4(text));
    const char *line;

    while (mu__next_line(&at, &line, ret_size))
        if ((needs_ipv4 && has_address_family(line, *ret_size, false)) ||
            (needs_ipv6 && has_address_family(line, *ret_size, true)))
            return line;
    return NULL;
}

static int no_address(const struct dns_pass *dns, const char *what)
{
    return mu_error_set(dns->error, -MU_EUNAVAILABLE,
                        "%s: there is no address of the family that is asked for", what);
}

static int add_addresses(struct dns_pass *dns, const struct mu__dns_row *row,
                         const struct mu__answer *answer)
{
    const char *at = answer->data;
    size_t first = dns->count;
    char what[320];
    size_t size;

    describe_dns_row(row, what, sizeof what);
    while ((at = next_address(dns->plan, answer->data, at, &size)) != NULL) {
        struct task *task = new_dns_task(dns, row);

        if (task == NULL)
            return mu_error_set(dns->error, -MU_ENOMEM, "%s: out of memory", what);
        (void)snprintf(task->address, sizeof task->address, "%.*s", (int)size, at);
        at += size;
    }
    if (dns->count == first)
        return no_address(dns, what);
    if (dns->plan->as_name && dns->count == first + 1)
        MU__COPY_TEXT(dns->items[first].name, row->name);
    return 0;
}

/* "PRIORITY WEIGHT PORT TARGET". */
static bool read_service(const char *text, size_t size, struct task *task)
{
    unsigned numbers[3];
    const char *end = text + size;

    for (int i = 0; i < 3; i++) {
        const char *space = memchr(text, ' ', (size_t)(end - text));

        if (space == NULL || !mu__count_parse(text, (size_t)(space - text), &numbers[i]))
            return false;
        text = space + 1;
    }
    size = (size_t)(end - text);
    if (size == 0 || size >= sizeof task->name)
        return false;
    task->priority = numbers[0];
    task->port = numbers[2];
    memcpy(task->name, text, size);
    task->name[size] = '\0';
    return true;
}

static int add_services(struct dns_pass *dns, const struct mu__dns_row *row,
                        const struct mu__answer *answer)
{
    const char *text = answer->data;
    const char *at;
    char what[320];
    size_t size;

    describe_dns_row(row, what, sizeof what);
    while (mu__next_line(&text, &at, &size)) {
        struct task *task = new_dns_task(dns, row);

        if (task == NULL)
            return mu_error_set(dns->error, -MU_ENOMEM, "%s: out of memory", what);
        if (read_service(at, size, task) && task->port > 0 && task->port <= 65535 &&
            strcmp(task->name, ".") != 0)
            continue;
        return mu__refuse(dns->error, at, size,
                          "%s: expected a record with a port and a target", what);
    }
    return 0;
}

/* Numbers in names count as numbers: ps-2 is before ps-10. */
static int compare_dns_names(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        size_t digits_a = strspn(a, "0123456789");
        size_t digits_b = strspn(b, "0123456789");
        int order = 0;

        if (digits_a > 0 && digits_b > 0) {
            size_t zeros_a = strspn(a, "0");
            size_t zeros_b = strspn(b, "0");
            size_t size_a = digits_a - (zeros_a < digits_a ? zeros_a : digits_a);
            size_t size_b = digits_b - (zeros_b < digits_b ? zeros_b : digits_b);

            order = size_a != size_b ? (size_a < size_b ? -1 : 1)
                                     : strncmp(a + zeros_a, b + zeros_b, size_a);
            a += digits_a;
            b += digits_b;
        } else {
            order = (unsigned char)*a++ - (unsigned char)*b++;
        }
        if (order != 0)
            return order;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

static int compare_services(const void *left, const void *right)
{
    const struct task *a = left;
    const struct task *b = right;
    int order;

    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    order = compare_dns_names(a->name, b->name);
    if (order == 0)
        order = strcmp(a->name, b->name);
    if (order != 0)
        return order;
    return (a->port > b->port) - (a->port < b->port);
}

static int list_row(struct dns_pass *dns, const struct mu__dns_row *row)
{
    const struct mu__request request = request_of_row(dns, row);
    const struct mu__answer *answer = mu__requests_get(dns->requests, &request);
    size_t first = dns->count;
    char what[320];
    int rv;

    describe_dns_row(row, what, sizeof what);
    rv = mu__answer_check(answer, what, dns->error);
    if (rv != 0)
        return rv;
    rv =
        row->port == 0 ? add_services(dns, row, answer) : add_addresses(dns, row, answer);
    if (rv != 0)
        return rv;
    if (row->port == 0 && dns->count > first)
        qsort(dns->items + first, dns->count - first, sizeof *dns->items,
              compare_services);
    for (size_t i = first; i < dns->count; i++)
        dns->items[i].index = dns->next[row->type]++;
    return 0;
}

static int list_dns_tasks(struct dns_pass *dns)
{
    const struct mu__dns_plan *plan = dns->plan;
    int rv = request_rows(dns);

    for (unsigned i = 0; i < plan->rows_count && rv == 0; i++)
        rv = list_row(dns, &plan->rows[i]);
    return rv;
}

/* The addresses of tasks that are known by name, the first one of each. */
static int find_addresses(const struct dns_pass *dns)
{
    const struct mu__answer *answer;
    int rv = request_targets(dns);

    for (size_t i = 0; rv == 0 && i < dns->count; i++) {
        struct task *task = &dns->items[i];
        const struct mu__request request = request_of_target(dns, task);
        const char *at;
        char what[640];
        size_t size;

        if (task->address[0] != '\0')
            continue;
        answer = mu__requests_get(dns->requests, &request);
        (void)snprintf(what, sizeof what, "%s: %.255s: target %.255s",
                       task->row->type_name, task->row->name, task->name);
        rv = mu__answer_check(answer, what, dns->error);
        if (rv != 0)
            return rv;
        at = next_address(dns->plan, answer->data, answer->data, &size);
        if (at == NULL)
            return no_address(dns, what);
        (void)snprintf(task->address, sizeof task->address, "%.*s", (int)size, at);
    }
    return rv;
}

/* ---- From tasks to the cluster ---- */

static const char *get_dns_host(const struct mu__dns_plan *plan, const struct task *task)
{
    return task->name[0] == '\0' || plan->as_address ? task->address : task->name;
}

static void name_dns_task(const struct mu__dns_plan *plan, const struct task *task,
                          char *out, size_t size)
{
    char address[128];

    (void)mu__address_join(get_dns_host(plan, task), task->port, address, sizeof address);
    (void)snprintf(out, size, "%s:%d (%s)", task->row->type_name, task->index, address);
}

static int check_dns_counts(const struct dns_pass *dns)
{
    const struct mu__dns_plan *plan = dns->plan;
    for (int type = 0; type < plan->types_count; type++)
        if (plan->tasks[type] != MU__DNS_ANY &&
            plan->tasks[type] != (unsigned)dns->next[type])
            return mu_error_set(dns->error, -MU_EUNAVAILABLE,
                                "job %s: DNS has %d of %u tasks", plan->types[type],
                                dns->next[type], plan->tasks[type]);
    return 0;
}

/* Refuse several addresses for a job of one task: which one is meant is not known. */
static int check_single_dns_job(const struct dns_pass *dns, const char *type)
{
    const struct task *first = NULL;
    char a[160];
    char b[160];

    for (size_t i = 0; i < dns->count; i++) {
        const struct task *task = &dns->items[i];

        if (strcmp(task->row->type_name, type) != 0)
            continue;
        if (first != NULL) {
            name_dns_task(dns->plan, first, a, sizeof a);
            name_dns_task(dns->plan, task, b, sizeof b);
            return mu_error_set(dns->error, -MU_EINVALID,
                                "%s: %.200s: expected one task, got %s and %s", type,
                                task->row->name, a, b);
        }
        first = task;
    }
    return 0;
}

static int make_cluster(const struct dns_pass *dns, mu_resolution *resolution)
{
    char what[320];
    int rv = check_dns_counts(dns);

    if (rv == 0)
        rv = check_single_dns_job(dns, "chief");
    if (rv == 0)
        rv = check_single_dns_job(dns, "evaluator");
    for (size_t i = 0; rv == 0 && i < dns->count; i++) {
        const struct task *task = &dns->items[i];

        describe_dns_row(task->row, what, sizeof what);
        rv = mu__resolution_add_host(resolution, what, task->row->type_name, task->index,
                                     get_dns_host(dns->plan, task), task->port,
                                     dns->error);
    }
    return rv;
}

/* ---- This task ---- */

/* The same host name, or the first part of it: a machine often calls itself "ps-0" while
 * others call it "ps-0.ps.example". */
static bool is_own_name(const char *own, const char *name)
{
    size_t size = strlen(own);

    for (size_t i = 0; i < size; i++)
        if (tolower((unsigned char)own[i]) != tolower((unsigned char)name[i]))
            return false;
    return size > 0 &&
           (name[size] == '\0' || (name[size] == '.' && strchr(own, '.') == NULL));
}

static bool may_be_own(const struct mu__dns_plan *plan, const struct task *task)
{
    return (plan->port == 0 || task->port == (unsigned)plan->port) &&
           (plan->task_type < 0 || task->row->type == plan->task_type) &&
           (plan->task_index < 0 || task->index == plan->task_index);
}

static int find_own_dns_task(const struct dns_pass *dns, const char *host,
                             const char *addresses, const struct task **ret_task)
{
    const struct task *found = NULL;
    char a[160];
    char b[160];

    for (size_t i = 0; i < dns->count; i++) {
        const struct task *task = &dns->items[i];

        if (!may_be_own(dns->plan, task) ||
            !((task->address[0] != '\0' &&
               mu__has_line(addresses, task->address, strlen(task->address))) ||
              is_own_name(host, task->name)))
            continue;
        if (found != NULL) {
            name_dns_task(dns->plan, found, a, sizeof a);
            name_dns_task(dns->plan, task, b, sizeof b);
            return mu_error_set(dns->error, -MU_EINVALID,
                                "this machine is both %s and %s: the setting port, or "
                                "task_type and task_index, must say which",
                                a, b);
        }
        found = task;
    }
    *ret_task = found;
    return 0;
}

/* The task is set; when the cluster has its job, it must have the task. */
static int check_own_dns_task(const struct dns_pass *dns)
{
    const struct mu__dns_plan *plan = dns->plan;
    int count = dns->next[plan->task_type];

    if (count == 0 || plan->task_index < count)
        return 0;
    return mu_error_set(dns->error, -MU_EUNAVAILABLE,
                        "this task is %s:%ld, and DNS has %d tasks of job %s",
                        plan->types[plan->task_type], plan->task_index, count,
                        plan->types[plan->task_type]);
}

static void set_own_dns_task(mu_resolution *resolution, const char *type, int index)
{
    MU__COPY_TEXT(resolution->task_type, type);
    resolution->task_index = index;
}

/* Find this task, if it is not set, by this machine's name and addresses. It need not
 * be in the cluster. */
static int find_dns_task(const struct dns_pass *dns, mu_resolution *resolution)
{
    const struct mu__dns_plan *plan = dns->plan;
    struct mu__request request = {
        .kind = MU__REQUEST_ADDRESSES, .timeout_ms = OWN_NAME_MS, .tries = 1};
    const struct mu__answer *answer = NULL;
    const struct task *own = NULL;
    int rv;

    if (plan->task_type >= 0 && plan->task_index >= 0) {
        set_own_dns_task(resolution, plan->types[plan->task_type], (int)plan->task_index);
        return check_own_dns_task(dns);
    }
    request.name = plan->host == NULL ? mu__request_host_name(dns->requests) : plan->host;
    if (request.name != NULL)
        answer = mu__requests_get(dns->requests, &request);
    if (answer != NULL && answer->code == -MU_ENOMEM)
        return dns_no_memory(dns);
    rv = find_own_dns_task(dns, request.name == NULL ? "" : request.name,
                           answer == NULL || answer->code != 0 ? "" : answer->data, &own);
    if (rv == 0 && own != NULL)
        set_own_dns_task(resolution, own->row->type_name, own->index);
    else if (rv == 0 && plan->task_type >= 0)
        set_own_dns_task(resolution, plan->types[plan->task_type],
                         dns->next[plan->task_type] == 1 ? 0 : -1);
    if (rv == 0 && own == NULL)
        mu__requests_explain(dns->requests, "this machine (%.100s) is none of the tasks",
                             request.name == NULL ? "without name" : request.name);
    return rv;
}

/* ---- The resolver ---- */

static int detect_dns(const struct mu__pass *pass, mu_error *ret_why)
{
    if (mu__dns_plan_given(pass))
        return 1;
    (void)mu_error_set(ret_why, -MU_ENOTFOUND, "MUSTER_DNS_NAMES is not set");
    return 0;
}

static int resolve_dns_plan(const struct mu__pass *pass, struct dns_pass *dns,
                            mu_resolution *resolution)
{
    int rv = mu__dns_plan_read(pass, dns->error, dns->plan);

    if (rv == 0)
        rv = list_dns_tasks(dns);
    if (rv == 0 && dns->plan->as_address)
        rv = find_addresses(dns);
    if (rv == 0)
        rv = make_cluster(dns, resolution);
    return rv == 0 ? find_dns_task(dns, resolution) : rv;
}

static int resolve_dns(const struct mu__pass *pass, mu_error *ret_error,
                       mu_resolution *ret_resolution)
{
    struct dns_pass dns = {.requests = pass->requests,
                           .plan = calloc(1, sizeof *dns.plan),
                           .error = ret_error};
    int rv;

    if (dns.plan == NULL)
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    rv = resolve_dns_plan(pass, &dns, ret_resolution);
    free(dns.items);
    free(dns.plan);
    return rv;
}

const struct mu__resolver_kind mu__resolver_dns = {
    .name = "dns",
    .summary = "names: their addresses, or the targets of their SRV records",
    .settings = mu__dns_settings,
    .detect = detect_dns,
    .resolve = resolve_dns,
    .watch_ms = WATCH_MS,
};
