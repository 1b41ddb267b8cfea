/* Whether the bytes that begin a connection hold a whole TLS ClientHello: only then is it
 * worth a session, which needs ten times the memory of the bytes. Pure. */
#ifndef MU_TRANSPORT_CLIENT_HELLO_H
#define MU_TRANSPORT_CLIENT_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: more bytes are needed. True: it is whole, or it is none. */
bool mu__client_hello_is_decided(const uint8_t *bytes, size_t size);

#endif
