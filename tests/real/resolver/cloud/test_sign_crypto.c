/* Signatures, against the program openssl: it makes the keys and checks what was
 * signed. */
#include "resolver/engine/uv/cloud_library.h"

#include "tests/real/needs.h"
#include "tests/support/test.h"

#include <unistd.h>

enum { FILE_BYTES = 16384 };

static char folder[] = "/tmp/muster-sign-XXXXXX";

/* Run a command in the folder; its exit code. */
static int run(const char *command)
{
    char line[1024];

    (void)snprintf(line, sizeof line, "cd %s && (%s) >/dev/null 2>&1", folder, command);
    return system(line);
}

static void path_of(const char *name, char *out, size_t size)
{
    (void)snprintf(out, size, "%s/%s", folder, name);
}

static void write_bytes(const char *name, const void *data, size_t size)
{
    char path[128];
    FILE *file;

    path_of(name, path, sizeof path);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The text of a file, in a static buffer. */
static const char *text_of(const char *name)
{
    static char text[FILE_BYTES];
    char path[128];
    size_t size;
    FILE *file;

    path_of(name, path, sizeof path);
    file = fopen(path, "rb");
    assert_non_null(file);
    size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    assert_int_equal(fclose(file), 0);
    return text;
}

static void check_signature(const char *key, const void *data, size_t size)
{
    unsigned char *signature = NULL;
    size_t signature_size = 0;
    mu_error error;
    int rv =
        mu__sign_rs256(text_of(key), data, size, &error, &signature, &signature_size);

    if (rv != 0)
        fail_msg("%s", error.message);
    assert_int_equal(signature_size, 256);
    write_bytes("signature", signature, signature_size);
    write_bytes("data", data, size);
    free(signature);
    assert_int_equal(run("openssl dgst -sha256 -verify public.pem -signature signature "
                         "data"),
                     0);
}

TEST(test_openssl_accepts_it)
{
    static char large[100000];

    memset(large, 'x', sizeof large);
    check_signature("key.pem", "header.claims", 13);
    check_signature("key.pem", "", 0);
    check_signature("key.pem", large, sizeof large);
    check_signature("traditional.pem", "header.claims", 13);
}

TEST(test_another_text_is_refused)
{
    check_signature("key.pem", "header.claims", 13);
    write_bytes("data", "header.claimz", 13);
    assert_int_not_equal(run("openssl dgst -sha256 -verify public.pem -signature "
                             "signature data"),
                         0);
}

static void expect_refused(const char *key, const char *words)
{
    unsigned char *signature = NULL;
    size_t size = 7;
    mu_error error;

    assert_int_equal(mu__sign_rs256(key, "a", 1, &error, &signature, &size),
                     -MU_EINVALID);
    if (strstr(error.message, words) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
    assert_null(signature);
    assert_int_equal(size, 7);
}

TEST(test_bad_keys)
{
    char torn[FILE_BYTES];

    expect_refused(text_of("elliptic.pem"), "of another algorithm: expected RSA");
    expect_refused(text_of("encrypted.pem"), "the private key is encrypted");
    expect_refused(text_of("public.pem"), "the private key is a public one");
    expect_refused("", "the private key is none: expected an RSA key as PEM");
    expect_refused("SECRETSECRET", "the private key is none");
    (void)snprintf(torn, sizeof torn, "%.200s", text_of("key.pem"));
    expect_refused(torn, "the private key is none");
}

TEST(test_words_have_nothing_of_the_key)
{
    unsigned char *signature;
    size_t size;
    mu_error error;

    assert_int_equal(mu__sign_rs256("-----BEGIN PRIVATE KEY-----\nSECRETSECRET\n", "a", 1,
                                    &error, &signature, &size),
                     -MU_EINVALID);
    assert_null(strstr(error.message, "SECRET"));
}

static int make_keys(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    return run("openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 "
               "-out key.pem && openssl pkey -in key.pem -pubout -out public.pem "
               "&& openssl rsa -in key.pem -traditional -out traditional.pem "
               "&& openssl pkey -in key.pem -aes256 -passout pass:x -out encrypted.pem "
               "&& openssl ecparam -name prime256v1 -genkey -noout -out elliptic.pem");
}

static int remove_keys(void **state)
{
    (void)state;
    (void)run("rm -f key.pem public.pem traditional.pem encrypted.pem elliptic.pem "
              "signature data");
    return rmdir(folder);
}

NEEDS_PROGRAM(needs_programs("openssl", NULL), make_keys, remove_keys)
