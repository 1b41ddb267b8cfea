/* Lists of keys and watches over them. */
#include "tests/support/service/keys.h"

/* ---- Lists ---- */

/* Keys of a page, with spaces; and whether there is more. */
static const char *listed(struct service_agent *agent, const char *key, const char *after,
                          bool *ret_more)
{
    static char text[512];
    const struct service_said *said =
        service_answer(agent, MU__KEY_LISTED, list(agent, key, after, true));
    const struct mu__key_listed *page;
    mu_value *items = NULL;
    size_t used = 0;

    assert_non_null(said);
    page = (const void *)said->msg->body;
    assert_int_equal(page->code, 0);
    assert_int_equal(mu__value_unpack(&page->items, NULL, 0, &items), 0);
    text[0] = '\0';
    for (size_t i = 0; i < mu_value_count(items) && used + 64 < sizeof text; i++) {
        const mu_value *item = mu_value_at(items, i);
        const char *name = "(bytes)";
        size_t size;

        (void)mu_value_get_string(mu_value_find(item, "key"), &name, &size);
        assert_null(mu_value_find(item, "value"));
        used += (size_t)snprintf(text + used, sizeof text - used, "%s ", name);
    }
    *ret_more = page->more;
    mu_value_free(items);
    return text;
}

TEST(test_list)
{
    struct pair p = begin(&mu__store_memory);
    bool more;

    assert_string_equal(listed(p.w0, "", "", &more), "");
    (void)put(p.w0, "a", "x", ONCE);
    (void)put(p.w0, "a/b", "x", ONCE);
    (void)put(p.w0, "a!/b", "x", ONCE);
    assert_string_equal(listed(p.w0, "a", "", &more), "a/b ");
    (void)put(p.w0, "a/a/c", "x", ONCE);
    (void)put(p.w0, "a/\xff", "x", ONCE);
    assert_string_equal(listed(p.w0, "a", "", &more), "a/a/c a/b (bytes) ");
    assert_false(more);
    assert_string_equal(listed(p.w0, "a", "a/a/c", &more), "a/b (bytes) ");
    assert_string_equal(listed(p.w0, "a/a", "z", &more), "a/a/c ");
    assert_string_equal(listed(p.w0, "b", "", &more), "");
    service_end(p.s);
}

/* Values and revisions, in pages of so many items, or of 1 MiB. */
TEST(test_pages)
{
    struct pair p = begin(&mu__store_memory);
    static char value[COORD_PAGE_BYTES / 2];
    const struct mu__key_listed *page;
    mu_value *items = NULL;
    const void *data;
    size_t size;
    int64_t revision;
    char key[32];
    bool more;

    for (unsigned i = 0; i <= COORD_PAGE_ITEMS; i++) {
        (void)snprintf(key, sizeof key, "d/%05u", i);
        (void)put(p.w0, key, "x", ONCE);
    }
    (void)listed(p.w0, "d", "", &more);
    assert_true(more);
    (void)snprintf(key, sizeof key, "d/%05u", COORD_PAGE_ITEMS - 1);
    assert_int_equal(strlen(listed(p.w0, "d", key, &more)), 8);
    assert_false(more);
    for (unsigned i = 0; i < 3; i++) {
        (void)snprintf(key, sizeof key, "large/%u", i);
        (void)put_sized(p.w0, key, value, sizeof value, ONCE, 0);
    }
    page =
        (const void *)service_answer(p.w1, MU__KEY_LISTED, list(p.w1, "large", "", false))
            ->msg->body;
    assert_true(page->more);
    assert_int_equal(mu__value_unpack(&page->items, NULL, 0, &items), 0);
    assert_int_equal(mu_value_count(items), 1);
    assert_int_equal(mu_value_get_bytes(mu_value_find(mu_value_at(items, 0), "value"),
                                        &data, &size),
                     0);
    assert_int_equal(size, sizeof value);
    assert_int_equal(
        mu_value_get_int(mu_value_find(mu_value_at(items, 0), "revision"), &revision), 0);
    assert_int_equal(revision, COORD_PAGE_ITEMS + 2);
    mu_value_free(items);
    service_end(p.s);
}

/* ---- Watches ---- */

TEST(test_watch)
{
    struct pair p = begin(&mu__store_memory);

    (void)put(p.w1, "a", "1", ONCE);
    (void)put(p.w1, "a/b", "2", ONCE);
    (void)watch(p.w0, "a", false);
    (void)watch(p.w0, "a", true);
    (void)watch(p.w0, "z", false);
    expect_said(p.w0, "[    0] key_event token=2 key=\"a\" value=\"1\" revision=1\n"
                      "[    0] key_event token=2 complete=yes\n"
                      "[    0] key_event token=3 key=\"a/b\" value=\"2\" revision=2\n"
                      "[    0] key_event token=3 complete=yes\n"
                      "[    0] key_event token=4 complete=yes\n");
    (void)put(p.w1, "a", "3", OVER);
    (void)put(p.w1, "a/b/c", "4", OVER);
    (void)put(p.w1, "ab", "5", OVER);
    (void)delete (p.w1, "a");
    (void)increment(p.w1, "z", 1);
    expect_said(p.w0, "[    0] key_event token=2 key=\"a\" value=\"3\" revision=3\n"
                      "[    0] key_event token=3 key=\"a/b/c\" value=\"4\" revision=4\n"
                      "[    0] key_event token=2 key=\"a\" revision=6 deleted=yes\n"
                      "[    0] key_event token=3 key=\"a/b\" revision=7 deleted=yes\n"
                      "[    0] key_event token=3 key=\"a/b/c\" revision=8 deleted=yes\n"
                      "[    0] key_event token=4 key=\"z\" value=\"1\" revision=9\n");
    TELL(p.w0, KEY_UNWATCH, key_unwatch, .token = 3);
    (void)put(p.w1, "a/b", "6", OVER);
    (void)put(p.w1, "a", "7", OVER);
    expect_said(p.w0, "[    0] key_event token=2 key=\"a\" value=\"7\" revision=11\n");
    service_end(p.s);
}

/* Asked again it begins again, whatever it was told before. And it ends with its task,
 * also where the link stays. */
TEST(test_watch_again)
{
    struct pair p = begin(&mu__store_memory);
    uint64_t token = watch(p.w0, "a", false);

    (void)put(p.w1, "a", "1", ONCE);
    (void)service_text(p.w0);
    TELL(p.w0, KEY_WATCH, key_watch, .token = token, .key = mu__view_str("a"));
    (void)put(p.w1, "a", "2", OVER);
    expect_said(p.w0, "[    0] key_event token=2 key=\"a\" value=\"1\" revision=1\n"
                      "[    0] key_event token=2 complete=yes\n"
                      "[    0] key_event token=2 key=\"a\" value=\"2\" revision=2\n");
    (void)get(p.w0, "b", true);
    expect_ok(p.w0, service_leave(p.w0, 0));
    (void)service_text(p.w0);
    (void)put(p.w1, "a", "3", OVER);
    (void)put(p.w1, "b", "3", ONCE);
    expect_said(p.w0, "");
    service_end(p.s);
}

TEST(test_watch_everything)
{
    struct pair p = begin(&mu__store_memory);

    (void)watch(p.w0, "", true);
    (void)put(p.w1, "x/y", "1", ONCE);
    (void)put(p.w1, "x", "2", ONCE);
    expect_said(p.w0, "[    0] key_event token=2 complete=yes\n"
                      "[    0] key_event token=2 key=\"x/y\" value=\"1\" revision=1\n"
                      "[    0] key_event token=2 key=\"x\" value=\"2\" revision=2\n");
    service_end(p.s);
}

/* Whether an event with that key and revision was said among those up to `complete`. */
struct snapshot {
    unsigned count;
    bool complete;
    uint64_t first_revision; /* of the first key, by its last event */
    uint64_t last_revision;  /* of the last one, by its only event */
    unsigned last_seen;
};

static struct snapshot take_snapshot(struct service_agent *agent, const char *first,
                                     const char *last)
{
    struct snapshot found = {.count = 0};
    const struct service_said *said;

    while ((said = service_next(agent, MU__KEY_EVENT)) != NULL) {
        const struct mu__key_event *event = (const void *)said->msg->body;

        if (event->complete) {
            found.complete = true;
            continue;
        }
        assert_false(found.complete);
        found.count++;
        if (mu__view_is(event->key, first))
            found.first_revision = event->revision;
        if (mu__view_is(event->key, last)) {
            found.last_revision = event->revision;
            found.last_seen++;
        }
    }
    return found;
}

/* What there is at the begin comes in pages, a millisecond between them. Changes of what
 * was told are told, and of what will be are found. */
TEST(test_watch_in_pages)
{
    struct pair p = begin(&mu__store_memory);
    unsigned count = 3 * COORD_SNAPSHOT_ITEMS;
    struct snapshot found;
    char key[32];

    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(key, sizeof key, "d/%05u", i);
        (void)put(p.w1, key, "x", ONCE);
    }
    (void)watch(p.w0, "d", true);
    found = take_snapshot(p.w0, "d/00000", key);
    assert_int_equal(found.count, COORD_SNAPSHOT_ITEMS);
    (void)put(p.w1, "d/00000", "y", OVER);
    (void)put(p.w1, key, "y", OVER);
    (void)put(p.w1, "e", "y", OVER);
    found = take_snapshot(p.w0, "d/00000", key);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.first_revision, count + 1);
    service_run(p.s, 1);
    assert_int_equal(take_snapshot(p.w0, "", "").count, COORD_SNAPSHOT_ITEMS);
    service_run(p.s, 1);
    found = take_snapshot(p.w0, "", key);
    assert_int_equal(found.count, COORD_SNAPSHOT_ITEMS);
    assert_true(found.complete);
    assert_int_equal(found.last_revision, count + 2);
    assert_int_equal(found.last_seen, 1);
    (void)put(p.w1, key, "z", OVER);
    assert_int_equal(take_snapshot(p.w0, "", key).last_revision, count + 4);
    service_end(p.s);
}

/* Two at a time, one of which goes while its pages come. */
TEST(test_watches_in_pages_end)
{
    struct pair p = begin(&mu__store_memory);
    char key[32];

    for (unsigned i = 0; i < 3 * COORD_SNAPSHOT_ITEMS; i++) {
        (void)snprintf(key, sizeof key, "d/%05u", i);
        (void)put(p.w1, key, "x", ONCE);
    }
    (void)watch(p.w0, "d", true);
    (void)watch(p.w0, "d", true);
    (void)watch(p.w1, "", true);
    TELL(p.w0, KEY_UNWATCH, key_unwatch, .token = 3);
    service_run(p.s, 1);
    service_link_down(p.w1, 0, "cut");
    service_run(p.s, 10);
    assert_int_equal(take_snapshot(p.w0, "", "").count, 4 * COORD_SNAPSHOT_ITEMS);
    service_end(p.s);
}

TEST_PROGRAM()
