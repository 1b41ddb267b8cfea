/* Plugins, programs and settings: what a node does beyond serving. */
#include "node/node.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int mu_node_program(mu_node *node, const char *task_type, mu_program_fn program,
                    void *user)
{
    struct mu__program *p;

    if (task_type == NULL || program == NULL || strlen(task_type) >= sizeof p->type)
        return -MU_EINVALID;
    for (p = node->programs; p != NULL; p = p->next)
        if (strcmp(p->type, task_type) == 0)
            return -MU_EEXISTS;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return -MU_ENOMEM;
    (void)snprintf(p->type, sizeof p->type, "%s", task_type);
    p->program = program;
    p->user = user;
    p->next = node->programs;
    node->programs = p;
    return 0;
}

static const struct mu__program *own_program(const mu_node *node)
{
    const struct mu__program *p = node->programs;
    char prefix[32];

    for (; p != NULL; p = p->next) {
        (void)snprintf(prefix, sizeof prefix, "/job:%s/", p->type);
        if (strncmp(node->member.task, prefix, strlen(prefix)) == 0)
            return p;
    }
    return NULL;
}

/* A program has only a code to return. When that says unavailable, and a parameter server
 * was, the error is the server's. */
static int program_failed(mu_node *node, int rv, mu_error *ret_error)
{
    mu_error server = mu__node_server_error(node);
    int code = rv < 0 ? rv : -MU_EUNKNOWN;

    if (rv != -MU_EUNAVAILABLE || server.code == 0)
        return mu_error_set(ret_error, code, "the program of %s ended with %s (%d)",
                            node->member.task, mu_err_name(rv), rv);
    (void)mu_error_set(ret_error, code, "the program of %s ended with %s: %.400s",
                       node->member.task, mu_err_name(rv), server.message);
    if (ret_error != NULL) {
        ret_error->kind = server.kind;
        memcpy(ret_error->task, server.task, sizeof server.task);
    }
    return code;
}

int mu_node_main(mu_node *node, mu_error *ret_error)
{
    const struct mu__program *program = own_program(node);
    mu_error job = {0};
    int rv;

    if (node->distribute != NULL)
        return mu__node_run_distributed(node, ret_error);
    (void)mu_node_serve(node);
    if (program != NULL) {
        rv = program->program(node, program->user);
        return rv == 0 ? 0 : program_failed(node, rv, ret_error);
    }
    rv = mu_node_wait_job(node, -1, &job);
    if (ret_error != NULL && (rv != 0 || job.code != 0))
        *ret_error = job;
    return rv != 0 ? rv : job.code;
}

int mu_node_set(mu_node *node, const char *key, const char *value)
{
    struct mu__setting *s = calloc(1, sizeof *s);

    if (s == NULL)
        return -MU_ENOMEM;
    s->key = strdup(key);
    s->value = strdup(value);
    if (s->key == NULL || s->value == NULL) {
        free(s->key);
        free(s->value);
        free(s);
        return -MU_ENOMEM;
    }
    s->next = node->settings;
    node->settings = s;
    return 0;
}

const char *mu_node_setting(const mu_node *node, const char *key)
{
    for (const struct mu__setting *s = node->settings; s != NULL; s = s->next)
        if (strcmp(s->key, key) == 0)
            return s->value;
    return NULL;
}

/* A plugin stays loaded: its functions may still be running when a node is closed. */
int mu_node_load(mu_node *node, const char *path, mu_error *ret_error)
{
    mu_plugin_open_fn open_plugin;
    struct stat status;
    void *handle;
    int rv;

    /* The loader would wait for somebody who writes into a pipe. */
    if (strchr(path, '/') != NULL && stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return mu_error_set(ret_error, -MU_EINVALID, "plugin \"%s\" does not load: it is "
                            "no regular file", path);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (handle == NULL)
        return mu_error_set(ret_error, -MU_ENOTFOUND, "plugin \"%s\" does not load: %s",
                            path, dlerror());
    *(void **)&open_plugin = dlsym(handle, "mu_plugin_open");
    if (open_plugin == NULL) {
        (void)dlclose(handle);
        return mu_error_set(ret_error, -MU_ENOTFOUND,
                            "plugin \"%s\" has no function \"mu_plugin_open\"", path);
    }
    rv = open_plugin(node);
    if (rv == 0)
        return 0;
    return mu_error_set(ret_error, rv < 0 ? rv : -MU_EUNKNOWN,
                        "plugin \"%s\" could not be opened: mu_plugin_open returned %d "
                        "(%s)", path, rv, mu_strerror(rv));
}
