#include "transport/wire/url.h"

#include <stdlib.h>
#include <string.h>

enum { PORT_DIGITS_MAX = 5, PORT_MAX = 65535 };

static bool is_url_part(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '/')
            return false;
    return size > 0;
}

static const char *parse_port(const char *text, bool listening, uint16_t *ret_port)
{
    size_t digits = strspn(text, "0123456789");
    unsigned long port = strtoul(text, NULL, 10);

    if (digits == 0 || digits > PORT_DIGITS_MAX || text[digits] != '\0' ||
        port > PORT_MAX)
        return "the port must be a number up to 65535, with nothing behind it";
    if (port == 0 && !listening)
        return "port 0 can be listened on, but not be reached";
    *ret_port = (uint16_t)port;
    return NULL;
}

/* "host:port" or "[v6]:port". */
static const char *parse_tcp(const char *text, bool listening, struct mu__url *url)
{
    const char *host = text;
    const char *end = strrchr(text, ':');
    size_t size;

    if (end == NULL)
        return "host and port must follow, as in tcp://host:port";
    size = (size_t)(end - host);
    if (host[0] == '[') {
        if (size < 3 || host[size - 1] != ']')
            return "a bracket is missing";
        host++;
        size -= 2;
    } else if (memchr(host, ':', size) != NULL) {
        return "an address of IPv6 must stand in brackets";
    }
    if (!is_url_part(host, size) || size > MU__URL_HOST_MAX)
        return "a host of at most 253 plain characters must stand before the port";
    memcpy(url->host, host, size);
    url->host[size] = '\0';
    return parse_port(end + 1, listening, &url->port);
}

static const char *parse_ipc(const char *text, bool listening, struct mu__url *url)
{
    size_t size = strlen(text);

    (void)listening;
    if (text[0] != '/')
        return "an absolute path must follow";
    if (size > MU__URL_PATH_MAX)
        return "the path of a socket has at most 107 bytes";
    memcpy(url->path, text, size + 1);
    url->ipc = true;
    return NULL;
}

/* "inproc://name". */
static const char *parse_name(const char *text, bool listening, struct mu__url *url)
{
    size_t size = strlen(text);

    (void)listening;
    if (!is_url_part(text, size) || size > MU__URL_PATH_MAX)
        return "a name of at most 107 plain characters must follow";
    memcpy(url->path, text, size + 1);
    return NULL;
}

static const struct scheme {
    const char *name;
    const char *(*parse)(const char *text, bool listening, struct mu__url *url);
} schemes[MU__SCHEMES_END] = {
    [MU__SCHEME_TCP] = {"tcp", parse_tcp},
    [MU__SCHEME_IPC] = {"ipc", parse_ipc},
    [MU__SCHEME_TLS_TCP] = {"tls+tcp", parse_tcp},
    [MU__SCHEME_WS] = {"ws", parse_tcp},
    [MU__SCHEME_WSS] = {"wss", parse_tcp},
    [MU__SCHEME_INPROC] = {"inproc", parse_name},
};

const char *mu__scheme_name(enum mu__scheme scheme)
{
    return schemes[scheme].name;
}

/* The text behind "://" of one of the first `count` schemes, and which it is; NULL: it is
 * of none. */
static const char *scheme_of(const char *text, unsigned count,
                             enum mu__scheme *ret_scheme)
{
    for (unsigned i = 0; i < count; i++) {
        size_t size = strlen(schemes[i].name);

        if (strncmp(text, schemes[i].name, size) != 0 ||
            strncmp(text + size, "://", 3) != 0)
            continue;
        *ret_scheme = (enum mu__scheme)i;
        return text + size + 3;
    }
    return NULL;
}

static const char *parse_url(const char *text, unsigned count, bool listening,
                             struct mu__url *ret_url)
{
    struct mu__url url = {0};
    const char *rest = scheme_of(text, count, &url.scheme);
    const char *fault;

    if (rest == NULL)
        return count == MU__SCHEMES_END
                   ? "it must begin with tcp://, ipc://, tls+tcp://, ws://, wss:// or "
                     "inproc://"
                   : "it must begin with tcp:// or ipc://";
    fault = schemes[url.scheme].parse(rest, listening, &url);
    if (fault == NULL)
        *ret_url = url;
    return fault;
}

const char *mu__url_parse(const char *text, bool listening, struct mu__url *ret_url)
{
    return parse_url(text, MU__SCHEME_IPC + 1, listening, ret_url);
}

const char *mu__url_parse_any(const char *text, bool listening, struct mu__url *ret_url)
{
    return parse_url(text, MU__SCHEMES_END, listening, ret_url);
}

bool mu__url_is_of_nng(const char *text)
{
    enum mu__scheme scheme;

    return text != NULL && scheme_of(text, MU__SCHEMES_END, &scheme) != NULL &&
           scheme > MU__SCHEME_IPC;
}
