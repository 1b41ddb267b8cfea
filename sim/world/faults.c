/* What a test or chaos may do to the network. */
#include "sim/world/inner.h"

#include <string.h>

static void cut_way(struct sim_conn *conn)
{
    struct sim *sim = conn->to->sim;

    conn->cut = true;
    sim_conn_end(conn, sim_draw_range(sim, sim->settings.notice), "connection broken");
    if (conn->held)
        sim_conn_arm(conn);
}

void sim_cut(struct sim *sim, struct sim_node *a, struct sim_node *b)
{
    for (struct sim_conn *conn = sim->conns; conn != NULL; conn = conn->next) {
        if (conn->from != a || conn->to != b || !conn->open || !conn->back->open)
            continue;
        cut_way(conn->back);
        cut_way(conn);
    }
}

void sim_cut_half(struct sim *sim, struct sim_node *a, struct sim_node *b,
                  uint64_t notice_ms)
{
    for (struct sim_conn *conn = sim->conns; conn != NULL; conn = conn->next) {
        uint64_t later_us = sim_between(&sim->random, 0, notice_ms * 1000);

        if (conn->from != a || conn->to != b || !conn->open || !conn->back->open)
            continue;
        cut_way(conn->back);
        for (struct sim_frame *frame = conn->first; frame != NULL; frame = frame->next)
            frame->due_us += later_us;
        conn->last_due_us += later_us;
        if (conn->first != NULL && !conn->held)
            sim_conn_arm(conn);
        sim_conn_end(conn, notice_ms * 1000, "connection timed out");
    }
}

void sim_block(struct sim *sim, struct sim_node *a, struct sim_node *b)
{
    (void)sim;
    a->blocked[b->number / 64] |= UINT64_C(1) << (b->number % 64);
}

/* Held frames are sent once more: one latency from now. */
static void release_conn(struct sim_conn *conn)
{
    struct sim *sim = conn->to->sim;
    uint64_t due_us = sim->now_us + sim_latency_us(conn->from, conn->to);

    for (struct sim_frame *frame = conn->first; frame != NULL; frame = frame->next)
        if (frame->due_us < due_us)
            frame->due_us = due_us;
    if (conn->last_due_us < due_us)
        conn->last_due_us = due_us;
    sim_conn_arm(conn);
}

/* Those who hear each other again: what a block held goes on. */
static void release(struct sim *sim)
{
    for (struct sim_conn *conn = sim->conns; conn != NULL; conn = conn->next)
        if (conn->held && !sim_is_blocked(conn->from, conn->to))
            release_conn(conn);
}

void sim_unblock_later(struct sim_node *a, struct sim_node *b)
{
    a->blocked[b->number / 64] &= ~(UINT64_C(1) << (b->number % 64));
}

void sim_unblock(struct sim *sim, struct sim_node *a, struct sim_node *b)
{
    sim_unblock_later(a, b);
    release(sim);
}

void sim_partition(struct sim *sim, struct sim_node *const *side, size_t count)
{
    bool inside[SIM_NODES_MAX] = {false};

    for (size_t i = 0; i < count; i++)
        inside[side[i]->number] = true;
    for (uint32_t i = 0; i < sim->nodes_count; i++)
        for (uint32_t j = 0; j < sim->nodes_count; j++)
            if (inside[i] != inside[j])
                sim_block(sim, sim->nodes[i], sim->nodes[j]);
}

void sim_slow(struct sim_node *node, unsigned factor)
{
    node->slow = factor;
}

void sim_slow_link(struct sim *sim, struct sim_node *a, struct sim_node *b,
                   unsigned factor)
{
    (void)sim;
    a->slow_to[b->number] = (uint16_t)factor;
}

void sim_heal(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->nodes_count; i++) {
        struct sim_node *node = sim->nodes[i];

        memset(node->blocked, 0, sizeof node->blocked);
        memset(node->slow_to, 0, sizeof node->slow_to);
        node->slow = 1;
        sim_resume(node);
    }
    release(sim);
}

bool sim_is_refused(const struct sim_node *node, const char *url)
{
    const struct sim *sim = node->sim;

    for (uint32_t i = 0; sim->settings.refuses && i < sim->nodes_count; i++)
        if (!sim->nodes[i]->running && strcmp(sim->nodes[i]->address, url) == 0)
            return !sim_is_blocked(node, sim->nodes[i]) &&
                   !sim_is_blocked(sim->nodes[i], node);
    return false;
}
