#define _DEFAULT_SOURCE /* explicit_bzero */
#include "node/own_proof.h"

#include "node/files/files.h"
#include "node/files/key_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

enum {
    PROOF_BYTES_MAX = 1 << 20,
    READ_MS = 5000,
    LOOK_AGAIN_MS = 1000, /* the least between two looks at the files */
    FILES = MU__OWN_PROOF_TEXTS
};

enum which { KEY_FILE, CA, CERTIFICATE, PRIVATE_KEY };

/* A file, or the text itself. */
struct proof_part {
    char *text; /* NULL: there is none */
    bool is_file;
    bool is_secret;
    struct timespec changed; /* of the file, when it was read */
};

struct mu__own_proof {
    struct mu__tls_source source;
    struct proof_part parts[FILES];
    bool any_task;
    bool is_of_user; /* the key is the user's own: nothing else was given */
    struct mu__own_proof_log log;
    struct mu__tls_identity *now; /* NULL: it was not needed yet, or cannot be made */
    uint64_t looked_ms;
};

/* ---- files ---- */

/* The caller frees *ret_text. */
static int read_proof_part(struct proof_part *part, mu_error *ret_error, char **ret_text,
                           size_t *ret_size)
{
    struct stat status;

    if (!part->is_file) {
        *ret_text = strdup(part->text);
        *ret_size = strlen(part->text);
        return *ret_text != NULL ? 0
                                 : mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    if (stat(part->text, &status) != 0)
        return mu__file_error(part->text, "read", errno, ret_error);
    part->changed = status.st_mtim;
    if (part->is_secret && mu__secret_check(part->text, &status, ret_error) != 0)
        return -MU_EPERMISSION;
    return mu__file_read(part->text, PROOF_BYTES_MAX, READ_MS, ret_error, ret_text,
                         ret_size);
}

static void free_secret(char *text, size_t size)
{
    if (text == NULL)
        return;
    explicit_bzero(text, size);
    free(text);
}

/* ---- what they make ---- */

static int make_of_key(struct mu__own_proof *proof, mu_error *ret_error,
                       struct mu__tls_identity **ret_identity)
{
    struct proof_part *part = &proof->parts[KEY_FILE];
    struct stat status;
    struct mu__key key;
    int rv = proof->is_of_user ? mu__user_key_make(part->text, ret_error) : 0;

    if (rv != 0)
        return rv;
    rv = mu__key_file_read(part->text, ret_error, &key);
    if (stat(part->text, &status) == 0)
        part->changed = status.st_mtim;
    if (rv != 0)
        return rv;
    rv = mu__tls_identity_of_key(&key, ret_error, ret_identity);
    mu__key_clear(&key);
    return rv;
}

int mu__own_proof_pem(struct mu__own_proof *proof, mu_error *ret_error,
                      struct mu__own_proof_texts *ret_texts, struct mu__tls_pem *ret_pem)
{
    int rv = 0;

    *ret_texts = (struct mu__own_proof_texts){{NULL}, {0}};
    if (proof->parts[CA].text == NULL)
        return mu_error_set(ret_error, -MU_EINVALID, "it has a key, no certificates");
    for (int i = CA; i < FILES && rv == 0; i++)
        if (proof->parts[i].text != NULL)
            rv = read_proof_part(&proof->parts[i], ret_error, &ret_texts->items[i],
                                 &ret_texts->sizes[i]);
    *ret_pem = (struct mu__tls_pem){
        .ca = ret_texts->items[CA],
        .certificate = ret_texts->items[CERTIFICATE],
        .key = ret_texts->items[PRIVATE_KEY],
        .any_task = proof->any_task,
    };
    return rv;
}

void mu__own_proof_texts_free(struct mu__own_proof_texts *texts)
{
    for (int i = 0; i < FILES; i++)
        free_secret(texts->items[i], texts->sizes[i]);
}

static int make_of_certificates(struct mu__own_proof *proof, mu_error *ret_error,
                                struct mu__tls_identity **ret_identity)
{
    struct mu__own_proof_texts texts;
    struct mu__tls_pem pem;
    int rv = mu__own_proof_pem(proof, ret_error, &texts, &pem);

    if (rv == 0)
        rv = mu__tls_identity_of_pem(&pem, ret_error, ret_identity);
    mu__own_proof_texts_free(&texts);
    return rv;
}

static int make_identity(struct mu__own_proof *proof, mu_error *ret_error,
                         struct mu__tls_identity **ret_identity)
{
    mu_error why;
    int rv;

    if (proof->parts[KEY_FILE].text == NULL)
        return make_of_certificates(proof, ret_error, ret_identity);
    rv = make_of_key(proof, &why, ret_identity);
    if (rv == 0)
        return 0;
    return mu_error_set(ret_error, rv, "%s%s", why.message,
                        proof->is_of_user ? " (tcp needs a key: without a setting it is "
                                            "the user's own; expected that, or a key "
                                            "file, certificates, or insecure)"
                                          : "");
}

/* ---- changes ---- */

static bool has_part_changed(const struct proof_part *part)
{
    struct stat status;

    return part->text != NULL && part->is_file && stat(part->text, &status) == 0 &&
           (status.st_mtim.tv_sec != part->changed.tv_sec ||
            status.st_mtim.tv_nsec != part->changed.tv_nsec);
}

static void reload_identity(struct mu__own_proof *proof)
{
    struct mu__tls_identity *identity;
    char line[600];
    mu_error error;

    if (make_identity(proof, &error, &identity) == 0) {
        mu__tls_identity_free(proof->now);
        proof->now = identity;
        (void)snprintf(line, sizeof line,
                       "new connections use the %s, which was read again",
                       mu__tls_identity_name(identity));
    } else {
        (void)snprintf(line, sizeof line,
                       "the %s stays in use, though its file cannot be: %s",
                       mu__tls_identity_name(proof->now), error.message);
    }
    proof->log.write(proof->log.owner, line);
}

static void reload_if_changed(struct mu__own_proof *proof)
{
    for (int i = 0; i < FILES; i++)
        if (has_part_changed(&proof->parts[i])) {
            reload_identity(proof);
            return;
        }
}

void mu__own_proof_read_again(struct mu__own_proof *proof)
{
    bool has_files = false;

    for (int i = 0; proof != NULL && i < FILES; i++)
        has_files = has_files || proof->parts[i].is_file;
    if (has_files && proof->now != NULL)
        reload_identity(proof);
}

/* A node on a unix socket that connects to its first peer over tcp. */
static void make_late(struct mu__own_proof *proof)
{
    mu_error error;

    if (make_identity(proof, &error, &proof->now) != 0)
        proof->log.write(proof->log.owner, error.message);
}

static struct mu__tls_identity *get_current_identity(void *owner)
{
    struct mu__own_proof *proof = owner;
    uint64_t now_ms = uv_hrtime() / 1000000;

    if (now_ms - proof->looked_ms < LOOK_AGAIN_MS)
        return proof->now;
    proof->looked_ms = now_ms;
    if (proof->now == NULL)
        make_late(proof);
    else
        reload_if_changed(proof);
    return proof->now;
}

const struct mu__tls_source *mu__own_proof_source(const struct mu__own_proof *proof)
{
    return &proof->source;
}

/* ---- life ---- */

/* An empty text is as none. */
static bool is_option_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static bool has_certificate_options(const mu_node_options *o)
{
    return is_option_given(o->tls_ca) || is_option_given(o->tls_certificate) ||
           is_option_given(o->tls_private_key);
}

static int check_tls_options(const mu_node_options *o, mu_error *ret_error)
{
    const char *got = NULL;

    if (is_option_given(o->key_file) && has_certificate_options(o))
        got = "a key file and certificates";
    else if (o->insecure != 0 &&
             (is_option_given(o->key_file) || has_certificate_options(o)))
        got = is_option_given(o->key_file) ? "insecure and a key file"
                                           : "insecure and certificates";
    if (got != NULL)
        return mu_error_set(ret_error, -MU_EINVALID,
                            "options of TLS: expected a key file, or certificates, or "
                            "insecure, got %s",
                            got);
    if (has_certificate_options(o) &&
        (!is_option_given(o->tls_ca) || !is_option_given(o->tls_certificate)))
        return mu_error_set(ret_error, -MU_EINVALID,
                            "option tls_%s is missing: certificates need the CA's, this "
                            "node's, and its private key where that does not stand with "
                            "its certificate",
                            !is_option_given(o->tls_ca) ? "ca" : "certificate");
    return 0;
}

/* What is PEM is no path. */
static bool set_part(struct proof_part *part, const char *text, bool is_secret)
{
    if (!is_option_given(text))
        return true;
    part->text = strdup(text);
    part->is_file = strstr(text, "-----BEGIN ") == NULL;
    part->is_secret = is_secret;
    return part->text != NULL;
}

void mu__own_proof_close(struct mu__own_proof *proof)
{
    if (proof == NULL)
        return;
    for (int i = 0; i < FILES; i++)
        if (proof->parts[i].text != NULL)
            free_secret(proof->parts[i].text, strlen(proof->parts[i].text));
    mu__tls_identity_free(proof->now);
    free(proof);
}

static bool set_parts(struct mu__own_proof *proof, const mu_node_options *o,
                      const char *key_file)
{
    return set_part(&proof->parts[KEY_FILE], key_file, true) &&
           set_part(&proof->parts[CA], o->tls_ca, false) &&
           set_part(&proof->parts[CERTIFICATE], o->tls_certificate,
                    !is_option_given(o->tls_private_key)) &&
           set_part(&proof->parts[PRIVATE_KEY], o->tls_private_key, true);
}

static int proof_new(const mu_node_options *o, mu_error *ret_error,
                     struct mu__own_proof **ret_proof)
{
    bool is_of_user = !is_option_given(o->key_file) && !has_certificate_options(o);
    struct mu__own_proof *proof;
    char path[MU__KEY_PATH_BYTES];
    int rv = is_of_user ? mu__user_key_path(ret_error, path) : 0;

    if (rv != 0)
        return rv;
    proof = calloc(1, sizeof *proof);
    if (proof == NULL || !set_parts(proof, o, is_of_user ? path : o->key_file)) {
        mu__own_proof_close(proof);
        return mu_error_set(ret_error, -MU_ENOMEM, "out of memory");
    }
    proof->source = (struct mu__tls_source){get_current_identity, proof};
    proof->any_task = o->tls_any_task != 0;
    proof->is_of_user = is_of_user;
    *ret_proof = proof;
    return 0;
}

int mu__own_proof_open(const mu_node_options *o, bool late,
                       const struct mu__own_proof_log *log, mu_error *ret_error,
                       struct mu__own_proof **ret_proof)
{
    struct mu__own_proof *proof;
    int rv = check_tls_options(o, ret_error);

    *ret_proof = NULL;
    if (rv != 0 || o->insecure != 0)
        return rv;
    rv = proof_new(o, ret_error, &proof);
    if (rv != 0)
        return rv;
    proof->log = *log;
    if (!late || !proof->is_of_user) {
        proof->looked_ms = uv_hrtime() / 1000000;
        rv = make_identity(proof, ret_error, &proof->now);
    }
    if (rv != 0)
        mu__own_proof_close(proof);
    else
        *ret_proof = proof;
    return rv;
}
