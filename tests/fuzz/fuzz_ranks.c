/* Any bytes as an environment, "NAME=VALUE" lines, for the resolvers that read nothing
 * else: an error in words, or a cluster that has this task or that it may join. */
#include "resolver/engine/kind.h"
#include "resolver/kinds.h"
#include "resolver/spec/cluster.h"
#include "tests/fuzz/must.h"
#include "tests/support/fake_sources.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct world {
    struct fake_sources sources; /* first: it casts */
    const char *text;
};

/* The rest of the line that begins with NAME=. */
static char *find(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = text; *at != '\0';) {
        size_t line = strcspn(at, "\n");

        if (line > length && strncmp(at, name, length) == 0 && at[length] == '=')
            return strndup(at + length + 1, line - length - 1);
        at += line + (at[line] == '\n');
    }
    return NULL;
}

/* Files and folders are lines, too: "/path=content". */
static void answer_line(struct fake_sources *sources, struct mu__exchange *exchange)
{
    struct world *world = (struct world *)sources;
    struct mu__answer *answer = &exchange->answer;

    answer->data = exchange->request.kind == MU__REQUEST_HOST_NAME
                       ? strdup("host")
                       : find(world->text, exchange->request.name);
    if (answer->data == NULL)
        answer->code = mu_error_set(&answer->error, -MU_ENOTFOUND, "not there");
    else
        answer->size = strlen(answer->data);
}

/* A host of SageMaker may be in a group that is no job: then it is no task. */
static bool is_no_task(const struct mu__resolver_kind *kind,
                       const mu_resolution *resolution)
{
    return kind == &mu__resolver_sagemaker && resolution->task_type[0] == '\0' &&
           resolution->task_index == -1;
}

static void check(const struct mu__resolver_kind *kind, int rv, const mu_error *error,
                  const mu_resolution *resolution)
{
    const mu_cluster *cluster = resolution->cluster;
    const char *type = resolution->task_type;

    if (rv != 0) {
        must(rv == error->code && error->message[0] != '\0', "words");
        return;
    }
    if (cluster == NULL || is_no_task(kind, resolution))
        return;
    must(type[0] != '\0' && resolution->task_index >= 0, "task");
    must(mu_cluster_address(cluster, type, resolution->task_index) != NULL ||
             (mu__cluster_may_join(cluster, type, resolution->task_index) &&
              resolution->bind_address[0] != '\0'),
         "place");
}

static void resolve(const struct mu__resolver_kind *kind, struct mu__requests *requests)
{
    struct mu__settings settings;
    mu_resolution resolution;
    mu_error error = {0};
    mu_error why;
    int rv;

    must(mu__settings_init(&settings, kind->name, kind->settings) == 0, "memory");
    mu__requests_begin_pass(requests, kind->name);
    rv = kind->detect(&(struct mu__pass){requests, &settings}, &why);
    must(rv == 1 || (rv == 0 && why.message[0] != '\0'), "detection");
    mu_resolution_init(&resolution);
    rv = kind->resolve(&(struct mu__pass){requests, &settings}, &error, &resolution);
    check(kind, rv, &error, &resolution);
    mu_cluster_free(resolution.cluster);
    mu__settings_done(&settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mu__resolver_kind *const kinds[] = {
        &mu__resolver_environment, &mu__resolver_sagemaker, &mu__resolver_slurm,
        &mu__resolver_open_mpi, &mu__resolver_mpich};
    char *text = strndup((const char *)data, size);
    struct world world = {.text = text};
    struct mu__requests *requests;

    must(text != NULL, "memory");
    fake_sources_init(&world.sources, answer_line);
    must(mu__requests_new(&world.sources.base, NULL, &requests) == 0, "memory");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        resolve(kinds[i], requests);
    mu__requests_free(requests);
    free(text);
    return 0;
}
