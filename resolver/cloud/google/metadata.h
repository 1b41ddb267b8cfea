/* Shared by the resolvers of Google's cloud: detection of its machines, the metadata
 * server, and requests to its APIs with a token.
 *
 * Messages about an answer have the position of the mistake and the server's own error
 * text, and nothing else of it: metadata and tokens may be secret. */
#ifndef MU_RESOLVER_GOOGLE_H
#define MU_RESOLVER_GOOGLE_H

#include "resolver/engine/settings.h"

#include <cjson/cJSON.h>

enum {
    MU__GOOGLE_NAME_BYTES = 128, /* of a project, zone, instance or TPU */
    MU__GOOGLE_HOST_BYTES = 280  /* of an address */
};

/* How requests are made. Texts are borrowed and may be NULL. */
struct mu__google {
    const struct mu__pass *pass;
    const char *credentials; /* a file's path; "none": no token at all; NULL or
                                "default": see mu__google_token */
    const char *access_token;
    const char *access_token_file;
    const char *token_command;
    const char *ca_file; /* trusted instead of the system's authorities */
};

/* The settings that say this, in this order, as rows of a resolver's table from number
 * `first` on; their variables have the PREFIX "GCE" or "TPU". */
#define MU__GOOGLE_SETTINGS(first, PREFIX)                                               \
    MU__SETTING((first), "credentials", NULL, "default",                                 \
                "a file of credentials, \"default\" or \"none\""),                       \
        MU__SETTING((first) + 1, "access_token", "CLOUDSDK_AUTH_ACCESS_TOKEN", NULL,     \
                    "a token, in place of credentials"),                                 \
        MU__SETTING((first) + 2, "access_token_file", "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", \
                    NULL, "a file with a token, in place of credentials"),               \
        MU__SETTING((first) + 3, "token_command", "MUSTER_" PREFIX "_TOKEN_COMMAND",     \
                    NULL,                                                                \
                    "a command that prints a token: gcloud auth print-access-token"),    \
        MU__SETTING((first) + 4, "ca_file", "MUSTER_" PREFIX "_CA_FILE", NULL,           \
                    "certificates (PEM) that are trusted in place of the system's")

void mu__google_init(const struct mu__pass *pass, unsigned first,
                     struct mu__google *ret_google);

/* The host of the metadata server that a variable names; NULL: none does. */
const char *mu__google_metadata_host(struct mu__requests *requests);

/* 1: this is a machine of Google's; 0: it is not, with the reason. Sends
 * nothing over the network. */
int mu__google_here(struct mu__requests *requests, mu_error *ret_why);

/* An entry of the metadata server, "project/project-id": a text without blanks at its
 * ends, owned by the requests. `probes`: one try of a second at most; else six tries.
 * -MU_ENOTFOUND: there is no such entry. */
int mu__google_metadata(struct mu__requests *requests, const char *path, bool probes,
                        mu_error *ret_error, const char **ret_text);

/* The same of an entry that is an object. */
int mu__google_metadata_json(struct mu__requests *requests, const char *path,
                             unsigned again, mu_error *ret_error, const cJSON **ret_root);

/* The project or zone: `given` if there is one, else the project from the variable
 * GOOGLE_CLOUD_PROJECT, else what the metadata server says, if this machine has one.
 * ret_name has MU__GOOGLE_NAME_BYTES. */
int mu__google_project(const struct mu__google *google, const char *given,
                       mu_error *ret_error, char *ret_name);
int mu__google_zone(const struct mu__google *google, const char *given,
                    mu_error *ret_error, char *ret_name);

/* Check a name that becomes part of a url: letters, digits, and -._: alone. `what` is
 * "setting zone", say. */
int mu__google_name_check(const char *what, const char *name, mu_error *ret_error);

/* Whether a url has a user, whose password would be shown: "https://user@host/". */
bool mu__google_url_has_user(const char *url);

/* Check the beginning of a url to which tokens are sent: https, or http on this machine.
 * `ret_base` is `url` without a slash at its end. */
int mu__google_endpoint(const struct mu__google *google, const char *url,
                        mu_error *ret_error, char *ret_base, size_t size);

/* A token: `access_token`, else the content of `access_token_file`, else what
 * `token_command` prints, else of the credentials: a file (docs/resolvers/gce.md says of
 * which kinds), by setting, by the variable GOOGLE_APPLICATION_CREDENTIALS, or where
 * gcloud leaves it; else the metadata server's.
 * `again` 1: a new one, since the first was not accepted; -MU_EUNAUTHENTICATED when there
 * cannot be another. "" for credentials "none". The caller frees *ret_token, with
 * mu__google_token_free(). */
int mu__google_token(const struct mu__google *google, unsigned again, mu_error *ret_error,
                     char **ret_token);
void mu__google_token_free(char *token);

/* The project that requests are charged to, when it is not the token's own: that of the
 * variable GOOGLE_CLOUD_QUOTA_PROJECT, else of the credentials file; "": neither has one,
 * or the token itself is set. ret_name has MU__GOOGLE_NAME_BYTES. */
int mu__google_quota_project(const struct mu__google *google, mu_error *ret_error,
                             char *ret_name);

/* A request to an API. `what` begins the messages ("TPU \"a\""); `body` is JSON or NULL.
 * The answer's root is owned by the requests. A token that is not accepted is replaced
 * once. Errors are those of mu__answer_check; JSON that is none:
 * -MU_EINVALID. */
struct mu__google_request {
    const char *url;
    const char *method; /* NULL: GET */
    const char *body;
    const char *what;
    unsigned tries;    /* as in struct mu__request */
    unsigned *refused; /* how many tokens were refused by requests before this one
                          in the same pass, 0 at first; NULL: none */
};
int mu__google_send(const struct mu__google *google,
                    const struct mu__google_request *request, mu_error *ret_error,
                    const cJSON **ret_root);

/* The JSON of an answer, kept with it; messages have the position of a mistake, but
 * nothing of the text. mu__google_json also requires the type application/json of an
 * answer over HTTP. */
int mu__google_json(const struct mu__answer *answer, const char *what,
                    mu_error *ret_error, const cJSON **ret_root);
int mu__google_parse(const struct mu__answer *answer, const char *what,
                     mu_error *ret_error, const cJSON **ret_root);

/* A member that is a text; NULL when it is absent. -MU_EINVALID when it is something
 * else; `what` begins the message, which names the key. */
int mu__google_text(const cJSON *object, const char *key, const char *what,
                    mu_error *ret_error, const char **ret_text);

/* The tls part of requests, from ca_file; *ret_tls has no certificates without one. */
int mu__google_tls(const struct mu__google *google, mu_error *ret_error,
                   struct mu__request_tls *ret_tls);

#endif
