/* Any bytes as YAML and as a kubeconfig: an error in words, or a tree that JSON can write
 * and YAML read again, the same. */
#include "resolver/cloud/kubernetes/kubeconfig.h"
#include "resolver/cloud/kubernetes/yaml.h"
#include "tests/fuzz/must.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int rv, const mu_error *error)
{
    must(rv == error->code && rv < 0 && rv != -MU_ENOMEM, "code");
    must(error->message[0] != '\0', "words");
}

/* Ends of lines for YAML, which a text of JSON may have as they are. */
static bool has_odd_break(const char *text)
{
    return strstr(text, "\xc2\x85") != NULL || strstr(text, "\xe2\x80\xa8") != NULL ||
           strstr(text, "\xe2\x80\xa9") != NULL;
}

/* libyaml takes no pairs of surrogates and no raw control characters, and cJSON writes
 * neither the first nor leaves the second: JSON of a tree is YAML of the same tree. */
static void check_tree(const cJSON *root)
{
    char *written = cJSON_PrintUnformatted(root);
    cJSON *again = NULL;
    mu_error error;

    must(written != NULL, "memory");
    if (mu__yaml_parse(written, strlen(written), "again", &error, &again) != 0) {
        (void)fprintf(stderr, "%s\n%s\n", error.message, written);
        must(false, "written and read again");
    }
    must(has_odd_break(written) || cJSON_Compare(root, again, 1), "the same");
    cJSON_Delete(again);
    cJSON_free(written);
}

static void check_kubeconfig(const uint8_t *data, size_t size)
{
    struct mu__kubeconfig_file file = {"/folder/config", NULL};
    struct mu__kube_access access;
    cJSON *root;
    mu_error error;
    int rv = mu__kubeconfig_parse((const char *)data, size, file.path, &error, &root);

    if (rv != 0) {
        check(rv, &error);
        return;
    }
    file.root = root;
    rv = mu__kubeconfig_find(&file, 1, NULL, true, &error, &access);
    if (rv == 0) {
        must(access.server != NULL && strncmp(access.server, "http", 4) == 0, "server");
        mu__kube_access_done(&access);
    } else {
        check(rv, &error);
    }
    cJSON_Delete(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cJSON *root = NULL;
    mu_error error;
    int rv = mu__yaml_parse((const char *)data, size, "fuzz", &error, &root);

    if (rv == 0)
        check_tree(root);
    else
        check(rv, &error);
    must(rv == 0 || root == NULL, "untouched");
    cJSON_Delete(root);
    check_kubeconfig(data, size);
    return 0;
}
