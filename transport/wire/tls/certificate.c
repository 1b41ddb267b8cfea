/* The rights that a certificate proves, by the names and the unit in it.
 *
 * A task is named by a URI among the subject's other names, "muster:/job:worker/task:1".
 * The right is the subject's organizational unit, "observe", "use" or "operate"; one
 * without such a unit is a task's. */
#include "transport/wire/tls/internal.h"

#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "muster:/job:worker/task:1". */
static bool parse_task(const char *uri, size_t size, struct mu__proof *proof)
{
    char text[64];
    char digits[8];
    char end;

    if (size >= sizeof text || strlen(uri) < size)
        return false;
    memcpy(text, uri, size);
    text[size] = '\0';
    if (sscanf(text, "muster:/job:%15[a-z0-9_]/task:%7[0-9]%c", proof->task_type, digits,
               &end) != 2)
        return false;
    proof->task_index = (uint32_t)strtoul(digits, NULL, 10);
    return true;
}

/* How many tasks it names; the first one is in the proof. */
static unsigned find_tasks(X509 *certificate, struct mu__proof *proof)
{
    GENERAL_NAMES *names =
        X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    unsigned found = 0;

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        struct mu__proof named;

        if (name->type != GEN_URI ||
            !parse_task((const char *)ASN1_STRING_get0_data(name->d.ia5),
                        (size_t)ASN1_STRING_length(name->d.ia5), &named))
            continue;
        if (found++ > 0)
            continue;
        memcpy(proof->task_type, named.task_type, sizeof proof->task_type);
        proof->task_index = named.task_index;
    }
    GENERAL_NAMES_free(names);
    return found;
}

static enum mu__right right_of(X509 *certificate)
{
    char unit[32] = "";
    int size = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate),
                                         NID_organizationalUnitName, unit, sizeof unit);
    enum mu__right right =
        size <= 0 ? MU__RIGHT_NONE : mu__right_of(unit, (unsigned)strlen(unit));

    return right == MU__RIGHT_NONE || right == MU__RIGHT_ALL ? MU__RIGHT_TASK : right;
}

bool mu__tls_proof_of(X509 *certificate, bool any_task, struct mu__proof *ret_proof,
                      char *ret_why, size_t why_size)
{
    unsigned tasks = find_tasks(certificate, ret_proof);

    ret_proof->right = right_of(certificate);
    ret_proof->names_task = tasks == 1;
    if (tasks > 1) {
        (void)snprintf(ret_why, why_size,
                       "the peer's certificate names %u tasks; expected one", tasks);
        return false;
    }
    if (tasks == 0 && ret_proof->right == MU__RIGHT_TASK && !any_task) {
        (void)snprintf(ret_why, why_size,
                       "the peer's certificate names no task: expected a URI "
                       "muster:/job:TYPE/task:N among its names, or an organizational "
                       "unit observe, use or operate");
        return false;
    }
    return true;
}
