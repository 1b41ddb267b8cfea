/* Locks: programs take one of a few, write under it what only its holder may write, let
 * go of it, and die meanwhile. As mu_lock_acquire and mu_lock_release do it, but that who
 * waits looks again after a while instead of watching the place before its own. */
#include "actors/coordination/keys/internal.h"
#include "tests/sim/swarm/swarm.h"

#include <stdio.h>
#include <stdlib.h>

static void directory_of(unsigned lock, char out[SWARM_LOCK_BYTES])
{
    (void)snprintf(out, SWARM_LOCK_BYTES, MU_LOCK_DIRECTORY "/%u", lock);
}

static void data_of(unsigned lock, char out[SWARM_LOCK_BYTES])
{
    (void)snprintf(out, SWARM_LOCK_BYTES, "locked/%u", lock);
}

static void set_step(struct swarm_lock *lock, enum swarm_lock_step step,
                     struct cluster_call *call)
{
    lock->step = step;
    lock->call = call;
}

/* ---- Asking ---- */

/* No other place has this name. */
static void come(struct swarm_program *program)
{
    struct swarm_lock *lock = &program->lock;

    (void)snprintf(lock->key, sizeof lock->key, MU_LOCK_DIRECTORY "/%u/%u-%u-%u",
                   lock->number, program->number, program->life, ++lock->comes);
    set_step(
        lock, LOCK_COMING,
        cluster_key(program->task,
                    &(mu_kv_request){.operation = MU_KV_PUT,
                                     .flags = MU_KV_LEASE,
                                     .key = lock->key,
                                     .value = program->task->name,
                                     .size = strlen(program->task->name),
                                     .timeout_ms = (int64_t)draw(program, 500, 4000)}));
}

/* Nothing of it stays, whatever became of the put. */
static void leave_queue(struct swarm_program *program)
{
    (void)cluster_key(program->task, &(mu_kv_request){.operation = MU_KV_DELETE,
                                                      .key = program->lock.key,
                                                      .timeout_ms = -1});
}

static void look(struct swarm_program *program)
{
    struct swarm_lock *lock = &program->lock;

    directory_of(lock->number, lock->directory);
    set_step(lock, LOCK_LOOKING,
             cluster_agent(program->task,
                           CALL(CALL_OF(MU__AGENT_LIST, 3000), .name = lock->directory)));
}

/* A change under the fence. */
static struct cluster_call *ask_fenced(struct swarm_program *program,
                                       const struct mu__txn_change *change)
{
    struct swarm_lock *lock = &program->lock;
    static struct mu__txn txn;

    txn = (struct mu__txn){.checks_count = 1, .changes_count = 1};
    txn.checks[0] = (struct mu__txn_check){
        MU_KV_IF_REVISION, mu__view_str(lock->key), lock->revision, {NULL, 0}};
    txn.changes[0] = *change;
    return swarm_send_txn(program, &txn, lock->key, (int64_t)draw(program, 500, 4000));
}

/* A write whose answer never comes may have been made. */
static void note_write(struct swarm_program *program)
{
    struct swarm *run = program->run;

    run->writes = swarm_grown(run->writes, run->writes_count, &run->writes_capacity,
                              sizeof *run->writes);
    run->writes[run->writes_count++] = (struct swarm_write){
        .lock = program->lock.number, .number = program->lock.revision};
    program->lock.write = run->writes_count - 1;
}

static void write(struct swarm_program *program)
{
    struct swarm_lock *lock = &program->lock;
    char data[SWARM_LOCK_BYTES];
    char value[24];

    data_of(lock->number, data);
    (void)snprintf(value, sizeof value, "%" PRIu64, lock->revision);
    note_write(program);
    set_step(lock, LOCK_WRITING,
             ask_fenced(program, &(struct mu__txn_change){.operation = MU_KV_PUT,
                                                          .key = mu__view_str(data),
                                                          .value = mu__view_str(value)}));
}

static void release(struct swarm_program *program)
{
    struct swarm_lock *lock = &program->lock;

    lock->holds = false;
    set_step(lock, LOCK_RELEASING,
             ask_fenced(program,
                        &(struct mu__txn_change){.operation = MU_KV_DELETE,
                                                 .key = mu__view_str(lock->key)}));
}

/* ---- Answers ---- */

static void end_coming(struct swarm_program *program, const struct cluster_call *call)
{
    struct swarm_lock *lock = &program->lock;

    if (call->of.call.code != 0) {
        leave_queue(program);
        set_step(lock, LOCK_AWAY, NULL);
        return;
    }
    swarm_note_use(program);
    lock->revision = call->of.key.revision;
    look(program);
}

static void end_looking(struct swarm_program *program, struct cluster_call *call)
{
    struct swarm_lock *lock = &program->lock;
    struct mu__lock_queue queue;
    enum mu__lock_step next;

    if (call->of.call.code != 0) {
        leave_queue(program);
        set_step(lock, LOCK_AWAY, NULL);
        return;
    }
    swarm_note_use(program);
    mu__lock_queue_read(call->of.agent.content, lock->directory, lock->revision, &queue);
    next = mu__lock_queue_next(&queue);
    lock->holds = next == MU__LOCK_HOLD;
    program->run->reached[LOCK_WAITS] += next == MU__LOCK_WAIT;
    program->run->reached[LOCKED] += lock->holds;
    if (next == MU__LOCK_COME && !program->run->calm)
        come(program);
    else
        set_step(lock,
                 lock->holds             ? LOCK_HELD
                 : next == MU__LOCK_COME ? LOCK_AWAY
                                         : LOCK_WAITING,
                 NULL);
}

/* That the place is not there any more is heard first where it is relied on. */
static void end_writing(struct swarm_program *program, const struct cluster_call *call)
{
    struct swarm_lock *lock = &program->lock;
    struct swarm_write *write_of = &program->run->writes[lock->write];
    int code = call->of.call.code;

    set_step(lock, LOCK_HELD, NULL);
    if (code == 0) {
        swarm_note_use(program);
        write_of->revision = call->of.key.revision;
        write_of->store = program->store;
    }
    if (code != -MU_EPRECONDITION)
        return;
    program->run->reached[FENCED] += has_words(call, "has revision");
    lock->holds = false;
    leave_queue(program);
    set_step(lock, LOCK_AWAY, NULL);
}

static void end_releasing(struct swarm_program *program, const struct cluster_call *call)
{
    if (call->of.call.code == 0)
        swarm_note_use(program);
    else
        leave_queue(program);
    set_step(&program->lock, LOCK_AWAY, NULL);
}

void swarm_end_lock(struct swarm_program *program)
{
    struct cluster_call *call = program->lock.call;

    switch (program->lock.step) {
    case LOCK_COMING:
        end_coming(program, call);
        break;
    case LOCK_LOOKING:
        end_looking(program, call);
        mu_value_free(call->of.agent.content);
        call->of.agent.content = NULL;
        break;
    case LOCK_WRITING:
        end_writing(program, call);
        break;
    default:
        end_releasing(program, call);
        break;
    }
    if (program->run->calm)
        swarm_end_locking(program);
}

/* ---- Steps ---- */

void swarm_go_on_locking(struct swarm_program *program)
{
    struct swarm_lock *lock = &program->lock;

    if (lock->call != NULL)
        return;
    if (lock->step == LOCK_AWAY && sim_chance(&program->random, 10)) {
        lock->number = (unsigned)draw(program, 0, LOCKS - 1);
        come(program);
    } else if (lock->step == LOCK_WAITING) {
        look(program);
    } else if (lock->step == LOCK_HELD) {
        if (sim_chance(&program->random, 80))
            write(program);
        else
            release(program);
    }
}

void swarm_end_locking(struct swarm_program *program)
{
    if (program->lock.call == NULL && program->lock.step != LOCK_AWAY)
        release(program);
}

void swarm_forget_lock(struct swarm_program *program)
{
    struct cluster_call *call = program->lock.call;

    program->run->reached[HOLDERS_DEAD] += program->lock.holds;
    if (call != NULL && call->done && program->lock.step == LOCK_LOOKING)
        mu_value_free(call->of.agent.content);
    program->lock = (struct swarm_lock){.step = LOCK_AWAY};
}

/* ---- What must be ---- */

static bool has_place(const struct coordination *c, const struct swarm_lock *lock)
{
    struct mu__key_value entry;

    return mu__key_values_find(c->keys->kv, mu__view_str(lock->key), &entry) &&
           entry.revision == lock->revision;
}

void swarm_look_at_locks(struct swarm *run, const struct coordination *c)
{
    const struct swarm_program *holders[LOCKS] = {NULL};

    for (unsigned i = 0; i < run->programs_count; i++) {
        const struct swarm_program *program = &run->programs[i];
        const struct swarm_program **holder = &holders[program->lock.number];

        if (!program->lock.holds || program->life == 0 || !has_place(c, &program->lock))
            continue;
        if (*holder != NULL)
            cluster_break(run->cluster,
                          "%s and %s hold lock %u, as %" PRIu64 " and %" PRIu64,
                          (*holder)->task->name, program->task->name,
                          program->lock.number, (*holder)->lock.revision,
                          program->lock.revision);
        *holder = program;
    }
}

static int compare_writes(const void *a, const void *b)
{
    const struct swarm_write *left = a;
    const struct swarm_write *right = b;

    if (left->store != right->store)
        return left->store < right->store ? -1 : 1;
    if (left->lock != right->lock)
        return left->lock < right->lock ? -1 : 1;
    return left->revision < right->revision ? -1 : left->revision > right->revision;
}

/* Of one lock, in the order in which they were made, numbers of holders ascend. */
static void check_writes(struct swarm *run)
{
    if (run->writes_count > 0)
        qsort(run->writes, run->writes_count, sizeof *run->writes, compare_writes);
    for (size_t i = 1; i < run->writes_count; i++) {
        const struct swarm_write *before = &run->writes[i - 1];
        const struct swarm_write *after = &run->writes[i];

        if (before->store != 0 && before->store == after->store &&
            before->lock == after->lock && before->number > after->number)
            cluster_break(run->cluster,
                          "holder %" PRIu64 " of lock %u has written at "
                          "revision %" PRIu64 ", and holder %" PRIu64 " at %" PRIu64,
                          before->number, before->lock, before->revision, after->number,
                          after->revision);
    }
}

/* When all have let go, nobody is in a queue. */
static void check_queue(struct swarm *run, unsigned lock)
{
    char directory[SWARM_LOCK_BYTES];
    struct cluster_call *call;
    const char *key = "";
    size_t size = 0;

    directory_of(lock, directory);
    call = cluster_agent(run->programs[0].task,
                         CALL(CALL_OF(MU__AGENT_LIST, 5000), .name = directory));
    if (cluster_wait(call) != 0)
        cluster_break(run->cluster, "%s cannot be listed at the end", directory);
    else if (mu_value_count(call->of.agent.content) > 0)
        (void)mu_value_get_string(
            mu_value_find(mu_value_at(call->of.agent.content, 0), "key"), &key, &size);
    if (key[0] != '\0')
        cluster_break(run->cluster, "place %s is there, and nobody holds a lock", key);
    mu_value_free(call->of.agent.content);
    call->of.agent.content = NULL;
}

void swarm_check_locks(struct swarm *run)
{
    for (unsigned lock = 0; lock < LOCKS && !is_broken(run); lock++)
        check_queue(run, lock);
    if (!is_broken(run))
        check_writes(run);
}
