/* The token of a user: requested at first, and anew when etcd does not accept it any
 * more, since tokens end and users change. Other requests wait for it. */
#include "actors/coordination/store/internal.h"

#include <string.h>

enum { LOGIN_AGAIN_MS = 1000, LOGIN_NEXT_MS = 100 };

static const char *user_of(const struct etcd_store *store)
{
    return store->access == NULL ? NULL : store->access->user;
}

static void send_login(struct etcd_store *store, struct mu__ctx *ctx)
{
    const struct mu__store_access *access = store->access;

    if (store->login.flight.busy || mu__now_ms(ctx) < store->login.due_ms)
        return;
    mu__build_done(&store->login.flight.body);
    mu__etcd_authenticate(&store->login.flight.body, mu__view_str(access->user),
                          (struct mu__view){access->password,
                                            (uint32_t)access->password_size});
    store->login.due_ms = mu__now_ms(ctx) + LOGIN_AGAIN_MS;
    if (!store->login.flight.body.failed)
        mu__etcd_send(store, ctx, &store->login.flight, MU__ETCD_AUTHENTICATE);
}

bool mu__etcd_may_send(struct etcd_store *store, struct mu__ctx *ctx)
{
    if (user_of(store) == NULL || store->login.token[0] != '\0' ||
        store->login.has_no_users)
        return true;
    send_login(store, ctx);
    return false;
}

bool mu__etcd_token_ended(struct etcd_store *store, const struct etcd_flight *flight,
                          int code, const mu_error *error)
{
    struct etcd_login *login = &store->login;
    bool is_fresh;

    if (user_of(store) == NULL)
        return false;
    if (login->has_no_users && mu__etcd_needs_user(error)) {
        login->has_no_users = false;
        return true;
    }
    if (code == 0 && flight->token_number == login->token_number)
        login->token_works = true;
    if (code == 0 || !mu__etcd_needs_new_token(code, error))
        return false;
    if (flight->token_number != login->token_number)
        return true; /* there is another one by now */
    is_fresh = !login->token_works;
    login->token[0] = '\0';
    login->token_works = false;
    return !is_fresh;
}

static void note_new_token(struct etcd_login *login)
{
    login->token_number++;
    login->token_works = false;
    login->due_ms = 0;
}

/* An answer without a token, with its code and error. */
static void not_taken(struct etcd_store *store, struct mu__ctx *ctx, int rv,
                      const mu_error *error)
{
    const char *url = store->endpoints.list[store->login.flight.endpoint].url;

    if (mu__etcd_lacks_users(error)) {
        store->login.has_no_users = true;
        return;
    }
    if (store->login.flight.http.code == 0 &&
        (rv == -MU_EINVALID || rv == -MU_EUNAUTHENTICATED)) {
        mu__etcd_abandon(store, ctx,
                         "etcd at %s does not take user \"%.64s\" with this password: "
                         "%.300s",
                         url, user_of(store), error->message);
    } else {
        mu__etcd_endpoint_failed(store, ctx, &store->login.flight, error->message);
        store->login.due_ms = mu__now_ms(ctx) + LOGIN_NEXT_MS;
    }
}

void mu__etcd_on_login(struct etcd_store *store, struct mu__ctx *ctx)
{
    struct mu__etcd_answer *answer = NULL;
    mu_error error = {.code = 0};
    int rv = mu__etcd_read(&store->login.flight, &error, &answer);

    mu__build_done(&store->login.flight.body);
    if (rv == 0)
        rv = mu__etcd_token(answer, &error, "Authorization: ", store->login.token,
                            sizeof store->login.token);
    mu__etcd_answer_free(answer);
    if (rv == 0) {
        note_new_token(&store->login);
        return;
    }
    mu__etcd_hide(&error);
    not_taken(store, ctx, rv, &error);
}

const char *mu__etcd_advice(const struct etcd_store *store, int code,
                            const mu_error *error)
{
    if (user_of(store) == NULL && mu__etcd_needs_user(error))
        return "; it has users, expected MUSTER_ETCD_USER and MUSTER_ETCD_PASSWORD_FILE";
    if (strstr(error->message, "CommonName of client") != NULL)
        return "; expected a client certificate without a CommonName";
    return code == -MU_EPERMISSION ? "; expected a role with readwrite for those keys"
                                   : "";
}
