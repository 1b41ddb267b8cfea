/* Any bytes as an answer of a DNS server: an error in words, or records that can be
 * written as lines; and any text as a name: an error in words, or a request that is its
 * own. */
#include "resolver/engine/dns_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), stays in every build. */
static void must(bool truth, const char *what)
{
    if (truth)
        return;
    (void)fprintf(stderr, "broken: %s\n", what);
    abort();
}

static void check_lines(struct mu__dns_records *records)
{
    size_t size = 0;
    char *text = mu__dns_records_text(records, &size);

    must(text != NULL && strlen(text) == size, "text");
    must(size == 0 || text[size - 1] == '\n', "lines");
    free(text);
}

static void read_answer(const uint8_t *data, size_t size, int type)
{
    struct mu__dns_records records = {0};
    mu_error error = {0};
    int rv = mu__dns_answer_read(data, size, type, &error, &records);

    must(rv == 0 || (rv == error.code && error.message[0] != '\0'), "words");
    check_lines(&records);
    mu__dns_records_done(&records);
}

static void write_question(const uint8_t *data, size_t size)
{
    uint8_t query[MU__DNS_QUERY_BYTES];
    char name[512];
    size_t query_size = 0;
    mu_error error = {0};
    int rv;

    (void)snprintf(name, sizeof name, "%.*s", (int)(size < 511 ? size : 511),
                   (const char *)data);
    rv = mu__dns_query_write(name, MU__DNS_SRV, 7, &error, query, &query_size);
    must(rv == 0 || (rv == error.code && error.message[0] != '\0'), "words of a name");
    if (rv != 0)
        return;
    must(query_size <= sizeof query, "size");
    query[2] |= 0x80;
    must(mu__dns_is_answer(query, query_size, query, query_size), "question");
    read_answer(query, query_size, MU__DNS_SRV);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char request[] = "\1\2\1\0\0\1\0\0\0\0\0\0\1a\1b\0\0\1\0\1";

    read_answer(data, size, MU__DNS_A);
    read_answer(data, size, MU__DNS_AAAA);
    read_answer(data, size, MU__DNS_SRV);
    (void)mu__dns_is_answer(data, size, (const uint8_t *)request, sizeof request - 1);
    /* snprintf reads up to a zero byte or the end that it is given. */
    write_question(data, size);
    return 0;
}
