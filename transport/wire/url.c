#include "transport/wire/url.h"

#include <stdlib.h>
#include <string.h>

enum { PORT_DIGITS_MAX = 5, PORT_MAX = 65535 };

static bool is_plain(const char *text, size_t size)
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
        return "it must read tcp://host:port";
    size = (size_t)(end - host);
    if (host[0] == '[') {
        if (size < 3 || host[size - 1] != ']')
            return "a bracket is missing";
        host++;
        size -= 2;
    } else if (memchr(host, ':', size) != NULL) {
        return "an address of IPv6 must stand in brackets";
    }
    if (!is_plain(host, size) || size > MU__URL_HOST_MAX)
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

static const struct {
    const char *prefix;
    const char *(*parse)(const char *text, bool listening, struct mu__url *url);
} schemes[] = {{"tcp://", parse_tcp}, {"ipc://", parse_ipc}};

const char *mu__url_parse(const char *text, bool listening, struct mu__url *ret_url)
{
    struct mu__url url = {0};

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t size = strlen(schemes[i].prefix);
        const char *fault;

        if (strncmp(text, schemes[i].prefix, size) != 0)
            continue;
        fault = schemes[i].parse(text + size, listening, &url);
        if (fault == NULL)
            *ret_url = url;
        return fault;
    }
    return "it must begin with tcp:// or ipc://";
}
