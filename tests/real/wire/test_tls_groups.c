/* What a TLS handshake costs who listens is not for strangers to choose: groups that take
 * long are refused, before anything is computed. */
#include "tests/real/nodes.h"

#include "transport/wire/tls/internal.h"

/* What one end has to say is given to the other; true: it had something. */
static bool carry(struct mu__tls *from, struct mu__tls *to)
{
    struct mu__buf *output = mu__tls_output(from);
    char heard[64];

    if (output == NULL)
        return false;
    assert_true(mu__tls_receive(to, output->data, output->size));
    while (mu__tls_read(to, heard, sizeof heard) > 0)
        continue;
    mu__buf_unref(output);
    return true;
}

/* Whether one who offers this group alone is let in. */
static bool is_let_in(struct mu__tls_identity *identity, const char *group)
{
    struct mu__tls *client = mu__tls_new(identity, false);
    struct mu__tls *server = mu__tls_new(identity, true);
    bool is_open;

    assert_non_null(client);
    assert_non_null(server);
    assert_int_equal(SSL_set1_groups_list(client->ssl, group), 1);
    assert_int_equal(mu__tls_begin(client), 0);
    while (carry(client, server) || carry(server, client))
        continue;
    is_open = mu__tls_is_open(server);
    mu__tls_free(client);
    mu__tls_free(server);
    return is_open;
}

TEST(test_slow_groups)
{
    static const struct {
        const char *group;
        bool is_let_in;
    } rows[] = {{"X25519", true},     {"P-256", true},      {"P-384", true},
                {"P-521", false},     {"X448", false},      {"ffdhe2048", false},
                {"ffdhe8192", false}, {"P-521:P-256", true}};
    struct mu__tls_identity *identity = NULL;
    struct mu__key key;

    assert_int_equal(mu__key_new(NULL, &key), 0);
    assert_int_equal(mu__tls_identity_of_key(&key, NULL, &identity), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (is_let_in(identity, rows[i].group) != rows[i].is_let_in)
            fail_msg("%s: %s", rows[i].group, rows[i].is_let_in ? "refused" : "let in");
    mu__tls_identity_free(identity);
}

TEST_PROGRAM()
