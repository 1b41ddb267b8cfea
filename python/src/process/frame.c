#define _GNU_SOURCE
#include "process/frame.h"

#include "process/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char shared_key[64];
static char object_key[64];

enum { PAGE = 65536 }; /* the largest page size of any machine */

/* ---- writing ---- */

void mupy_frame_begin(struct mupy_frame *frame)
{
    *frame = (struct mupy_frame){.shared = -1};
}

void mupy_frame_free(struct mupy_frame *frame)
{
    if (frame->shared >= 0)
        (void)close(frame->shared);
    free(frame->data);
    mupy_frame_begin(frame);
}

static unsigned char *add_frame_bytes(struct mupy_frame *frame, size_t size)
{
    unsigned char *at;

    if (frame->size + size > frame->room) {
        size_t room = 2 * frame->room + size + 256;
        unsigned char *data = realloc(frame->data, room);

        if (data == NULL) {
            frame->failed = true;
            return NULL;
        }
        frame->data = data;
        frame->room = room;
    }
    at = frame->data + frame->size;
    frame->size += size;
    return at;
}

static void put_tagged(struct mupy_frame *frame, char tag, const void *data, size_t size)
{
    unsigned char *at = add_frame_bytes(frame, 1 + size);

    if (at == NULL)
        return;
    at[0] = (unsigned char)tag;
    if (size > 0)
        memcpy(at + 1, data, size);
}

static void put_tagged_bytes(struct mupy_frame *frame, char tag, const void *data,
                             size_t size)
{
    uint64_t count = size;
    unsigned char *at = add_frame_bytes(frame, 1 + sizeof count + size + 1);

    if (at == NULL)
        return;
    at[0] = (unsigned char)tag;
    memcpy(at + 1, &count, sizeof count);
    if (size > 0)
        memcpy(at + 1 + sizeof count, data, size);
    at[1 + sizeof count + size] = '\0';
}

static void put_count(struct mupy_frame *frame, char tag, uint64_t count)
{
    put_tagged(frame, tag, &count, sizeof count);
}

void mupy_frame_list(struct mupy_frame *frame, uint64_t count)
{
    put_count(frame, 'l', count);
}

void mupy_frame_int(struct mupy_frame *frame, int64_t number)
{
    put_tagged(frame, 'i', &number, sizeof number);
}

void mupy_frame_text(struct mupy_frame *frame, const char *text)
{
    put_tagged_bytes(frame, 's', text, strlen(text));
}

/* Put an array into the shared memory, on pages of its own. Returns its offset, or -1
 * when out of memory. */
static int64_t share_array(struct mupy_frame *frame, const void *data, size_t size)
{
    uint64_t at = (frame->shared_bytes + PAGE - 1) / PAGE * PAGE;
    size_t done = 0;

    if (frame->shared < 0)
        frame->shared = memfd_create("muster", MFD_CLOEXEC);
    while (frame->shared >= 0 && done < size) {
        ssize_t n = pwrite(frame->shared, (const char *)data + done, size - done,
                           (off_t)(at + done));

        if (n < 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    if (done < size) {
        frame->failed = true;
        return -1;
    }
    frame->shared_bytes = at + size;
    return (int64_t)at;
}

static void put_shared(struct mupy_frame *frame, const mu_tensor *tensor)
{
    int64_t at = share_array(frame, tensor->data, tensor->bytes);

    put_count(frame, 'm', 1);
    mupy_frame_text(frame, shared_key);
    mupy_frame_list(frame, 2 + tensor->rank);
    mupy_frame_int(frame, tensor->dtype);
    mupy_frame_int(frame, at);
    for (unsigned i = 0; i < tensor->rank; i++)
        mupy_frame_int(frame, (int64_t)tensor->dims[i]);
}

static void put_tensor(struct mupy_frame *frame, const mu_value *value)
{
    mu_tensor tensor;

    if (mu_value_get_tensor(value, &tensor) != 0)
        return;
    if (tensor.bytes >= MUPY_SHARED_BYTES) {
        put_shared(frame, &tensor);
        return;
    }
    put_count(frame, 'T', (uint64_t)tensor.dtype);
    put_count(frame, 'T', tensor.rank);
    for (unsigned i = 0; i < tensor.rank; i++)
        put_count(frame, 'T', tensor.dims[i]);
    put_tagged_bytes(frame, 'T', tensor.data, tensor.bytes);
}

/* Number 0 stands for an object that is not Python's. */
static void put_reference(struct mupy_frame *frame, const mu_value *value, mu_run *run)
{
    put_count(frame, 'm', 1);
    mupy_frame_text(frame, object_key);
    mupy_frame_int(frame, run == NULL ? 0 : mupy_held_number(run, value));
}

static void put_scalar(struct mupy_frame *frame, const mu_value *value)
{
    int64_t integer = 0;
    double real = 0;
    int truth = 0;

    switch (mu_value_type(value)) {
    case MU_VALUE_BOOL:
        (void)mu_value_get_bool(value, &truth);
        put_tagged(frame, truth ? 't' : 'f', NULL, 0);
        break;
    case MU_VALUE_INT:
        (void)mu_value_get_int(value, &integer);
        mupy_frame_int(frame, integer);
        break;
    case MU_VALUE_FLOAT:
        (void)mu_value_get_float(value, &real);
        put_tagged(frame, 'd', &real, sizeof real);
        break;
    default:
        put_tagged(frame, 'n', NULL, 0);
        break;
    }
}

void mupy_frame_value(struct mupy_frame *frame, const mu_value *value, mu_run *run)
{
    enum mu_value_type type = value == NULL ? MU_VALUE_NIL : mu_value_type(value);
    const char *text = "";
    const void *data = "";
    size_t size = 0;

    if (type == MU_VALUE_STRING) {
        (void)mu_value_get_string(value, &text, &size);
        put_tagged_bytes(frame, 's', text, size);
    } else if (type == MU_VALUE_BYTES) {
        (void)mu_value_get_bytes(value, &data, &size);
        put_tagged_bytes(frame, 'b', data, size);
    } else if (type == MU_VALUE_LIST || type == MU_VALUE_MAP) {
        put_count(frame, type == MU_VALUE_LIST ? 'l' : 'm', mu_value_count(value));
        for (size_t i = 0; i < mu_value_count(value); i++) {
            if (type == MU_VALUE_MAP)
                mupy_frame_text(frame, mu_value_key(value, i));
            mupy_frame_value(frame, mu_value_at(value, i), run);
        }
    } else if (type == MU_VALUE_TENSOR) {
        put_tensor(frame, value);
    } else if (type == MU_VALUE_REFERENCE) {
        put_reference(frame, value, run);
    } else {
        put_scalar(frame, value);
    }
}

/* ---- reading ---- */

struct reader {
    const unsigned char *at;
    const unsigned char *end;
    int shared; /* the memory from which arrays are copied; negative: they
                   stay maps */
};

static const void *read_frame_bytes(struct reader *reader, size_t size)
{
    const unsigned char *at = reader->at;

    if (size > (size_t)(reader->end - at))
        return NULL;
    reader->at += size;
    return at;
}

static bool read_frame_count(struct reader *reader, uint64_t *ret_count)
{
    const void *at = read_frame_bytes(reader, sizeof *ret_count);

    if (at != NULL)
        memcpy(ret_count, at, sizeof *ret_count);
    return at != NULL;
}

static bool read_tagged_count(struct reader *reader, uint64_t *ret_count)
{
    return read_frame_bytes(reader, 1) != NULL && read_frame_count(reader, ret_count);
}

/* Read bytes that are followed by a zero byte. */
static const void *read_sized_bytes(struct reader *reader, uint64_t *ret_size)
{
    const void *data =
        read_frame_count(reader, ret_size) ? read_frame_bytes(reader, *ret_size) : NULL;

    return data != NULL && read_frame_bytes(reader, 1) != NULL ? data : NULL;
}

static mu_value *read_frame_value(struct reader *reader);

static mu_value *read_tensor(struct reader *reader)
{
    uint64_t dims[MU_TENSOR_RANK_MAX];
    const void *data = NULL;
    uint64_t dtype;
    uint64_t rank;
    uint64_t size;
    bool fine = read_frame_count(reader, &dtype) && read_tagged_count(reader, &rank) &&
                rank <= MU_TENSOR_RANK_MAX;

    for (uint64_t i = 0; fine && i < rank; i++)
        fine = read_tagged_count(reader, &dims[i]);
    if (fine && read_frame_bytes(reader, 1) != NULL)
        data = read_sized_bytes(reader, &size);
    return data == NULL ? NULL : mu_value_tensor((int)dtype, (unsigned)rank, dims, data);
}

/* The position of an array in shared memory, in a map with the shared key; false: it is
 * another map. */
struct place {
    int64_t dtype;
    int64_t at;
    unsigned rank;
    uint64_t dims[MU_TENSOR_RANK_MAX];
};

static bool read_shared_offset(const mu_value *map, struct place *ret_place)
{
    const char *key = mu_value_key(map, 0);
    const mu_value *list = mu_value_at(map, 0);
    size_t count = mu_value_count(list);
    int64_t size;

    if (key == NULL || strcmp(key, shared_key) != 0 || count < 2 ||
        count - 2 > MU_TENSOR_RANK_MAX ||
        mu_value_get_int(mu_value_at(list, 0), &ret_place->dtype) != 0 ||
        mu_value_get_int(mu_value_at(list, 1), &ret_place->at) != 0)
        return false;
    ret_place->rank = (unsigned)count - 2;
    for (unsigned i = 0; i < ret_place->rank; i++) {
        if (mu_value_get_int(mu_value_at(list, i + 2), &size) != 0)
            return false;
        ret_place->dims[i] = (uint64_t)size;
    }
    return true;
}

static mu_value *copy_shared(int shared, const struct place *place)
{
    mu_value *value = mu_value_tensor((int)place->dtype, place->rank, place->dims, NULL);
    char *data = value == NULL ? NULL : mu_value_tensor_data(value);
    mu_tensor tensor = {0};
    size_t done = 0;

    if (data == NULL || mu_value_get_tensor(value, &tensor) != 0)
        return value;
    while (done < tensor.bytes) {
        ssize_t n = pread(shared, data + done, tensor.bytes - done,
                          (off_t)place->at + (off_t)done);

        if (n == 0 || (n < 0 && errno != EINTR)) {
            mu_value_free(value);
            return NULL;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return value;
}

static mu_value *read_frame_list(struct reader *reader)
{
    mu_value *list = mu_value_list();
    uint64_t count;

    if (!read_frame_count(reader, &count)) {
        mu_value_free(list);
        return NULL;
    }
    for (uint64_t i = 0; list != NULL && i < count; i++) {
        mu_value *item = read_frame_value(reader);

        if (item == NULL || mu_value_append(list, item) != 0) {
            mu_value_free(list);
            return NULL;
        }
    }
    return list;
}

static mu_value *read_map(struct reader *reader)
{
    mu_value *map = mu_value_map();
    struct place place;
    uint64_t count;
    uint64_t size;

    if (!read_frame_count(reader, &count))
        count = 0;
    for (uint64_t i = 0; map != NULL && i < count; i++) {
        const char *key =
            read_frame_bytes(reader, 1) == NULL ? NULL : read_sized_bytes(reader, &size);
        mu_value *item = key == NULL ? NULL : read_frame_value(reader);

        if (item == NULL || mu_value_set(map, key, item) != 0) {
            mu_value_free(map);
            return NULL;
        }
    }
    if (map != NULL && reader->shared >= 0 && read_shared_offset(map, &place)) {
        mu_value_free(map);
        return copy_shared(reader->shared, &place);
    }
    return map;
}

static mu_value *read_frame_value(struct reader *reader)
{
    const unsigned char *tag = read_frame_bytes(reader, 1);
    const void *data;
    int64_t integer;
    uint64_t size;
    double real;

    switch (tag == NULL ? 0 : *tag) {
    case 'n':
        return mu_value_nil();
    case 't':
    case 'f':
        return mu_value_bool(*tag == 't');
    case 'i':
        data = read_frame_bytes(reader, sizeof integer);
        if (data == NULL)
            return NULL;
        memcpy(&integer, data, sizeof integer);
        return mu_value_int(integer);
    case 'd':
        data = read_frame_bytes(reader, sizeof real);
        if (data == NULL)
            return NULL;
        memcpy(&real, data, sizeof real);
        return mu_value_float(real);
    case 's':
        data = read_sized_bytes(reader, &size);
        return data == NULL ? NULL : mu_value_string(data);
    case 'b':
        data = read_sized_bytes(reader, &size);
        return data == NULL ? NULL : mu_value_bytes(data, size);
    case 'l':
        return read_frame_list(reader);
    case 'm':
        return read_map(reader);
    case 'T':
        return read_tensor(reader);
    default:
        return NULL;
    }
}

int mupy_frame_read(const unsigned char *data, size_t size, int shared,
                    mu_value **ret_value)
{
    struct reader reader = {data, data + size, shared};

    *ret_value = read_frame_value(&reader);
    return *ret_value == NULL ? -ENOMEM : 0;
}

/* ---- Python arrays ---- */

static _Thread_local struct mupy_frame *sharing;
static _Thread_local int opened = MUPY_NOT_SHARED;
static PyTypeObject *memory_type;

/* The mapped memory of one array. */
struct memory {
    PyObject_HEAD
    void *data;
    size_t size;
    struct place place;
};

struct mupy_frame *mupy_frame_share(struct mupy_frame *frame)
{
    struct mupy_frame *before = sharing;

    sharing = frame;
    return before;
}

int mupy_frame_open(int shared)
{
    int before = opened;

    opened = shared;
    return before;
}

mu_value *mupy_frame_take(const struct mupy_array *array)
{
    mu_value *map;
    mu_value *list;
    int64_t at;
    int rv;

    if (sharing == NULL || array->bytes < MUPY_SHARED_BYTES)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    at = share_array(sharing, array->data, array->bytes);
    Py_END_ALLOW_THREADS
    map = mu_value_map();
    list = mu_value_list();
    rv = at < 0 || list == NULL ? -1 : mu_value_append(list, mu_value_int(array->dtype));
    if (rv == 0)
        rv = mu_value_append(list, mu_value_int(at));
    for (unsigned i = 0; rv == 0 && i < array->rank; i++)
        rv = mu_value_append(list, mu_value_int((int64_t)array->dims[i]));
    if (rv == 0 && map != NULL && mu_value_set(map, shared_key, list) == 0)
        return map;
    if (rv != 0)
        mu_value_free(list);
    mu_value_free(map);
    PyErr_NoMemory();
    return NULL;
}

static PyObject *shared_array(const struct place *place)
{
    static PyObject *convert;
    struct memory *memory;
    PyObject *array = NULL;
    uint64_t count = 1;
    void *data;
    size_t size;

    for (unsigned i = 0; i < place->rank; i++)
        count *= place->dims[i];
    size = count * mu_dtype_bytes((int)place->dtype);
    data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, opened,
                (off_t)place->at);
    if (data == MAP_FAILED)
        return PyErr_SetFromErrno(PyExc_OSError);
    memory = PyObject_New(struct memory, memory_type);
    if (memory == NULL) {
        (void)munmap(data, size);
        return NULL;
    }
    memory->data = data;
    memory->size = size;
    memory->place = *place;
    if (mupy_import(&convert, "numpy", "asarray") != NULL)
        array = PyObject_CallFunctionObjArgs(convert, (PyObject *)memory, NULL);
    Py_DECREF(memory);
    return array == NULL ? NULL : mupy_view_as(array, (int)place->dtype);
}

PyObject *mupy_frame_object(const mu_value *map)
{
    const char *key = mu_value_key(map, 0);
    struct place place;
    int64_t number;

    if (opened == MUPY_NOT_SHARED || key == NULL)
        return NULL;
    if (opened >= 0 && read_shared_offset(map, &place))
        return shared_array(&place);
    if (strcmp(key, object_key) == 0 &&
        mu_value_get_int(mu_value_at(map, 0), &number) == 0)
        return mupy_process_object(number);
    return NULL;
}

static void memory_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct memory *memory = (struct memory *)self;

    (void)munmap(memory->data, memory->size);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *memory_interface(PyObject *self, void *closure)
{
    struct memory *memory = (struct memory *)self;

    (void)closure;
    return mupy_array_interface((int)memory->place.dtype, memory->place.rank,
                                memory->place.dims, memory->data, true);
}

/* frame_secret(text): set the secret of this worker and its processes. */
static PyObject *set_secret(PyObject *module, PyObject *text)
{
    const char *secret = PyUnicode_AsUTF8AndSize(text, NULL);

    (void)module;
    if (secret == NULL)
        return NULL;
    (void)snprintf(shared_key, sizeof shared_key, "python.shared %.40s", secret);
    (void)snprintf(object_key, sizeof object_key, "python.object %.40s", secret);
    Py_RETURN_NONE;
}

int mupy_frame_init(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"frame_secret", set_secret, METH_O, "What a worker and its processes know."},
        {NULL, NULL, 0, NULL},
    };
    static PyGetSetDef getset[] = {
        {"__array_interface__", memory_interface, NULL,
         "Where the elements are: numpy's protocol.", NULL},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static PyType_Slot slots[] = {
        {Py_tp_dealloc, memory_dealloc},
        {Py_tp_getset, getset},
        {Py_tp_doc, "The memory of an array that came to an executor process."},
        {0, NULL},
    };
    static PyType_Spec spec = {"muster._muster.SharedMemory", sizeof(struct memory), 0,
                               Py_TPFLAGS_DEFAULT, slots};

    memory_type = mupy_add_type(module, &spec);
    return memory_type == NULL ? -1 : PyModule_AddFunctions(module, methods);
}
