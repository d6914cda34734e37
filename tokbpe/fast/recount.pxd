from libc.stdint cimport int64_t, uint32_t, uint64_t

from .cells cimport Corpus
from .places cimport Block, Pairs
from .tallies cimport Share, Sieve, Tally


cdef class Recount:
    """The pairs of compact cells counted anew, and the places of the frequent ones listed."""

    cdef object owner  # of the corpus and of the lists: they last as long as a thread of ours
    cdef const Corpus *corpus
    cdef size_t tokens, slice_size
    cdef Share *shares  # one for each thread
    cdef size_t share_count
    cdef Sieve sieve
    cdef size_t listed  # places
    cdef uint32_t *places
    cdef int phase
    cdef bint stopped

    cdef int open(
        self, owner, const Corpus *corpus, size_t tokens, size_t threads, dict limits
    ) except -1
    cdef int64_t count(self) except -1
    cdef int gather(self, int64_t threshold, Pairs *pairs) except -1
    cdef int list_places(self, Pairs *pairs, Block **blocks) except -1
    cdef int in_shares(self, int phase) except -1

    cdef int64_t highest_dense(self) noexcept nogil
    cdef Tally dense_total(self, size_t entry) noexcept nogil
    cdef int gather_dense(self, int64_t threshold, Pairs *pairs) except -1 nogil
    cdef int64_t join_sieves(self) noexcept nogil
    cdef int sift(self, int64_t threshold) except -1 nogil
    cdef int gather_hashed(self, int64_t threshold, Pairs *pairs) except -1 nogil
    cdef bint is_tallied_before(self, uint64_t pair, size_t share) noexcept nogil
    cdef uint32_t list_pair(self, Pairs *pairs, uint64_t pair, Tally total) except 0 nogil
