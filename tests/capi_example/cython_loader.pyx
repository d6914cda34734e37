"""A loader in Cython that encodes and decodes without the GIL, by tokbpe's native table."""

from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport calloc, free

cimport tokbpe.fast.capi as capi

cdef const capi.tokbpe_table *table
capi.tokbpe_import(&table)


class Failure(Exception):
    """A status that is not OK: the status, what it says, and the result that came with it."""

    def __init__(self, status, result=0):
        super().__init__(status, (<bytes> table.status_text(status)).decode(), result)
        self.status = status
        self.result = result


cdef class Loader:
    cdef capi.tokbpe_handle handle

    def __init__(self, tokenizer, special=None):
        table.open(tokenizer, special, &self.handle)

    def close(self):
        cdef int status = table.close(self.handle)
        if status != capi.TOKBPE_OK:
            raise Failure(status)

    def encode(self, const uint8_t[::1] text not None):
        """The ids of a text that is not empty: their number first, then they themselves."""
        cdef size_t count
        cdef uint32_t *ids = NULL
        cdef int status
        try:
            with nogil:
                status = table.encode_size(self.handle, &text[0], text.shape[0], &count)
                if status == capi.TOKBPE_OK:
                    ids = <uint32_t *> calloc(count, sizeof(uint32_t))
                    status = table.encode_copy(
                        self.handle, &text[0], text.shape[0], ids, count, &count)
            if status != capi.TOKBPE_OK:
                raise Failure(status, count)
            return [ids[i] for i in range(count)]
        finally:
            free(ids)

    def decode(self, const uint32_t[::1] ids not None):
        """The bytes of some ids."""
        cdef size_t size
        cdef uint8_t *data = NULL
        cdef int status
        try:
            with nogil:
                status = table.decode_size(self.handle, &ids[0], ids.shape[0], &size)
                if status == capi.TOKBPE_OK:
                    data = <uint8_t *> calloc(size, 1)
                    status = table.decode_copy(
                        self.handle, &ids[0], ids.shape[0], data, size, &size)
            if status != capi.TOKBPE_OK:
                raise Failure(status, size)
            return (<const char *> data)[:size]
        finally:
            free(data)

    @property
    def method(self):
        cdef int number
        cdef int status = table.method(self.handle, &number)
        if status != capi.TOKBPE_OK:
            raise Failure(status)
        return number

    def __len__(self):
        cdef size_t size
        cdef int status = table.vocab_size(self.handle, &size)
        if status != capi.TOKBPE_OK:
            raise Failure(status)
        return size
