/* The manifests of docs/resolvers/: what stands there is YAML, has what the text around
 * it says, and its variables lead to the cluster that the page shows. */
#include "resolver/cloud/kubernetes/yaml.h"
#include "resolver/kinds.h"
#include "tests/support/script.h"
#include "tests/support/test.h"

enum { PAGE_BYTES_MAX = 1 << 16 };

static char *read_page(const char *path)
{
    char *text = calloc(1, PAGE_BYTES_MAX);
    FILE *file = fopen(path, "r");
    size_t size;

    assert_non_null(text);
    if (file == NULL)
        fail_msg("%s is not there", path);
    size = fread(text, 1, PAGE_BYTES_MAX - 1, file);
    assert_true(size > 0 && size < PAGE_BYTES_MAX - 1);
    (void)fclose(file);
    return text;
}

/* The next block of a language behind *at, cut out of the page; NULL: there is none. */
static char *next_block(char **at, const char *language)
{
    char mark[32];
    char *start;
    char *end;

    (void)snprintf(mark, sizeof mark, "\n```%s\n", language);
    start = strstr(*at, mark);
    if (start == NULL)
        return NULL;
    start += strlen(mark);
    end = strstr(start, "\n```");
    assert_non_null(end);
    end[1] = '\0';
    *at = end + 2;
    return start;
}

static const cJSON *named(const cJSON *list, const char *name)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, list) if (
        strcmp(cJSON_GetStringValue(cJSON_GetObjectItem(item, "name")), name) ==
        0) return item;
    return NULL;
}

/* Each container of a pod has the cluster's key, from a secret: otherwise each pod would
 * make a key of its own, and refuse the others. */
static unsigned check_keys(const cJSON *pod)
{
    const cJSON *container;
    unsigned count = 0;

    cJSON_ArrayForEach(container, cJSON_GetObjectItem(pod, "containers"))
    {
        const cJSON *key =
            named(cJSON_GetObjectItem(container, "env"), "MUSTER_KEY_FILE");
        const cJSON *mount = named(cJSON_GetObjectItem(container, "volumeMounts"), "key");
        const char *path = cJSON_GetStringValue(cJSON_GetObjectItem(mount, "mountPath"));

        assert_non_null(key);
        assert_non_null(path);
        assert_memory_equal(cJSON_GetStringValue(cJSON_GetObjectItem(key, "value")), path,
                            strlen(path));
        count++;
    }
    if (count > 0)
        assert_non_null(cJSON_GetObjectItem(
            named(cJSON_GetObjectItem(pod, "volumes"), "key"), "secret"));
    return count;
}

/* Of all pods in a document, at any depth. */
static unsigned check_all_keys(const cJSON *item)
{
    unsigned count = check_keys(item);
    const cJSON *inner;

    cJSON_ArrayForEach(inner, item) count += check_all_keys(inner);
    return count;
}

/* Parse one document, of one of these kinds. Returns the number of its containers. */
static unsigned check_document(const char *text, size_t size, const char *kinds)
{
    const cJSON *kind;
    unsigned containers;
    cJSON *root;
    mu_error error;

    if (mu__yaml_parse(text, size, "page", &error, &root) != 0)
        fail_msg("%s in\n%.*s", error.message, (int)size, text);
    kind = cJSON_GetObjectItemCaseSensitive(root, "kind");
    assert_true(cJSON_IsString(kind));
    if (strstr(kinds, kind->valuestring) == NULL)
        fail_msg("nobody expects a %s", kind->valuestring);
    assert_true(cJSON_IsString(cJSON_GetObjectItemCaseSensitive(root, "apiVersion")));
    assert_true(cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(root, "metadata")));
    containers = check_all_keys(root);
    cJSON_Delete(root);
    return containers;
}

static void check_blocks(const char *path, const char *kinds, unsigned documents_count,
                         unsigned containers_count)
{
    char *page = read_page(path);
    char *at = page;
    unsigned documents = 0;
    unsigned containers = 0;

    for (char *block = next_block(&at, "yaml"); block != NULL;
         block = next_block(&at, "yaml")) {
        while (block != NULL) {
            char *end = strstr(block, "\n---\n");

            containers += check_document(
                block, end == NULL ? strlen(block) : (size_t)(end - block) + 1, kinds);
            documents++;
            block = end == NULL ? NULL : end + 5;
        }
    }
    free(page);
    assert_int_equal(documents, documents_count);
    assert_int_equal(containers, containers_count);
}

TEST(test_yaml_of_the_pages)
{
    check_blocks("docs/resolvers/kubernetes.md",
                 "Service Job StatefulSet JobSet ServiceAccount Role RoleBinding", 9, 4);
    check_blocks("docs/resolvers/kubeflow.md", "TFJob", 1, 3);
}

/* What the Indexed Job sets comes to the cluster behind it. */
TEST(test_indexed_job_of_the_page)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("MUSTER_KUBERNETES_JOB_SERVICE", "train"),
        SCRIPT_VARIABLE("MUSTER_KUBERNETES_JOB_TASKS", "4"),
        SCRIPT_VARIABLE("MUSTER_KUBERNETES_JOB_JOBS", "chief=1,worker=*"),
        SCRIPT_VARIABLE("JOB_COMPLETION_INDEX", "2"),
        SCRIPT_VARIABLE("HOSTNAME", "train-2"),
        SCRIPT(ADDRESSES, .name = "train-0.train", .text = "10.0.0.1\n"),
        SCRIPT_END,
    };
    char *page = read_page("docs/resolvers/kubernetes.md");
    char *at = page;
    char *block = next_block(&at, "json");
    mu_cluster *cluster;
    mu_error error;
    char *json;

    assert_non_null(block);
    assert_int_equal(mu_cluster_parse(block, strlen(block), "page", &error, &cluster), 0);
    json = mu_cluster_to_json(cluster);
    for (size_t i = 0; i < 3; i++)
        if (strstr(page, rows[i].name) == NULL)
            fail_msg("%s is not in the page", rows[i].name);
    script_expect(&mu__resolver_kubernetes_job, rows, NULL, json, "worker:1");
    free(json);
    mu_cluster_free(cluster);
    free(page);
}

/* The TF_CONFIG of a TFJob, with its "environment": "cloud". */
TEST(test_tf_config_of_a_tfjob)
{
    char *page = read_page("docs/resolvers/kubeflow.md");
    char *at = page;
    char *block = next_block(&at, "json");
    const struct script_row rows[] = {SCRIPT_VARIABLE("TF_CONFIG", block), SCRIPT_END};
    mu_resolution resolution;
    mu_error error;

    assert_non_null(block);
    script_expect(&mu__resolver_tf_config, rows, NULL,
                  "{\"chief\":[\"train-chief-0.training.svc:2222\"],"
                  "\"ps\":[\"train-ps-0.training.svc:2222\"],"
                  "\"worker\":[\"train-worker-0.training.svc:2222\","
                  "\"train-worker-1.training.svc:2222\"]}",
                  "worker:1");
    assert_int_equal(
        script_resolve(&mu__resolver_tf_config, rows, NULL, &error, &resolution), 0);
    assert_string_equal(resolution.environment, "cloud");
    mu_cluster_free(resolution.cluster);
    free(page);
}

TEST_PROGRAM()
