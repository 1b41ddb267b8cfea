/* Workload identity federation and acting as a service account, by rows. */
#include "tests/support/google.h"

#define STS "https://sts.googleapis.com/v1/token"
#define ACT                                                                \
    "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/" \
    "a@p.iam.gserviceaccount.com:generateAccessToken"
#define AUDIENCE                                                                  \
    "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool" \
    "/providers/k8s"
#define EXTERNAL(source, more)                                           \
    "{\"type\": \"external_account\", \"audience\": \"" AUDIENCE "\", "  \
    "\"subject_token_type\": \"urn:ietf:params:oauth:token-type:jwt\", " \
    "\"token_url\": \"" STS "\", \"credential_source\": " source more "}"
#define ACTING ", \"service_account_impersonation_url\": \"" ACT "\""
#define FORM(subject)                                                               \
    "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange"          \
    "&audience=%2F%2Fiam.googleapis.com%2Fprojects%2F1%2Flocations%2Fglobal%2F"     \
    "workloadIdentityPools%2Fpool%2Fproviders%2Fk8s"                                \
    "&scope=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fcloud-platform"               \
    "&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token" \
    "&subject_token=" subject                                                       \
    "&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt"
#define LONG "that-has-the-length-of-a-token"
#define FROM_FILE "{\"file\": \"/var/token\"}"
#define FROM_URL                                                                    \
    "{\"url\": \"http://169.254.169.254/identity?resource=SECRET0\", \"headers\": " \
    "{\"Metadata\": \"SECRET1-" LONG "\"}, \"format\": {\"type\": \"json\", "       \
    "\"subject_token_field_name\": \"access_token\"}}"
#define STS_TOKEN(word)                                                                \
    "{\"access_token\": \"" word "\", \"issued_token_type\": \"urn:ietf:params:oauth:" \
    "token-type:access_token\", \"token_type\": \"Bearer\", \"expires_in\": 3599}"

static const struct mu__google file_c = {.credentials = "/c"};

static void test_file(void **state)
{
    static const struct script_row rows[] = {
        SCRIPT_FILE("/c", EXTERNAL(FROM_FILE, "")),
        SCRIPT_FILE("/var/token", "SECRET.a/b\n"),
        SCRIPT(FILE, .name = "/var/token", .text = "SECRET.new", .again = 1),
        SCRIPT(HTTP, .name = STS, .method = "POST", .body = FORM("SECRET.a%2Fb"),
               .has_header = "Content-Type: application/x-www-form-urlencoded",
               .text = STS_TOKEN("SECRET2")),
        SCRIPT(HTTP, .name = STS, .method = "POST", .body = FORM("SECRET.new"),
               .text = STS_TOKEN("SECRET3"), .again = 1),
        SCRIPT_END,
    };

    (void)state;
    expect(first_token, rows, file_c, "SECRET2");
    expect(second_token, rows, file_c, "SECRET3");
}

/* Other clouds have it behind an address of their network. */
static void test_url(void **state)
{
    static const struct script_row rows[] = {
        SCRIPT_FILE("/c", EXTERNAL(FROM_URL, "")),
        SCRIPT(HTTP, .name = "http://169.254.169.254/identity?resource=SECRET0",
               .has_header = "Metadata: SECRET1-" LONG, .content_type = "text/plain",
               .text = "{\"access_token\": \"SECRET2\"}"),
        SCRIPT(HTTP, .name = STS, .method = "POST", .body = FORM("SECRET2"),
               .text = STS_TOKEN("SECRET3")),
        SCRIPT_END,
    };

    (void)state;
    expect(first_token, rows, file_c, "SECRET3");
}

static void test_acting_as_a_service_account(void **state)
{
    static const struct script_row rows[] = {
        SCRIPT_FILE("/c", EXTERNAL(FROM_FILE, ACTING)),
        SCRIPT_FILE("/longer",
                    EXTERNAL(FROM_FILE, ACTING ", \"service_account_impersonation\": "
                                               "{\"token_lifetime_seconds\": 43200}")),
        SCRIPT_FILE("/var/token", "SECRET1"),
        SCRIPT(HTTP, .name = STS, .method = "POST", .body = FORM("SECRET1"),
               .text = STS_TOKEN("SECRET2")),
        SCRIPT(HTTP, .name = ACT, .method = "POST",
               .body = "{\"scope\":[\"https://www.googleapis.com/auth/cloud-platform\"],"
                       "\"lifetime\":\"3600s\"}",
               .has_header = "Authorization: Bearer SECRET2",
               .text = "{\"accessToken\": \"SECRET3\", "
                       "\"expireTime\": \"2023-11-14T23:13:20Z\"}"),
        SCRIPT_END,
    };
    struct script_row longer[6];

    (void)state;
    expect(first_token, rows, file_c, "SECRET3");
    memcpy(longer, rows, sizeof longer);
    longer[4].body = "\"lifetime\":\"43200s\"}";
    expect(first_token, longer, (struct mu__google){.credentials = "/longer"}, "SECRET3");
}

/* People of a workforce pool have no project of their own. */
static void test_workforce(void **state)
{
    static const struct script_row rows[] = {
        SCRIPT_FILE("/c",
                    EXTERNAL(FROM_FILE, ", \"workforce_pool_user_project\": \"my-p\"")),
        SCRIPT_FILE("/var/token", "SECRET1"),
        SCRIPT(HTTP, .name = STS, .method = "POST",
               .body = FORM("SECRET1") "&options=%257B%2522userProject%2522%253A%2520"
                                       "%2522my-p%2522%257D",
               .text = STS_TOKEN("SECRET2")),
        SCRIPT_END,
    };

    (void)state;
    expect(first_token, rows, file_c, "SECRET2");
}

#define SOURCE_USER                                          \
    "{\"type\": \"authorized_user\", \"client_id\": \"i\", " \
    "\"client_secret\": \"SECRET1\", \"refresh_token\": \"SECRET2\"}"
#define IMPERSONATED(source, more)                                                 \
    "{\"type\": \"impersonated_service_account\", \"source_credentials\": " source \
    ", \"service_account_impersonation_url\": \"" ACT "\"" more "}"

static void test_impersonated(void **state)
{
    static const struct script_row rows[] = {
        SCRIPT_FILE("/c", IMPERSONATED(SOURCE_USER, ", \"delegates\": [\"b@c\", \"d\"]")),
        SCRIPT(HTTP, .name = "https://oauth2.googleapis.com/token", .method = "POST",
               .body = "refresh_token=SECRET2", .text = TOKEN("SECRET3")),
        SCRIPT(HTTP, .name = ACT, .method = "POST",
               .body = "\"lifetime\":\"3600s\",\"delegates\":[\"b@c\",\"d\"]}",
               .has_header = "Authorization: Bearer SECRET3",
               .text = "{\"accessToken\": \"SECRET4\"}"),
        SCRIPT_END,
    };
    static const struct script_row federated[] = {
        SCRIPT_FILE("/c", IMPERSONATED(EXTERNAL(FROM_FILE, ""), "")),
        SCRIPT_FILE("/var/token", "SECRET1"),
        SCRIPT(HTTP, .name = STS, .method = "POST", .text = STS_TOKEN("SECRET2")),
        SCRIPT(HTTP, .name = ACT, .method = "POST", .body = "\"lifetime\":\"3600s\"}",
               .has_header = "Authorization: Bearer SECRET2",
               .text = "{\"accessToken\": \"SECRET4\"}"),
        SCRIPT_END,
    };

    (void)state;
    expect(first_token, rows, file_c, "SECRET4");
    expect(first_token, federated, file_c, "SECRET4");
}

/* ---- Programs ---- */

#define ALLOWED SCRIPT_VARIABLE("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "1")
#define EXECUTABLE(more) "{\"executable\": {\"command\": \"/bin/who  -a b\"" more "}}"
#define PROGRAM_TOLD                                                    \
    "a-a\nab\nvGOOGLE_EXTERNAL_ACCOUNT_AUDIENCE=" AUDIENCE              \
    "\nvGOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE=urn:ietf:params:oauth:token-" \
    "type:jwt\nvGOOGLE_EXTERNAL_ACCOUNT_INTERACTIVE=0\n"
#define RESPONSE(type, member, more)                                              \
    "{\"version\": 1, \"success\": true, \"token_type\": \"urn:ietf:params:oauth:" \
    "token-type:" type "\", \"" member "\": \"SECRET1\"" more "}"
#define ID_TOKEN(more) RESPONSE("id_token", "id_token", more)
#define ROW_STS                                                                \
    SCRIPT(HTTP, .name = STS, .method = "POST", .body = FORM("SECRET1"), \
           .text = STS_TOKEN("SECRET2"))

static void test_program(void **state)
{
    static const char *const printed[] = {
        ID_TOKEN(""), RESPONSE("jwt", "id_token", ", \"expiration_time\": 1700000001"),
        RESPONSE("saml2", "saml_response", "")};

    (void)state;
    for (size_t i = 0; i < sizeof printed / sizeof printed[0]; i++) {
        const struct script_row rows[] = {
            ALLOWED, SCRIPT_FILE("/c", EXTERNAL(EXECUTABLE(""), "")),
            SCRIPT(PROGRAM, .name = "/bin/who", .body = PROGRAM_TOLD,
                   .text = printed[i]),
            ROW_STS, SCRIPT_END};

        expect(first_token, rows, file_c, "SECRET2");
    }
}

/* It is told more, and run anew when Google has refused what came of it. */
static void test_program_is_told(void **state)
{
    static const struct script_row rows[] = {
        ALLOWED,
        SCRIPT_FILE("/c", EXTERNAL(EXECUTABLE(", \"output_file\": \"/o\""), ACTING)),
        SCRIPT_FILE("/o", ID_TOKEN(", \"expiration_time\": 1700000100")),
        SCRIPT(PROGRAM, .name = "/bin/who", .again = 1,
               .text = ID_TOKEN(", \"expiration_time\": 1700000001"),
               .body = PROGRAM_TOLD "vGOOGLE_EXTERNAL_ACCOUNT_IMPERSONATED_EMAIL="
                                    "a@p.iam.gserviceaccount.com\n"
                                    "vGOOGLE_EXTERNAL_ACCOUNT_OUTPUT_FILE=/o\n"),
        SCRIPT(HTTP, .name = STS, .method = "POST", .body = FORM("SECRET1"),
               .text = STS_TOKEN("SECRET2"), .again = 1),
        SCRIPT(HTTP, .name = ACT, .method = "POST", .again = 1,
               .text = "{\"accessToken\": \"SECRET3\"}"),
        SCRIPT_END,
    };

    (void)state;
    expect(second_token, rows, file_c, "SECRET3");
}

/* What it has left is taken without running it, as long as that is good. */
static void test_program_has_left_a_token(void **state)
{
    static const struct {
        const char *left;
        bool is_taken;
    } cases[] = {
        {ID_TOKEN(", \"expiration_time\": 1700000001"), true},
        {ID_TOKEN(", \"expiration_time\": 1700000000"), false},
        {ID_TOKEN(""), false},
        {"{\"version\": 1, \"success\": false, \"code\": \"1\", \"message\": \"no\"}",
         false},
        {"{\"version\": ", false},
        {"", false},
        {NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct script_row rows[] = {
            ALLOWED,
            SCRIPT_FILE("/c",
                        EXTERNAL(EXECUTABLE(", \"output_file\": \"/o\""), "")),
            SCRIPT_FILE(cases[i].left == NULL ? "/other" : "/o", cases[i].left),
            SCRIPT(PROGRAM, .name = cases[i].is_taken ? "never" : "/bin/who",
                   .text = ID_TOKEN(", \"expiration_time\": 1700000001")),
            ROW_STS, SCRIPT_END};

        expect(first_token, rows, file_c, "SECRET2");
    }
}

static void test_bad_programs(void **state)
{
    static const struct {
        const char *executable;
        int code;
        const char *words;
    } rows[] = {
        {"7", -MU_EINVALID, "credential_source: executable: expected an object"},
        {"{}", -MU_EINVALID, "executable: command is missing"},
        {"{\"command\": \" \"}", -MU_EINVALID, "executable: command is missing"},
        {"{\"command\": \"/x\", \"timeout_millis\": 4999}", -MU_EINVALID,
         "executable: timeout_millis: expected a number of 5000 to 120000"},
        {"{\"command\": \"/x\", \"timeout_millis\": 120001}", -MU_EINVALID,
         "executable: timeout_millis: expected a number"},
        {"{\"command\": \"/x\", \"output_file\": 7}", -MU_EINVALID,
         "executable: output_file: expected a text"},
        {"{\"command\": \"/none\"}", -MU_ENOTFOUND,
         "credentials /c: credential_source: executable: \"/none\" is not there"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[1024];
        const struct script_row script[] = {ALLOWED, SCRIPT_FILE("/c", text), SCRIPT_END};
        const struct script_row forbidden[] = {SCRIPT_FILE("/c", text), SCRIPT_END};

        (void)snprintf(text, sizeof text,
                       EXTERNAL("{\"executable\": %s}", ""), rows[i].executable);
        expect_error(first_token, script, file_c, rows[i].code, rows[i].words);
        expect_error(first_token, forbidden, file_c, -MU_EPERMISSION,
                     "executable: no program is run unless the variable "
                     "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES is 1");
    }
}

static void test_bad_responses(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"SECRET", -MU_EINVALID, "executable: JSON: line 1, column 1"},
        {"", -MU_EINVALID, "executable: JSON: "},
        {"{}", -MU_EINVALID, "executable: what the program prints: version: expected 1"},
        {"{\"version\": 2, \"success\": true}", -MU_EINVALID, "version: expected 1"},
        {"{\"version\": 1, \"success\": \"SECRET\"}", -MU_EINVALID,
         "success: expected true or false"},
        {"{\"version\": 1, \"success\": false}", -MU_EUNAUTHENTICATED,
         "executable: the program has no token"},
        {"{\"version\": 1, \"success\": false, \"code\": \"401\", \"message\": "
         "\"Caller not authorized.\"}", -MU_EUNAUTHENTICATED,
         "executable: the program has no token: 401 Caller not authorized."},
        {"{\"version\": 1, \"success\": false, \"code\": 7, \"message\": "
         "\"SECRET-" LONG "\"}", -MU_EUNAUTHENTICATED, "the program has no token"},
        {"{\"version\": 1, \"success\": true}", -MU_EINVALID,
         "token_type is missing"},
        {"{\"version\": 1, \"success\": true, \"token_type\": \"SECRET\"}", -MU_EINVALID,
         "token_type: expected urn:ietf:params:oauth:token-type: and jwt, id_token or "
         "saml2"},
        {RESPONSE("id_token", "saml_response", ""), -MU_EINVALID, "id_token is missing"},
        {RESPONSE("saml2", "id_token", ""), -MU_EINVALID, "saml_response is missing"},
        {ID_TOKEN(", \"expiration_time\": \"x\""), -MU_EINVALID,
         "expiration_time: expected a number"},
        {ID_TOKEN(", \"expiration_time\": 1700000000"), -MU_EUNAUTHENTICATED,
         "executable: the program's token has expired"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct script_row script[] = {
            ALLOWED, SCRIPT_FILE("/c", EXTERNAL(EXECUTABLE(""), "")),
            SCRIPT(PROGRAM, .name = "/bin/who", .text = rows[i].text), SCRIPT_END};

        expect_error(first_token, script, file_c, rows[i].code, rows[i].words);
    }
}

/* What it leaves for later has to say until when it is good. */
static void test_response_for_later(void **state)
{
    static const struct script_row rows[] = {
        ALLOWED,
        SCRIPT_FILE("/c", EXTERNAL(EXECUTABLE(", \"output_file\": \"/o\""), "")),
        SCRIPT(PROGRAM, .name = "/bin/who", .text = ID_TOKEN("")), SCRIPT_END};

    (void)state;
    expect_error(first_token, rows, file_c, -MU_EINVALID,
                 "executable: what the program prints: expiration_time: expected a "
                 "number, since there is an output_file");
}

/* ---- What goes wrong ---- */

struct bad_file {
    const char *text;
    int code;
    const char *words;
};

static void expect_bad_files(const struct bad_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct script_row script[] = {
            SCRIPT_FILE("/c", files[i].text), SCRIPT_FILE("/empty", "\n"),
            SCRIPT_FILE("/t", "SECRET"), SCRIPT_FILE("/json", "{\"b\": [\"SECRET\"]}"),
            SCRIPT_END};

        expect_error(first_token, script, file_c, files[i].code, files[i].words);
    }
}

static void test_bad_sources(void **state)
{
    static const struct bad_file rows[] = {
        {"{\"type\": \"external_account\"}", -MU_EINVALID,
         "credentials /c: token_url is missing"},
        {EXTERNAL("7", ""), -MU_EINVALID,
         "credentials /c: credential_source: expected an object"},
        {EXTERNAL("{}", ""), -MU_EINVALID,
         "expected one of \"file\", \"url\" and \"executable\""},
        {EXTERNAL("{\"file\": \"/a\", \"url\": \"http://b\"}", ""), -MU_EINVALID,
         "expected one of \"file\", \"url\" and \"executable\""},
        {EXTERNAL("{\"file\": \"/a\", \"executable\": {}}", ""), -MU_EINVALID,
         "expected one of \"file\", \"url\" and \"executable\""},
        {EXTERNAL("{\"file\": 7}", ""), -MU_EINVALID,
         "credential_source: file: expected a text"},
        {EXTERNAL("{\"environment_id\": \"aws1\", \"url\": \"http://b\"}", ""),
         -MU_EUNIMPLEMENTED, "environment_id: sources of AWS are not supported"},
        {EXTERNAL("{\"certificate\": {}}", ""), -MU_EUNIMPLEMENTED,
         "certificate: certificates are not supported"},
        {EXTERNAL(FROM_FILE, ", \"client_id\": \"SECRET\""), -MU_EUNIMPLEMENTED,
         "client_id: accounts with a client's secret are not supported"},
        {EXTERNAL("{\"file\": \"/none\"}", ""), -MU_ENOTFOUND,
         "credential_source: \"/none\" is not there"},
        {EXTERNAL("{\"file\": \"/empty\"}", ""), -MU_EINVALID,
         "credential_source: expected a token: one word"},
        {EXTERNAL("{\"file\": \"/t\", \"format\": {\"type\": \"xml\"}}", ""),
         -MU_EINVALID, "format: type: expected \"text\" or \"json\""},
        {EXTERNAL("{\"file\": \"/t\", \"format\": {\"type\": \"json\"}}", ""),
         -MU_EINVALID, "subject_token_field_name is missing"},
        {EXTERNAL("{\"file\": \"/t\", \"format\": {\"type\": \"json\", "
                  "\"subject_token_field_name\": \"a\"}}",
                  ""),
         -MU_EINVALID, "credential_source: JSON: line 1, column 1"},
        {EXTERNAL("{\"file\": \"/json\", \"format\": {\"type\": \"json\", "
                  "\"subject_token_field_name\": \"a\"}}",
                  ""),
         -MU_EINVALID, "credential_source: a is missing in what is there"},
        {EXTERNAL("{\"file\": \"/json\", \"format\": {\"type\": \"json\", "
                  "\"subject_token_field_name\": \"b\"}}",
                  ""),
         -MU_EINVALID, "credential_source: b: expected a text"},
    };

    (void)state;
    expect_bad_files(rows, sizeof rows / sizeof rows[0]);
}

static void test_bad_urls(void **state)
{
    static const struct bad_file rows[] = {
        {EXTERNAL("{\"url\": \"ftp://b\"}", ""), -MU_EINVALID,
         "url: expected one that begins with https:// or http://"},
        {EXTERNAL("{\"url\": \"https://me:SECRET@b\"}", ""), -MU_EINVALID,
         "url: expected one that begins with https:// or http://"},
        {EXTERNAL("{\"url\": \"http://b\", \"headers\": {\"authorization\": "
                  "\"Bearer SECRET\"}}",
                  ""),
         -MU_EINVALID, "since the header Authorization is sent there"},
        {EXTERNAL("{\"url\": \"http://b\", \"headers\": {\"A: SECRET\": \"c\"}}", ""),
         -MU_EINVALID, "headers: expected at most 8 names of letters"},
        {EXTERNAL("{\"url\": \"http://b\", \"headers\": {\"A\": \"SECRET\\r\\nB: c\"}}",
                  ""),
         -MU_EINVALID, "headers: expected at most 8 names of letters"},
        {EXTERNAL("{\"url\": \"http://b\", \"headers\": {\"A\": 7}}", ""), -MU_EINVALID,
         "headers: expected at most 8 names of letters"},
        {EXTERNAL("{\"url\": \"http://b\", \"headers\": {\"A\": \"\", \"B\": \"\", "
                  "\"C\": \"\", \"D\": \"\", \"E\": \"\", \"F\": \"\", \"G\": \"\", "
                  "\"H\": \"\", \"I\": \"\"}}",
                  ""),
         -MU_EINVALID, "headers: expected at most 8 names of letters"},
    };

    (void)state;
    expect_bad_files(rows, sizeof rows / sizeof rows[0]);
}

static void test_bad_impersonations(void **state)
{
    static const struct bad_file rows[] = {
        {EXTERNAL(FROM_FILE, ", \"service_account_impersonation_url\": \"http://b\""),
         -MU_EINVALID,
         "service_account_impersonation_url: resolver test: expected a url that begins"},
        {EXTERNAL(FROM_FILE, ACTING ", \"service_account_impersonation\": "
                                    "{\"token_lifetime_seconds\": 5}"),
         -MU_EINVALID, "token_lifetime_seconds: expected a number of 600 to 43200"},
        {IMPERSONATED("7", ""), -MU_EINVALID,
         "source_credentials: expected credentials that act as nobody else"},
        {IMPERSONATED(IMPERSONATED(SOURCE_USER, ""), ""), -MU_EINVALID,
         "source_credentials: expected credentials that act as nobody else"},
        {IMPERSONATED("{\"type\": \"authorized_user\"}", ""), -MU_EINVALID,
         "credentials /c: source_credentials: client_id is missing"},
        {IMPERSONATED(SOURCE_USER, ", \"delegates\": 7"), -MU_EINVALID,
         "delegates: expected a list"},
        {IMPERSONATED(SOURCE_USER, ", \"delegates\": [7]"), -MU_EINVALID,
         "delegates[0]: expected a text"},
        {"{\"type\": \"impersonated_service_account\"}", -MU_EINVALID,
         "service_account_impersonation_url is missing"},
    };

    (void)state;
    expect_bad_files(rows, sizeof rows / sizeof rows[0]);
}

static void test_bad_servers(void **state)
{
    static const struct {
        struct script_row sts;
        struct script_row act;
        int code;
        const char *words;
    } rows[] = {
        {SCRIPT(HTTP, .status = 400,
                .text = "{\"error\": \"invalid_request\", "
                        "\"error_description\": \"Invalid value for "
                        "audience.\"}"),
         SCRIPT_END, -MU_EUNAUTHENTICATED,
         "credentials /c: the token server answers with status 400: invalid_request "
         "Invalid value for audience."},
        {SCRIPT(HTTP, .text = "{}"), SCRIPT_END, -MU_EINVALID,
         "token server: access_token is missing"},
        {SCRIPT(HTTP, .text = STS_TOKEN("SECRET2")),
         SCRIPT(HTTP, .status = 403,
                .text = "{\"error\": {\"code\": 403, \"message\": \"Permission "
                        "'iam.serviceAccounts.getAccessToken' denied\", "
                        "\"status\": \"PERMISSION_DENIED\"}}"),
         -MU_EPERMISSION, "it says \"Permission 'iam.serviceAccounts.getAccessToken'"},
        {SCRIPT(HTTP, .text = STS_TOKEN("SECRET2-" LONG)),
         SCRIPT(HTTP, .status = 400,
                .text = "{\"error\": {\"message\": \"bad SECRET2-" LONG "\"}}"),
         -MU_EINVALID, "service_account_impersonation_url: status 400"},
        {SCRIPT(HTTP, .text = STS_TOKEN("SECRET2")),
         SCRIPT(HTTP, .text = "{\"access_token\": \"SECRET\"}"), -MU_EINVALID,
         "service_account_impersonation_url: accessToken is missing"},
        {SCRIPT(HTTP, .text = STS_TOKEN("SECRET2")),
         SCRIPT(HTTP, .text = "{\"accessToken\": 7}"), -MU_EINVALID,
         "accessToken: expected a text"},
        {SCRIPT(HTTP, .text = STS_TOKEN("SECRET2")),
         SCRIPT(HTTP, .text = "SECRET", .content_type = "text/html"), -MU_EINVALID,
         "expected an answer of type application/json, got text/html"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct script_row script[] = {SCRIPT_FILE("/c", EXTERNAL(FROM_FILE, ACTING)),
                                      SCRIPT_FILE("/var/token", "SECRET1"), rows[i].sts,
                                      rows[i].act, SCRIPT_END};

        script[2].name = STS;
        script[2].method = "POST";
        script[3].name = rows[i].act.text == NULL ? NULL : ACT;
        script[3].method = "POST";
        expect_error(first_token, script, file_c, rows[i].code, rows[i].words);
    }
}

static void test_bad_url_answers(void **state)
{
    static const struct {
        struct script_row row;
        int code;
        const char *words;
    } rows[] = {
        {SCRIPT(HTTP, .status = 404, .text = "SECRET"), -MU_ENOTFOUND,
         "credential_source: status 404"},
        {SCRIPT(HTTP, .code = -MU_EUNAVAILABLE, .text = "connection refused"),
         -MU_EUNAVAILABLE, "credential_source: connection refused"},
        {SCRIPT(HTTP, .text = "SECRET"), -MU_EINVALID, "JSON: line 1, column 1"},
        {SCRIPT(HTTP, .status = 400,
                .text = "{\"message\": \"SECRET1-" LONG " is wrong\"}"),
         -MU_EINVALID, "credential_source: status 400"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct script_row script[] = {SCRIPT_FILE("/c", EXTERNAL(FROM_URL, "")),
                                      rows[i].row, SCRIPT_END};

        script[1].name = "http://169.254.169.254/identity?resource=SECRET0";
        expect_error(first_token, script, file_c, rows[i].code, rows[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_url),
        cmocka_unit_test(test_acting_as_a_service_account),
        cmocka_unit_test(test_workforce),
        cmocka_unit_test(test_impersonated),
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_program_is_told),
        cmocka_unit_test(test_program_has_left_a_token),
        cmocka_unit_test(test_bad_programs),
        cmocka_unit_test(test_bad_responses),
        cmocka_unit_test(test_response_for_later),
        cmocka_unit_test(test_bad_sources),
        cmocka_unit_test(test_bad_urls),
        cmocka_unit_test(test_bad_impersonations),
        cmocka_unit_test(test_bad_servers),
        cmocka_unit_test(test_bad_url_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
