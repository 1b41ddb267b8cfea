/* Any bytes, in any pieces, at one end of a TLS session: it ends with words, or it has
 * been told the handshake that a real peer would have said to it, byte by byte.
 *
 * The first byte says which end, and with which identity; then pieces, a byte for the
 * size of each before it. */
#include "tests/fuzz/tls_fuzzing.h"
#include "transport/wire/client_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ANSWER_BYTES_MAX = 16 << 10, STREAM_BYTES_MAX = 1 << 16, HANDSHAKE = 22 };

/* All that has come. */
struct stream {
    uint8_t bytes[STREAM_BYTES_MAX];
    size_t size;
    bool is_decided;
};

/* Who decides whether a session is worth its memory does not change his mind, and has
 * decided before a session has an answer. */
static void look(struct stream *stream, struct end *end, const uint8_t *data, size_t size)
{
    const struct mu__buf *output = end->tls->output;
    bool is_decided;

    if (!end->listens || size > sizeof stream->bytes - stream->size)
        return;
    memcpy(stream->bytes + stream->size, data, size);
    stream->size += size;
    is_decided = mu__client_hello_is_decided(stream->bytes, stream->size);
    must(is_decided || !stream->is_decided, "decided once");
    must(is_decided || output == NULL || output->data[0] != HANDSHAKE,
         "decided before the answer");
    stream->is_decided = is_decided;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct end end;
    struct stream stream = {.size = 0};

    make_identities();
    if (size == 0)
        return 0;
    end_open(&end, identities[data[0] % IDENTITIES], (data[0] & 8) != 0);
    end.pauses = (data[0] & 16) != 0;
    for (size_t at = 1; at < size;) {
        size_t part = data[at] < size - at - 1 ? data[at] : size - at - 1;

        end_feed(&end, data + at + 1, part, part == 0 ? 1 : part);
        look(&stream, &end, data + at + 1, part);
        at += 1 + part;
        must(mu__tls_output_bytes(end.tls) <= ANSWER_BYTES_MAX, "answers are bounded");
    }
    mu__tls_free(end.tls);
    return 0;
}
