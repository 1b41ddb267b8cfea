/* Records of DNS as text: the answers to requests for addresses and services. Pure. */
#ifndef MU_RESOLVER_DNS_RECORDS_H
#define MU_RESOLVER_DNS_RECORDS_H

#include <muster/error.h>

#include <stdbool.h>

enum { MU__DNS_A = 1, MU__DNS_AAAA = 28, MU__DNS_SRV = 33 };

enum { MU__DNS_NAME_BYTES = 256 }; /* room for a name as text: "ps-0.example" */

struct mu__dns_record {
    int type;
    uint8_t address[16]; /* of A (4 bytes) and AAAA */
    uint16_t priority;   /* these four of SRV */
    uint16_t weight;
    uint16_t port;
    char *target; /* "ps-0.example", small letters; "." when there is none */
};

/* {0} is empty. */
struct mu__dns_records {
    struct mu__dns_record *items;
    size_t count;
    size_t room;
};

/* Whether a name can be sent to a DNS server: 0, or -MU_EINVALID with the position of
 * the wrong byte. It may end with a dot. */
int mu__dns_name_check(const char *name, mu_error *ret_error);

/* Add one address: 4 bytes for MU__DNS_A, 16 for MU__DNS_AAAA. -MU_ENOMEM. */
int mu__dns_records_add(struct mu__dns_records *records, int type,
                        const uint8_t *address);

/* Add one SRV record; target "" stands for ".", the root. -MU_ENOMEM; -MU_EINVALID: the
 * target has bytes that no host name has. */
int mu__dns_records_add_service(struct mu__dns_records *records, uint16_t priority,
                                uint16_t weight, uint16_t port, const char *target);

/* The records as text, one each line, sorted, each once: addresses IPv4 first, by
 * number; services "PRIORITY WEIGHT PORT TARGET", by priority, target and port. The
 * caller frees it; NULL when out of memory. */
char *mu__dns_records_text(struct mu__dns_records *records, size_t *ret_size);

void mu__dns_records_done(struct mu__dns_records *records);

#endif
