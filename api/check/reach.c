/* A check as a client of every node that answers: the handshake names the task, and its
 * peers actor reports which tasks it reaches. This client's cluster spec is empty. */
#include "api/check/cluster_check.h"

#include "actors/messages.h"
#include "node/node.h"
#include "resolver/spec/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    INDEX_FIRST = 100000, /* of this client: above the indices of other clients */
    INDEX_COUNT = 900000,
    CLOSE_MS = 500,
    LOOK_MS = 5 /* between polls of the links */
};

/* ---- opening ---- */

static int open_check_node(struct cluster_check *check, mu_error *error,
                           mu_node **ret_node)
{
    const char **urls = calloc(check->links_count + 1, sizeof *urls);
    const struct mu__node_extra extra = {.dials_each = urls};
    mu_cluster *none = mu_cluster_new();
    mu_node_options options;
    int rv = -MU_ENOMEM;

    (void)mu_error_set(error, rv, "out of memory");
    if (urls != NULL && none != NULL) {
        for (size_t i = 0; i < check->links_count; i++)
            urls[i] = check->links[i].url;
        options = *check->options;
        options.cluster = none;
        options.resolver = NULL;
        options.service_hosts = "none";
        options.bind_address = NULL;
        options.advertise_address = NULL;
        options.loop = NULL;
        options.journal = NULL;
        options.store = NULL;
        options.task_type = "client";
        options.task_index = INDEX_FIRST + (int)(uv_os_getpid() % INDEX_COUNT);
        rv = mu__node_open(&options, &extra, NULL, error, ret_node);
    }
    mu_cluster_free(none);
    free(urls);
    return rv;
}

/* ---- which tasks answer ---- */

static struct check_link *find_link(struct cluster_check *check, const char *url)
{
    for (size_t i = 0; i < check->links_count; i++)
        if (strcmp(check->links[i].url, url) == 0)
            return &check->links[i];
    return NULL;
}

static const char *text_of(const mu_value *map, const char *key)
{
    const char *text = "";
    size_t size;

    (void)mu_value_get_string(mu_value_find(map, key), &text, &size);
    return text;
}

/* Note the state of a link. Once it was up, a later loss does not matter here. */
static void note_link(struct cluster_check *check, const mu_value *peer,
                      uint32_t since_ms)
{
    struct check_link *link = find_link(check, text_of(peer, "address"));
    const char *why = text_of(peer, "why");
    int64_t index = 0;

    if (link == NULL || link->is_over)
        return;
    if (strcmp(text_of(peer, "state"), "up") == 0) {
        (void)mu_value_get_int(mu_value_find(peer, "index"), &index);
        mu__task_name(link->task, sizeof link->task, text_of(peer, "type"), (int)index);
        link->is_up = true;
        link->is_over = true;
        link->took_ms = since_ms;
    } else if (strncmp(why, "it refused us", 13) == 0) {
        (void)snprintf(link->why, sizeof link->why, "%s", why);
        link->is_over = true;
        link->took_ms = since_ms;
    }
}

static int read_check_links(struct cluster_check *check, mu_node *node, uint32_t since_ms,
                            bool *ret_all)
{
    struct mu__peers_call call = {.call = {.operation = MU__PEERS_OWN, .timeout_ms = -1}};
    int rv = mu__node_call(node, MU__PEERS, &call.call, NULL);

    if (rv != 0)
        return rv;
    for (size_t i = 0; i < mu_value_count(call.found); i++)
        note_link(check, mu_value_at(call.found, i), since_ms);
    mu_value_free(call.found);
    *ret_all = true;
    for (size_t i = 0; i < check->links_count; i++)
        *ret_all = *ret_all && check->links[i].is_over;
    return 0;
}

static uint32_t ms_since(uint64_t begin)
{
    return (uint32_t)((uv_hrtime() - begin) / 1000000);
}

static void await_check_links(struct cluster_check *check, mu_node *node)
{
    const struct timespec moment = {0, LOOK_MS * 1000000};
    uint32_t timeout_ms = check->timeout_ms;
    uint64_t begin = uv_hrtime();
    bool all = false;

    while (read_check_links(check, node, ms_since(begin), &all) == 0 && !all &&
           ms_since(begin) < timeout_ms)
        (void)nanosleep(&moment, NULL);
    for (size_t i = 0; i < check->links_count; i++) {
        struct check_link *link = &check->links[i];

        if (link->is_over)
            continue;
        link->took_ms = ms_since(begin);
        (void)snprintf(link->why, sizeof link->why,
                       "a node of muster answers, but does not say which task it is");
    }
}

/* ---- which tasks they reach ---- */

static void request_peers(struct cluster_check *check, mu_node *node)
{
    struct mu__peers_call call = {
        .call =
            {
                .operation = MU__PEERS_ALL,
                .timeout_ms = check->timeout_ms,
            },
    };

    if (mu__node_call(node, MU__PEERS, &call.call, NULL) == 0)
        check->peers = call.found;
    else
        mu__problems_add(&check->problems, MU__PROBLEM_ERROR,
                         "the tasks cannot be asked whom they reach: %s",
                         call.call.error.message);
}

void mu__check_links(struct cluster_check *check)
{
    mu_error error;
    mu_node *node;

    if (check->links_count == 0)
        return;
    if (open_check_node(check, &error, &node) != 0) {
        mu__problems_add(&check->problems, MU__PROBLEM_ERROR,
                         "tasks that answer cannot be asked who they are: %s",
                         error.message);
        return;
    }
    await_check_links(check, node);
    request_peers(check, node);
    (void)mu_node_close(node, CLOSE_MS, NULL);
}
