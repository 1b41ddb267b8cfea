/* `muster journal check` and `muster journal repair`: list the records of a journal file
 * and its damages; replace it by a file of the undamaged records. */
#include "cli/chief_client.h"
#include "cli/output/print_json.h"

#include "muster/admin.h"

#include <inttypes.h>
#include <stdio.h>

static void print_damage(const mu_value *damage)
{
    int64_t offset = cmd_map_number(damage, "offset");
    int64_t lost = cmd_map_number(damage, "records_lost");

    (void)printf("  damaged: record %" PRId64 ", bytes %" PRId64 " to %" PRId64 ": %s",
                 cmd_map_number(damage, "record"), offset,
                 offset + cmd_map_number(damage, "bytes"), cmd_map_text(damage, "what"));
    if (lost > 0)
        (void)printf("; %" PRId64 " lost", lost);
    (void)printf("\n");
}

static void print_journal_text(const mu_value *report)
{
    const mu_value *kinds = mu_value_find(report, "kinds");
    const mu_value *damages = mu_value_find(report, "damaged");
    const char *copy = cmd_map_text(report, "copy");
    int64_t torn_bytes = cmd_map_number(report, "torn_bytes");

    (void)printf("%s: a journal of format %" PRId64 ", %" PRId64 " bytes, %" PRId64
                 " whole records\n",
                 cmd_map_text(report, "file"), cmd_map_number(report, "format"),
                 cmd_map_number(report, "bytes"), cmd_map_number(report, "records"));
    for (size_t i = 0; i < mu_value_count(kinds); i++) {
        const char *kind = mu_value_key(kinds, i);

        (void)printf("  %s: %" PRId64 "\n", kind, cmd_map_number(kinds, kind));
    }
    if (cmd_map_bool(report, "headless"))
        (void)printf("  its header is damaged\n");
    for (size_t i = 0; i < mu_value_count(damages); i++)
        print_damage(mu_value_at(damages, i));
    if (torn_bytes > 0)
        (void)printf("  torn end: %" PRId64 " bytes that were never flushed; a start "
                     "cuts them off\n",
                     torn_bytes);
    if (copy[0] != '\0')
        (void)printf("repaired: the damaged file is %s; what was lost is listed above\n",
                     copy);
    else if (mu_value_count(damages) > 0)
        (void)printf("\"muster journal repair\" keeps a copy and goes on without what "
                     "is damaged\n");
    else
        (void)printf("nothing is damaged\n");
}

/* Print the report, or the error. */
static int finish_journal_verb(const struct cmd_options *options, int rv,
                               const mu_error *error, mu_value *report)
{
    if (rv != 0) {
        (void)fprintf(stderr, "muster: %s\n", error->message);
        return rv == -MU_EEXISTS ? CMD_ADDRESS : CMD_FAILED;
    }
    if (cmd_number(options, CMD_FLAG_OUTPUT) == 0)
        print_journal_text(report);
    else
        rv = cmd_json_print(cmd_json_value(report));
    return rv == 0 ? CMD_FINE : CMD_FAILED;
}

int cmd_journal_check(struct cmd_options *options)
{
    mu_value *report = NULL;
    mu_error error;
    int rv = mu_journal_check(options->operands[0], &error, &report);
    int code = finish_journal_verb(options, rv, &error, report);

    if (code == CMD_FINE && mu_value_count(mu_value_find(report, "damaged")) > 0)
        code = CMD_FAILED;
    mu_value_free(report);
    return code;
}

int cmd_journal_repair(struct cmd_options *options)
{
    mu_value *report = NULL;
    mu_error error;
    int rv = mu_journal_repair(options->operands[0], &error, &report);
    int code = finish_journal_verb(options, rv, &error, report);

    mu_value_free(report);
    return code;
}
