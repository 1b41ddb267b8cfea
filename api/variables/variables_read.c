/* Reading several variables at once. */
#include "api/checkpoint/snapshot_reader.h"

#include "runtime/message/arguments.h"

#include <string.h>

static int put_into_buffer(void *owner, size_t variable, unsigned region, uint64_t offset,
                           const void *data, uint32_t size, mu_error *ret_error)
{
    void *const *buffers = owner;

    (void)region;
    (void)ret_error;
    memcpy((uint8_t *)buffers[variable] + offset, data, size);
    return 0;
}

int mu_variables_read(mu_variable *const *variables, void *const *buffers, size_t count,
                      int64_t timeout_ms, mu_error *ret_error)
{
    MU__REQUIRE_MANY(ret_error, variables, count);
    MU__REQUIRE_MANY(ret_error, buffers, count);

    const struct mu__snapshot_target target = {.put = put_into_buffer,
                                               .owner = (void *)(uintptr_t)buffers};
    const struct mu__snapshot_sources sources = {.variables = variables,
                                                 .variables_count = count};
    struct mu__snapshot_reader *reader;
    int rv = mu__snapshot_read_all(&sources, timeout_ms, &target, ret_error, &reader);

    if (rv == 0)
        mu__snapshot_reader_free(reader);
    return rv;
}
