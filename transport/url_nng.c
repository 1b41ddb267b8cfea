/* nng takes an address apart; what it lets through is looked at here. */
#include "transport/url_nng.h"

#include <nng/nng.h>
#include <string.h>

enum { PORT_MAX = 65535, PORT_DIGITS_MAX = 5, IPC_PATH_MAX = 107 };

static bool is_port(const char *text, bool listening)
{
    unsigned long port = 0;

    if (text == NULL || text[0] == '\0' || strlen(text) > PORT_DIGITS_MAX)
        return false;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c < '0' || *c > '9')
            return false;
        port = port * 10 + (unsigned long)(*c - '0');
    }
    return port <= PORT_MAX && (port > 0 || listening);
}

static bool is_host(const char *text)
{
    if (text == NULL || text[0] == '\0')
        return false;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~')
            return false;
    }
    return true;
}

static const char *tcp_fault(const nng_url *url, bool listening)
{
    if (!is_host(url->u_hostname))
        return "a host is missing";
    if (!is_port(url->u_port, listening))
        return "the port must be a number up to 65535";
    if (url->u_path != NULL && url->u_path[0] != '\0')
        return "nothing may follow the port";
    return NULL;
}

static const char *ipc_fault(const nng_url *url, bool listening)
{
    (void)listening;
    if (url->u_path == NULL || url->u_path[0] != '/')
        return "an absolute path must follow";
    if (strlen(url->u_path) > IPC_PATH_MAX)
        return "the path of a socket has at most 107 bytes";
    return NULL;
}

static const struct {
    const char *scheme;
    const char *(*fault)(const nng_url *url, bool listening);
} schemes[] = {{"tcp", tcp_fault}, {"ipc", ipc_fault}};

const char *mu__url_fault(const char *text, bool listening)
{
    const char *fault = "it must begin with tcp:// or ipc://";
    nng_url *url;

    if (nng_url_parse(&url, text) != 0)
        return "it must read tcp://host:port or ipc:///path";
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strcmp(url->u_scheme, schemes[i].scheme) == 0)
            fault = schemes[i].fault(url, listening);
    }
    nng_url_free(url);
    return fault;
}
