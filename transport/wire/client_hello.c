#include "transport/wire/client_hello.h"

enum {
    RECORD_HEADER_BYTES = 5,  /* type, version, length */
    MESSAGE_HEADER_BYTES = 4, /* kind, length */
    HANDSHAKE = 22,
    CLIENT_HELLO = 1
};

/* A message may come in several records. Its header is taken byte by byte, since it may
 * be in two of them. */
struct hello_look {
    uint8_t header[MESSAGE_HEADER_BYTES];
    size_t taken; /* of the message, its header included */
};

static void scan_client_hello(struct hello_look *look, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size && look->taken + i < MESSAGE_HEADER_BYTES; i++)
        look->header[look->taken + i] = bytes[i];
    look->taken += size;
}

static bool is_hello_over(const struct hello_look *look)
{
    size_t size =
        (size_t)look->header[1] << 16 | (size_t)look->header[2] << 8 | look->header[3];

    if (look->taken > 0 && look->header[0] != CLIENT_HELLO)
        return true;
    return look->taken >= MESSAGE_HEADER_BYTES &&
           look->taken - MESSAGE_HEADER_BYTES >= size;
}

bool mu__client_hello_is_decided(const uint8_t *bytes, size_t size)
{
    struct hello_look look = {.taken = 0};
    size_t at = 0;

    while (!is_hello_over(&look)) {
        size_t length;

        if (size - at < RECORD_HEADER_BYTES)
            return false;
        if (bytes[at] != HANDSHAKE || bytes[at + 1] != 3)
            return true;
        length = (size_t)bytes[at + 3] << 8 | bytes[at + 4];
        at += RECORD_HEADER_BYTES;
        if (size - at < length)
            return false;
        scan_client_hello(&look, bytes + at, length);
        at += length;
    }
    return true;
}
