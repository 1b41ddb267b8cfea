/* Settings that plugins give a node, and why its program has failed. */
#include "node/node.h"
#include "runtime/message/arguments.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- why the program has failed ---- */

void mu__node_note_error(mu_node *node, const mu_error *error)
{
    uv_thread_t self = uv_thread_self();

    uv_mutex_lock(&node->lock);
    if (error->code == -MU_EUNAVAILABLE && error->kind == MU_ERROR_SERVER)
        node->program.reasons.server = *error;
    if (node->program.reasons.runs &&
        uv_thread_equal(&self, &node->program.reasons.thread) != 0)
        node->program.reasons.call = *error;
    uv_mutex_unlock(&node->lock);
}

int mu_node_fail_with(mu_node *node, const mu_error *error)
{
    if (node == NULL || error == NULL)
        return -MU_EINVALID;
    uv_mutex_lock(&node->lock);
    node->program.reasons.given = *error;
    if (error->code >= 0)
        node->program.reasons.given.code = -MU_EUNKNOWN;
    uv_mutex_unlock(&node->lock);
    return error->code < 0 ? error->code : -MU_EUNKNOWN;
}

int mu_node_fail(mu_node *node, int code, const char *format, ...)
{
    mu_error error = {.code = code};
    va_list args;

    va_start(args, format);
    (void)vsnprintf(error.message, sizeof error.message, format == NULL ? "" : format,
                    args);
    va_end(args);
    return mu_node_fail_with(node, &error);
}

/* ---- settings ---- */

int mu_node_set_setting(mu_node *node, const char *key, const char *value)
{
    MU__REQUIRE(NULL, node, key, value);

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
    s->next = node->program.settings;
    node->program.settings = s;
    return 0;
}

const char *mu_node_get_setting(const mu_node *node, const char *key)
{
    MU__REQUIRE_OR(NULL, node, key);
    for (const struct mu__setting *s = node->program.settings; s != NULL; s = s->next)
        if (strcmp(s->key, key) == 0)
            return s->value;
    return NULL;
}
