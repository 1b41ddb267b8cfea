#include "resolver/spec/address.h"

#include "runtime/base/text.h"

#include <muster/cluster.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum {
    HOST_BYTES_MAX = 253, /* of a DNS name, as text */
    LABEL_BYTES_MAX = 63, /* between two dots of it */
    PATH_BYTES_MAX = 107, /* of a Unix socket, without the zero byte */
    PORT_DIGITS_MAX = 5,
    PORT_MAX = 65535
};

static bool is_port_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower_host_letter(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The functions for parts of an address return NULL, or what is wrong with the part. */
static const char *check_port(const char *port)
{
    size_t digits = strspn(port, "0123456789");
    long number = 0;

    if (port[0] == '\0')
        return "the port is missing";
    if (port[digits] != '\0')
        return "the port is not a number";
    if (port[0] == '0' && digits > 1)
        return "the port has a leading zero";
    if (digits > PORT_DIGITS_MAX)
        return "the port is above 65535";

    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (port[i] - '0');
    return number > PORT_MAX ? "the port is above 65535" : NULL;
}

/* Letters, digits, hyphen, and the underscore that container names have. */
static bool is_host_character(char c)
{
    return is_port_digit(c) ||
           (lower_host_letter(c) >= 'a' && lower_host_letter(c) <= 'z') || c == '-' ||
           c == '_';
}

static const char *check_labels(const char *host)
{
    size_t label = 0;

    for (; *host != '\0'; host++) {
        if (*host == '.' && label == 0)
            return "the host has an empty part between dots";
        if ((*host & 0x80) != 0)
            return "the host has a letter beyond ASCII: write it as DNS has it, xn--...";
        if (*host != '.' && !is_host_character(*host))
            return "the host has a character that no host name has";
        label = *host == '.' ? 0 : label + 1;
        if (label > LABEL_BYTES_MAX)
            return "the host has a part of more than 63 bytes";
        if (*host == '-' && (label == 1 || host[1] == '.' || host[1] == '\0'))
            return "the host has a part that begins or ends with a hyphen";
    }
    return NULL;
}

static const char *check_address_host(const char *host)
{
    bool numeric = host[strspn(host, "0123456789.")] == '\0';
    struct in_addr number;

    if (host[0] == '\0')
        return "the host is missing";
    if (strlen(host) > HOST_BYTES_MAX)
        return "the host is longer than 253 bytes";
    if (numeric && inet_pton(AF_INET, host, &number) != 1)
        return "the host is not an IPv4 address";
    return check_labels(host);
}

/* "[host]:port", the text after the first bracket. */
static const char *ipv6_url(const char *scheme, const char *rest, char *url)
{
    const char *close = strchr(rest, ']');
    struct in6_addr number;
    char host[INET6_ADDRSTRLEN];
    const char *why;

    if (close == NULL)
        return "the bracket is not closed";
    if (memchr(rest, '%', (size_t)(close - rest)) != NULL)
        return "an IPv6 address with a zone says nothing to other machines";
    if ((size_t)(close - rest) >= sizeof host)
        return "there is no IPv6 address in the brackets";

    memcpy(host, rest, (size_t)(close - rest));
    host[close - rest] = '\0';
    if (inet_pton(AF_INET6, host, &number) != 1)
        return "there is no IPv6 address in the brackets";
    if (close[1] != ':')
        return "the port is missing";
    why = check_port(close + 2);
    if (why != NULL)
        return why;

    (void)inet_ntop(AF_INET6, &number, host, sizeof host);
    (void)snprintf(url, MU__URL_BYTES, "%s[%s]:%s", scheme, host, close + 2);
    return NULL;
}

static const char *host_url(const char *scheme, const char *rest, char *url)
{
    const char *colon = strrchr(rest, ':');
    char *host = url + strlen(scheme);
    const char *why;
    size_t size;

    if (rest[0] == '[')
        return ipv6_url(scheme, rest + 1, url);
    if (colon == NULL)
        return "the port is missing";
    if (strchr(rest, ':') != colon)
        return "it has several colons (an IPv6 address stands in brackets, [::1]:2222)";

    size = (size_t)(colon - rest);
    memcpy(url, scheme, strlen(scheme));
    for (size_t i = 0; i < size; i++)
        host[i] = lower_host_letter(rest[i]);
    host[size] = '\0';

    why = check_address_host(host);
    if (why == NULL)
        why = check_port(colon + 1);
    if (why == NULL)
        memcpy(host + size, colon, strlen(colon) + 1);
    return why;
}

/* The name of an inproc address is for one process. */
static const char *name_url(const char *scheme, const char *name, char *url)
{
    if (name[0] == '\0')
        return "the name is missing";
    if (strlen(name) > PATH_BYTES_MAX)
        return "the name is longer than 107 bytes";
    for (const char *at = name; *at != '\0'; at++)
        if (!is_host_character(*at) && *at != '.')
            return "the name has a character other than letters, digits, -, _ and .";
    (void)snprintf(url, MU__URL_BYTES, "%s%s", scheme, name);
    return NULL;
}

static const char *ipc_url(const char *scheme, const char *path, char *url)
{
    const char *end = path + strlen(path);
    size_t length;

    if (path[0] != '/' || path[1] == '\0')
        return "the path is not absolute";
    if (strlen(path) > PATH_BYTES_MAX)
        return "the path is longer than 107 bytes";

    for (const char *at = path; at < end; at += length) {
        length = mu__utf8_length(at, end);
        if (length == 0)
            return "the path is not UTF-8";
        if ((unsigned char)*at < ' ' || *at == 0x7F)
            return "the path has a control character";
    }
    (void)snprintf(url, MU__URL_BYTES, "%s%s", scheme, path);
    return NULL;
}

static const char *any_url(const char *address, char *url)
{
    static const struct {
        const char *prefix;
        const char *(*to_url)(const char *scheme, const char *rest, char *url);
    } schemes[] = {
        {"tcp://", host_url}, {"ipc://", ipc_url},  {"tls+tcp://", host_url},
        {"ws://", host_url},  {"wss://", host_url}, {"inproc://", name_url},
    };

    if (address[0] == '\0')
        return "it is empty";
    if (strlen(address) > MU_CLUSTER_ADDRESS_BYTES_MAX)
        return "it is longer than any address";

    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t length = strlen(schemes[i].prefix);

        if (strncmp(address, schemes[i].prefix, length) == 0)
            return schemes[i].to_url(schemes[i].prefix, address + length, url);
    }
    if (strstr(address, "://") != NULL)
        return "the scheme before \"://\" is none of tcp, ipc, tls+tcp, ws, wss, inproc";
    return host_url("tcp://", address, url);
}

int mu__address_url(const char *address, mu_error *ret_error, char *ret_url)
{
    char url[MU__URL_BYTES];
    char shown[MU__QUOTE_BYTES];
    const char *why = any_url(address, url);

    if (why == NULL) {
        memcpy(ret_url, url, strlen(url) + 1);
        return 0;
    }
    mu__quote(shown, sizeof shown, address, strlen(address));
    return mu_error_set(ret_error, -MU_EINVALID,
                        "address %s: %s; expected \"host:port\", \"tcp://host:port\" or "
                        "\"ipc:///path\"",
                        shown, why);
}

bool mu__address_is_host(const char *host)
{
    char address[MU_CLUSTER_ADDRESS_BYTES_MAX + 1];
    char url[MU__URL_BYTES];
    int length = snprintf(address, sizeof address, "%s:1", host);

    return length < (int)sizeof address && host_url("tcp://", address, url) == NULL;
}

static bool has_address_port(const char *url)
{
    return strncmp(url, "ipc://", 6) != 0 && strncmp(url, "inproc://", 9) != 0;
}

void mu__url_canonical(const char *url, char *ret_url)
{
    const char *colon = strrchr(url, ':');

    (void)snprintf(ret_url, MU__URL_BYTES, "%s", url);
    if (has_address_port(url) && colon > url + 7 && colon[-1] == '.')
        memmove(ret_url + (colon - url) - 1, colon, strlen(colon) + 1);
}

bool mu__urls_are_same(const char *a, const char *b)
{
    char one[MU__URL_BYTES];
    char two[MU__URL_BYTES];

    mu__url_canonical(a, one);
    mu__url_canonical(b, two);
    return strcmp(one, two) == 0;
}

size_t mu__address_join(const char *host, unsigned port, char *out, size_t size)
{
    bool is_v6 = strchr(host, ':') != NULL && host[0] != '[';
    int length = snprintf(out, size, is_v6 ? "[%s]:%u" : "%s:%u", host, port);

    return length < 0 ? size : (size_t)length;
}

bool mu__url_has_any_port(const char *url)
{
    size_t length = strlen(url);

    return has_address_port(url) && strcmp(url + length - 2, ":0") == 0;
}
