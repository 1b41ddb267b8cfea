/* Actors that give streams as a test says, in the processes of user_net.h. */
#ifndef MU_TESTS_GIVERS_H
#define MU_TESTS_GIVERS_H

#include "actors/user/streams/producers.h"
#include "tests/support/users/user_net.h"

/* What the givers of a test have heard, and what their last giving came to. */
struct giver_heard {
    int code;      /* of the last mu_stream_give */
    int64_t given; /* the last number */
    unsigned rooms;
    unsigned closed;
    int why; /* code of the last CLOSED */
};

extern struct giver_heard giver_heard;

/* Type "giver": "open" (args: ahead) answers with a stream, "fail" does, gives, and
 * fails; "give and fail" gives until it is refused; "stop" stops it. */
void givers_register(struct user_net *f);

/* A send, and what follows from it now. */
void giver_tell(struct user_net *f, const mu_address *giver, const char *method,
                const mu_value *args);

/* Numbers; what does not fit is given when there is room. */
void giver_give(struct user_net *f, const mu_address *giver, int64_t from, int64_t to);
void giver_give_large(struct user_net *f, const mu_address *giver, size_t bytes,
                      int64_t count);
void giver_end(struct user_net *f, const mu_address *giver, int code);

#endif
