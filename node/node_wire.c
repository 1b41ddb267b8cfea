#include "node/node_wire.h"

#include "runtime/base/text.h"
#include "transport/wire/url.h"

#include <stdio.h>
#include <string.h>

static bool is_text_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static int refuse_wire(const char *text, mu_error *ret_error)
{
    char shown[MU__QUOTE_BYTES];

    mu__quote(shown, sizeof shown, text, strlen(text));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "option wire is %s, expected \"uv\" or \"nng\"", shown);
}

static bool has_task_of_nng(const mu_cluster *cluster)
{
    size_t count = mu_cluster_task_count(cluster, NULL);
    const char *address;
    const char *type;
    int index;

    for (size_t i = 0; i < count; i++)
        if (mu_cluster_task_at(cluster, i, &type, &index, &address) == 0 &&
            mu__url_is_of_nng(address))
            return true;
    return false;
}

static bool dials_nng(const struct mu__node_wire_urls *urls)
{
    const char *const *url = urls->dials_each;

    for (; url != NULL && *url != NULL; url++)
        if (mu__url_is_of_nng(*url))
            return true;
    return urls->dials_any != NULL && mu__url_is_of_nng(urls->dials_any);
}

int mu__node_wire_choose(const mu_node_options *options,
                         const struct mu__node_wire_urls *urls, mu_error *ret_error,
                         bool *ret_is_nng)
{
    bool is_of_nng = urls->bind != NULL && mu__url_is_of_nng(urls->bind);
    bool is_nng = is_of_nng || dials_nng(urls) || has_task_of_nng(options->cluster);

    if (is_text_set(options->wire)) {
        is_nng = strcmp(options->wire, "nng") == 0;
        if (!is_nng && strcmp(options->wire, "uv") != 0)
            return refuse_wire(options->wire, ret_error);
    }
    if (is_of_nng && !is_nng)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "cannot listen at %s: the wire \"uv\" has tcp:// and ipc://; "
                            "leave the option wire out, or set it to \"nng\"",
                            urls->bind);
    if (is_nng && options->insecure == 0 && !is_text_set(options->tls_ca))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "the wire of nng's sockets proves itself by certificates, "
                            "not by a key: set tls_ca, tls_certificate, tls_private_key "
                            "and tls_any_task, or insecure, with which it speaks "
                            "plain; or take the wire \"uv\"");
    if (is_nng && is_text_set(options->tls_ca) && options->tls_any_task == 0)
        return mu_error_set(
            ret_error, -MU_EINVALID,
            "the wire of nng's sockets does not learn which task a peer's "
            "certificate names, nor its unit: with tls_any_task 1 each "
            "certificate of the CA may be each task there; or take the wire \"uv\"");
    *ret_is_nng = is_nng;
    return 0;
}

static int open_nng(const char *bind_url, struct mu__listening *listening,
                    const struct mu__tls_pem *pem, uv_loop_t *loop,
                    const struct mu__wire_events *events, void *owner,
                    mu_error *ret_error, struct mu__wire_nng **ret_wire)
{
    char url[sizeof listening->text];
    bool listens = listening->fd >= 0 || bind_url != NULL;

    (void)snprintf(url, sizeof url, "%s",
                   listening->fd >= 0 ? listening->text
                   : listens          ? bind_url
                                      : "");
    mu__listening_close(listening);
    return mu__wire_nng_open(loop, listens ? url : NULL, pem, events, owner, ret_error,
                             ret_wire);
}

int mu__node_wire_open(bool is_nng, const char *bind_url, struct mu__listening *listening,
                       const struct mu__tls_pem *pem, uv_loop_t *loop,
                       const struct mu__wire_events *events, void *owner,
                       mu_error *ret_error, struct mu__node_wire *ret_wire)
{
    *ret_wire = (struct mu__node_wire){NULL, NULL};
    if (is_nng)
        return open_nng(bind_url, listening, pem, loop, events, owner, ret_error,
                        &ret_wire->nng);
    if (listening->fd >= 0)
        return mu__wire_uv_adopt(loop, listening, events, owner, ret_error,
                                 &ret_wire->uv);
    if (bind_url == NULL)
        return mu__wire_uv_open_deaf(loop, events, owner, ret_error, &ret_wire->uv);
    return mu__wire_uv_open(loop, bind_url, events, owner, ret_error, &ret_wire->uv);
}

void mu__node_wire_secure(const struct mu__node_wire *wire,
                          const struct mu__tls_source *source)
{
    if (wire->uv != NULL)
        mu__wire_uv_secure(wire->uv, source);
}

struct mu__wire *mu__node_wire_door(const struct mu__node_wire *wire)
{
    return wire->nng != NULL ? mu__wire_nng_wire(wire->nng) : mu__wire_uv_wire(wire->uv);
}

const char *mu__node_wire_url(const struct mu__node_wire *wire)
{
    return wire->nng != NULL ? mu__wire_nng_url(wire->nng) : mu__wire_uv_url(wire->uv);
}

void mu__node_wire_close(struct mu__node_wire *wire, void (*closed)(void *arg), void *arg)
{
    if (wire->nng != NULL)
        mu__wire_nng_close(wire->nng, closed, arg);
    else
        mu__wire_uv_close(wire->uv, closed, arg);
}
