"""The corpus of a training as one flat array of cells, and what each part of it weighs.

A token occupies as many cells as it joins, its id in the first and in the last one, and what
lies between are holes. A separator stands before, between and behind the rows. Cells have two
bytes as long as all ids fit, and four from then on.

Rows of equal weight that stand side by side are a run. A position finds its weight by its run:
who goes through positions in rising order mostly stays in the one he is in, and in raw text,
which is a single run, always.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t

from .memory cimport allocated, free, resized, tokbpe_large_pages

# Two values of a cell that are no ids, cut down to the width of the cells.
cdef extern from *:
    """
    #define TOKBPE_SEPARATOR UINT32_C(0xFFFFFFFF)
    #define TOKBPE_HOLE UINT32_C(0xFFFFFFFE)
    """
    const uint32_t SEPARATOR "TOKBPE_SEPARATOR"
    const uint32_t HOLE "TOKBPE_HOLE"

ctypedef fused Cell:
    uint16_t
    uint32_t

# For each so many cells it is noted in which run they begin.
cdef enum:
    RUN_STEP = 32


cdef struct Run:
    uint32_t end  # the first cell behind it
    int64_t weight


cdef struct Corpus:
    uint16_t *narrow  # the cells, in one width or the other
    uint32_t *wide
    size_t size
    Run *runs
    size_t run_count, run_capacity
    uint32_t *run_at


# Where a compaction stands.
cdef struct Compaction:
    size_t source, target
    size_t next_token
    size_t row  # where the row begins that is being copied
    size_t run, kept_runs


cdef inline int open_cells(Corpus *corpus, size_t size, bint narrow) except -1 nogil:
    """Cells without content."""
    if narrow:
        corpus.narrow = <uint16_t *> allocated(size, sizeof(uint16_t))
        tokbpe_large_pages(corpus.narrow, size * sizeof(uint16_t))
    else:
        corpus.wide = <uint32_t *> allocated(size, sizeof(uint32_t))
        tokbpe_large_pages(corpus.wide, size * sizeof(uint32_t))
    corpus.size = size
    return 0


cdef inline void close_corpus(Corpus *corpus) noexcept nogil:
    free(corpus.narrow)
    free(corpus.wide)
    free(corpus.runs)
    free(corpus.run_at)


cdef inline int index_runs(Corpus *corpus) except -1 nogil:
    """Note where the runs stand, after the cells have changed their places."""
    cdef size_t count = corpus.size // RUN_STEP + 1
    cdef size_t i
    cdef size_t run = 0
    free(corpus.run_at)
    corpus.run_at = NULL
    corpus.run_at = <uint32_t *> allocated(count, sizeof(uint32_t))
    for i in range(count):
        while run + 1 < corpus.run_count and corpus.runs[run].end <= i * RUN_STEP:
            run += 1
        corpus.run_at[i] = <uint32_t> run
    return 0


cdef inline const Run *run_of(const Corpus *corpus, size_t position) noexcept nogil:
    cdef const Run *run = &corpus.runs[corpus.run_at[position // RUN_STEP]]
    while run.end <= position:
        run += 1
    return run


cdef inline void compact_slice(
    Cell *cells, Corpus *corpus, const uint32_t *lengths, size_t tokens, Compaction *state,
    size_t last,
) noexcept nogil:
    """Give each token of a part of the corpus one cell; rows of a single token are left out.

    All cells are copied, and what is no beginning of a token is overwritten by the next one: to
    go from token to token would be to wait for the length of each.
    """
    cdef Cell separator = <Cell> SEPARATOR
    cdef Cell token
    cdef Run *runs = corpus.runs
    cdef size_t source
    cdef size_t target = state.target
    cdef size_t next_token = state.next_token
    cdef size_t length
    cdef bint begins
    for source in range(state.source, last):
        token = cells[source]
        length = lengths[min(<size_t> token, tokens)]
        begins = source >= next_token
        next_token = source + length if begins else next_token
        cells[target] = token
        target += begins
        if token == separator:
            if target - state.row <= 2:  # with the separator
                target = state.row
            state.row = target
            if source + 1 == runs[state.run].end:
                runs[state.kept_runs] = Run(<uint32_t> target, runs[state.run].weight)
                # A run of which nothing is left is overwritten by the next one.
                if target > (runs[state.kept_runs - 1].end if state.kept_runs else 1):
                    state.kept_runs += 1
                state.run += 1
    state.source = last
    state.target = target
    state.next_token = next_token


cdef inline int shrink(Corpus *corpus, const Compaction *state) noexcept nogil:
    """Give back the memory that a compaction has left over."""
    cdef void *cells
    corpus.size = state.target
    corpus.run_count = state.kept_runs
    if corpus.narrow != NULL:
        cells = resized(corpus.narrow, corpus.size, sizeof(uint16_t))
        if cells != NULL:
            corpus.narrow = <uint16_t *> cells
    else:
        cells = resized(corpus.wide, corpus.size, sizeof(uint32_t))
        if cells != NULL:
            corpus.wide = <uint32_t *> cells
    return 0


cdef inline int widen(Corpus *corpus) except -1 nogil:
    """Two bytes a cell become four; the cells are compact."""
    cdef uint16_t *narrow = corpus.narrow
    cdef size_t i
    open_cells(corpus, corpus.size, False)
    for i in range(corpus.size):
        corpus.wide[i] = SEPARATOR if narrow[i] == <uint16_t> SEPARATOR else narrow[i]
    free(narrow)
    corpus.narrow = NULL
    return 0
