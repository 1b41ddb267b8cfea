/* Any bytes as an answer of etcd's, by gRPC or from its gateway with any status: an error
 * in words, or an answer whose parts can each be read, or give an error in words; and any
 * bytes as base64. */
#include "actors/coordination/store/etcd_grpc.h"
#include "runtime/base/base64.h"
#include "tests/fuzz/must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int rv, const mu_error *error)
{
    must(rv >= 0 || (rv == error->code && error->message[0] != '\0'), "words");
}

static void read_entries(struct mu__etcd_entries *entries)
{
    struct mu__etcd_entry entry;
    mu_error error;
    int rv;

    while ((rv = mu__etcd_next_entry(entries, &error, &entry)) == 1)
        must(entry.key.size > 0 && entry.lease <= INT64_MAX, "entry");
    check(rv, &error);
}

static void read_parts(const struct mu__etcd_answer *answer)
{
    struct mu__etcd_entries entries;
    char token[64];
    uint64_t a = 0;
    uint64_t b = 0;
    bool flag;
    mu_error error;
    int rv;

    check(mu__etcd_revision(answer, &error, &a), &error);
    rv = mu__etcd_granted(answer, &error, &a, &b);
    check(rv, &error);
    must(rv != 0 || (a > 0 && b > 0 && a <= INT64_MAX), "granted");
    rv = mu__etcd_token(answer, &error, "A: ", token, sizeof token);
    check(rv, &error);
    must(rv != 0 || strpbrk(token + 3, "\r\n ") == NULL, "a header's line");
    check(mu__etcd_lease_ttl(answer, &error, &a), &error);
    check(mu__etcd_succeeded(answer, &error, &flag), &error);
    rv = mu__etcd_ranged(answer, &error, &entries);
    check(rv, &error);
    if (rv == 0)
        read_entries(&entries);
    rv = mu__etcd_txn_ranged(answer, 0, &error, &entries);
    check(rv, &error);
    if (rv == 0)
        read_entries(&entries);
}

static void read_base64(const uint8_t *data, size_t size)
{
    uint8_t *out = malloc(size + 1);
    char *text;
    size_t count;

    must(out != NULL, "memory");
    if (mu__base64_decode((const char *)data, size, out, &count) == 0) {
        text = malloc(size + 1);
        must(text != NULL && mu__base64_size(count) == size, "size");
        mu__base64_encode(out, count, text);
        must(size == 0 || memcmp(text, data, size) == 0, "there and back");
        free(text);
    }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {200, 200, 200, 404, 503, 302};
    int status = size == 0 ? 200 : statuses[data[size - 1] % 6];
    struct mu__etcd_answer *answer = NULL;
    mu_error error;
    int rv = mu__etcd_answer_read(status, data, size, &error, &answer);

    check(rv, &error);
    must(rv == 0 || answer == NULL, "untouched");
    if (rv == 0)
        read_parts(answer);
    mu__etcd_answer_free(answer);
    (void)mu__etcd_grpc_succeeded(data, size);
    read_base64(data, size);
    return 0;
}
