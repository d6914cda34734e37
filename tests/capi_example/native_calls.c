/* tokbpe's native table from C: each function for a test to call it as wrongly as it likes, and
   threads of the system that call it side by side. */

#define PY_SSIZE_T_CLEAN
#include <tokbpe.h>

#include <string.h>

#define GUARD 64 /* bytes behind each buffer, which must stay as they are */
#define FILLING 0xA5

static const tokbpe_table *table;

/* A buffer and its guard, filled. */
static uint8_t *open_buffer(size_t size)
{
    uint8_t *buffer = PyMem_RawMalloc(size + GUARD);
    if (buffer == NULL)
        PyErr_NoMemory();
    else
        memset(buffer, FILLING, size + GUARD);
    return buffer;
}

/* How many bytes from the beginning on were written, at most. */
static size_t written(const uint8_t *buffer, size_t size)
{
    size += GUARD;
    while (size > 0 && buffer[size - 1] == FILLING)
        size--;
    return size;
}

/* (status, result, what was written): the result as a number of items, and as many of them where
   all is well. */
static PyObject *outcome(int status, size_t result, uint8_t *buffer, size_t size, size_t item)
{
    size_t used = written(buffer, size);
    PyObject *tuple;
    if (status == TOKBPE_OK && used < result * item)
        used = result * item; /* the last ones look like the filling */
    tuple = Py_BuildValue("iny#", status, (Py_ssize_t)result, (const char *)buffer,
                          (Py_ssize_t)used);
    PyMem_RawFree(buffer);
    return tuple;
}

/* Opening and closing */

static PyObject *open_handle(PyObject *module, PyObject *args)
{
    PyObject *tokenizer, *special = NULL;
    tokbpe_handle handle;
    if (!PyArg_ParseTuple(args, "O|O", &tokenizer, &special))
        return NULL;
    if (table->open(tokenizer, special, &handle) != TOKBPE_OK)
        return NULL;
    return PyLong_FromUnsignedLongLong(handle);
}

/* The status, without the exception. */
static PyObject *status_of_open(PyObject *module, PyObject *tokenizer)
{
    tokbpe_handle handle = 1;
    int status = table->open(tokenizer, NULL, &handle);
    if (PyErr_Occurred() == NULL || handle != 0)
        return PyErr_Format(PyExc_AssertionError, "no exception is set, or a handle given");
    PyErr_Clear();
    return PyLong_FromLong(status);
}

static PyObject *close_handle(PyObject *module, PyObject *args)
{
    unsigned long long handle;
    if (!PyArg_ParseTuple(args, "K", &handle))
        return NULL;
    return PyLong_FromLong(table->close(handle));
}

static PyObject *clear_cache(PyObject *module, PyObject *args)
{
    unsigned long long handle;
    if (!PyArg_ParseTuple(args, "K", &handle))
        return NULL;
    return PyLong_FromLong(table->clear_cache(handle));
}

static PyObject *method(PyObject *module, PyObject *args)
{
    unsigned long long handle;
    int number = -1, status;
    if (!PyArg_ParseTuple(args, "K", &handle))
        return NULL;
    status = table->method(handle, &number);
    return Py_BuildValue("ii", status, number);
}

static PyObject *vocab_size(PyObject *module, PyObject *args)
{
    unsigned long long handle;
    size_t size = 0;
    int status;
    if (!PyArg_ParseTuple(args, "K", &handle))
        return NULL;
    status = table->vocab_size(handle, &size);
    return Py_BuildValue("in", status, (Py_ssize_t)size);
}

/* Encoding and decoding: with the GIL released, as callers should */

static PyObject *encode_size(PyObject *module, PyObject *args)
{
    unsigned long long handle;
    const char *text;
    Py_ssize_t size;
    size_t count = 0;
    int status;
    if (!PyArg_ParseTuple(args, "Ky#", &handle, &text, &size))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = table->encode_size(handle, (const uint8_t *)text, size, &count);
    Py_END_ALLOW_THREADS
    if (status == TOKBPE_INTERRUPTED)
        return NULL;
    return Py_BuildValue("in", status, (Py_ssize_t)count);
}

static PyObject *encode_by(int is_copy, PyObject *args)
{
    unsigned long long handle;
    const char *text;
    Py_ssize_t size, room;
    size_t count = 0;
    int status;
    uint8_t *buffer;
    if (!PyArg_ParseTuple(args, "Ky#n", &handle, &text, &size, &room))
        return NULL;
    buffer = open_buffer(room * sizeof(uint32_t));
    if (buffer == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = (is_copy ? table->encode_copy : table->encode)(
        handle, (const uint8_t *)text, size, (uint32_t *)buffer, room, &count);
    Py_END_ALLOW_THREADS
    return outcome(status, count, buffer, room * sizeof(uint32_t), sizeof(uint32_t));
}

static PyObject *encode(PyObject *module, PyObject *args)
{
    return encode_by(0, args);
}

static PyObject *encode_copy(PyObject *module, PyObject *args)
{
    return encode_by(1, args);
}

static PyObject *decode_size(PyObject *module, PyObject *args)
{
    unsigned long long handle;
    const char *ids;
    Py_ssize_t size;
    size_t total = 0;
    int status;
    if (!PyArg_ParseTuple(args, "Ky#", &handle, &ids, &size))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = table->decode_size(handle, (const uint32_t *)ids, size / sizeof(uint32_t), &total);
    Py_END_ALLOW_THREADS
    return Py_BuildValue("in", status, (Py_ssize_t)total);
}

static PyObject *decode_by(int is_copy, PyObject *args)
{
    unsigned long long handle;
    const char *ids;
    Py_ssize_t size, room;
    size_t total = 0;
    int status;
    uint8_t *buffer;
    if (!PyArg_ParseTuple(args, "Ky#n", &handle, &ids, &size, &room))
        return NULL;
    buffer = open_buffer(room);
    if (buffer == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = (is_copy ? table->decode_copy : table->decode)(
        handle, (const uint32_t *)ids, size / sizeof(uint32_t), buffer, room, &total);
    Py_END_ALLOW_THREADS
    return outcome(status, total, buffer, room, 1);
}

static PyObject *decode(PyObject *module, PyObject *args)
{
    return decode_by(0, args);
}

static PyObject *decode_copy(PyObject *module, PyObject *args)
{
    return decode_by(1, args);
}

/* The vocabulary */

static PyObject *piece(PyObject *module, PyObject *args)
{
    unsigned long long handle;
    unsigned int id;
    const uint8_t *bytes = NULL;
    size_t size = 0;
    int status;
    if (!PyArg_ParseTuple(args, "KI", &handle, &id))
        return NULL;
    status = table->piece(handle, id, &bytes, &size);
    return Py_BuildValue("iy#", status, (const char *)bytes, (Py_ssize_t)size);
}

static PyObject *piece_id(PyObject *module, PyObject *args)
{
    unsigned long long handle;
    const char *bytes;
    Py_ssize_t size;
    uint32_t id = 0;
    int status;
    if (!PyArg_ParseTuple(args, "Ky#", &handle, &bytes, &size))
        return NULL;
    status = table->piece_id(handle, (const uint8_t *)bytes, size, &id);
    return Py_BuildValue("iI", status, id);
}

/* Misuse */

/* The statuses of calls in which an argument is NULL. */
static PyObject *null_pointers(PyObject *module, PyObject *args)
{
    unsigned long long handle;
    const uint8_t *text = (const uint8_t *)"a";
    uint32_t id = 0;
    uint8_t byte;
    size_t size;
    const uint8_t *bytes;
    int opened;
    if (!PyArg_ParseTuple(args, "K", &handle))
        return NULL;
    opened = table->open(NULL, NULL, NULL);
    PyErr_Clear();
    return Py_BuildValue(
        "[iiiiiiiiiiiiiiiiiiii]", opened, tokbpe_check(NULL, TOKBPE_VERSION, sizeof(tokbpe_table)),
        table->method(handle, NULL), table->vocab_size(handle, NULL),
        table->encode_size(handle, NULL, 1, &size), table->encode_size(handle, text, 1, NULL),
        table->encode(handle, NULL, 1, &id, 1, &size), table->encode(handle, text, 1, NULL, 1, &size),
        table->encode(handle, text, 1, &id, 1, NULL),
        table->encode_copy(handle, text, 1, NULL, 1, &size),
        table->decode_size(handle, NULL, 1, &size), table->decode_size(handle, &id, 1, NULL),
        table->decode(handle, NULL, 1, &byte, 1, &size),
        table->decode(handle, &id, 1, NULL, 1, &size), table->decode(handle, &id, 1, &byte, 1, NULL),
        table->decode_copy(handle, &id, 1, NULL, 1, &size), table->piece(handle, 0, NULL, &size),
        table->piece(handle, 0, &bytes, NULL), table->piece_id(handle, NULL, 1, &id),
        table->piece_id(handle, text, 1, NULL));
}

/* What there may be nothing of may be NULL. */
static PyObject *nothing(PyObject *module, PyObject *args)
{
    unsigned long long handle;
    uint32_t id;
    size_t size;
    if (!PyArg_ParseTuple(args, "K", &handle))
        return NULL;
    return Py_BuildValue("[iiiii]", table->encode_size(handle, NULL, 0, &size),
                         table->encode(handle, NULL, 0, NULL, 0, &size),
                         table->decode_size(handle, NULL, 0, &size),
                         table->decode(handle, NULL, 0, NULL, 0, &size),
                         table->piece_id(handle, NULL, 0, &id));
}

/* What `tokbpe_check` says of a table of such a version and size, for a header of its own. */
static PyObject *check(PyObject *module, PyObject *args)
{
    tokbpe_table other = *table;
    unsigned int version;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "In", &version, &size))
        return NULL;
    other.version = version;
    other.size = size;
    return PyLong_FromLong(tokbpe_check(&other, TOKBPE_VERSION, sizeof(tokbpe_table)));
}

/* What `tokbpe_import` does: None, or its exception. */
static PyObject *import_again(PyObject *module, PyObject *none)
{
    const tokbpe_table *found;
    if (tokbpe_import(&found) != TOKBPE_OK)
        return NULL;
    Py_RETURN_NONE;
}

/* A capsule with a table of another version. */
static PyObject *newer_table(PyObject *module, PyObject *none)
{
    static tokbpe_table newer;
    newer = *table;
    newer.version++;
    return PyCapsule_New(&newer, TOKBPE_CAPSULE, NULL);
}

static PyObject *status_text(PyObject *module, PyObject *args)
{
    int status;
    if (!PyArg_ParseTuple(args, "i", &status))
        return NULL;
    return PyUnicode_FromString(table->status_text(status));
}

static PyObject *leave_thread(PyObject *module, PyObject *none)
{
    return PyLong_FromLong(table->leave_thread());
}

/* Threads of the system, which Python does not know */

#ifndef _WIN32
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_THREADS 64

typedef struct {
    tokbpe_handle handle;
    const uint8_t *text;
    size_t size;
    const uint32_t *ids; /* that the text has, */
    size_t count;
    const uint8_t *decoded; /* and what these become again */
    size_t decoded_size;
    int rounds; /* 0: until the handle is closed */
    int leaves; /* whether it takes leave of Python */
    size_t calls, wrong;
} job;

/* Encode and decode the text once; the first status that is not OK. */
static int round_trip(job *work)
{
    size_t count = 0, size = 0;
    uint32_t *ids = NULL;
    uint8_t *bytes = NULL;
    int status = table->encode_size(work->handle, work->text, work->size, &count);
    if (status == TOKBPE_OK) {
        ids = malloc(count * sizeof(uint32_t) + 1);
        status = table->encode_copy(work->handle, work->text, work->size, ids, count, &count);
    }
    if (status == TOKBPE_OK) {
        work->wrong += count != work->count || memcmp(ids, work->ids, count * sizeof(uint32_t));
        status = table->decode_size(work->handle, ids, count, &size);
    }
    if (status == TOKBPE_OK) {
        bytes = malloc(size + 1);
        status = table->decode_copy(work->handle, ids, count, bytes, size, &size);
    }
    if (status == TOKBPE_OK)
        work->wrong += size != work->decoded_size || memcmp(bytes, work->decoded, size);
    free(ids);
    free(bytes);
    return status;
}

static void *run(void *argument)
{
    job *work = argument;
    int status = TOKBPE_OK;
    while (status == TOKBPE_OK && (work->rounds == 0 || work->calls < (size_t)work->rounds)) {
        status = round_trip(work);
        work->calls++;
    }
    work->wrong += status != (work->rounds ? TOKBPE_OK : TOKBPE_CLOSED);
    if (work->leaves)
        work->wrong += table->leave_thread() != TOKBPE_OK;
    return NULL;
}

/* Run so many threads; if they have no number of rounds, the handle is closed meanwhile.
   (calls, wrong results) of all together. */
static PyObject *run_threads(PyObject *module, PyObject *args)
{
    job jobs[MOST_THREADS], work;
    pthread_t threads[MOST_THREADS];
    unsigned long long handle;
    const char *text, *ids, *decoded;
    Py_ssize_t size, ids_size, decoded_size;
    int count, rounds, i, started;
    size_t calls = 0, wrong = 0;
    if (!PyArg_ParseTuple(args, "Ky#y#y#ii", &handle, &text, &size, &ids, &ids_size, &decoded,
                          &decoded_size, &count, &rounds))
        return NULL;
    work = (job){handle, (const uint8_t *)text, size, (const uint32_t *)ids,
                 ids_size / sizeof(uint32_t), (const uint8_t *)decoded, decoded_size, rounds, 0,
                 0, 0};
    Py_BEGIN_ALLOW_THREADS
    for (started = 0; started < count && started < MOST_THREADS; started++) {
        jobs[started] = work;
        jobs[started].leaves = started % 2;
        if (pthread_create(&threads[started], NULL, run, &jobs[started]))
            break;
    }
    if (rounds == 0) {
        usleep(20000);
        wrong += table->close(handle) != TOKBPE_OK;
    }
    for (i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        calls += jobs[i].calls;
        wrong += jobs[i].wrong;
    }
    Py_END_ALLOW_THREADS
    wrong += started != count;
    return Py_BuildValue("nn", (Py_ssize_t)calls, (Py_ssize_t)wrong);
}

/* What a thread of the system is told of a text: (status, result). */
typedef struct {
    tokbpe_handle handle;
    const uint8_t *text;
    size_t size, result;
    int status;
} question;

static void *ask(void *argument)
{
    question *asked = argument;
    asked->status =
        table->encode_size(asked->handle, asked->text, asked->size, &asked->result);
    return NULL;
}

static PyObject *ask_in_thread(PyObject *module, PyObject *args)
{
    question asked;
    pthread_t thread;
    unsigned long long handle;
    const char *text;
    Py_ssize_t size;
    int failed;
    if (!PyArg_ParseTuple(args, "Ky#", &handle, &text, &size))
        return NULL;
    asked = (question){handle, (const uint8_t *)text, size, 0, -1};
    Py_BEGIN_ALLOW_THREADS
    failed = pthread_create(&thread, NULL, ask, &asked);
    if (!failed)
        pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS
    if (failed)
        return PyErr_Format(PyExc_RuntimeError, "no thread could be started");
    return Py_BuildValue("in", asked.status, (Py_ssize_t)asked.result);
}
#endif

static PyMethodDef methods[] = {
    {"open", open_handle, METH_VARARGS, NULL},
    {"status_of_open", status_of_open, METH_O, NULL},
    {"close", close_handle, METH_VARARGS, NULL},
    {"clear_cache", clear_cache, METH_VARARGS, NULL},
    {"method", method, METH_VARARGS, NULL},
    {"vocab_size", vocab_size, METH_VARARGS, NULL},
    {"encode_size", encode_size, METH_VARARGS, NULL},
    {"encode", encode, METH_VARARGS, NULL},
    {"encode_copy", encode_copy, METH_VARARGS, NULL},
    {"decode_size", decode_size, METH_VARARGS, NULL},
    {"decode", decode, METH_VARARGS, NULL},
    {"decode_copy", decode_copy, METH_VARARGS, NULL},
    {"piece", piece, METH_VARARGS, NULL},
    {"piece_id", piece_id, METH_VARARGS, NULL},
    {"null_pointers", null_pointers, METH_VARARGS, NULL},
    {"nothing", nothing, METH_VARARGS, NULL},
    {"check", check, METH_VARARGS, NULL},
    {"import_again", import_again, METH_NOARGS, NULL},
    {"newer_table", newer_table, METH_NOARGS, NULL},
    {"status_text", status_text, METH_VARARGS, NULL},
    {"leave_thread", leave_thread, METH_NOARGS, NULL},
#ifndef _WIN32
    {"run_threads", run_threads, METH_VARARGS, NULL},
    {"ask_in_thread", ask_in_thread, METH_VARARGS, NULL},
#endif
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "native_calls",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_native_calls(void)
{
    PyObject *module;
    if (tokbpe_import(&table) != TOKBPE_OK)
        return NULL;
    module = PyModule_Create(&definition);
    if (module != NULL &&
        (PyModule_AddIntConstant(module, "VERSION", TOKBPE_VERSION) < 0 ||
         PyModule_AddIntConstant(module, "TABLE_SIZE", sizeof(tokbpe_table)) < 0)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
