/* The trace: lines of text for people and stories, and a digest for comparing runs. */
#include "sim/world/inner.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_FIRST_CAPACITY = 4096, LINE_BYTES_MAX = 1024 };

void sim_text_init(struct sim_text *text)
{
    *text = (struct sim_text){.capacity = TEXT_FIRST_CAPACITY, .level = MU__LOG_INFO};
    text->bytes = sim_alloc(text->capacity);
}

void sim_text_done(struct sim_text *text)
{
    free(text->bytes);
    text->bytes = NULL;
}

/* The older half goes, up to the end of a line. */
static void forget_older_half(struct sim_text *text)
{
    char *middle = text->bytes + text->size / 2;
    char *line_end = strchr(middle, '\n');
    char *keep = line_end != NULL ? line_end + 1 : text->bytes + text->size;

    text->size -= (size_t)(keep - text->bytes);
    memmove(text->bytes, keep, text->size + 1);
}

static void make_room(struct sim_text *text, size_t size)
{
    char *bytes;

    if (text->size + size < text->capacity)
        return;
    if (text->capacity >= SIM_TRACE_BYTES_MAX) {
        forget_older_half(text);
        return;
    }
    bytes = sim_alloc(text->capacity * 2);
    memcpy(bytes, text->bytes, text->size + 1);
    free(text->bytes);
    text->bytes = bytes;
    text->capacity *= 2;
}

void sim_text_line(struct sim_text *text, uint64_t now_ms, const char *node,
                   const char *who, const char *line)
{
    char whole[LINE_BYTES_MAX];
    int size = snprintf(whole, sizeof whole, "[%5llu] %s %s: %s",
                        (unsigned long long)now_ms, node, who, line);

    if (size < 0)
        return;
    if ((size_t)size >= sizeof whole)
        size = (int)sizeof whole - 1;
    if (text->taken) {
        text->taken = false;
        text->size = 0;
    }
    make_room(text, (size_t)size + 2);
    memcpy(text->bytes + text->size, whole, (size_t)size);
    text->size += (size_t)size;
    text->bytes[text->size++] = '\n';
    text->bytes[text->size] = '\0';
}

const char *sim_trace(struct sim *sim)
{
    struct sim_text *text = &sim->text;

    if (text->taken) {
        text->size = 0;
        text->bytes[0] = '\0';
    }
    text->taken = true;
    return text->bytes;
}

void sim_trace_level(struct sim *sim, enum mu__log_level level)
{
    sim->text.level = level;
}

uint64_t sim_digest_bytes(uint64_t digest, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    uint64_t word = 0;

    while (size >= sizeof word) {
        memcpy(&word, byte, sizeof word);
        digest = (digest ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        digest ^= digest >> 29;
        byte += sizeof word;
        size -= sizeof word;
    }
    word = size;
    while (size > 0)
        word = word << 8 | byte[--size];
    digest = (digest ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return digest ^ digest >> 29;
}

uint64_t sim_digest(const struct sim *sim)
{
    return sim->digest;
}

void sim_note(struct sim *sim, enum mu__log_level level, const char *format, ...)
{
    char line[LINE_BYTES_MAX];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    sim->digest = sim_digest_bytes(sim->digest, line, strlen(line));
    if (level <= sim->text.level)
        sim_text_line(&sim->text, sim->now_us / 1000, "sim", "note", line);
}
