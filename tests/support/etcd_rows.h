/* What an etcd 3.4 was asked, one row after another from its begin on, and what it
 * answered; without the fields of "header" that differ from one etcd to another. The real
 * one and the one of the simulator are held to it. */
#ifndef MU_TESTS_ETCD_ROWS_H
#define MU_TESTS_ETCD_ROWS_H

static const struct etcd_row {
    const char *path;
    const char *ask;
    int status;
    const char *answer;
} etcd_rows[] = {
    {"/v3/kv/range", "{\"key\":\"YQ==\"}", 200, "{\"header\":{\"revision\":\"1\"}}"},
    {"/v3/lease/grant", "{\"ID\":\"77\",\"TTL\":\"30\"}", 200,
     "{\"header\":{\"revision\":\"1\"},\"ID\":\"77\",\"TTL\":\"30\"}"},
    {"/v3/lease/grant", "{\"ID\":\"77\",\"TTL\":\"30\"}", 412,
     "{\"error\":\"etcdserver: lease already exists\",\"message\":\"etcdserver: lease"
     " already exists\",\"code\":9}"},
    {"/v3/lease/grant", "{\"ID\":\"78\",\"TTL\":\"1\"}", 200,
     "{\"header\":{\"revision\":\"1\"},\"ID\":\"78\",\"TTL\":\"2\"}"},
    {"/v3/lease/keepalive", "{\"ID\":\"77\"}", 200,
     "{\"result\":{\"header\":{\"revision\":\"1\"},\"ID\":\"77\",\"TTL\":\"30\"}}"},
    {"/v3/lease/keepalive", "{\"ID\":\"99\"}", 200,
     "{\"result\":{\"header\":{\"revision\":\"1\"},\"ID\":\"99\"}}"},
    {"/v3/lease/revoke", "{\"ID\":\"99\"}", 404,
     "{\"error\":\"etcdserver: requested lease not found\",\"message\":\"etcdserver: "
     "requested lease not found\",\"code\":5}"},
    {"/v3/kv/txn",
     "{\"compare\":[{\"target\":\"CREATE\",\"key\":\"bGVhZA==\",\"create_revision\":"
     "\"0\"}],\"success\":[{\"request_put\":{\"key\":\"bGVhZA==\",\"value\":\"b25l\","
     "\"lease\":\"77\"}}],\"failure\":[{\"request_range\":{\"key\":\"bGVhZA==\"}}]}",
     200,
     "{\"header\":{\"revision\":\"2\"},\"succeeded\":true,\"responses\":[{\"response_"
     "put\":{\"header\":{\"revision\":\"2\"}}}]}"},
    {"/v3/kv/txn",
     "{\"compare\":[{\"target\":\"CREATE\",\"key\":\"bGVhZA==\",\"create_revision\":"
     "\"0\"}],\"success\":[{\"request_put\":{\"key\":\"bGVhZA==\",\"value\":\"dHdv\","
     "\"lease\":\"77\"}}],\"failure\":[{\"request_range\":{\"key\":\"bGVhZA==\"}}]}",
     200,
     "{\"header\":{\"revision\":\"2\"},\"responses\":[{\"response_range\":{\"header\""
     ":{\"revision\":\"2\"},\"kvs\":[{\"key\":\"bGVhZA==\",\"create_revision\":\"2\","
     "\"mod_revision\":\"2\",\"version\":\"1\",\"value\":\"b25l\",\"lease\":\"77\"}],"
     "\"count\":\"1\"}}]}"},
    {"/v3/kv/txn",
     "{\"compare\":[{\"target\":\"CREATE\",\"key\":\"bGVhZA==\",\"create_revision\":"
     "\"2\"},{\"target\":\"VERSION\",\"key\":\"bGVhZA==\",\"version\":\"1\"}],\"succe"
     "ss\":[{\"request_put\":{\"key\":\"bGVhZA==\",\"value\":\"dGhyZWU=\",\"lease\":"
     "\"77\"}},{\"request_put\":{\"key\":\"ay9h\",\"value\":\"MQ==\"}},{\"request_put"
     "\":{\"key\":\"ay9i\",\"value\":\"Mg==\"}},{\"request_put\":{\"key\":\"ay9j\",\""
     "value\":\"\"}}],\"failure\":[{\"request_range\":{\"key\":\"bGVhZA==\"}}]}",
     200,
     "{\"header\":{\"revision\":\"3\"},\"succeeded\":true,\"responses\":[{\"response_"
     "put\":{\"header\":{\"revision\":\"3\"}}},{\"response_put\":{\"header\":{\"revis"
     "ion\":\"3\"}}},{\"response_put\":{\"header\":{\"revision\":\"3\"}}},{\"response"
     "_put\":{\"header\":{\"revision\":\"3\"}}}]}"},
    {"/v3/kv/txn",
     "{\"compare\":[{\"target\":\"CREATE\",\"key\":\"bGVhZA==\",\"create_revision\":"
     "\"2\"},{\"target\":\"VERSION\",\"key\":\"bGVhZA==\",\"version\":\"1\"}],\"succe"
     "ss\":[{\"request_put\":{\"key\":\"bGVhZA==\",\"value\":\"Zm91cg==\",\"lease\":"
     "\"77\"}}],\"failure\":[{\"request_range\":{\"key\":\"bGVhZA==\"}},{\"request_ra"
     "nge\":{\"key\":\"bm9uZQ==\"}}]}",
     200,
     "{\"header\":{\"revision\":\"3\"},\"responses\":[{\"response_range\":{\"header\""
     ":{\"revision\":\"3\"},\"kvs\":[{\"key\":\"bGVhZA==\",\"create_revision\":\"2\","
     "\"mod_revision\":\"3\",\"version\":\"2\",\"value\":\"dGhyZWU=\",\"lease\":\"77"
     "\"}],\"count\":\"1\"}},{\"response_range\":{\"header\":{\"revision\":\"3\"}}}]}"},
    {"/v3/kv/range", "{\"key\":\"ay8=\",\"range_end\":\"azA=\",\"limit\":\"2\"}", 200,
     "{\"header\":{\"revision\":\"3\"},\"kvs\":[{\"key\":\"ay9h\",\"create_revision\""
     ":\"3\",\"mod_revision\":\"3\",\"version\":\"1\",\"value\":\"MQ==\"},{\"key\":\""
     "ay9i\",\"create_revision\":\"3\",\"mod_revision\":\"3\",\"version\":\"1\",\"val"
     "ue\":\"Mg==\"}],\"more\":true,\"count\":\"3\"}"},
    {"/v3/kv/range", "{\"key\":\"ay9iAA==\",\"range_end\":\"azA=\",\"limit\":\"2\"}", 200,
     "{\"header\":{\"revision\":\"3\"},\"kvs\":[{\"key\":\"ay9j\",\"create_revision\""
     ":\"3\",\"mod_revision\":\"3\",\"version\":\"1\"}],\"count\":\"1\"}"},
    {"/v3/kv/range", "{\"key\":\"ay8=\",\"range_end\":\"azA=\"}", 200,
     "{\"header\":{\"revision\":\"3\"},\"kvs\":[{\"key\":\"ay9h\",\"create_revision\""
     ":\"3\",\"mod_revision\":\"3\",\"version\":\"1\",\"value\":\"MQ==\"},{\"key\":\""
     "ay9i\",\"create_revision\":\"3\",\"mod_revision\":\"3\",\"version\":\"1\",\"val"
     "ue\":\"Mg==\"},{\"key\":\"ay9j\",\"create_revision\":\"3\",\"mod_revision\":\"3"
     "\",\"version\":\"1\"}],\"count\":\"3\"}"},
    {"/v3/kv/range", "{\"key\":\"azA=\",\"range_end\":\"ay8=\"}", 200,
     "{\"header\":{\"revision\":\"3\"}}"},
    {"/v3/kv/txn",
     "{\"success\":[{\"request_delete_range\":{\"key\":\"ay9h\"}},{\"request_put\":{"
     "\"key\":\"ay9i\",\"value\":\"Mw==\"}},{\"request_delete_range\":{\"key\":\"ay9k"
     "\"}}]}",
     200,
     "{\"header\":{\"revision\":\"4\"},\"succeeded\":true,\"responses\":[{\"response_"
     "delete_range\":{\"header\":{\"revision\":\"4\"},\"deleted\":\"1\"}},{\"response"
     "_put\":{\"header\":{\"revision\":\"4\"}}},{\"response_delete_range\":{\"header"
     "\":{\"revision\":\"4\"}}}]}"},
    {"/v3/kv/txn",
     "{\"success\":[{\"request_delete_range\":{\"key\":\"ay94\",\"range_end\":\"ay96"
     "\"}},{\"request_delete_range\":{\"key\":\"ay9i\",\"range_end\":\"ay9k\"}}]}",
     200,
     "{\"header\":{\"revision\":\"5\"},\"succeeded\":true,\"responses\":[{\"response_"
     "delete_range\":{\"header\":{\"revision\":\"4\"}}},{\"response_delete_range\":{"
     "\"header\":{\"revision\":\"5\"},\"deleted\":\"2\"}}]}"},
    {"/v3/kv/txn", "{\"success\":[{\"request_delete_range\":{\"key\":\"bm9uZQ==\"}}]}",
     200,
     "{\"header\":{\"revision\":\"5\"},\"succeeded\":true,\"responses\":[{\"response_"
     "delete_range\":{\"header\":{\"revision\":\"5\"}}}]}"},
    {"/v3/kv/txn",
     "{\"success\":[{\"request_put\":{\"key\":\"eA==\",\"value\":\"MQ==\"}},{\"reques"
     "t_put\":{\"key\":\"eA==\",\"value\":\"Mg==\"}}]}",
     400,
     "{\"error\":\"etcdserver: duplicate key given in txn request\",\"message\":\"etc"
     "dserver: duplicate key given in txn request\",\"code\":3}"},
    {"/v3/kv/txn",
     "{\"success\":[{\"request_put\":{\"key\":\"eA==\",\"value\":\"MQ==\"}},{\"reques"
     "t_delete_range\":{\"key\":\"eA==\"}}]}",
     400,
     "{\"error\":\"etcdserver: duplicate key given in txn request\",\"message\":\"etc"
     "dserver: duplicate key given in txn request\",\"code\":3}"},
    {"/v3/kv/txn",
     "{\"success\":[{\"request_put\":{\"key\":\"eA==\",\"value\":\"MQ==\"}},{\"reques"
     "t_delete_range\":{\"key\":\"dw==\",\"range_end\":\"eQ==\"}}]}",
     400,
     "{\"error\":\"etcdserver: duplicate key given in txn request\",\"message\":\"etc"
     "dserver: duplicate key given in txn request\",\"code\":3}"},
    {"/v3/kv/txn",
     "{\"success\":[{\"request_delete_range\":{\"key\":\"dw==\",\"range_end\":\"eQ=="
     "\"}},{\"request_delete_range\":{\"key\":\"eA==\"}},{\"request_range\":{\"key\":"
     "\"eA==\"}}]}",
     200,
     "{\"header\":{\"revision\":\"5\"},\"succeeded\":true,\"responses\":[{\"response_"
     "delete_range\":{\"header\":{\"revision\":\"5\"}}},{\"response_delete_range\":{"
     "\"header\":{\"revision\":\"5\"}}},{\"response_range\":{\"header\":{\"revision\""
     ":\"5\"}}}]}"},
    {"/v3/kv/txn",
     "{\"success\":[{\"request_put\":{\"key\":\"eA==\",\"value\":\"MQ==\",\"lease\":"
     "\"99\"}}]}",
     404,
     "{\"error\":\"etcdserver: requested lease not found\",\"message\":\"etcdserver: "
     "requested lease not found\",\"code\":5}"},
    {"/v3/kv/txn", "{\"success\":[{\"request_put\":{\"value\":\"MQ==\"}}]}", 400,
     "{\"error\":\"etcdserver: key is not provided\",\"message\":\"etcdserver: key is"
     " not provided\",\"code\":3}"},
    {"/v3/kv/txn", "{}", 200, "{\"header\":{\"revision\":\"5\"},\"succeeded\":true}"},
    {"/v3/kv/txn",
     "{\"compare\":[{\"target\":\"VERSION\",\"key\":\"bGVhZA==\",\"version\":\"9\"}],"
     "\"success\":[{\"request_put\":{\"key\":\"eQ==\",\"value\":\"MQ==\"}}]}",
     200, "{\"header\":{\"revision\":\"5\"}}"},
    {"/v3/kv/txn",
     "{\"compare\":[{\"target\":\"VERSION\",\"key\":\"bm9uZQ==\",\"version\":\"0\"},{"
     "\"target\":\"CREATE\",\"key\":\"bm9uZQ==\",\"create_revision\":\"0\"}],\"succes"
     "s\":[{\"request_put\":{\"key\":\"eQ==\",\"value\":\"MQ==\"}}]}",
     200,
     "{\"header\":{\"revision\":\"6\"},\"succeeded\":true,\"responses\":[{\"response_"
     "put\":{\"header\":{\"revision\":\"6\"}}}]}"},
    {"/v3/lease/revoke", "{\"ID\":\"78\"}", 200, "{\"header\":{\"revision\":\"6\"}}"},
    {"/v3/lease/revoke", "{\"ID\":\"77\"}", 200, "{\"header\":{\"revision\":\"7\"}}"},
    {"/v3/kv/range", "{\"key\":\"bGVhZA==\"}", 200, "{\"header\":{\"revision\":\"7\"}}"},
    {"/v3/kv/nothing", "{}", 404, "Not Found"},
};

enum { ETCD_ROWS = sizeof etcd_rows / sizeof etcd_rows[0] };

#endif
