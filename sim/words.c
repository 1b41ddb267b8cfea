/* Faults in words. */
#include "sim/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_words_add(struct sim_words *words, const char *format, ...)
{
    char line[1024];
    char *bytes;
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (size < 0)
        return;
    if ((size_t)size >= sizeof line)
        size = (int)sizeof line - 1;
    bytes = realloc(words->bytes, words->size + (size_t)size + 1);
    if (bytes == NULL)
        return;
    memcpy(bytes + words->size, line, (size_t)size + 1);
    words->bytes = bytes;
    words->size += (size_t)size;
}

/* "a, b" of those on one side of a partition. */
static void add_side(struct sim_words *words, const struct sim_fault_told *fault,
                     const struct sim_names *names)
{
    const char *before = "";

    for (size_t i = 0; i < names->count; i++)
        if ((fault->side[i / 64] >> (i % 64) & 1) != 0) {
            sim_words_add(words, "%s%s", before, names->names[i]);
            before = ", ";
        }
}

static void add_crash(struct sim_words *words, const struct sim_fault_told *fault)
{
    if (fault->end_us == SIM_FAULT_NO_END)
        sim_words_add(words, ", and stays away");
    else
        sim_words_add(words, ", and starts again at %llu ms",
                      (unsigned long long)fault->end_us / 1000);
}

void sim_words_fault(struct sim_words *words, const struct sim_planned *planned,
                     const struct sim_names *names)
{
    const struct sim_fault_told *fault = &planned->fault;
    const char *a = names->names[planned->a];
    const char *b = names->names[planned->b];
    const unsigned long long end_ms = (unsigned long long)fault->end_us / 1000;

    sim_words_add(words, "  %6llu ms: ", (unsigned long long)fault->at_us / 1000);
    switch (fault->kind) {
    case SIM_FAULT_CRASH:
        sim_words_add(words, "%s crashes", a);
        add_crash(words, fault);
        break;
    case SIM_FAULT_CRASH_MIDWAY:
        sim_words_add(words,
                      "%s crashes in the middle of a turn, with %u more messages "
                      "sent",
                      a, fault->number);
        add_crash(words, fault);
        break;
    case SIM_FAULT_PAUSE:
        sim_words_add(words, "%s stands still until %llu ms", a, end_ms);
        break;
    case SIM_FAULT_CUT:
        sim_words_add(words, "the connection of %s and %s breaks", a, b);
        break;
    case SIM_FAULT_CUT_HALF:
        sim_words_add(words, "%s loses its connection to %s, which notices at %llu ms", a,
                      b, end_ms);
        break;
    case SIM_FAULT_BLOCK:
        sim_words_add(words, "what %s sends to %s is held back until %llu ms", a, b,
                      end_ms);
        break;
    case SIM_FAULT_PARTITION:
        add_side(words, fault, names);
        sim_words_add(words, " and all others lose each other until %llu ms", end_ms);
        break;
    case SIM_FAULT_SLOW_NODE:
        sim_words_add(words, "%s works %u times slower until %llu ms", a, fault->number,
                      end_ms);
        break;
    case SIM_FAULT_SLOW_LINK:
        sim_words_add(words, "what %s sends to %s takes %u times as long until %llu ms",
                      a, b, fault->number, end_ms);
        break;
    case SIM_FAULTS:
        break;
    }
    sim_words_add(words, "\n");
}
