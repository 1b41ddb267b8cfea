/* Which of this machine's addresses another one sees. */
#ifndef MU_NODE_ROUTE_H
#define MU_NODE_ROUTE_H

enum { MU__ROUTE_BYTES = 80, MU__ROUTE_LOOK_UP_MS = 2000 };

/* Write the url to listen at, on a free port, so that the host of `url`
 * ("tcp://host:port") can dial back: "tcp://10.0.0.7:0". "" when that is not known, or
 * for another kind of url. No packet is sent; a name may be looked up, for
 * MU__ROUTE_LOOK_UP_MS at most. `ret_url` has MU__ROUTE_BYTES. */
void mu__route(const char *url, char *ret_url);

#endif
