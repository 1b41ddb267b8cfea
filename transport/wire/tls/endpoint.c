#include "transport/wire/tls/internal.h"

#include <openssl/err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OUTPUT_BYTES_MIN = 4 << 10,
    RECORD_BYTES = SSL3_RT_MAX_PLAIN_LENGTH,
    RECORD_OVERHEAD = SSL3_RT_HEADER_LENGTH + 1 + EVP_GCM_TLS_TAG_LEN
};

/* ---- the door of OpenSSL: bytes in, bytes out ---- */

static int on_bio_read(BIO *bio, char *out, int size)
{
    struct mu__tls *tls = BIO_get_data(bio);
    size_t taken = tls->input_size < (size_t)size ? tls->input_size : (size_t)size;

    BIO_clear_retry_flags(bio);
    if (taken == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(out, tls->input, taken);
    tls->input += taken;
    tls->input_size -= taken;
    return (int)taken;
}

/* Room for `size` more bytes of output. */
static bool reserve_tls_output(struct mu__tls *tls, size_t size)
{
    struct mu__buf *old = tls->output;
    size_t used = old == NULL ? 0 : old->size;
    size_t capacity = old == NULL ? OUTPUT_BYTES_MIN : (size_t)old->capacity * 2;

    if (old != NULL && old->capacity - old->size >= size)
        return true;
    if (capacity < used + size)
        capacity = used + size;
    tls->output = mu__buf_new(capacity);
    if (tls->output == NULL) {
        tls->output = old;
        return false;
    }
    if (used > 0)
        memcpy(tls->output->data, old->data, used);
    tls->output->size = (uint32_t)used;
    mu__buf_unref(old);
    return true;
}

static int on_bio_write(BIO *bio, const char *data, int size)
{
    struct mu__tls *tls = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (!reserve_tls_output(tls, (size_t)size))
        return -1;
    memcpy(tls->output->data + tls->output->size, data, (size_t)size);
    tls->output->size += (uint32_t)size;
    return size;
}

static long on_bio_ctrl(BIO *bio, int command, long number, void *data)
{
    (void)bio;
    (void)number;
    (void)data;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "muster");
    if (method == NULL)
        return;
    (void)BIO_meth_set_read(method, on_bio_read);
    (void)BIO_meth_set_write(method, on_bio_write);
    (void)BIO_meth_set_ctrl(method, on_bio_ctrl);
}

static bool open_door(struct mu__tls *tls)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    BIO *bio;

    (void)pthread_once(&once, make_method);
    bio = method == NULL ? NULL : BIO_new(method);
    if (bio == NULL)
        return false;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    return true;
}

/* ---- life ---- */

struct mu__tls *mu__tls_new(struct mu__tls_identity *identity, bool listens)
{
    struct mu__tls *tls = calloc(1, sizeof *tls);

    if (tls == NULL)
        return NULL;
    tls->any_task = identity->any_task;
    tls->own_right = identity->right;
    tls->key = identity->key;
    tls->ssl = SSL_new(identity->ssl);
    if (tls->ssl == NULL || SSL_set_app_data(tls->ssl, tls) != 1 || !open_door(tls)) {
        mu__tls_free(tls);
        return NULL;
    }
    if (listens)
        SSL_set_accept_state(tls->ssl);
    else
        SSL_set_connect_state(tls->ssl);
    return tls;
}

void mu__tls_free(struct mu__tls *tls)
{
    if (tls == NULL)
        return;
    SSL_free(tls->ssl);
    free(tls->retained);
    mu__buf_unref(tls->output);
    mu__key_clear(&tls->key);
    free(tls);
}

/* ---- failing ---- */

/* What an alert of the peer, or an error here, means where its own words do not say what
 * to do. */
static const struct {
    int reason;
    const char *words;
} meanings[] = {
    {SSL_R_TLSV1_ALERT_UNKNOWN_PSK_IDENTITY, "the peer has another key"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
     "the peer has another key, or proves itself by certificates"},
    {SSL_R_TLSV1_ALERT_DECRYPT_ERROR,
     "what this node has shown does not fit what the peer has"},
    {SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "the peer expects a certificate"},
    {SSL_R_TLSV1_ALERT_UNKNOWN_CA,
     "the peer's CA has not signed this node's certificate"},
    {SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "this node's certificate has expired"},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "the peer does not speak TLS 1.3"},
    {SSL_R_WRONG_VERSION_NUMBER, "the peer speaks without TLS"},
    {SSL_R_HTTP_REQUEST, "the peer speaks HTTP without TLS"},
    {SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM,
     "the peer proves itself by another key, or by a certificate"},
    {SSL_R_EXCESSIVE_MESSAGE_SIZE,
     "the peer's certificate, with those above it, has more than 16 KiB"},
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "the peer shows no certificate"},
};

static const char *meaning_of(int reason)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].reason == reason)
            return meanings[i].words;
    return NULL;
}

static void set_tls_reason(struct mu__tls *tls)
{
    unsigned long code = ERR_peek_error();
    const char *words = meaning_of(ERR_GET_REASON(code));
    long verified = SSL_get_verify_result(tls->ssl);

    if (tls->why[0] != '\0')
        return;
    if (!tls->is_open && tls->key.right == MU__RIGHT_NONE && verified != X509_V_OK)
        (void)snprintf(tls->why, sizeof tls->why, "the peer's certificate: %s",
                       X509_verify_cert_error_string(verified));
    else if (words == NULL && code != 0)
        words = ERR_reason_error_string(code);
    if (tls->why[0] == '\0')
        (void)snprintf(tls->why, sizeof tls->why, "%s",
                       words == NULL ? "the TLS session has failed" : words);
}

/* To a peer that speaks without TLS, OpenSSL sends nothing. A node of muster knows an
 * alert (protocol_version) when it sees one, and can say what is wrong. */
static void send_tls_alert(struct mu__tls *tls)
{
    static const uint8_t alert[] = {0x15, 3, 3, 0, 2, 2, 70};

    if (tls->is_open || tls->output != NULL || !SSL_is_server(tls->ssl) ||
        !reserve_tls_output(tls, sizeof alert))
        return;
    memcpy(tls->output->data, alert, sizeof alert);
    tls->output->size = sizeof alert;
}

/* The result of a call of OpenSSL: 0 when it only lacks input. */
static int get_tls_result(struct mu__tls *tls, int rv)
{
    int error = SSL_get_error(tls->ssl, rv);

    if (error == SSL_ERROR_WANT_READ)
        return 0;
    if (error == SSL_ERROR_ZERO_RETURN)
        return -MU_ECANCELLED;
    set_tls_reason(tls);
    tls->failed = true;
    send_tls_alert(tls);
    ERR_clear_error();
    return -MU_EPERMISSION;
}

/* ---- the handshake ---- */

static void prove_by_certificate(struct mu__tls *tls)
{
    X509 *certificate = SSL_get1_peer_certificate(tls->ssl);

    if (certificate == NULL || !mu__tls_proof_of(certificate, tls->any_task, &tls->proof,
                                                 tls->why, sizeof tls->why))
        tls->failed = true;
    X509_free(certificate);
}

/* A listening side may answer with a certificate instead of the key: OpenSSL goes on. */
static void prove_by_key(struct mu__tls *tls)
{
    if (SSL_session_reused(tls->ssl) == 1)
        return;
    (void)snprintf(tls->why, sizeof tls->why,
                   "the peer has shown a certificate, and not that it has the key of "
                   "this node");
    tls->proof.right = MU__RIGHT_NONE;
    tls->failed = true;
}

static int do_tls_handshake(struct mu__tls *tls)
{
    int rv;

    if (tls->failed)
        return -MU_EPERMISSION;
    if (tls->is_open)
        return 1;
    ERR_clear_error();
    rv = SSL_do_handshake(tls->ssl);
    if (rv != 1)
        return get_tls_result(tls, rv);
    if (tls->key.right == MU__RIGHT_NONE)
        prove_by_certificate(tls);
    else
        prove_by_key(tls);
    tls->is_open = !tls->failed;
    return tls->failed ? -MU_EPERMISSION : 1;
}

int mu__tls_begin(struct mu__tls *tls)
{
    int rv = do_tls_handshake(tls);

    return rv < 0 ? rv : 0;
}

/* ---- bytes ---- */

/* Keep what was not read, and `size` bytes of `data` behind it, in memory of its own. */
static bool retain_tls_input(struct mu__tls *tls, const void *data, size_t size)
{
    uint8_t *retained = malloc(tls->input_size + size);

    if (retained == NULL)
        return false;
    memcpy(retained, tls->input, tls->input_size);
    if (size > 0)
        memcpy(retained + tls->input_size, data, size);
    free(tls->retained);
    tls->retained = retained;
    tls->input = retained;
    tls->input_size += size;
    return true;
}

bool mu__tls_receive(struct mu__tls *tls, const void *data, size_t size)
{
    if (tls->input_size > 0)
        return retain_tls_input(tls, data, size);
    tls->input = data;
    tls->input_size = size;
    return true;
}

bool mu__tls_keep_input(struct mu__tls *tls)
{
    return tls->input_size == 0 || tls->input == tls->retained ||
           retain_tls_input(tls, NULL, 0);
}

int mu__tls_read(struct mu__tls *tls, void *out, size_t size)
{
    int rv = do_tls_handshake(tls);

    if (rv <= 0)
        return rv;
    ERR_clear_error();
    rv = SSL_read(tls->ssl, out, size > INT32_MAX ? INT32_MAX : (int)size);
    return rv > 0 ? rv : get_tls_result(tls, rv);
}

int mu__tls_write(struct mu__tls *tls, const void *data, size_t size)
{
    int rv;

    if (!tls->is_open || tls->failed)
        return -MU_EPERMISSION;
    if (size == 0)
        return 0;
    if (!reserve_tls_output(tls, size + (size / RECORD_BYTES + 1) * RECORD_OVERHEAD))
        return -MU_ENOMEM;
    ERR_clear_error();
    rv = SSL_write(tls->ssl, data, (int)size);
    if (rv == (int)size)
        return 0;
    rv = get_tls_result(tls, rv);
    return rv == 0 ? -MU_ENOMEM : rv;
}

struct mu__buf *mu__tls_output(struct mu__tls *tls)
{
    struct mu__buf *output = tls->output;

    tls->output = NULL;
    return output;
}

size_t mu__tls_output_bytes(const struct mu__tls *tls)
{
    return tls->output == NULL ? 0 : tls->output->size;
}

bool mu__tls_is_open(const struct mu__tls *tls)
{
    return tls->is_open;
}

/* A derived key can check no other: a peer that has the same is believed. */
void mu__tls_proof(const struct mu__tls *tls, struct mu__proof *ret_proof)
{
    *ret_proof = tls->proof;
    if (tls->key.right != MU__RIGHT_NONE && tls->proof.right == tls->key.right)
        ret_proof->right = MU__RIGHT_ALL;
}

enum mu__right mu__tls_own_right(const struct mu__tls *tls)
{
    return tls->own_right;
}

const char *mu__tls_why(const struct mu__tls *tls)
{
    return tls->why;
}
