"""The native table for Cython: what `tokbpe.h` says, which tells more.

    cimport tokbpe.fast.capi as capi

    cdef const capi.tokbpe_table *table
    capi.tokbpe_import(&table)  # raises unless it is there and fits
    cdef capi.tokbpe_handle handle
    table.open(tokenizer, None, &handle)  # likewise
    with nogil:
        status = table.encode(handle, text, size, ids, capacity, &count)

It is compiled with the folder that `tokbpe.fast.get_include()` gives.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef extern from "tokbpe.h" nogil:
    const uint32_t TOKBPE_VERSION
    const char *TOKBPE_CAPSULE

    ctypedef uint64_t tokbpe_handle

    enum tokbpe_status:
        TOKBPE_OK
        TOKBPE_SMALL_BUFFER
        TOKBPE_CHANGED_SIZE
        TOKBPE_CLOSED
        TOKBPE_WRONG_VERSION
        TOKBPE_UNKNOWN_BYTE
        TOKBPE_UNKNOWN_ID
        TOKBPE_UNKNOWN_PIECE
        TOKBPE_NO_MEMORY
        TOKBPE_NOT_SUPPORTED
        TOKBPE_NULL_POINTER
        TOKBPE_TOO_LONG
        TOKBPE_INTERRUPTED

    enum tokbpe_method:
        TOKBPE_BYTE
        TOKBPE_BPE
        TOKBPE_CHAR
        TOKBPE_WORD

    ctypedef struct tokbpe_table:
        size_t size
        uint32_t version
        const char *(*status_text)(int status) noexcept nogil
        int (*open)(object tokenizer, object special, tokbpe_handle *handle) except *
        int (*close)(tokbpe_handle handle) noexcept nogil
        int (*method)(tokbpe_handle handle, int *number) noexcept nogil
        int (*vocab_size)(tokbpe_handle handle, size_t *size) noexcept nogil
        int (*encode_size)(
            tokbpe_handle handle, const uint8_t *text, size_t size, size_t *count
        ) noexcept nogil
        int (*encode)(
            tokbpe_handle handle, const uint8_t *text, size_t size,
            uint32_t *ids, size_t capacity, size_t *count
        ) noexcept nogil
        int (*encode_copy)(
            tokbpe_handle handle, const uint8_t *text, size_t size,
            uint32_t *ids, size_t expected, size_t *count
        ) noexcept nogil
        int (*decode_size)(
            tokbpe_handle handle, const uint32_t *ids, size_t count, size_t *size
        ) noexcept nogil
        int (*decode)(
            tokbpe_handle handle, const uint32_t *ids, size_t count,
            uint8_t *bytes, size_t capacity, size_t *size
        ) noexcept nogil
        int (*decode_copy)(
            tokbpe_handle handle, const uint32_t *ids, size_t count,
            uint8_t *bytes, size_t expected, size_t *size
        ) noexcept nogil
        int (*piece)(
            tokbpe_handle handle, uint32_t id, const uint8_t **bytes, size_t *size
        ) noexcept nogil
        int (*piece_id)(
            tokbpe_handle handle, const uint8_t *bytes, size_t size, uint32_t *id
        ) noexcept nogil
        int (*clear_cache)(tokbpe_handle handle) noexcept nogil
        int (*leave_thread)() noexcept nogil

    int tokbpe_check(const tokbpe_table *table, uint32_t version, size_t size) noexcept

cdef extern from "tokbpe.h":
    int tokbpe_import(const tokbpe_table **table) except *
