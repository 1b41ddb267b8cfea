/* Lines of click logs in the format of Criteo's data sets: a label (0 or 1), 13 whole
 * numbers and 26 categories of hexadecimal digits, with a tab between two columns. Every
 * column but the label may be empty. Knows nothing of muster.
 *
 * Each column of a line becomes one feature: a 64-bit id, with the column in the upper
 * 8 bits and a hash of its content below. So equal contents of two columns are two
 * features. An empty column is a feature, too. Numbers above 2 are put into buckets that
 * grow with them: floor(ln(number)^2).
 *
 * Pure functions: any thread may call them. */
#ifndef CTR_LINES_H
#define CTR_LINES_H

#include <stddef.h>
#include <stdint.h>

enum {
    CTR_NUMBERS = 13,
    CTR_CATEGORIES = 26,
    CTR_FIELDS = CTR_NUMBERS + CTR_CATEGORIES,
    CTR_DIGITS_MAX = 16, /* of a category, and of a number with its sign */
    CTR_LINE_MAX = (CTR_FIELDS + 1) * (CTR_DIGITS_MAX + 1) /* bytes, its end included */
};

/* Lines that were read. `ids` has CTR_FIELDS for each, in the order of the columns. */
struct ctr_lines {
    size_t count;
    uint8_t *labels;
    uint64_t *ids;
    uint64_t damaged;    /* lines that were left out */
    char first_bad[160]; /* what is wrong with the first of them; "": nothing */
};

/* Read all lines of a text; an empty last line is none. Damaged lines are counted and
 * left out; `first_line` is the number of the first one, for messages.
 *
 * Returns: 0; -ENOMEM.
 * Owns:    the caller frees *ret_lines with ctr_lines_done(). */
int ctr_lines_read(const char *text, size_t bytes, uint64_t first_line,
                   struct ctr_lines *ret_lines);
void ctr_lines_done(struct ctr_lines *lines);

/* The features of one line, without its end. Returns NULL, or what is wrong: column and
 * reason, in `ret_text`. */
const char *ctr_line_parse(const char *line, size_t bytes, uint8_t *ret_label,
                           uint64_t ret_ids[CTR_FIELDS], char ret_text[128]);

/* The feature of one column, by its number from 0, and its content. */
uint64_t ctr_number_id(unsigned field, int64_t number);
uint64_t ctr_category_id(unsigned field, uint64_t category);
uint64_t ctr_empty_id(unsigned field);

/* A mixing function: splitmix64's. */
uint64_t ctr_mix(uint64_t bits);

#endif
