/* Google's metadata, credentials and tokens, by rows. */
#include "tests/support/google.h"

/* A service account's file, with a key that no message may show. */
#define ACCOUNT                                                      \
    "{\"type\": \"service_account\", \"client_email\": \"a@b.c\", "  \
    "\"private_key\": \"-----BEGIN PRIVATE KEY-----\\nSECRET\\n\", " \
    "\"private_key_id\": \"k1\", \"token_uri\": \"https://token.example/t\"}"
#define JWT_HEAD "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsxIn0"
#define JWT_CLAIMS                                                                       \
    "eyJpc3MiOiJhQGIuYyIsInNjb3BlIjoiaHR0cHM6Ly93d3cuZ29vZ2xlYXBpcy5jb20vYXV0aC9jbG91ZC" \
    "1wbGF0Zm9ybSIsImF1ZCI6Imh0dHBzOi8vb2F1dGgyLmdvb2dsZWFwaXMuY29tL3Rva2VuIiwiaWF0Ijox" \
    "NzAwMDAwMDAwLCJleHAiOjE3MDAwMDM2MDB9"
#define USER                                                   \
    "{\"type\": \"authorized_user\", \"client_id\": \"i d\", " \
    "\"client_secret\": \"SECRET1\", \"refresh_token\": \"SECRET/2\"}"

static int project(const struct mu__google *google, mu_error *ret_error, char **ret_text)
{
    char name[MU__GOOGLE_NAME_BYTES];
    int rv = mu__google_project(google, NULL, ret_error, name);

    return rv != 0 ? rv : copy_text(name, ret_text);
}

static int zone(const struct mu__google *google, mu_error *ret_error, char **ret_text)
{
    char name[MU__GOOGLE_NAME_BYTES];
    int rv = mu__google_zone(google, NULL, ret_error, name);

    return rv != 0 ? rv : copy_text(name, ret_text);
}

/* ---- Metadata ---- */

TEST(test_project_and_zone)
{
    static const struct script_row rows[] = {
        ROW_GCE,
        SCRIPT(HTTP, .name = META "project/project-id", .header = "Google",
               .has_header = "Metadata-Flavor: Google", .text = " my-project\n"),
        SCRIPT(HTTP, .name = META "instance/zone", .header = "Google",
               .text = "projects/1/zones/europe-west4-a"),
        SCRIPT_END,
    };

    expect(project, rows, (struct mu__google){0}, "my-project");
    expect(zone, rows, (struct mu__google){0}, "europe-west4-a");
}

TEST(test_project_by_variable)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("GOOGLE_CLOUD_PROJECT", "mine"), SCRIPT_END};
    static const struct script_row bad[] = {
        SCRIPT_VARIABLE("GOOGLE_CLOUD_PROJECT", "a/b"), SCRIPT_END};

    expect(project, rows, (struct mu__google){0}, "mine");
    expect_error(project, bad, (struct mu__google){0}, -MU_EINVALID,
                 "GOOGLE_CLOUD_PROJECT: expected a name");
}

TEST(test_metadata_host)
{
    static const char path[] = "computeMetadata/v1/project/project-id";
    static const struct {
        const char *host;
        const char *ip;
        const char *where;
    } rows[] = {
        {"127.0.0.1:8080", "10.0.0.9", "127.0.0.1:8080"},
        {NULL, "10.0.0.9", "10.0.0.9"},
        {"[::1]:80", NULL, "[::1]:80"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct script_row script[4] = {0};
        char url[128];
        size_t count = 0;

        (void)snprintf(url, sizeof url, "http://%s/%s", rows[i].where, path);
        if (rows[i].host != NULL)
            script[count++] =
                (struct script_row)SCRIPT_VARIABLE("GCE_METADATA_HOST", rows[i].host);
        if (rows[i].ip != NULL)
            script[count++] =
                (struct script_row)SCRIPT_VARIABLE("GCE_METADATA_IP", rows[i].ip);
        script[count++] =
            (struct script_row)SCRIPT(HTTP, .name = url, .header = "Google", .text = "p");
        expect(project, script, (struct mu__google){0}, "p");
    }
}

TEST(test_bad_metadata_host)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("GCE_METADATA_HOST", "a/b@c"), SCRIPT_END};

    expect_error(project, rows, (struct mu__google){0}, -MU_EINVALID,
                 "GCE_METADATA_HOST or GCE_METADATA_IP: expected HOST or HOST:PORT");
}

TEST(test_bad_metadata)
{
    static const struct {
        struct script_row row;
        int code;
        const char *words;
    } rows[] = {
        {SCRIPT(HTTP, .header = "", .text = "p"), -MU_EINVALID,
         "lacks the header \"Metadata-Flavor: Google\""},
        {SCRIPT(HTTP, .header = "Other", .text = "p"), -MU_EINVALID,
         "something else answers there"},
        {SCRIPT(HTTP, .header = "Google", .status = 403), -MU_EPERMISSION, "status 403"},
        {SCRIPT(HTTP, .header = "Google", .status = 404), -MU_ENOTFOUND, "status 404"},
        {SCRIPT(HTTP, .header = "Google", .text = "a b"), -MU_EINVALID,
         "metadata project/project-id: expected a name"},
        {SCRIPT(HTTP, .header = "Google", .text = ""), -MU_EINVALID,
         "metadata project/project-id: expected a name"},
        {SCRIPT(HTTP, .code = -MU_EUNAVAILABLE, .text = "connection refused"),
         -MU_EUNAVAILABLE, "connection refused"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct script_row script[] = {ROW_GCE, rows[i].row, SCRIPT_END};

        script[1].name = META "project/project-id";
        expect_error(project, script, (struct mu__google){0}, rows[i].code,
                     rows[i].words);
    }
}

TEST(test_other_machines)
{
    static const struct script_row rows[] = {
        SCRIPT_FILE("/sys/class/dmi/id/product_name", "Standard PC\n"), SCRIPT_END};

    expect_error(project, rows, (struct mu__google){0}, -MU_EPRECONDITION,
                 "does not say \"Google Compute Engine\"");
    expect_error(first_token, rows, (struct mu__google){0}, -MU_EUNAUTHENTICATED,
                 "there are no credentials");
}

TEST(test_product_names)
{
    static const struct {
        const char *product;
        const char *no_check;
        int here;
    } rows[] = {
        {"Google Compute Engine\n", NULL, 1},
        {"Google\n", NULL, 1},
        {"Google", "false", 1},
        {"Google Compute Engine", "true", 0},
        {"Googled PC\n", NULL, 0},
        {"Google Pixel\n", NULL, 0},
    };
    mu_error why;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {
            SCRIPT_FILE("/sys/class/dmi/id/product_name", rows[i].product),
            rows[i].no_check == NULL
                ? (struct script_row)SCRIPT_END
                : (struct script_row)SCRIPT_VARIABLE("NO_GCE_CHECK", rows[i].no_check),
            SCRIPT_END,
        };
        struct mu__requests *requests;
        struct script requester;

        script_init(&requester, script);
        assert_int_equal(mu__requests_new(&requester.sources.base, NULL, &requests), 0);
        assert_int_equal(mu__google_here(requests, &why), rows[i].here);
        mu__requests_free(requests);
    }
}

/* ---- Tokens ---- */

TEST(test_given_tokens)
{
    static const struct script_row file[] = {
        SCRIPT_FILE("/t", " SECRET\n"),
        SCRIPT(FILE, .name = "/t", .text = "SECRET2", .again = 1),
        SCRIPT_END,
    };

    expect(first_token, NULL, (struct mu__google){.access_token = "SECRET"}, "SECRET");
    expect(first_token, file, (struct mu__google){.access_token_file = "/t"}, "SECRET");
    expect(second_token, file, (struct mu__google){.access_token_file = "/t"}, "SECRET2");
    expect(first_token, NULL, (struct mu__google){.credentials = "none"}, "");
    expect_error(second_token, NULL, (struct mu__google){.access_token = "SECRET"},
                 -MU_EUNAUTHENTICATED, "setting access_token is not accepted");
    expect_error(first_token, NULL, (struct mu__google){.access_token = "SECRET\nX: y"},
                 -MU_EINVALID, "expected a token: one word");
    expect_error(first_token, NULL, (struct mu__google){.access_token = "SECRET\x80"},
                 -MU_EINVALID, "expected a token of printable ASCII: byte 7");
    expect_error(first_token, NULL, (struct mu__google){.access_token_file = "/t"},
                 -MU_ENOTFOUND, "setting access_token_file");
}

TEST(test_metadata_token)
{
    static const struct script_row rows[] = {
        ROW_GCE,
        SCRIPT(HTTP, .name = METADATA_TOKEN, .header = "Google",
               .has_header = "Metadata-Flavor: Google", .text = TOKEN("SECRET")),
        SCRIPT(HTTP, .name = METADATA_TOKEN, .header = "Google", .text = TOKEN("SECRET2"),
               .again = 1),
        SCRIPT_END,
    };

    expect(first_token, rows, (struct mu__google){0}, "SECRET");
    expect(second_token, rows, (struct mu__google){.credentials = "default"}, "SECRET2");
}

TEST(test_bad_metadata_tokens)
{
    static const struct {
        struct script_row row;
        int code;
        const char *words;
    } rows[] = {
        {SCRIPT(HTTP, .header = "", .text = TOKEN("SECRET")), -MU_EINVALID,
         "something else answers there"},
        {SCRIPT(HTTP, .header = "Google", .content_type = "text/html",
                .text = TOKEN("SECRET")),
         -MU_EINVALID, "expected an answer of type application/json"},
        {SCRIPT(HTTP, .header = "Google", .text = "{\"access_token\": \"SECRET\""),
         -MU_EINVALID, "line 1, column 26"},
        {SCRIPT(HTTP, .header = "Google", .text = "{\"token\": \"SECRET\"}"),
         -MU_EINVALID, "access_token is missing"},
        {SCRIPT(HTTP, .header = "Google", .text = "{\"access_token\": [\"SECRET\"]}"),
         -MU_EINVALID, "access_token: expected a text"},
        {SCRIPT(HTTP, .header = "Google", .text = "{\"access_token\": \"\"}"),
         -MU_EINVALID, "expected a token"},
        {SCRIPT(HTTP, .header = "Google",
                .text = "{\"access_token\": \"SECRET\", \"token_type\": \"MAC\"}"),
         -MU_EINVALID, "token_type: expected \"Bearer\""},
        {SCRIPT(HTTP, .header = "Google", .status = 404), -MU_ENOTFOUND, "status 404"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct script_row script[] = {ROW_GCE, rows[i].row, SCRIPT_END};

        script[1].name = METADATA_TOKEN;
        expect_error(first_token, script, (struct mu__google){0}, rows[i].code,
                     rows[i].words);
    }
}

TEST(test_service_account)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("GOOGLE_APPLICATION_CREDENTIALS", "/c"),
        SCRIPT_FILE("/c", ACCOUNT),
        SCRIPT(SIGNATURE, .name = "RS256", .body = JWT_HEAD "." JWT_CLAIMS,
               .text = "signed??"),
        SCRIPT(HTTP, .name = "https://token.example/t", .method = "POST",
               .has_header = "Content-Type: application/x-www-form-urlencoded",
               .body = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
                       "&assertion=" JWT_HEAD "." JWT_CLAIMS ".c2lnbmVkPz8",
               .text = TOKEN("SECRET")),
        SCRIPT(HTTP, .name = "https://token.example/t", .method = "POST", .again = 1,
               .text = TOKEN("SECRET2")),
        SCRIPT_END,
    };

    expect(first_token, rows, (struct mu__google){0}, "SECRET");
    expect(first_token, rows + 1, (struct mu__google){.credentials = "/c"}, "SECRET");
    expect(second_token, rows + 1, (struct mu__google){.credentials = "/c"}, "SECRET2");
}

TEST(test_user)
{
    static const struct script_row rows[] = {
        SCRIPT_VARIABLE("HOME", "/h"),
        SCRIPT_FILE("/h/.config/gcloud/application_default_credentials.json", USER),
        SCRIPT_FILE("/conf/application_default_credentials.json", USER),
        SCRIPT(HTTP, .name = "https://oauth2.googleapis.com/token", .method = "POST",
               .body = "grant_type=refresh_token&client_id=i%20d&client_secret=SECRET1"
                       "&refresh_token=SECRET%2F2",
               .text = TOKEN("SECRET3")),
        SCRIPT_VARIABLE("CLOUDSDK_CONFIG", "/conf"),
        SCRIPT_END,
    };

    expect(first_token, rows, (struct mu__google){0}, "SECRET3");
}

TEST(test_bad_files)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"", -MU_EINVALID, "credentials /c: JSON: the text is empty"},
        {"SECRET", -MU_EINVALID,
         "credentials /c: JSON: line 1, column 1: expected an object"},
        {"{\"type\": \"service_account\", \"private_key\": \"SECRET", -MU_EINVALID,
         "credentials /c: JSON: line 1, column 45: expected JSON"},
        {"{}", -MU_EUNIMPLEMENTED, "type: expected \"service_account\""},
        {"{\"type\": 7}", -MU_EINVALID, "type: expected a text"},
        {"{\"type\": \"gdch_service_account\"}", -MU_EUNIMPLEMENTED,
         "credentials /c: type: expected \"service_account\" or \"authorized_user\""},
        {"{\"type\": \"external_account\"}", -MU_EUNIMPLEMENTED,
         "set token_command to a command that prints a token"},
        {"{\"type\": \"authorized_user\", \"universe_domain\": \"other.example\"}",
         -MU_EUNIMPLEMENTED, "universe_domain: expected \"googleapis.com\""},
        {"{\"type\": \"service_account\"}", -MU_EINVALID, "client_email is missing"},
        {"{\"type\": \"service_account\", \"client_email\": \"a\"}", -MU_EINVALID,
         "private_key is missing"},
        {"{\"type\": \"service_account\", \"client_email\": \"a\", "
         "\"private_key\": [\"SECRET\"]}",
         -MU_EINVALID, "private_key: expected a text"},
        {"{\"type\": \"authorized_user\", \"client_id\": \"a\"}", -MU_EINVALID,
         "client_secret is missing"},
        {"{\"type\": \"authorized_user\"}", -MU_EINVALID, "client_id is missing"},
        {"{\"type\": \"authorized_user\", \"client_id\": \"a\", "
         "\"client_secret\": \"SECRET\"}",
         -MU_EINVALID, "refresh_token is missing"},
        {"{\"type\": \"service_account\", \"token_uri\": \"http://a/\"}", -MU_EINVALID,
         "expected a url that begins with https://"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {SCRIPT_FILE("/c", rows[i].text), SCRIPT_END};

        expect_error(first_token, script, (struct mu__google){.credentials = "/c"},
                     rows[i].code, rows[i].words);
    }
    expect_error(first_token, NULL, (struct mu__google){.credentials = "/none"},
                 -MU_ENOTFOUND, "credentials /none");
}

TEST(test_key_that_cannot_sign)
{
    static const struct script_row rows[] = {
        SCRIPT_FILE("/c", ACCOUNT),
        SCRIPT(SIGNATURE, .name = "RS256", .code = -MU_EINVALID,
               .text = "the private key is none"),
        SCRIPT_END,
    };

    expect_error(first_token, rows, (struct mu__google){.credentials = "/c"},
                 -MU_EINVALID, "credentials /c: the private key is none");
}

TEST(test_token_server_refuses)
{
    static const struct {
        int status;
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {400,
         "{\"error\": \"invalid_grant\", \"error_description\": \"Invalid JWT "
         "Signature.\"}",
         -MU_EUNAUTHENTICATED, "status 400: invalid_grant Invalid JWT Signature."},
        {400,
         "{\"error\": \"invalid_grant\", \"error_description\": \"Bad "
         "SECRETSECRETSECRETSECRETSECRET\"}",
         -MU_EUNAUTHENTICATED, "status 400: invalid_grant"},
        {401, "<html>", -MU_EUNAUTHENTICATED, "status 401"},
        {403, "{\"error\": \"access_denied\"}", -MU_EPERMISSION,
         "status 403: access_denied"},
        {302, "", -MU_EINVALID, "status 302"},
        {204, "", -MU_EINVALID, "status 204"},
        {500, "{\"error\": {\"message\": \"x\"}}", -MU_EUNAVAILABLE, "status 500"},
        {200, "{}", -MU_EINVALID, "token server: access_token is missing"},
        {200, "[]", -MU_EINVALID, "token server: JSON: line 1, column 1"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {
            SCRIPT_FILE("/c", USER),
            SCRIPT(HTTP, .name = "https://oauth2.googleapis.com/token", .method = "POST",
                   .status = rows[i].status, .text = rows[i].text),
            SCRIPT_END,
        };

        expect_error(first_token, script, (struct mu__google){.credentials = "/c"},
                     rows[i].code, rows[i].words);
    }
}

/* ---- Requests ---- */

TEST(test_quota_project)
{
    static const struct script_row by_file[] = {
        SCRIPT_FILE("/c", "{\"type\": \"authorized_user\", \"client_id\": \"i\", "
                          "\"client_secret\": \"SECRET1\", "
                          "\"refresh_token\": \"SECRET2\", "
                          "\"quota_project_id\": \"example.com:q\"}"),
        SCRIPT(HTTP, .name = "https://oauth2.googleapis.com/token", .method = "POST",
               .text = TOKEN("SECRET")),
        SCRIPT(HTTP, .name = "https://api.example/a", .text = "{\"m\": \"yes\"}",
               .has_header = "X-Goog-User-Project: example.com:q"),
        SCRIPT_END,
    };
    static const struct script_row by_variable[] = {
        ROW_GCE,
        SCRIPT_VARIABLE("GOOGLE_CLOUD_QUOTA_PROJECT", "q2"),
        SCRIPT(HTTP, .name = METADATA_TOKEN, .header = "Google", .text = TOKEN("SECRET")),
        SCRIPT(HTTP, .name = "https://api.example/a", .text = "{\"m\": \"yes\"}",
               .has_header = "X-Goog-User-Project: q2"),
        SCRIPT_END,
    };
    static const struct script_row bad[] = {
        SCRIPT_FILE("/c", "{\"type\": \"authorized_user\", "
                          "\"quota_project_id\": \"a\\r\\nX: y\"}"),
        SCRIPT_END,
    };

    expect(api, by_file, (struct mu__google){.credentials = "/c"}, "yes");
    expect(api, by_variable, (struct mu__google){0}, "yes");
    expect_error(api, bad, (struct mu__google){.credentials = "/c"}, -MU_EINVALID,
                 "thing: credentials /c: quota_project_id: expected a name");
}

TEST(test_new_token_after_401)
{
    static const struct script_row rows[] = {
        ROW_GCE,
        SCRIPT(HTTP, .name = METADATA_TOKEN, .header = "Google", .text = TOKEN("SECRET")),
        SCRIPT(HTTP, .name = METADATA_TOKEN, .header = "Google", .text = TOKEN("SECRET2"),
               .again = 1),
        SCRIPT(HTTP, .name = "https://api.example/a", .status = 401, .text = "{}",
               .has_header = "Authorization: Bearer SECRET"),
        SCRIPT(HTTP, .name = "https://api.example/a", .text = "{\"m\": \"yes\"}",
               .has_header = "Authorization: Bearer SECRET2", .again = 1),
        SCRIPT_END,
    };

    expect(api, rows, (struct mu__google){0}, "yes");
}

TEST(test_two_tokens_are_enough)
{
    static const struct script_row rows[] = {
        SCRIPT_FILE("/t", "SECRET"),
        SCRIPT(FILE, .name = "/t", .text = "SECRET2", .again = 1),
        SCRIPT(HTTP, .name = "https://api.example/a", .status = 401, .text = "{}"),
        SCRIPT(HTTP, .name = "https://api.example/a", .status = 401, .again = 1,
               .text = "{\"error\": {\"message\": \"Request had invalid "
                       "credentials.\"}}"),
        SCRIPT_END,
    };

    expect_error(api, rows, (struct mu__google){.access_token_file = "/t"},
                 -MU_EUNAUTHENTICATED,
                 "thing: status 401: the server does not accept the credentials; it says "
                 "\"Request had invalid credentials.\"");
}

TEST(test_own_authorities)
{
    static const struct script_row rows[] = {
        SCRIPT_FILE("/ca", "PEM"),
        SCRIPT(HTTP, .name = "https://api.example/a", .text = "{\"m\": \"yes\"}"),
        SCRIPT_END,
    };

    expect(api, rows, (struct mu__google){.access_token = "t", .ca_file = "/ca"}, "yes");
    expect_error(api, rows, (struct mu__google){.access_token = "t", .ca_file = "/no"},
                 -MU_ENOTFOUND, "thing: setting ca_file");
}

TEST_PROGRAM()
