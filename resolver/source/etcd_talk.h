/* How a resolver talks to etcd: to one endpoint after another, by https where the urls
 * say so, and as a user where one is set. Pure: it only makes requests. */
#ifndef MU_RESOLVER_ETCD_TALK_H
#define MU_RESOLVER_ETCD_TALK_H

#include "resolver/engine/settings.h"
#include "runtime/document/etcd.h"

/* The settings with which the table of a resolver that talks to etcd begins. */
enum mu__etcd_setting {
    MU__TALK_ENDPOINTS,
    MU__TALK_CA_FILE,
    MU__TALK_CERTIFICATE_FILE,
    MU__TALK_KEY_FILE,
    MU__TALK_SERVER_NAME,
    MU__TALK_USER,
    MU__TALK_PASSWORD,
    MU__TALK_PASSWORD_FILE,
    MU__TALK_SETTINGS_COUNT
};

#define MU__TALK_SETTINGS                                                               \
    MU__SETTING(MU__TALK_ENDPOINTS, "endpoints", "MUSTER_ETCD", NULL,                   \
                "urls of etcd's servers, with commas between"),                         \
        MU__SETTING(MU__TALK_CA_FILE, "ca_file", "MUSTER_ETCD_CA_FILE", NULL,           \
                    "certificates (PEM) that are trusted in place of the system's"),    \
        MU__SETTING(MU__TALK_CERTIFICATE_FILE, "certificate_file",                      \
                    "MUSTER_ETCD_CERTIFICATE_FILE", NULL, "our certificate (PEM)"),     \
        MU__SETTING(MU__TALK_KEY_FILE, "key_file", "MUSTER_ETCD_KEY_FILE", NULL,        \
                    "and its key (PEM)"),                                               \
        MU__SETTING(                                                                    \
            MU__TALK_SERVER_NAME, "server_name", "MUSTER_ETCD_SERVER_NAME", NULL,       \
            "the name that etcd's certificate must have, in place of the url's"),       \
        MU__SETTING(MU__TALK_USER, "user", "MUSTER_ETCD_USER", NULL, "a user of etcd"), \
        MU__SETTING(MU__TALK_PASSWORD, "password", "MUSTER_ETCD_PASSWORD", NULL,        \
                    "and the password"),                                                \
        MU__SETTING(MU__TALK_PASSWORD_FILE, "password_file",                            \
                    "MUSTER_ETCD_PASSWORD_FILE", NULL,                                  \
                    "a file that has the password, where it is not set itself")

enum { MU__TALK_ENDPOINTS_MAX = 16, MU__TALK_URL_BYTES = 300 };

/* The state of one pass. Texts belong to the requests and the settings. */
struct mu__etcd_talk {
    const struct mu__pass *pass;
    mu_error *error;
    char endpoints[MU__TALK_ENDPOINTS_MAX][MU__TALK_URL_BYTES];
    unsigned endpoints_count;
    unsigned first;      /* the endpoint that is tried first; then the one that
                            answered last */
    uint32_t request_ms; /* timeout of each request; where there is another
                            endpoint, at most a second */
    uint32_t cache_ms;   /* of the requests: how long an answer may be cached */
    bool has_next;       /* another endpoint follows the one that is tried now */
    struct mu__request_tls tls;
    const char *user; /* NULL: none */
    const char *password;
    size_t password_size;
    bool is_renewed; /* the token was refused, and another one is requested */
};

/* Read the settings, and the files that they name. Errors begin with "etcd: ".
 * -MU_EINVALID. */
int mu__etcd_talk_begin(const struct mu__pass *pass, mu_error *ret_error,
                        struct mu__etcd_talk *talk);

/* POST to one endpoint after the other until one answers. Takes the content of `body`.
 * `again` as of a request. -MU_EUNAVAILABLE: none answered;
 * -MU_EUNAUTHENTICATED: certificates, or the user; etcd's own codes. */
int mu__etcd_talk_post(struct mu__etcd_talk *talk, const char *path,
                       struct mu__build *body, unsigned again,
                       struct mu__etcd_answer **ret_answer);

#endif
