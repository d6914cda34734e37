/* The native table of tokbpe: encoding, decoding and looking up from C, without the GIL.

   Compile with the folder that `tokbpe.fast.get_include()` gives. Then, with the GIL:

       const tokbpe_table *table;
       if (tokbpe_import(&table) != TOKBPE_OK) return NULL;         an exception is set
       if (table->open(tokenizer, NULL, &handle) != TOKBPE_OK) return NULL;          likewise

   and from any thread, without it:

       size_t count;
       int status = table->encode(handle, text, size, ids, capacity, &count);

   Every function returns a status. `open` alone needs the GIL; all others may be called with it
   or without it. `open` also sets an exception where it fails.

   Threads. A handle serves any number of threads at once. Calls take the GIL for a moment only
   where something is rare: in the first call of a thread that Python does not know, when more
   calls run side by side, or on longer texts, than ever before, when a cache grows, after each
   million bytes of a text, and for errors. So a thread that holds the GIL must not wait for
   another one that is in a call.

   Signals. In Python's main thread a call on more than a million bytes runs the signal handlers
   of Python, as the functions of tokbpe do. If one of them raises, the call ends as
   TOKBPE_INTERRUPTED, with the exception set. No other call runs handlers.

   Fork. Handles that were open before are open in both processes.

   Versions. Functions are appended to the table and statuses to their list, nothing is ever
   changed: then the version would be another one. tokbpe_import tells. */

#ifndef TOKBPE_H
#define TOKBPE_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#define TOKBPE_VERSION 1
#define TOKBPE_CAPSULE "tokbpe.fast.capi._table"

/* Any number is safe to pass: one that is not open is TOKBPE_CLOSED. 0 never is. */
typedef uint64_t tokbpe_handle;

enum tokbpe_status {
    TOKBPE_OK = 0,
    TOKBPE_SMALL_BUFFER = 1,   /* the result tells the size that is needed; nothing is written */
    TOKBPE_CHANGED_SIZE = 2,   /* likewise: it is not the size that was expected */
    TOKBPE_CLOSED = 3,         /* the handle is closed, or never was one */
    TOKBPE_WRONG_VERSION = 4,  /* this header and the installed tokbpe do not fit */
    TOKBPE_UNKNOWN_BYTE = 5,   /* the result tells its position in the text */
    TOKBPE_UNKNOWN_ID = 6,     /* the result of `decode` tells its position among the ids */
    TOKBPE_UNKNOWN_PIECE = 7,  /* these bytes are no piece of the vocabulary */
    TOKBPE_NO_MEMORY = 8,
    TOKBPE_NOT_SUPPORTED = 9,  /* the exception tells what of the tokenizer is not */
    TOKBPE_NULL_POINTER = 10,  /* an argument is NULL */
    TOKBPE_TOO_LONG = 11,      /* a text has a piece of 2**32 - 1 bytes or more */
    TOKBPE_INTERRUPTED = 12    /* a signal handler has raised; see above */
};

/* The methods of tokbpe; those that others register have higher numbers. */
enum tokbpe_method { TOKBPE_BYTE = 0, TOKBPE_BPE = 1, TOKBPE_CHAR = 2, TOKBPE_WORD = 3 };

typedef struct {
    size_t size; /* of the table, in bytes */
    uint32_t version;

    /* What a status says, in English; never NULL. */
    const char *(*status_text)(int status);

    /* Open a tokenizer. It may be closed or deleted meanwhile: the handle lives on its own.
       special: the special tokens that texts may hold, a set of their spellings or "all"; NULL
       or None for none. What engine "fast" cannot do by itself is TOKBPE_NOT_SUPPORTED. */
    int (*open)(PyObject *tokenizer, PyObject *special, tokbpe_handle *handle);

    /* Calls that are running finish; the last of them frees the memory. */
    int (*close)(tokbpe_handle handle);

    int (*method)(tokbpe_handle handle, int *number);
    int (*vocab_size)(tokbpe_handle handle, size_t *size); /* the highest id + 1 */

    /* How many ids a text of `size` bytes has. */
    int (*encode_size)(tokbpe_handle handle, const uint8_t *text, size_t size, size_t *count);

    /* The ids of a text, at most `capacity`; *count tells how many. */
    int (*encode)(tokbpe_handle handle, const uint8_t *text, size_t size, uint32_t *ids,
                  size_t capacity, size_t *count);

    /* The same behind `encode_size`: another number of ids than it told is an error. */
    int (*encode_copy)(tokbpe_handle handle, const uint8_t *text, size_t size, uint32_t *ids,
                       size_t expected, size_t *count);

    /* How many bytes `count` ids have: those of `Tokenizer.decode_bytes`. */
    int (*decode_size)(tokbpe_handle handle, const uint32_t *ids, size_t count, size_t *size);

    /* The bytes of ids, at most `capacity`; *size tells how many. */
    int (*decode)(tokbpe_handle handle, const uint32_t *ids, size_t count, uint8_t *bytes,
                  size_t capacity, size_t *size);

    /* The same behind `decode_size`: another number of bytes than it told is an error. */
    int (*decode_copy)(tokbpe_handle handle, const uint32_t *ids, size_t count, uint8_t *bytes,
                       size_t expected, size_t *size);

    /* The bytes of an id, as `Tokenizer.id_to_piece` gives them. They stay until `close`. */
    int (*piece)(tokbpe_handle handle, uint32_t id, const uint8_t **bytes, size_t *size);

    /* The id of a piece, as `Tokenizer.token_to_id` gives it. */
    int (*piece_id)(tokbpe_handle handle, const uint8_t *bytes, size_t size, uint32_t *id);

    /* Free the memory that is kept for further calls, as `Tokenizer.clear_cache`. */
    int (*clear_cache)(tokbpe_handle handle);

    /* A thread that Python does not know may call this before it ends, without the GIL: it gives
       back some hundred bytes that Python has kept for it since its first call. */
    int (*leave_thread)(void);
} tokbpe_table;

/* Whether a table is one that a header of this version and size of table can use. */
static inline int tokbpe_check(const tokbpe_table *table, uint32_t version, size_t size)
{
    if (table == NULL)
        return TOKBPE_NULL_POINTER;
    /* A table without even a version cannot be asked for it. */
    if (table->size < offsetof(tokbpe_table, status_text) || table->version != version ||
        table->size < size)
        return TOKBPE_WRONG_VERSION;
    return TOKBPE_OK;
}

/* Find the table. TOKBPE_WRONG_VERSION also where there is none; an exception is set. */
static inline int tokbpe_import(const tokbpe_table **table)
{
    PyObject *module;
    int status;
    if (table == NULL) {
        PyErr_SetString(PyExc_ValueError, "tokbpe_import needs a place for the table, not NULL");
        return TOKBPE_NULL_POINTER;
    }
    *table = NULL;
    module = PyImport_ImportModule("tokbpe.fast.capi");
    if (module == NULL)
        return TOKBPE_WRONG_VERSION;
    Py_DECREF(module);
    *table = (const tokbpe_table *)PyCapsule_Import(TOKBPE_CAPSULE, 0);
    if (*table == NULL)
        return TOKBPE_WRONG_VERSION;
    status = tokbpe_check(*table, TOKBPE_VERSION, sizeof(tokbpe_table));
    if (status != TOKBPE_OK) {
        PyErr_Format(PyExc_ImportError,
                     "tokbpe's native table has version %u and %zu bytes; this module was "
                     "compiled for version %u and at least %zu",
                     (unsigned)(*table)->version, (*table)->size, (unsigned)TOKBPE_VERSION,
                     sizeof(tokbpe_table));
        *table = NULL;
    }
    return status;
}

#endif
