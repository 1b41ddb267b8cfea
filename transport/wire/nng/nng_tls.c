#include "transport/wire/nng/nng_tls.h"

#include "transport/wire/url.h"

#include <nng/supplemental/tls/tls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mu__nng_tls {
    nng_tls_config *listens;
    char *ca;
    char *certificate;
    char *key;
};

static int refuse_nng_tls(int status, mu_error *ret_error)
{
    if (status == NNG_ENOMEM)
        return mu_error_set(ret_error, -MU_ENOMEM, "no memory for TLS");
    if (status == NNG_ENOTSUP)
        return mu_error_set(ret_error, -MU_EUNIMPLEMENTED,
                            "this nng was built without TLS: take the wire \"uv\", or "
                            "another nng");
    return mu_error_set(ret_error, -MU_EINVALID,
                        "nng's TLS (%s) refuses the certificates or the private key: %s",
                        nng_tls_engine_description(), nng_strerror(status));
}

static int make_nng_config(const struct mu__nng_tls *tls, nng_tls_mode mode,
                           nng_tls_config **ret_config)
{
    nng_tls_config *config;
    int rv = nng_tls_config_alloc(&config, mode);

    if (rv != 0)
        return rv;
    *ret_config = config;
    rv = nng_tls_config_ca_chain(config, tls->ca, NULL);
    if (rv == 0)
        rv = nng_tls_config_own_cert(config, tls->certificate, tls->key, NULL);
    if (rv == 0)
        rv = nng_tls_config_auth_mode(config, NNG_TLS_AUTH_MODE_REQUIRED);
    return rv;
}

static int make_listening(struct mu__nng_tls *tls, const struct mu__tls_pem *pem)
{
    if (tls == NULL)
        return NNG_ENOMEM;
    tls->ca = strdup(pem->ca);
    tls->certificate = strdup(pem->certificate);
    tls->key = strdup(pem->key == NULL ? pem->certificate : pem->key);
    if (tls->ca == NULL || tls->certificate == NULL || tls->key == NULL)
        return NNG_ENOMEM;
    return make_nng_config(tls, NNG_TLS_MODE_SERVER, &tls->listens);
}

int mu__nng_tls_new(const struct mu__tls_pem *pem, mu_error *ret_error,
                    struct mu__nng_tls **ret_tls)
{
    struct mu__nng_tls *tls = calloc(1, sizeof *tls);
    int rv = make_listening(tls, pem);

    if (rv != 0) {
        mu__nng_tls_free(tls);
        return refuse_nng_tls(rv, ret_error);
    }
    *ret_tls = tls;
    return 0;
}

void mu__nng_tls_free(struct mu__nng_tls *tls)
{
    if (tls == NULL)
        return;
    if (tls->listens != NULL)
        nng_tls_config_free(tls->listens);
    free(tls->ca);
    free(tls->certificate);
    free(tls->key);
    free(tls);
}

bool mu__nng_tls_is(const char *url)
{
    struct mu__url parsed;

    return mu__url_parse_any(url, true, &parsed) == NULL &&
           (parsed.scheme == MU__SCHEME_TLS_TCP || parsed.scheme == MU__SCHEME_WSS);
}

bool mu__nng_tls_url(const struct mu__nng_tls *tls, const char *url, char *ret_url,
                     size_t size)
{
    static const char *const secured[MU__SCHEMES_END] = {
        [MU__SCHEME_TCP] = "tls+tcp",
        [MU__SCHEME_TLS_TCP] = "tls+tcp",
        [MU__SCHEME_WS] = "wss",
        [MU__SCHEME_WSS] = "wss",
    };
    const char *scheme;
    struct mu__url parsed;
    int length;

    if (mu__url_parse_any(url, true, &parsed) != NULL)
        return false;
    scheme = mu__scheme_name(parsed.scheme);
    if (tls == NULL && mu__nng_tls_is(url))
        return false;
    if (tls != NULL && secured[parsed.scheme] != NULL)
        scheme = secured[parsed.scheme];
    length = snprintf(ret_url, size, "%s%s", scheme, strstr(url, "://"));
    return length > 0 && (size_t)length < size;
}

int mu__nng_tls_listen(const struct mu__nng_tls *tls, const char *url,
                       nng_listener listener)
{
    if (!mu__nng_tls_is(url))
        return 0;
    return nng_listener_set_ptr(listener, NNG_OPT_TLS_CONFIG, tls->listens);
}

/* mbed TLS 3.6.3 and newer end each handshake of a client that was not told the name
 * it expects; 2.28 knows no addresses among the names of a certificate. */
static bool must_name_host(void)
{
    return strstr(nng_tls_engine_description(), "TLS 2.") == NULL;
}

int mu__nng_tls_dial(const struct mu__nng_tls *tls, const char *url, nng_dialer dialer)
{
    nng_tls_config *config = NULL;
    struct mu__url parsed;
    int rv;

    if (!mu__nng_tls_is(url))
        return 0;
    rv = make_nng_config(tls, NNG_TLS_MODE_CLIENT, &config);
    if (rv == 0 && must_name_host() && mu__url_parse_any(url, true, &parsed) == NULL)
        rv = nng_tls_config_server_name(config, parsed.host);
    if (rv == 0)
        rv = nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, config);
    if (config != NULL)
        nng_tls_config_free(config);
    return rv;
}
