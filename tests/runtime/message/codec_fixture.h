/* The generic codec, over the real message table: golden bytes, bounds, bad bytes. */
#ifndef MU_TESTS_RUNTIME_MESSAGE_CODEC_FIXTURE_H
#define MU_TESTS_RUNTIME_MESSAGE_CODEC_FIXTURE_H

#include "actors/messages.h"
#include "runtime/message/codec.h"
#include "tests/support/golden.h"
#include "tests/support/test.h"
#include "transport/link/frames.h"

enum { FRAME_BYTES = 16384 };

struct fixture {
    struct mu__pool pool;
    struct mu__buf *frame;
    char why[256];
};

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    mu__pool_init(&f->pool);
    f->frame = mu__buf_new(FRAME_BYTES);
    assert_non_null(f->frame);
    *state = f;
    return 0;
}

/* A test that loses a message or a reference fails here. */
static inline int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(f->pool.live, 0);
    assert_int_equal(f->frame->refs, 1);
    mu__buf_unref(f->frame);
    mu__pool_done(&f->pool);
    free(f);
    return 0;
}

#endif
