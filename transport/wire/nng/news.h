/* News of connections (nng's pipes) that begin and end. nng has them on threads of its
 * own, and the loop takes them from here.
 *
 * Each connection has one record, made before nng uses it, so that its end can be told
 * without memory, and a record is in the list of news once at most. A connection for
 * which there is no record, or no room, is refused.
 *
 * Threads: any. One lock guards everything. Of nng only nng_sendmsg is called while it is
 * held, which tells nothing and waits for nobody. */
#ifndef MU_TRANSPORT_NNG_NEWS_H
#define MU_TRANSPORT_NNG_NEWS_H

#include "runtime/base/list.h"
#include "runtime/base/map.h"

#include <nng/nng.h>
#include <uv.h>

enum { MU__NNG_INS_MAX = 16384 }; /* incoming connections at a time */

struct mu__nng_news;

/* What the notifications of one socket are about. Lives as long as the news. */
struct mu__nng_end {
    struct mu__nng_news *news;
    struct mu__nng_end *next;
    void *owner;         /* of a socket that sends, for the loop; NULL: listens */
    unsigned pipes;      /* records */
    unsigned pipes_left; /* that may still be: a socket that sends has one */
    bool is_open;        /* connections are accepted */
};

/* Begun, then ended; of a connection that was refused only its end. */
struct mu__nng_event {
    struct mu__nng_end *end;
    uint32_t pipe;
    bool begun;
    bool ended;
    bool is_dropped; /* closed by mu__nng_pipe_end */
};

/* `wake` is sent when there is news. NULL: out of memory. */
struct mu__nng_news *mu__nng_news_new(uv_async_t *wake);

/* Each holder drops it once; whoever is last frees it. */
void mu__nng_news_hold(struct mu__nng_news *news);
void mu__nng_news_drop(struct mu__nng_news *news);

/* Nothing wakes the loop any more. */
void mu__nng_news_close(struct mu__nng_news *news);

/* NULL: out of memory. No connection is accepted until it is opened. */
struct mu__nng_end *mu__nng_end_new(struct mu__nng_news *news, void *owner);

/* When its socket is closed: nothing of it will be told any more. */
void mu__nng_end_free(struct mu__nng_end *end);

/* Have nng tell what happens to the connections of `socket`. Returns as nng does. */
int mu__nng_end_watch(struct mu__nng_end *end, nng_socket socket);

/* Accept connections, or not. */
void mu__nng_end_open(struct mu__nng_end *end, bool is_open);

/* The next event; false: there is none. After its end a connection's record is gone. */
bool mu__nng_news_next(struct mu__nng_news *news, struct mu__nng_event *ret_event);

/* Close a connection: of it, only its end will be told, sometime. */
void mu__nng_pipe_end(struct mu__nng_news *news, uint32_t pipe);

/* Hand a message to nng, on the socket of a connection; it is taken when 0 is returned.
 * NNG_ECLOSED: nng has told the end of the connection, which the loop may not have heard
 * of yet, and frees it. Otherwise as nng_sendmsg: NNG_EAGAIN. */
int mu__nng_pipe_send(struct mu__nng_news *news, uint32_t pipe, nng_socket socket,
                      nng_msg *message);

/* Whether a connection is there, and was not closed by mu__nng_pipe_end. */
bool mu__nng_news_has(struct mu__nng_news *news, uint32_t pipe);

#endif
