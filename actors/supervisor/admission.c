/* A full chief fails no closure: its clients hold back what it has no room for. Each is
 * granted a number of closures and of bytes that it may have here at a time, and sends no
 * more; so no closure needs a message of its own. Grants change when a client says that
 * it lacks something (ROOM_REQUEST), joins or leaves, or when closures of one that has
 * more than its part are resolved.
 *
 * A client whose grant shrinks may have sent more before it heard of that. So its former
 * grant stays reserved until it answers. After ANSWER_MS without an answer it counts as
 * told: what it sends beyond its grant is refused. */
#include "actors/supervisor/actions.h"
#include "actors/supervisor/handlers.h"

enum {
    FLUSH_MS = 5,   /* after that free room below a step is granted too */
    ROTATE_MS = 20, /* fewer closures than clients: then the next clients get
                       them */
    NEED_MS = 50,   /* for so long a large closure waits before all others make
                       room */
    ANSWER_MS = 60 * 1000,
    AT_ONCE_PART = 64 /* this part of a bound, once free, is granted at once */
};

static uint64_t cap_size(uint64_t size, uint64_t max)
{
    return size < max ? size : max;
}

/* ---- What clients hold ---- */

void mu__sup_room_init(struct supervisor *s)
{
    s->admission.bounds[MU__BOUND_CLOSURES].max = s->config.queue_max;
    s->admission.bounds[MU__BOUND_BYTES].max = s->config.queue_bytes_max;
}

/* A closure that is larger than the bound takes all of it. */
static uint64_t get_bound_size(const struct supervisor *s, int bound, uint64_t bytes)
{
    return bound == MU__BOUND_CLOSURES
               ? 1
               : cap_size(bytes, s->admission.bounds[MU__BOUND_BYTES].max);
}

/* Without arguments only the first bound, that of closures, is touched. */
static int bounds_used(uint64_t bytes)
{
    return bytes == 0 ? MU__BOUND_BYTES : MU__BOUNDS_COUNT;
}

bool mu__sup_room_admits(const struct supervisor *s,
                         const struct supervisor_client *client, uint64_t bytes)
{
    const struct mu__admission *a = &s->admission;
    const struct mu__share *shares = client->room.shares;

    return mu__share_may_hold(&a->bounds[MU__BOUND_CLOSURES], &shares[MU__BOUND_CLOSURES],
                              1) &&
           (bytes == 0 ||
            mu__share_may_hold(&a->bounds[MU__BOUND_BYTES], &shares[MU__BOUND_BYTES],
                               get_bound_size(s, MU__BOUND_BYTES, bytes)));
}

void mu__sup_own(struct supervisor *s, struct supervisor_client *client,
                 struct mu__closure *closure)
{
    uint64_t bytes = mu__closure_bytes(closure);

    closure->client = (uint16_t)(client - s->clients.items);
    client->closures++;
    for (int i = 0; i < bounds_used(bytes); i++)
        mu__share_hold(&s->admission.bounds[i], &client->room.shares[i],
                       get_bound_size(s, i, bytes));
}

/* ---- dividing ---- */

static void send_allow(struct mu__ctx *ctx, struct supervisor *s,
                       struct supervisor_client *client)
{
    struct mu__client_room *room = &client->room;
    struct mu__room_allow body;

    for (int i = 0; i < MU__BOUNDS_COUNT; i++) {
        room->granted[i] = room->shares[i].granted;
        room->shares[i].awaits_ack = true;
        room->shares[i].is_fresh = room->shares[i].is_fresh && room->granted[i] == 0;
    }
    room->number++;
    room->granted_since_ms = mu__now_ms(ctx);
    body = (struct mu__room_allow){
        .session = room->session,
        .number = room->number,
        .closures = room->granted[MU__BOUND_CLOSURES],
        .bytes = room->granted[MU__BOUND_BYTES],
        .closures_max = s->config.queue_max,
        .bytes_max = s->config.queue_bytes_max,
        .clients = s->admission.members,
    };
    if (mu__send_body(ctx, client->pid, MU__ROOM_ALLOW, &body, sizeof body) != 0)
        mu__log(ctx, MU__LOG_WARN, "failed to send its share of the queue to a client");
}

static bool must_notify(const struct mu__client_room *room)
{
    if (!room->is_member)
        return false;
    for (int i = 0; i < MU__BOUNDS_COUNT; i++)
        if (room->granted[i] != room->shares[i].granted ||
            (room->shares[i].is_fresh && room->granted[i] > 0))
            return true;
    return false;
}

/* The members' shares of one bound; how many. */
static uint32_t list_shares(struct supervisor *s, int bound)
{
    struct mu__admission *a = &s->admission;
    uint32_t count = 0;

    if (a->list_size < a->members) {
        if (!mu__grow_array((void **)&a->list, a->members, sizeof(struct mu__share *)))
            return 0;
        a->list_size = a->members;
    }
    for (uint32_t i = 0; i < s->clients.count && count < a->members; i++)
        if (s->clients.items[i].room.is_member)
            a->list[count++] = &s->clients.items[i].room.shares[bound];
    return count;
}

static uint32_t count_hungry_clients(const struct supervisor *s, int bound)
{
    uint32_t hungry = 0;

    for (uint32_t i = 0; i < s->clients.count; i++)
        hungry += s->clients.items[i].room.is_member &&
                  s->clients.items[i].room.shares[bound].hungry;
    return hungry;
}

/* Set which clients with a large closure may take room from the others: at once if nobody
 * else lacks bytes, else after NEED_MS. True when one has to wait. */
static bool note_needs(struct supervisor *s, uint64_t now_ms)
{
    bool is_alone = count_hungry_clients(s, MU__BOUND_BYTES) == 1;
    bool waits = false;

    for (uint32_t i = 0; i < s->clients.count; i++) {
        struct mu__client_room *room = &s->clients.items[i].room;
        struct mu__share *share = &room->shares[MU__BOUND_BYTES];

        if (!room->is_member || share->need == 0)
            continue;
        share->may_take = is_alone || now_ms - room->need_since_ms >= NEED_MS;
        waits = waits || !share->may_take;
    }
    return waits;
}

static void acknowledge_shares(struct supervisor *s, struct mu__client_room *room)
{
    for (int i = 0; i < MU__BOUNDS_COUNT; i++) {
        room->shares[i].awaits_ack = false;
        mu__share_acknowledged(&s->admission.bounds[i], &room->shares[i]);
    }
}

/* Clients that have not answered for ANSWER_MS count as told. */
static void assume_acknowledged(struct supervisor *s, uint64_t now_ms)
{
    for (uint32_t i = 0; i < s->clients.count; i++) {
        struct mu__client_room *room = &s->clients.items[i].room;

        if (room->is_member && room->shares[0].awaits_ack &&
            now_ms >= room->granted_since_ms + ANSWER_MS)
            acknowledge_shares(s, room);
    }
}

/* Set the timer, unless it fires earlier already. */
static void arm_admission_timer(struct mu__ctx *ctx, struct supervisor *s,
                                uint64_t delay_ms)
{
    struct mu__admission *a = &s->admission;
    uint64_t due_ms = mu__now_ms(ctx) + delay_ms;

    if (a->timer != 0 && a->due_ms <= due_ms)
        return;
    mu__timer_cancel(ctx, a->timer);
    a->timer = mu__timer_set(ctx, delay_ms, timer_token(TIMER_ROOM, 0));
    a->due_ms = due_ms;
}

/* Set the timer for what has to change without a message. */
static void arm_next_review(struct mu__ctx *ctx, struct supervisor *s, bool waits)
{
    bool is_short = false;
    bool may_grow = false;
    bool rotates = false;

    for (int i = 0; i < MU__BOUNDS_COUNT; i++) {
        const struct mu__shares *bound = &s->admission.bounds[i];

        is_short = is_short || bound->is_short;
        may_grow = may_grow || (bound->is_short && mu__shares_free(bound) > 0);
        rotates = rotates || bound->must_rotate;
    }
    if (may_grow)
        arm_admission_timer(ctx, s, FLUSH_MS);
    else if (rotates)
        arm_admission_timer(ctx, s, ROTATE_MS);
    else if (waits)
        arm_admission_timer(ctx, s, NEED_MS);
    else if (is_short)
        arm_admission_timer(ctx, s, ANSWER_MS);
}

static void divide_shares(struct mu__ctx *ctx, struct supervisor *s, bool flush)
{
    bool waits = note_needs(s, mu__now_ms(ctx));

    for (int i = 0; i < MU__BOUNDS_COUNT; i++) {
        uint32_t count = list_shares(s, i);

        mu__shares_divide(&s->admission.bounds[i], s->admission.list, count, flush);
    }
    for (uint32_t i = 0; i < s->clients.count; i++)
        if (must_notify(&s->clients.items[i].room))
            send_allow(ctx, s, &s->clients.items[i]);
    arm_next_review(ctx, s, waits);
}

void mu__sup_room_timer(struct mu__ctx *ctx, struct supervisor *s)
{
    s->admission.timer = 0;
    assume_acknowledged(s, mu__now_ms(ctx));
    for (int i = 0; i < MU__BOUNDS_COUNT; i++)
        if (s->admission.bounds[i].must_rotate && !s->admission.bounds[i].is_short)
            s->admission.bounds[i].rotation++;
    divide_shares(ctx, s, true);
}

/* ---- Closures that end ---- */

void mu__sup_disown(struct mu__ctx *ctx, struct supervisor *s,
                    const struct mu__closure *closure)
{
    struct supervisor_client *client = &s->clients.items[closure->client];
    uint64_t bytes = mu__closure_bytes(closure);
    bool is_much = false;
    bool is_some = false;

    client->closures--;
    if (client->tokens.count > 0)
        mu__sup_forget_token(client, closure);
    for (int i = 0; i < bounds_used(bytes); i++) {
        struct mu__shares *bound = &s->admission.bounds[i];
        uint64_t free;

        mu__share_drop(bound, &client->room.shares[i], get_bound_size(s, i, bytes));
        if (!bound->is_short && client->room.is_member)
            continue; /* the client may use the room itself */
        free = mu__shares_free(bound);
        is_some = is_some || free > 0;
        is_much = is_much || free > bound->max / AT_ONCE_PART;
    }
    if (is_much)
        divide_shares(ctx, s, false);
    else if (is_some)
        arm_admission_timer(ctx, s, FLUSH_MS);
}

/* ---- clients ---- */

static void leave_admission(struct supervisor *s, struct supervisor_client *client)
{
    struct mu__client_room *room = &client->room;

    if (room->is_member)
        s->admission.members--;
    room->is_member = false;
    for (int i = 0; i < MU__BOUNDS_COUNT; i++) {
        room->shares[i].awaits_ack = false;
        mu__share_end(&s->admission.bounds[i], &room->shares[i]);
        room->granted[i] = 0;
    }
}

void mu__sup_room_leave(struct mu__ctx *ctx, struct supervisor *s,
                        struct supervisor_client *client)
{
    leave_admission(s, client);
    divide_shares(ctx, s, true);
}

static void begin_admission(struct supervisor *s, struct mu__client_room *room,
                            uint32_t session)
{
    if (!room->is_member)
        s->admission.members++;
    room->session = session;
    room->is_member = true;
    for (int i = 0; i < MU__BOUNDS_COUNT; i++)
        room->shares[i].is_fresh = true;
}

static void note_client_lack(struct mu__ctx *ctx, struct supervisor *s,
                             struct mu__client_room *room,
                             const struct mu__room_request *body)
{
    struct mu__share *bytes = &room->shares[MU__BOUND_BYTES];

    room->shares[MU__BOUND_CLOSURES].hungry = (body->lacks & MU__LACKS_CLOSURES) != 0;
    bytes->hungry = (body->lacks & MU__LACKS_BYTES) != 0;
    if (body->need_bytes > bytes->need) {
        bytes->need_order = ++s->admission.need_last;
        room->need_since_ms = mu__now_ms(ctx);
    }
    bytes->need = cap_size(body->need_bytes, s->config.queue_bytes_max);
}

/* A client begins each of its sessions with number 0. */
void mu__sup_on_room_request(struct mu__ctx *ctx, void *state, struct mu__msg *msg)
{
    struct supervisor *s = state;
    const struct mu__room_request *body = mu__body(msg);
    struct supervisor_client *client = mu__sup_client(s, msg->from);

    if (client == NULL)
        return;
    if (body->leaves) {
        mu__sup_room_leave(ctx, s, client);
        return;
    }
    if (body->number == 0)
        begin_admission(s, &client->room, body->session);
    if (!client->room.is_member || body->session != client->room.session)
        return;
    if (body->number != 0 && body->number == client->room.number)
        acknowledge_shares(s, &client->room);
    note_client_lack(ctx, s, &client->room, body);
    divide_shares(ctx, s, body->number == 0);
}
