/* Any bytes, in any pieces, at one end of a TLS session: it ends with words, or it has
 * been told the handshake that a real peer would have said to it, byte by byte.
 *
 * The first byte says which end, and with which identity; then pieces, a byte for the
 * size of each before it. */
#include "tests/fuzz/tls_fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ANSWER_BYTES_MAX = 16 << 10 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct end end;

    make_identities();
    if (size == 0)
        return 0;
    end_open(&end, identities[data[0] % IDENTITIES], (data[0] & 8) != 0, MU__RIGHT_ALL);
    end.pauses = (data[0] & 16) != 0;
    for (size_t at = 1; at < size;) {
        size_t part = data[at] < size - at - 1 ? data[at] : size - at - 1;

        end_feed(&end, data + at + 1, part, part == 0 ? 1 : part);
        at += 1 + part;
        must(mu__tls_output_bytes(end.tls) <= ANSWER_BYTES_MAX, "answers are bounded");
    }
    mu__tls_free(end.tls);
    return 0;
}
