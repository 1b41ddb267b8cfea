/* Addresses as the system looks them up (its files, DNS and what else nsswitch.conf has),
 * on a thread, since such a look-up cannot be ended. */
#define _GNU_SOURCE /* AI_IDN */

#include "resolver/engine/dns_records.h"
#include "resolver/engine/request.h"
#include "resolver/engine/uv/internal.h"
#include "runtime/uv/look_up.h"

#include <locale.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES_MAX = 255 };

struct address_look_up {
    struct mu__request_work *work;
    const char *name;
    struct mu__dns_records records; /* what was found */
};

static int fail_address_look_up(struct address_look_up *look_up, int code,
                                const char *words)
{
    return mu_error_set(&look_up->work->answer.error, code, "%.260s: %s", look_up->name,
                        words);
}

static int addresses_out_of_memory(struct address_look_up *look_up)
{
    return mu__work_fail(look_up->work, -MU_ENOMEM, "out of memory");
}

/* ---- The system's look-up ---- */

static int add_found(struct address_look_up *look_up, const struct addrinfo *found)
{
    int rv = 0;

    for (; found != NULL && rv == 0; found = found->ai_next) {
        const void *address = found->ai_addr;

        if (found->ai_family == AF_INET)
            rv = mu__dns_records_add(
                &look_up->records, MU__DNS_A,
                (const uint8_t *)&((const struct sockaddr_in *)address)->sin_addr);
        else if (found->ai_family == AF_INET6)
            rv = mu__dns_records_add(
                &look_up->records, MU__DNS_AAAA,
                (const uint8_t *)&((const struct sockaddr_in6 *)address)->sin6_addr);
    }
    return rv == 0 ? 0 : addresses_out_of_memory(look_up);
}

static int get_addresses(const char *name, int flags, struct addrinfo **ret_found)
{
    const struct addrinfo hints = {
        .ai_flags = flags, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

    return getaddrinfo(name, NULL, &hints, ret_found);
}

#ifdef AI_IDN
static bool is_ascii(const char *name)
{
    while (*name != '\0' && (*name & 0x80) == 0)
        name++;
    return *name == '\0';
}

/* Look up a name with letters beyond ASCII as DNS has it ("xn--..."). The system takes
 * a name to be in the locale's encoding; ours are UTF-8, so this thread has a UTF-8
 * locale during the call. */
static int get_addresses_of_letters(const char *name, struct addrinfo **ret_found)
{
    locale_t letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before;
    int rv;

    if (letters == (locale_t)0)
        return EAI_IDN_ENCODE;
    before = uselocale(letters);
    rv = get_addresses(name, AI_IDN, ret_found);
    (void)uselocale(before);
    freelocale(letters);
    return rv;
}

/* A name that has no such form, or is not known by it, is looked up as it is. */
static int get_addresses_of_name(const char *name, struct addrinfo **ret_found)
{
    int rv = is_ascii(name) ? EAI_IDN_ENCODE : get_addresses_of_letters(name, ret_found);

    return rv == EAI_IDN_ENCODE || rv == EAI_NONAME ? get_addresses(name, 0, ret_found)
                                                    : rv;
}
#else
static int get_addresses_of_name(const char *name, struct addrinfo **ret_found)
{
    return get_addresses(name, 0, ret_found);
}
#endif

static int request_system(struct address_look_up *look_up)
{
    struct addrinfo *found = NULL;
    int rv = get_addresses_of_name(look_up->name, &found);

    if (rv != 0)
        return fail_address_look_up(look_up, mu__look_up_code(rv), gai_strerror(rv));
    rv = add_found(look_up, found);
    freeaddrinfo(found);
    return rv;
}

/* ---- The job ---- */

static int write_records(struct address_look_up *look_up)
{
    size_t bytes_max = mu__request_bytes_max(&look_up->work->request);
    size_t size;
    char *text = mu__dns_records_text(&look_up->records, &size);

    if (text == NULL)
        return addresses_out_of_memory(look_up);
    if (size > bytes_max) {
        free(text);
        return mu_error_set(&look_up->work->answer.error, -MU_EEXHAUSTED,
                            "%s: expected at most %zu bytes of records, got %zu",
                            look_up->name, bytes_max, size);
    }
    look_up->work->answer.data = text;
    look_up->work->answer.size = size;
    return 0;
}

int mu__work_names(struct mu__request_work *work)
{
    struct address_look_up look_up = {.work = work, .name = work->request.name};
    int rv;

    if (look_up.name[0] == '\0')
        return mu__work_fail(work, -MU_EINVALID, "expected a name to look up, got none");
    if (strlen(look_up.name) > NAME_BYTES_MAX)
        return fail_address_look_up(&look_up, -MU_EINVALID,
                                    "expected a name of at most 255 bytes");
    rv = request_system(&look_up);
    if (rv == 0)
        rv = write_records(&look_up);
    mu__dns_records_done(&look_up.records);
    return rv;
}

/* ---- Numbers ---- */

static int number_text(const char *name, char **ret_text, size_t *ret_size)
{
    struct mu__dns_records records = {0};
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    int rv = -MU_ENOTFOUND;

    if (uv_ip4_addr(name, 0, &v4) == 0)
        rv = mu__dns_records_add(&records, MU__DNS_A, (const uint8_t *)&v4.sin_addr);
    else if (uv_ip6_addr(name, 0, &v6) == 0)
        rv = mu__dns_records_add(&records, MU__DNS_AAAA, (const uint8_t *)&v6.sin6_addr);
    if (rv == 0)
        *ret_text = mu__dns_records_text(&records, ret_size);
    mu__dns_records_done(&records);
    return rv;
}

bool mu__answer_number(const struct mu__request *request, char **ret_text,
                       size_t *ret_size)
{
    *ret_text = NULL;
    *ret_size = 0;
    return request->kind == MU__REQUEST_ADDRESSES &&
           number_text(request->name, ret_text, ret_size) != -MU_ENOTFOUND;
}
