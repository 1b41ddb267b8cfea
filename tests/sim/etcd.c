/* An etcd in virtual time.
 *
 * A flight is one request: it arrives, or not; then its answer does, or what the client
 * hears instead. Both are events of no process, so that a process that stands still or
 * dies changes nothing about what arrives. */
#include "tests/sim/etcd.h"

#include "actors/coordination/store/etcd_grpc.h"
#include "actors/messages.h"
#include "sim/world/inner.h"
#include "tests/support/etcd_grpc.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct door {
    struct mu__http base;
    struct sim_etcd *etcd;
    struct sim_node *node;
    struct door *next;
    bool dead;
};

struct flight {
    struct flight *next;
    struct flight **link;
    struct sim_etcd *etcd;
    struct door *door;
    struct mu__http_request *request; /* NULL: nobody waits for it */
    char *path;
    char *body;
    size_t body_size;
    char *answer; /* once it was made */
    size_t answer_size;
    int status;
    int grpc_status;
    unsigned endpoint;
    bool lose_answer;
    struct sim_event arrive;
    struct sim_event limit; /* nobody has answered until then */
    struct sim_event tell;
    bool arrived;
};

struct sim_etcd {
    struct sim *sim;
    struct sim_random random;
    struct sim_etcd_settings settings;
    struct etcd_data *data;
    struct door *doors;
    struct flight *flights;
    bool down[SIM_ETCD_ENDPOINTS];
    bool away;
    uint64_t requests;
    uint64_t grpc_requests;
};

/* ---- Flights ---- */

static void flight_free(struct flight *flight)
{
    *flight->link = flight->next;
    if (flight->next != NULL)
        flight->next->link = flight->link;
    free(flight->path);
    free(flight->body);
    free(flight->answer);
    free(flight);
}

static void free_if_over(struct flight *flight)
{
    struct sim *sim = flight->etcd->sim;

    if (flight->request != NULL || !flight->arrived)
        return;
    sim_event_cancel(sim, &flight->arrive);
    sim_event_cancel(sim, &flight->limit);
    sim_event_cancel(sim, &flight->tell);
    flight_free(flight);
}

/* Its owner hears of it, in a burst of its own. */
static void finish(struct flight *flight, int code, const char *words)
{
    struct mu__http_request *request = flight->request;
    struct mu__msg *msg;

    flight->request = NULL;
    request->own = NULL;
    request->code = code;
    if (code != 0)
        (void)mu_error_set(&request->error, code, "%s: %s", request->url, words);
    request->status = code == 0 ? flight->status : 0;
    sim_own_memory++;
    msg = mu__msg_heap(MU__HTTP_DONE, sizeof(struct mu__http_done));
    if (code == 0) {
        request->answer = mu__buf_new(flight->answer_size);
        assert(request->answer != NULL);
        memcpy(request->answer->data, flight->answer, flight->answer_size);
        request->answer->size = (uint32_t)flight->answer_size;
        (void)snprintf(request->header, sizeof request->header, "%d",
                       flight->grpc_status);
    }
    sim_own_memory--;
    assert(msg != NULL);
    msg->to = request->owner;
    ((struct mu__http_done *)(void *)msg->body)->request = request;
    sim_post(flight->door->node, msg);
    free_if_over(flight);
}

static void on_tell(void *owner)
{
    struct flight *flight = owner;
    bool broken = flight->answer == NULL || flight->lose_answer;

    if (flight->request != NULL)
        finish(flight, broken ? -MU_EUNAVAILABLE : 0,
               flight->answer == NULL ? "connection refused" : "connection reset");
}

static void on_limit(void *owner)
{
    struct flight *flight = owner;

    if (flight->request != NULL)
        finish(flight, -MU_EDEADLINE, "no answer in time");
}

static uint64_t now_ms(const struct sim_etcd *etcd)
{
    return sim_now_us(etcd->sim) / 1000;
}

static bool is_there(const struct flight *flight)
{
    return !flight->etcd->away && !flight->etcd->down[flight->endpoint];
}

static bool is_grpc(const struct flight *flight)
{
    return strcmp(flight->path, MU__ETCD_GRPC_TXN) == 0;
}

static void answer(struct flight *flight)
{
    struct sim_etcd *etcd = flight->etcd;

    if (is_grpc(flight) && !etcd->settings.lacks_grpc) {
        flight->status = 200;
        flight->answer = etcd_grpc_txn(etcd->data, flight->body, flight->body_size,
                                       &flight->answer_size, &flight->grpc_status);
        return;
    }
    flight->answer = etcd_data_ask(etcd->data, flight->path, flight->body,
                                   flight->body_size, &flight->status);
    flight->answer_size = strlen(flight->answer);
}

static void on_arrive(void *owner)
{
    struct flight *flight = owner;
    struct sim_etcd *etcd = flight->etcd;
    const struct sim_range *way = &etcd->settings.way;
    uint64_t back_us = sim_between(&etcd->random, way->min_us, way->max_us);

    flight->arrived = true;
    if (is_there(flight)) {
        sim_own_memory++;
        etcd_data_set_time(etcd->data, now_ms(etcd));
        answer(flight);
        sim_own_memory--;
    }
    if (flight->request != NULL)
        sim_event_at(etcd->sim, &flight->tell, sim_now_us(etcd->sim) + back_us);
    else
        free_if_over(flight);
}

/* ---- The door ---- */

static unsigned endpoint_of(const char *url)
{
    unsigned endpoint = 0;

    assert(strncmp(url, "http://etcd", 11) == 0);
    endpoint = (unsigned)(url[11] - '0');
    assert(endpoint < SIM_ETCD_ENDPOINTS && strncmp(url + 12, ":2379/", 6) == 0);
    return endpoint;
}

static char *copy(const void *bytes, size_t size)
{
    char *text = sim_alloc(size + 1);

    if (size > 0)
        memcpy(text, bytes, size);
    return text;
}

static struct flight *flight_new(struct door *door,
                                 const struct mu__http_request *request)
{
    struct sim_etcd *etcd = door->etcd;
    struct flight *flight = sim_alloc(sizeof *flight);
    const char *path = strchr(request->url + strlen("http://"), '/');

    assert(path != NULL && strcmp(request->method, "POST") == 0);
    flight->etcd = etcd;
    flight->door = door;
    flight->endpoint = endpoint_of(request->url);
    flight->path = copy(path, strlen(path));
    flight->body = copy(request->body, request->body_size);
    flight->body_size = request->body_size;
    sim_event_init(&flight->arrive, NULL, SIM_CONTEXT_ASIDE, on_arrive, flight);
    sim_event_init(&flight->limit, NULL, SIM_CONTEXT_ASIDE, on_limit, flight);
    sim_event_init(&flight->tell, NULL, SIM_CONTEXT_ASIDE, on_tell, flight);
    flight->next = etcd->flights;
    flight->link = &etcd->flights;
    if (flight->next != NULL)
        flight->next->link = &flight->next;
    etcd->flights = flight;
    etcd->requests++;
    if (is_grpc(flight))
        etcd->grpc_requests++;
    return flight;
}

static void take_off(struct flight *flight)
{
    struct sim_etcd *etcd = flight->etcd;
    const struct sim_etcd_settings *settings = &etcd->settings;
    const struct sim_range *way = &settings->way;
    uint64_t us = sim_between(&etcd->random, way->min_us, way->max_us);

    if (sim_chance(&etcd->random, settings->lose_percent)) {
        flight->arrived = true;
        return;
    }
    if (sim_chance(&etcd->random, settings->late_percent))
        us += sim_between(&etcd->random, settings->late.min_us, settings->late.max_us);
    flight->lose_answer = sim_chance(&etcd->random, settings->lose_answer_percent);
    sim_event_at(etcd->sim, &flight->arrive, sim_now_us(etcd->sim) + us);
}

static void door_send(struct mu__http *base, struct mu__http_request *request)
{
    struct door *door = (struct door *)base;
    struct flight *flight;

    request->own = NULL;
    request->answer = NULL;
    if (door->dead)
        return;
    sim_own_memory++;
    flight = flight_new(door, request);
    flight->request = request;
    request->own = flight;
    take_off(flight);
    sim_event_at(door->etcd->sim, &flight->limit,
                 sim_now_us(door->etcd->sim) + (uint64_t)request->timeout_ms * 1000);
    sim_own_memory--;
}

static void door_cancel(struct mu__http *base, struct mu__http_request *request)
{
    struct flight *flight = request->own;

    (void)base;
    if (flight == NULL)
        return;
    request->own = NULL;
    flight->request = NULL;
    free_if_over(flight);
}

static void door_tell(struct mu__http *base, const struct mu__http_request *request)
{
    struct door *door = (struct door *)base;
    struct flight *flight;

    if (door->dead)
        return;
    sim_own_memory++;
    flight = flight_new(door, request);
    take_off(flight);
    sim_own_memory--;
    free_if_over(flight);
}

static const struct mu__http_ops ops = {
    .send = door_send,
    .cancel = door_cancel,
    .notify = door_tell,
};

struct mu__http *sim_etcd_door(struct sim_etcd *etcd, struct sim_node *node)
{
    struct door *door = sim_alloc(sizeof *door);

    door->base.ops = &ops;
    door->etcd = etcd;
    door->node = node;
    door->next = etcd->doors;
    etcd->doors = door;
    return &door->base;
}

void sim_etcd_door_end(struct mu__http *base)
{
    struct door *door = (struct door *)base;
    struct flight *next;

    door->dead = true;
    for (struct flight *flight = door->etcd->flights; flight != NULL; flight = next) {
        next = flight->next;
        if (flight->door != door || flight->request == NULL)
            continue;
        flight->request->own = NULL;
        flight->request = NULL;
        free_if_over(flight);
    }
}

/* ---- Life ---- */

struct sim_etcd *sim_etcd_new(struct sim *sim, uint64_t seed)
{
    struct sim_etcd *etcd = sim_alloc(sizeof *etcd);

    etcd->sim = sim;
    etcd->random = sim_stream(seed, UINT64_C(0x65746364));
    etcd->settings.way = (struct sim_range){2000, 2000};
    etcd->data = etcd_data_new();
    return etcd;
}

void sim_etcd_free(struct sim_etcd *etcd)
{
    if (etcd == NULL)
        return;
    while (etcd->flights != NULL)
        flight_free(etcd->flights);
    while (etcd->doors != NULL) {
        struct door *door = etcd->doors;

        etcd->doors = door->next;
        free(door);
    }
    etcd_data_free(etcd->data);
    free(etcd);
}

struct sim_etcd_settings *sim_etcd_settings(struct sim_etcd *etcd)
{
    return &etcd->settings;
}

struct etcd_data *sim_etcd_data(struct sim_etcd *etcd)
{
    if (!etcd->away)
        etcd_data_set_time(etcd->data, now_ms(etcd));
    return etcd->data;
}

void sim_etcd_set_down(struct sim_etcd *etcd, unsigned endpoint, bool down)
{
    etcd->down[endpoint] = down;
}

void sim_etcd_set_away(struct sim_etcd *etcd, bool away)
{
    if (etcd->away && !away)
        etcd_data_restart(etcd->data, now_ms(etcd));
    else if (!etcd->away)
        etcd_data_set_time(etcd->data, now_ms(etcd));
    etcd->away = away;
}

uint64_t sim_etcd_requests(const struct sim_etcd *etcd)
{
    return etcd->requests;
}

uint64_t sim_etcd_grpc_requests(const struct sim_etcd *etcd)
{
    return etcd->grpc_requests;
}
