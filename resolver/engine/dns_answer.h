/* The bytes of DNS, RFC 1035 and 2782: a request for one name, and what of an answer to
 * it is of use. Pure; the bytes of an answer may be anything. */
#ifndef MU_RESOLVER_DNS_ANSWER_H
#define MU_RESOLVER_DNS_ANSWER_H

#include <muster/error.h>

#include <stdbool.h>

enum {
    MU__DNS_A = 1,
    MU__DNS_AAAA = 28,
    MU__DNS_SRV = 33
};

enum {
    MU__DNS_NAME_BYTES = 256,  /* room for a name as text: "ps-0.example" */
    MU__DNS_QUERY_BYTES = 288, /* room for any request */
    MU__DNS_UDP_BYTES = 512,   /* an answer over UDP has no more */
    MU__DNS_BYTES_MAX = 65535  /* and one over TCP no more than this */
};

/* What servers say of a request (rcode), where it has a name. */
enum {
    MU__DNS_FINE = 0,
    MU__DNS_SERVER_FAILED = 2,
    MU__DNS_NO_SUCH_NAME = 3,
    MU__DNS_REFUSED = 5
};

/* Write a request that asks the server to find out (recursion). A dot at the end of
 * `name` is as good as none. -MU_EINVALID: what is not a name, with the place. */
int mu__dns_query_write(const char *name, int type, uint16_t id, mu_error *ret_error,
                        uint8_t *ret_bytes, size_t *ret_size);

/* Whether the bytes are an answer to this request; others may come to the same port, and
 * are to be ignored. */
bool mu__dns_is_answer(const uint8_t *bytes, size_t size, const uint8_t *query,
                       size_t query_size);

/* Of an answer that mu__dns_is_answer: it was cut off, and is to be asked over TCP. */
bool mu__dns_is_cut(const uint8_t *bytes);

/* Of an answer that mu__dns_is_answer: what the server says of it. */
int mu__dns_code(const uint8_t *bytes);

/* Words for such a code: "SERVFAIL". Static, never NULL. */
const char *mu__dns_code_name(int code);

struct mu__dns_record {
    int type;
    uint8_t address[16];    /* of A (4 bytes) and AAAA */
    uint16_t priority;      /* these four of SRV */
    uint16_t weight;
    uint16_t port;
    char *target;           /* "ps-0.example", small letters; "." when there is none */
};

/* {0} is empty. */
struct mu__dns_records {
    struct mu__dns_record *items;
    size_t count;
    size_t room;
};

/* Add what an answer (mu__dns_is_answer, of code 0) has of the type that was asked for,
 * of the name or what it is an alias for (CNAME). None is fine. -MU_EINVALID with the
 * place in the answer, -MU_ENOMEM; what was added so far stays. */
int mu__dns_answer_read(const uint8_t *bytes, size_t size, int type, mu_error *ret_error,
                        struct mu__dns_records *records);

/* Add one address; `address` has 4 bytes for MU__DNS_A, 16 for MU__DNS_AAAA. */
int mu__dns_records_add(struct mu__dns_records *records, int type,
                        const uint8_t *address);

/* The records as text, one each line, sorted, each once: addresses IPv4 first, by
 * number; services "PRIORITY WEIGHT PORT TARGET", by priority, target and port. The
 * caller frees it; NULL when out of memory. */
char *mu__dns_records_text(struct mu__dns_records *records, size_t *ret_size);

void mu__dns_records_done(struct mu__dns_records *records);

#endif
