/* TLS by nng, with certificates: both ends show one of the same CA. nng does not say
 * which task a certificate names, nor its unit: whoever has one may be each task. With
 * mbed TLS 3 the certificate must name the host that was dialled, too.
 *
 * Thread: the loop's. */
#ifndef MU_TRANSPORT_NNG_TLS_H
#define MU_TRANSPORT_NNG_TLS_H

#include "muster/error.h"
#include "transport/wire/tls/tls_identity.h"

#include <nng/nng.h>
#include <stdbool.h>

struct mu__nng_tls;

/* -MU_EINVALID: nng's TLS cannot read the texts; -MU_EUNIMPLEMENTED: this nng was built
 * without TLS. */
int mu__nng_tls_new(const struct mu__tls_pem *pem, mu_error *ret_error,
                    struct mu__nng_tls **ret_tls);

/* NULL is fine. */
void mu__nng_tls_free(struct mu__nng_tls *tls);

/* The url as nng takes it: with TLS "tls+tcp" is in place of "tcp", and "wss" of "ws".
 * False: it has a scheme that needs TLS, and there is none, or it does not fit. */
bool mu__nng_tls_url(const struct mu__nng_tls *tls, const char *url, char *ret_url,
                     size_t size);

/* Whether a url, as mu__nng_tls_url wrote it, is one over TLS. */
bool mu__nng_tls_is(const char *url);

/* Give the certificates to those of such a url. Returns as nng does. */
int mu__nng_tls_listen(const struct mu__nng_tls *tls, const char *url,
                       nng_listener listener);
int mu__nng_tls_dial(const struct mu__nng_tls *tls, const char *url, nng_dialer dialer);

#endif
