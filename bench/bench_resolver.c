/* How long it takes to learn of a large cluster.
 *
 * A TF_CONFIG of 10,000 tasks is parsed and validated; the limit is what cJSON takes for
 * the same text without looking at what it says. The same cluster is found once more by
 * the public call, with its loop and its notes, from the variable. */
#include "bench/bench.h"

#include <muster/resolver.h>

#include <cjson/cJSON.h>

enum { RUNS = 15 };

static void die(const char *what, const char *words)
{
    (void)fprintf(stderr, "%s: %s\n", what, words);
    exit(1);
}

/* A tenth are parameter servers; names are as long as those of a cloud. */
static char *make_text(unsigned tasks)
{
    size_t room = 200 + tasks * (size_t)64;
    char *text = malloc(room);
    size_t used;

    if (text == NULL)
        die("text", "out of memory");
    used = (size_t)snprintf(text, room, "{\"cluster\": {\"worker\": [");
    for (unsigned i = 0; i < tasks; i++) {
        bool turns = i == tasks - tasks / 10;

        used += (size_t)snprintf(text + used, room - used,
                                 "%s\"training-job-%u.pool.example.internal:2222\"",
                                 i == 0  ? ""
                                 : turns ? "], \"ps\": ["
                                         : ", ",
                                 i);
    }
    used += (size_t)snprintf(text + used, room - used,
                             "]}, \"task\": {\"type\": \"worker\", \"index\": 7}}");
    return text;
}

static size_t parse_ours(const char *text, size_t size)
{
    mu_tf_config config;
    mu_error error;
    size_t count;

    if (mu_tf_config_parse(text, size, &error, &config) != 0 ||
        mu_cluster_validate(config.cluster, config.task_type, config.task_index,
                            &error) != 0)
        die("TF_CONFIG", error.message);
    count = mu_cluster_task_count(config.cluster, NULL);
    mu_cluster_free(config.cluster);
    return count;
}

static size_t parse_bare(const char *text, size_t size)
{
    cJSON *root = cJSON_ParseWithLength(text, size);
    size_t count;

    if (root == NULL)
        die("cJSON", "does not parse it");
    count = (size_t)cJSON_GetArraySize(root);
    cJSON_Delete(root);
    return count;
}

/* By the public call; the text is in the environment. */
static size_t resolve(const char *text, size_t size)
{
    mu_resolver *resolver = NULL;
    mu_cluster *cluster = NULL;
    mu_error error;
    size_t count;

    (void)text;
    (void)size;
    if (mu_resolver_new("tf_config", &error, &resolver) != 0 ||
        mu_resolver_cluster(resolver, 1000, &error, &cluster) != 0)
        die("resolver", error.message);
    count = mu_cluster_task_count(cluster, NULL);
    mu_cluster_free(cluster);
    mu_resolver_free(resolver);
    return count;
}

static double median_ms(size_t (*work)(const char *text, size_t size), const char *text,
                        unsigned runs, size_t expected)
{
    uint64_t samples[RUNS];
    size_t size = strlen(text);

    for (unsigned i = 0; i < runs; i++) {
        uint64_t start_ns = bench_now_ns();

        if (work(text, size) != expected)
            die("tasks", "not as many as there should be");
        samples[i] = bench_now_ns() - start_ns;
    }
    return (double)bench_median(samples, runs) / 1e6;
}

int main(void)
{
    unsigned tasks = (unsigned)bench_size(1000, 10000);
    unsigned runs = (unsigned)bench_size(1, RUNS);
    char *text = make_text(tasks);
    double bare_ms = median_ms(parse_bare, text, runs, 2);
    struct bench_line line = {.bench = "resolver",
                              .unit = "ms",
                              .less_is_more = true,
                              .limit = bare_ms,
                              .target = 20.0};

    line.metric = "tf_config_10000_tasks";
    line.value = median_ms(parse_ours, text, runs, tasks);
    bench_report(&line);

    /* The environment has at most 128 KiB for one variable. */
    free(text);
    text = make_text((unsigned)bench_size(1000, 2000));
    if (setenv("TF_CONFIG", text, 1) != 0)
        die("TF_CONFIG", "cannot be set");
    line.metric = "resolve_2000_tasks";
    line.limit = 0.0;
    line.target = 0.0;
    line.value = median_ms(resolve, text, runs, bench_size(1000, 2000));
    bench_report(&line);
    free(text);
    return 0;
}
