/* Three kinds of answers: at once; by a thread of libuv's pool (struct job: files,
 * folders, signatures); over HTTP (struct flight). Names are dns_uv.c's.
 *
 * A job answers its note once: when its thread is done, or by its timer when that takes
 * too long. A thread that hangs (a network file system) then finds nobody who wants its
 * answer. */
#include "resolver/asker_uv.h"

#include "resolver/dns_uv.h"
#include "resolver/kept_answers.h"
#include "resolver/run_uv.h"
#include "resolver/sign_crypto.h"
#include "resolver/write_uv.h"
#include "runtime/http_curl.h"
#include "runtime/pool.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    READ_FIRST_BYTES = 4096,
    WORDS_BYTES = 256,
    FLIGHTS_MAX = 32,   /* requests under way; more wait for these */
    DONE_KIND = 1       /* of the messages between the door and us: any number does */
};

struct mu__asker_uv {
    struct mu__asker asker;         /* first: operations cast */
    uv_loop_t *loop;
    struct mu__http_curl *http;     /* NULL until the first request */
    uv_idle_t idle;                 /* runs while `done` has messages */
    struct mu__msg *done;           /* what the door has posted, in order */
    struct mu__msg **done_last;
    struct flight *waiting;         /* requests that wait for others, in order */
    unsigned flights;               /* with the door */
    struct mu__kept_answers kept;   /* of HTTP and programs */
    unsigned holds;                 /* what must end before we go: handles, jobs, http */
    void (*closed)(void *arg);      /* NULL: it is open */
    void *closed_arg;
};

static struct mu__asker_uv *from_asker(struct mu__asker *asker)
{
    return (struct mu__asker_uv *)asker;
}

static void drop(struct mu__asker_uv *asker)
{
    void (*closed)(void *arg) = asker->closed;
    void *arg = asker->closed_arg;

    if (--asker->holds > 0)
        return;
    mu__kept_answers_done(&asker->kept);
    free(asker);
    closed(arg);
}

/* ---- Answering ---- */

static void give_error(struct mu__note *note, int code, const char *words)
{
    char asked[WORDS_BYTES];

    mu__question_words(&note->question, asked, sizeof asked);
    note->answer.code =
        mu_error_set(&note->answer.error, code, "%s: %s", asked, words);
    mu__note_answer(note);
}

/* Takes `data`, which may be NULL: there was no memory for it. */
static void give_data(struct mu__note *note, char *data, size_t size)
{
    if (data == NULL) {
        give_error(note, -MU_ENOMEM, "out of memory");
        return;
    }
    note->answer.data = data;
    note->answer.size = size;
    mu__note_answer(note);
}

static void give_text(struct mu__note *note, const char *text)
{
    give_data(note, strdup(text), strlen(text));
}

static void answer_variable(struct mu__note *note)
{
    const char *value = getenv(note->question.name);

    if (value == NULL || value[0] == '\0')
        give_error(note, -MU_ENOTFOUND, "not set");
    else
        give_text(note, value);
}

static void answer_host_name(struct mu__note *note)
{
    char name[UV_MAXHOSTNAMESIZE];
    size_t size = sizeof name;
    int rv = uv_os_gethostname(name, &size);

    if (rv == 0)
        give_text(note, name);
    else
        give_error(note, -MU_EUNAVAILABLE, uv_strerror(rv));
}

static void answer_clock(struct mu__note *note)
{
    char digits[32];

    (void)snprintf(digits, sizeof digits, "%lld", (long long)time(NULL));
    give_text(note, digits);
}

/* ---- What is kept ---- */

static void keep_bytes(struct mu__asker_uv *asker, const struct mu__note *note,
                       const char *data, size_t size)
{
    if (note->question.keep_ms != 0)
        mu__kept_answers_put(&asker->kept, &note->question, data, size,
                             uv_now(asker->loop));
}

/* False: nothing is kept for this question. */
static bool give_kept(struct mu__asker_uv *asker, struct mu__note *note)
{
    const struct mu__kept_answer *kept =
        mu__kept_answers_find(&asker->kept, &note->question, uv_now(asker->loop));
    char *data;

    if (kept == NULL)
        return false;
    data = malloc(kept->size + 1);
    if (data != NULL)
        memcpy(data, kept->data, kept->size + 1);
    note->answer.status = note->question.kind == MU__ASK_HTTP ? 200 : 0;
    give_data(note, data, kept->size);
    return true;
}

/* ---- Jobs of threads ---- */

struct job {
    uv_work_t work;             /* first: requests cast */
    uv_timer_t timer;
    struct mu__asker_uv *asker;
    struct mu__note *note;      /* NULL: answered, or nobody wants it */
    unsigned holds;             /* the work, the timer */
    atomic_bool unwanted;       /* `note` is NULL: for the thread */
    int (*run)(struct job *job);
    char *name;
    char *secret;
    void *body;                 /* copies: the note may be gone before the thread is */
    size_t body_size;
    size_t bytes_max;
    bool new_only;
    char *data;                 /* what was found, */
    size_t size;
    int code;                   /* or why not */
    mu_error error;
};

static int failed(struct job *job, int code, const char *words)
{
    return mu_error_set(&job->error, code, "%s", words);
}

static int failed_with(struct job *job, int number)
{
    static const struct {
        int number;
        int code;
    } codes[] = {
        {ENOENT, -MU_ENOTFOUND},    {ENOTDIR, -MU_ENOTFOUND}, {EACCES, -MU_EPERMISSION},
        {EPERM, -MU_EPERMISSION},   {EISDIR, -MU_EINVALID},   {ENOMEM, -MU_ENOMEM},
        {ENAMETOOLONG, -MU_EINVALID}, {ELOOP, -MU_EINVALID},
    };
    int code = -MU_EUNAVAILABLE;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].number == number)
            code = codes[i].code;
    return failed(job, code, strerror(number));
}

static int too_large(struct job *job)
{
    return mu_error_set(&job->error, -MU_EEXHAUSTED, "more than %zu bytes",
                        job->bytes_max);
}

/* Room for `size` bytes of content and a zero byte. */
static int reserve(struct job *job, size_t size, size_t *room)
{
    size_t more = *room == 0 ? READ_FIRST_BYTES : *room;
    char *data;

    if (size + 1 <= *room)
        return 0;
    while (more < size + 1)
        more *= 2;
    data = realloc(job->data, more);
    if (data == NULL)
        return failed(job, -MU_ENOMEM, "out of memory");
    job->data = data;
    *room = more;
    return 0;
}

static int read_all(struct job *job, int fd)
{
    size_t room = 0;
    int rv = reserve(job, 0, &room);

    while (rv == 0) {
        ssize_t count = read(fd, job->data + job->size, room - job->size - 1);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return failed_with(job, errno);
        if (count == 0)
            break;
        job->size += (size_t)count;
        if (job->size > job->bytes_max)
            return too_large(job);
        if (room - job->size - 1 == 0)
            rv = reserve(job, 2 * room, &room);
    }
    if (rv == 0)
        job->data[job->size] = '\0';
    return rv;
}

/* Without waiting for who would write into a pipe. */
static int run_file(struct job *job)
{
    int fd = open(job->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int rv;

    if (fd < 0)
        return failed_with(job, errno);
    rv = read_all(job, fd);
    (void)close(fd);
    return rv;
}

static int is_shown(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_line(struct job *job, const char *name, size_t *room)
{
    size_t length = strlen(name);
    int rv;

    if (job->size + length + 1 > job->bytes_max)
        return too_large(job);
    rv = reserve(job, job->size + length + 1, room);
    if (rv != 0)
        return rv;
    memcpy(job->data + job->size, name, length);
    job->size += length;
    job->data[job->size++] = '\n';
    return 0;
}

static int run_folder(struct job *job)
{
    struct dirent **entries = NULL;
    int count = scandir(job->name, &entries, is_shown, by_bytes);
    size_t room = 0;
    int rv;

    if (count < 0)
        return failed_with(job, errno);
    rv = reserve(job, 0, &room);
    for (int i = 0; i < count; i++) {
        if (rv == 0)
            rv = add_line(job, entries[i]->d_name, &room);
        free(entries[i]);
    }
    free(entries);
    if (rv == 0)
        job->data[job->size] = '\0';
    return rv;
}

static int run_signature(struct job *job)
{
    unsigned char *signature;
    size_t size;
    size_t room = 0;
    int rv = mu__sign_rs256(job->secret, job->body, job->body_size, &job->error,
                            &signature, &size);

    if (rv != 0)
        return rv;
    rv = reserve(job, size, &room);
    if (rv == 0) {
        memcpy(job->data, signature, size);
        job->data[size] = '\0';
        job->size = size;
    }
    free(signature);
    return rv;
}

static int run_nothing_to_tell(struct job *job, int rv)
{
    size_t room = 0;

    if (rv == 0)
        rv = reserve(job, 0, &room);
    if (rv == 0)
        job->data[0] = '\0';
    return rv;
}

static int run_write(struct job *job)
{
    return run_nothing_to_tell(job, mu__file_write(job->name, job->body, job->body_size,
                                                   job->new_only, &job->error));
}

static int run_remove(struct job *job)
{
    return run_nothing_to_tell(job, mu__file_remove(job->name, &job->error));
}

static int run_program(struct job *job)
{
    return mu__run_program(job->name, job->body, job->body_size, job->bytes_max,
                           &job->unwanted, &job->error, &job->data, &job->size);
}

static void job_free(struct job *job)
{
    free(job->name);
    free(job->secret);
    free(job->body);
    free(job->data);
    free(job);
}

static void job_drop(struct job *job)
{
    struct mu__asker_uv *asker = job->asker;

    if (--job->holds > 0)
        return;
    job_free(job);
    drop(asker);
}

static void on_job_timer_closed(uv_handle_t *handle)
{
    job_drop(handle->data);
}

/* The note has no use for it any more. */
static struct mu__note *job_let_go(struct job *job)
{
    struct mu__note *note = job->note;

    job->note = NULL;
    atomic_store(&job->unwanted, true);
    uv_close((uv_handle_t *)&job->timer, on_job_timer_closed);
    note->own = NULL;
    return note;
}

static void on_thread(uv_work_t *work)
{
    struct job *job = (struct job *)work;

    job->code = job->run(job);
}

static void on_thread_done(uv_work_t *work, int status)
{
    struct job *job = (struct job *)work;

    (void)status;   /* UV_ECANCELED only of jobs that nobody wants */
    if (job->note != NULL) {
        struct mu__note *note = job_let_go(job);
        char *data = job->data;

        if (job->code != 0) {
            give_error(note, job->code, job->error.message);
        } else {
            job->data = NULL;
            keep_bytes(job->asker, note, data, job->size);
            give_data(note, data, job->size);
        }
    }
    job_drop(job);
}

static void on_job_timer(uv_timer_t *timer)
{
    struct job *job = timer->data;

    (void)uv_cancel((uv_req_t *)&job->work);
    give_error(job_let_go(job), -MU_EDEADLINE, "no answer in time");
}

static bool job_copy(struct job *job, const struct mu__question *question)
{
    job->name = strdup(question->name);
    job->secret = strdup(question->secret == NULL ? "" : question->secret);
    job->body = malloc(question->body_size + 1);
    if (job->name == NULL || job->secret == NULL || job->body == NULL)
        return false;
    if (question->body_size > 0)
        memcpy(job->body, question->body, question->body_size);
    job->body_size = question->body_size;
    job->bytes_max =
        question->bytes_max == 0 ? (size_t)MU__ASK_BYTES_MAX : question->bytes_max;
    job->new_only = question->new_only;
    return true;
}

static uint32_t limit_of(const struct mu__question *question)
{
    return question->limit_ms == 0 ? MU__ASK_LIMIT_MS : question->limit_ms;
}

static void ask_thread(struct mu__asker_uv *asker, struct mu__note *note,
                       int (*run)(struct job *job))
{
    struct job *job = calloc(1, sizeof *job);

    if (job == NULL || !job_copy(job, &note->question)) {
        if (job != NULL)
            job_free(job);
        give_error(note, -MU_ENOMEM, "out of memory");
        return;
    }
    job->asker = asker;
    job->note = note;
    job->run = run;
    job->holds = 2;
    job->timer.data = job;
    asker->holds++;
    uv_update_time(asker->loop);    /* a turn may take long: the limit begins now */
    (void)uv_timer_init(asker->loop, &job->timer);
    (void)uv_timer_start(&job->timer, on_job_timer, limit_of(&note->question), 0);
    (void)uv_queue_work(asker->loop, &job->work, on_thread, on_thread_done);
    note->own = job;
}

static void cancel_thread(struct mu__note *note)
{
    struct job *job = note->own;

    (void)uv_cancel((uv_req_t *)&job->work);
    (void)job_let_go(job);
}

/* ---- HTTP ---- */

struct flight {
    struct mu__http_request request;
    struct mu__http_tls tls;
    struct mu__note *note;      /* NULL: nobody wants the answer */
    struct flight *next;        /* of those that wait */
    bool posted;                /* its message is in our queue */
};

static void flight_free(struct flight *flight)
{
    mu__buf_unref(flight->request.answer);
    free(flight);
}

static void msg_free(struct mu__msg *msg)
{
    struct mu__pool pool;

    mu__pool_init(&pool);
    mu__pool_put(&pool, msg);
    mu__pool_done(&pool);
}

/* What the door says begins with the url, which the question's words begin with, too. */
static void give_failure(struct mu__note *note, const struct mu__http_request *request)
{
    const char *words = strstr(request->error.message, ": ");

    give_error(note, request->code, words == NULL ? request->error.message : words + 2);
}

static void give_answer(struct mu__note *note, const struct mu__http_request *request)
{
    size_t size = request->answer == NULL ? 0 : request->answer->size;
    char *data = malloc(size + 1);

    if (data != NULL) {
        if (size > 0)
            memcpy(data, request->answer->data, size);
        data[size] = '\0';
    }
    note->answer.status = request->status;
    note->answer.retry_after_ms = request->retry_after_ms;
    (void)snprintf(note->answer.content_type, sizeof note->answer.content_type, "%s",
                   request->content_type);
    (void)snprintf(note->answer.header, sizeof note->answer.header, "%s",
                   request->header);
    give_data(note, data, size);
}

static void keep(struct mu__asker_uv *asker, const struct mu__note *note,
                 const struct mu__http_request *request)
{
    const struct mu__buf *answer = request->answer;

    if (request->code == 0 && request->status == 200)
        keep_bytes(asker, note, answer == NULL ? "" : (const char *)answer->data,
                   answer == NULL ? 0 : answer->size);
}

static void flight_end(struct mu__asker_uv *asker, struct flight *flight)
{
    struct mu__note *note = flight->note;

    if (note != NULL) {
        note->own = NULL;
        keep(asker, note, &flight->request);
        if (flight->request.code != 0)
            give_failure(note, &flight->request);
        else
            give_answer(note, &flight->request);
    }
    flight_free(flight);
}

static void send_waiting(struct mu__asker_uv *asker)
{
    struct mu__http *door = mu__http_curl_door(asker->http);

    while (asker->waiting != NULL && asker->flights < FLIGHTS_MAX) {
        struct flight *flight = asker->waiting;

        asker->waiting = flight->next;
        asker->flights++;
        door->ops->send(door, &flight->request);
    }
}

/* The door has posted: in a round of the loop of its own, since an answer may lead to the
 * next question. */
static void on_idle(uv_idle_t *idle)
{
    struct mu__asker_uv *asker = idle->data;
    struct mu__msg *msg = asker->done;

    if (msg == NULL) {
        (void)uv_idle_stop(idle);
        return;
    }
    asker->done = msg->next;
    if (asker->done == NULL)
        asker->done_last = &asker->done;
    asker->flights--;
    flight_end(asker, *(struct flight **)(void *)msg->body);
    msg_free(msg);
    if (asker->closed == NULL && asker->http != NULL)
        send_waiting(asker);
}

static int on_post(void *owner, struct mu__msg *msg)
{
    struct mu__asker_uv *asker = owner;

    msg->next = NULL;
    (*(struct flight **)(void *)msg->body)->posted = true;
    *asker->done_last = msg;
    asker->done_last = &msg->next;
    (void)uv_idle_start(&asker->idle, on_idle);
    return 0;
}

static int need_http(struct mu__asker_uv *asker)
{
    const struct mu__http_curl_config config = {
        .loop = asker->loop,
        .done_kind = DONE_KIND,
        .post = on_post,
        .owner = asker,
    };
    int rv;

    if (asker->http != NULL)
        return 0;
    rv = mu__http_curl_open(&config, &asker->http);
    if (rv == 0)
        asker->holds++;
    return rv;
}

static void flight_fill(struct flight *flight, const struct mu__question *question)
{
    const struct mu__ask_tls *tls = question->tls;

    flight->request = (struct mu__http_request){
        .url = question->name,
        .method = question->method == NULL ? "GET" : question->method,
        .headers = question->headers,
        .body = question->body,
        .body_size = question->body_size,
        .limit_ms = limit_of(question),
        .answer_max = question->bytes_max == 0 ? (size_t)MU__ASK_BYTES_MAX
                                               : question->bytes_max,
        .wanted_header = question->header,
        .takes_proxy = question->takes_proxy,
    };
    if (tls == NULL)
        return;
    flight->tls = (struct mu__http_tls){
        .ca = tls->ca,
        .certificate = tls->certificate,
        .key = tls->key,
        .server_name = tls->server_name,
        .insecure = tls->insecure,
    };
    flight->request.tls = &flight->tls;
}

static void ask_http(struct mu__asker_uv *asker, struct mu__note *note)
{
    struct flight **last = &asker->waiting;
    struct flight *flight = calloc(1, sizeof *flight);

    if (flight == NULL || need_http(asker) != 0) {
        free(flight);
        give_error(note, -MU_ENOMEM, "out of memory");
        return;
    }
    flight_fill(flight, &note->question);
    flight->note = note;
    note->own = flight;
    while (*last != NULL)
        last = &(*last)->next;
    *last = flight;
    send_waiting(asker);
}

static void cancel_http(struct mu__asker_uv *asker, struct mu__note *note)
{
    struct mu__http *door = mu__http_curl_door(asker->http);
    struct flight *flight = note->own;
    struct flight **at = &asker->waiting;

    note->own = NULL;
    flight->note = NULL;
    if (flight->posted)
        return; /* freed when its message is taken */
    while (*at != NULL && *at != flight)
        at = &(*at)->next;
    if (*at == NULL) {
        door->ops->cancel(door, &flight->request);
        asker->flights--;
        flight_free(flight);
        send_waiting(asker);
        return;
    }
    *at = flight->next;
    flight_free(flight);
}

/* ---- The asker ---- */

static void ask_names(struct mu__asker_uv *asker, struct mu__note *note)
{
    mu__dns_uv_ask(asker->loop, note);
}

static void cancel_names(struct mu__asker_uv *asker, struct mu__note *note)
{
    (void)asker;
    mu__dns_uv_cancel(note);
}

/* How each kind is answered: one of the three. */
static const struct {
    void (*at_once)(struct mu__note *note);
    int (*run)(struct job *job);
    void (*ask)(struct mu__asker_uv *asker, struct mu__note *note);
    void (*cancel)(struct mu__asker_uv *asker, struct mu__note *note);
} kinds[MU__ASK_KINDS] = {
    [MU__ASK_VARIABLE] = {.at_once = answer_variable},
    [MU__ASK_HOST_NAME] = {.at_once = answer_host_name},
    [MU__ASK_CLOCK] = {.at_once = answer_clock},
    [MU__ASK_FILE] = {.run = run_file},
    [MU__ASK_FOLDER] = {.run = run_folder},
    [MU__ASK_SIGNATURE] = {.run = run_signature},
    [MU__ASK_WRITE] = {.run = run_write},
    [MU__ASK_REMOVE] = {.run = run_remove},
    [MU__ASK_PROGRAM] = {.run = run_program},
    [MU__ASK_ADDRESSES] = {.ask = ask_names, .cancel = cancel_names},
    [MU__ASK_SERVICES] = {.ask = ask_names, .cancel = cancel_names},
    [MU__ASK_HTTP] = {.ask = ask_http, .cancel = cancel_http},
};

static void op_ask(struct mu__asker *base, struct mu__note *note)
{
    struct mu__asker_uv *asker = from_asker(base);
    enum mu__ask_kind kind = note->question.kind;

    assert(asker->closed == NULL);
    if (kinds[kind].at_once != NULL)
        kinds[kind].at_once(note);
    else if (give_kept(asker, note))
        return;
    else if (kinds[kind].run != NULL)
        ask_thread(asker, note, kinds[kind].run);
    else
        kinds[kind].ask(asker, note);
}

static void op_cancel(struct mu__asker *base, struct mu__note *note)
{
    enum mu__ask_kind kind = note->question.kind;

    if (kinds[kind].run != NULL)
        cancel_thread(note);
    else
        kinds[kind].cancel(from_asker(base), note);
}

/* ---- Life ---- */

int mu__asker_uv_open(uv_loop_t *loop, struct mu__asker_uv **ret_asker)
{
    static const struct mu__asker_ops ops = {op_ask, op_cancel};
    struct mu__asker_uv *asker = calloc(1, sizeof *asker);

    if (asker == NULL)
        return -MU_ENOMEM;
    asker->asker.ops = &ops;
    asker->loop = loop;
    asker->done_last = &asker->done;
    asker->idle.data = asker;
    asker->holds = 1;
    (void)uv_idle_init(loop, &asker->idle);
    *ret_asker = asker;
    return 0;
}

struct mu__asker *mu__asker_uv_asker(struct mu__asker_uv *asker)
{
    return &asker->asker;
}

static void on_idle_closed(uv_handle_t *handle)
{
    drop(handle->data);
}

static void on_http_closed(void *arg)
{
    drop(arg);
}

void mu__asker_uv_close(struct mu__asker_uv *asker, void (*closed)(void *arg), void *arg)
{
    assert(asker->closed == NULL && asker->waiting == NULL);
    asker->closed = closed;
    asker->closed_arg = arg;
    while (asker->done != NULL) {
        struct mu__msg *msg = asker->done;

        asker->done = msg->next;
        flight_free(*(struct flight **)(void *)msg->body);
        msg_free(msg);
    }
    uv_close((uv_handle_t *)&asker->idle, on_idle_closed);
    if (asker->http != NULL)
        mu__http_curl_close(asker->http, on_http_closed, asker);
}
