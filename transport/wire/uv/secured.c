/* TLS on a stream of libuv: what goes. */
#include "transport/wire/uv/internal.h"

#include <stdlib.h>

/* Output that the system did not take at once. */
struct rest {
    uv_write_t request; /* first: the request casts */
    struct mu__buf *output;
};

static void on_tls_written(uv_write_t *request, int status)
{
    struct rest *rest = (struct rest *)request;

    (void)status; /* the reading side sees a broken connection too */
    mu__buf_unref(rest->output);
    free(rest);
}

static int write_tls_rest(uv_stream_t *stream, struct mu__buf *output, size_t written)
{
    uv_buf_t buf =
        uv_buf_init((char *)output->data + written, output->size - (unsigned)written);
    struct rest *rest = malloc(sizeof *rest);

    if (rest == NULL)
        return -MU_ENOMEM;
    rest->output = output;
    if (uv_write(&rest->request, stream, &buf, 1, on_tls_written) == 0)
        return 0;
    free(rest);
    return -MU_ENOMEM;
}

int mu__tls_flush(struct mu__tls *tls, uv_stream_t *stream)
{
    struct mu__buf *output = mu__tls_output(tls);
    uv_buf_t buf;
    int written;
    int rv;

    if (output == NULL)
        return 0;
    buf = uv_buf_init((char *)output->data, output->size);
    written = uv_try_write(stream, &buf, 1);
    if (written < 0)
        written = 0; /* full, or broken, which the reading side will see */
    rv = (uint32_t)written == output->size
             ? 0
             : write_tls_rest(stream, output, (size_t)written);
    if ((uint32_t)written == output->size || rv != 0)
        mu__buf_unref(output);
    return rv;
}
