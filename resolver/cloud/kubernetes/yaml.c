#include "resolver/cloud/kubernetes/yaml.h"

#include "runtime/base/text.h"
#include "runtime/document/json.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <yaml.h>

/* libyaml reports events; mappings and sequences that are not closed are on a stack. */
struct yaml_reader {
    const char *source;
    mu_error *error;
    struct {
        cJSON *container; /* owned by the one before it, the first by `root` */
        char *key;        /* in a mapping, whose value comes next; owned */
        yaml_mark_t start;
    } open[MU__YAML_DEPTH_MAX];
    unsigned depth;
    cJSON *root;
    unsigned documents;
    unsigned events;
};

static int refuse_yaml(struct yaml_reader *r, const yaml_mark_t *at, int code,
                       const char *words)
{
    return mu_error_set(r->error, code, "%s: line %zu, column %zu: %s", r->source,
                        at->line + 1, at->column + 1, words);
}

static int yaml_no_memory(struct yaml_reader *r)
{
    return mu_error_set(r->error, -MU_ENOMEM, "%s: out of memory", r->source);
}

/* ---- Scalars ---- */

static bool is_one_of(const char *text, const char *const *words)
{
    while (*words != NULL && strcmp(text, *words) != 0)
        words++;
    return *words != NULL;
}

/* Make an item of a scalar without quotes. Numbers are texts: nothing here needs one. */
static int make_plain(struct yaml_reader *r, const yaml_event_t *event, cJSON **ret_item)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const truths[] = {"true", "True", "TRUE", NULL};
    static const char *const lies[] = {"false", "False", "FALSE", NULL};
    const char *text = (const char *)event->data.scalar.value;

    if (is_one_of(text, nulls))
        *ret_item = cJSON_CreateNull();
    else if (is_one_of(text, truths))
        *ret_item = cJSON_CreateTrue();
    else if (is_one_of(text, lies))
        *ret_item = cJSON_CreateFalse();
    else
        *ret_item = cJSON_CreateString(text);
    return *ret_item == NULL ? yaml_no_memory(r) : 0;
}

/* Whether a tag changes nothing: it is absent, or that of the node's own type. */
static bool tag_is(const yaml_char_t *tag, const char *name)
{
    return tag == NULL || strcmp((const char *)tag, name) == 0;
}

static int check_scalar(struct yaml_reader *r, const yaml_event_t *event)
{
    const yaml_char_t *tag = event->data.scalar.tag;

    if (!tag_is(tag, "!") && !tag_is(tag, YAML_STR_TAG))
        return refuse_yaml(r, &event->start_mark, -MU_EINVALID,
                           "expected no tag but !!str, !!map or !!seq");
    if (memchr(event->data.scalar.value, '\0', event->data.scalar.length) != NULL)
        return refuse_yaml(r, &event->start_mark, -MU_EINVALID,
                           "expected no zero byte in a text");
    return 0;
}

/* ---- The tree ---- */

/* Add an item to the innermost open container. Takes it, whatever is returned. */
static int add_yaml_item(struct yaml_reader *r, cJSON *item)
{
    cJSON *container;
    cJSON_bool added;

    if (r->depth == 0) {
        r->root = item;
        return 0;
    }
    container = r->open[r->depth - 1].container;
    if (cJSON_IsArray(container)) {
        added = cJSON_AddItemToArray(container, item);
    } else {
        added = cJSON_AddItemToObject(container, r->open[r->depth - 1].key, item);
        cJSON_free(r->open[r->depth - 1].key);
        r->open[r->depth - 1].key = NULL;
    }
    if (added)
        return 0;
    cJSON_Delete(item);
    return yaml_no_memory(r);
}

/* Whether the next event is a key. */
static bool expects_key(const struct yaml_reader *r)
{
    return r->depth > 0 && cJSON_IsObject(r->open[r->depth - 1].container) &&
           r->open[r->depth - 1].key == NULL;
}

static int on_yaml_scalar(struct yaml_reader *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    cJSON *item = NULL;
    int rv = check_scalar(r, event);

    if (rv != 0)
        return rv;
    if (expects_key(r)) {
        size_t size = event->data.scalar.length + 1;

        r->open[r->depth - 1].key = cJSON_malloc(size);
        if (r->open[r->depth - 1].key == NULL)
            return yaml_no_memory(r);
        memcpy(r->open[r->depth - 1].key, text, size);
        return 0;
    }
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
        event->data.scalar.tag == NULL)
        rv = make_plain(r, event, &item);
    else
        rv = (item = cJSON_CreateString(text)) == NULL ? yaml_no_memory(r) : 0;
    return rv == 0 ? add_yaml_item(r, item) : rv;
}

static int open_container(struct yaml_reader *r, const yaml_event_t *event,
                          cJSON *container)
{
    int rv;

    if (container == NULL)
        return yaml_no_memory(r);
    rv = add_yaml_item(r, container);
    if (rv != 0)
        return rv;
    r->open[r->depth].container = container;
    r->open[r->depth].key = NULL;
    r->open[r->depth].start = event->start_mark;
    r->depth++;
    return 0;
}

static int on_yaml_start(struct yaml_reader *r, const yaml_event_t *event)
{
    bool mapping = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag =
        mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag;

    if (expects_key(r))
        return refuse_yaml(r, &event->start_mark, -MU_EINVALID,
                           "expected a text as a key");
    if (!tag_is(tag, mapping ? YAML_MAP_TAG : YAML_SEQ_TAG))
        return refuse_yaml(r, &event->start_mark, -MU_EINVALID,
                           "expected no tag but !!str, !!map or !!seq");
    if (r->depth == MU__YAML_DEPTH_MAX)
        return refuse_yaml(r, &event->start_mark, -MU_EEXHAUSTED,
                           "expected fewer mappings and sequences inside each other");
    return open_container(r, event, mapping ? cJSON_CreateObject() : cJSON_CreateArray());
}

static int on_yaml_end(struct yaml_reader *r, const yaml_event_t *event)
{
    char where[MU__QUOTE_BYTES * 2];
    yaml_mark_t start;

    (void)event;
    r->depth--;
    if (!cJSON_IsObject(r->open[r->depth].container))
        return 0;
    start = r->open[r->depth].start;
    (void)snprintf(where, sizeof where, "%.120s: line %zu, column %zu", r->source,
                   start.line + 1, start.column + 1);
    return mu__json_check_keys(r->open[r->depth].container, where, r->error);
}

static int on_yaml_document(struct yaml_reader *r, const yaml_event_t *event)
{
    if (r->documents++ == 0)
        return 0;
    return refuse_yaml(r, &event->start_mark, -MU_EINVALID,
                       "expected one document, got another");
}

static int on_yaml_alias(struct yaml_reader *r, const yaml_event_t *event)
{
    return refuse_yaml(r, &event->start_mark, -MU_EINVALID,
                       "expected no alias (*name); write the thing out");
}

static int on_yaml_nothing(struct yaml_reader *r, const yaml_event_t *event)
{
    (void)r;
    (void)event;
    return 0;
}

/* ---- Events ---- */

static int (*const handlers[])(struct yaml_reader *r, const yaml_event_t *event) = {
    [YAML_NO_EVENT] = on_yaml_nothing,
    [YAML_STREAM_START_EVENT] = on_yaml_nothing,
    [YAML_STREAM_END_EVENT] = on_yaml_nothing,
    [YAML_DOCUMENT_START_EVENT] = on_yaml_document,
    [YAML_DOCUMENT_END_EVENT] = on_yaml_nothing,
    [YAML_ALIAS_EVENT] = on_yaml_alias,
    [YAML_SCALAR_EVENT] = on_yaml_scalar,
    [YAML_SEQUENCE_START_EVENT] = on_yaml_start,
    [YAML_SEQUENCE_END_EVENT] = on_yaml_end,
    [YAML_MAPPING_START_EVENT] = on_yaml_start,
    [YAML_MAPPING_END_EVENT] = on_yaml_end,
};

/* The error of libyaml's parser. */
static int parser_error(struct yaml_reader *r, const yaml_parser_t *parser)
{
    char words[160];

    if (parser->error == YAML_MEMORY_ERROR)
        return yaml_no_memory(r);
    if (parser->error == YAML_READER_ERROR)
        return mu_error_set(r->error, -MU_EINVALID, "%s: byte %zu: expected UTF-8 (%s)",
                            r->source, parser->problem_offset,
                            parser->problem == NULL ? "" : parser->problem);
    (void)snprintf(words, sizeof words, "expected YAML: %s%s%s",
                   parser->context == NULL ? "" : parser->context,
                   parser->context == NULL ? "" : ", ",
                   parser->problem == NULL ? "" : parser->problem);
    return refuse_yaml(r, &parser->problem_mark, -MU_EINVALID, words);
}

static int read_events(struct yaml_reader *r, yaml_parser_t *parser)
{
    yaml_event_type_t type = YAML_NO_EVENT;
    yaml_event_t event;
    int rv;

    while (type != YAML_STREAM_END_EVENT) {
        if (!yaml_parser_parse(parser, &event))
            return parser_error(r, parser);
        type = event.type;
        if (++r->events > MU__YAML_EVENTS_MAX)
            rv = refuse_yaml(r, &event.start_mark, -MU_EEXHAUSTED,
                             "expected fewer scalars, mappings and sequences");
        else
            rv = handlers[type](r, &event);
        yaml_event_delete(&event);
        if (rv != 0)
            return rv;
    }
    return 0;
}

int mu__yaml_parse(const char *text, size_t size, const char *source, mu_error *ret_error,
                   cJSON **ret_root)
{
    struct yaml_reader r = {.source = source, .error = ret_error};
    yaml_parser_t parser;
    int rv;

    if (size > MU__YAML_BYTES_MAX)
        return mu_error_set(ret_error, -MU_EEXHAUSTED,
                            "%s: the text has %zu bytes; expected at most %d", source,
                            size, (int)MU__YAML_BYTES_MAX);
    if (!yaml_parser_initialize(&parser))
        return yaml_no_memory(&r);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    rv = read_events(&r, &parser);
    yaml_parser_delete(&parser);
    if (rv == 0 && r.root == NULL) {
        r.root = cJSON_CreateNull();
        rv = r.root == NULL ? yaml_no_memory(&r) : 0;
    }
    if (rv != 0) {
        while (r.depth > 0)
            cJSON_free(r.open[--r.depth].key);
        cJSON_Delete(r.root);
        return rv;
    }
    *ret_root = r.root;
    return 0;
}
