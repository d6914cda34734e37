"""Finding special tokens in text, compiled: the twin of `cut_special` in `tokbpe.special`.

The text is read from right to left, by an Aho-Corasick automaton that tells at each byte the
longest spelling that begins there. From these the matches are picked from left to right, each
behind the one before. (Read from left to right, a spelling that is found may have to give way to
a longer one, or to one that begins earlier. If these do not come about, what was read for them
is read again: for `a` and `aaaaaab`, as many times as the longest has bytes.)

A node of the automaton is an ending of spellings, the root the empty one. Reading is at the
longest ending that the text begins with from here on. The byte before leads to the node that is
longer by it. If there is none, the failure link leads to the longest node that the present one
begins with, and from there the byte is tried again. A step goes one byte deeper and a failure
link at least one back, so there are at most two for each byte of the text. The longest spelling
that a node begins with is itself, if it is one, or else that of its failure link.

The text is read in windows, so it is not read far ahead of the match that is wanted. A spelling
may end behind the window that it begins in, so reading starts further to the right.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport uint8_t, uint32_t

from tokbpe import arguments, expansion, unicode

from .characters cimport (
    close_character_set,
    has_character,
    open_character_set,
    width_before,
    width_behind,
)
from .memory cimport free, reserve, resized
from .pairs cimport NOT_FOUND, close_pair_table, find_pair, make_pair, open_pair_table, put_pair
from .seeds cimport set_seeds

set_seeds()

# How many bytes are read between two looks for signals: some milliseconds.
cdef enum:
    SLICE = 1000000

# How many bytes are read at once, unless a spelling has more.
cdef enum:
    WINDOW = 16384

WINDOW_SIZE = WINDOW

cdef enum:
    LSTRIP = 1
    RSTRIP = 2
    SINGLE_WORD = 4

cdef dict FLAGS = {"lstrip": LSTRIP, "rstrip": RSTRIP, "single_word": SINGLE_WORD, "normalized": 0}


@cython.final
cdef class SpecialTable:
    """What `cut_special` looks for."""

    def __cinit__(self, spellings, flags=None):
        cdef Py_ssize_t number
        self.spellings = arguments.special_spellings(spellings)
        flags = arguments.special_flags(flags, self.spellings)
        longest_first = sorted(self.spellings, key=len, reverse=True)
        self.numbered = <Spelling *> resized(NULL, len(longest_first), sizeof(Spelling))
        if self.numbered == NULL:
            raise MemoryError(f"no memory for {len(longest_first)} special tokens")
        for number, spelling in enumerate(longest_first):
            self.numbered[number] = Spelling(len(spelling), self.spellings[spelling], 0)
            for flag in flags.get(spelling, ()):
                self.numbered[number].flags |= <uint32_t> FLAGS[flag]
        if flags:
            open_character_set(&self.spaces, unicode.ranges("White_Space"))
            open_character_set(&self.words, expansion.word_ranges())
        open_pair_table(&self.longer, 6)
        self.add_nodes(longest_first)

    def __dealloc__(self):
        close_character_set(&self.spaces)
        close_character_set(&self.words)
        close_pair_table(&self.longer)
        free(self.nodes)
        free(self.numbered)

    cdef int add_nodes(self, list spellings) except -1:
        """Make all nodes, the shorter ones first: failure links lead to these."""
        cdef list nodes = [0] * len(spellings)  # the ending of each spelling that is made so far
        cdef Py_ssize_t number
        cdef size_t size, made
        cdef uint32_t node
        cdef bytes spelling
        self.longest = len(spellings[0]) if spellings else 0
        reserve(<void **> &self.nodes, &self.capacity, 1, sizeof(Node))
        self.nodes[0] = Node(NOT_FOUND, 0)
        self.node_count = 1
        for made in range(self.longest):
            for number, spelling in enumerate(spellings):
                size = len(spelling)
                if size <= made:
                    break
                node = self.add_byte(nodes[number], spelling[size - made - 1])
                if size == made + 1:
                    self.nodes[node].spelling = <uint32_t> number
                nodes[number] = node
        return 0

    cdef uint32_t add_byte(self, uint32_t node, uint8_t byte) except 0:
        """The node that is longer by a byte, which is made if there is none."""
        cdef uint32_t new = <uint32_t> self.node_count
        cdef uint32_t shorter = 0
        cdef uint32_t *place = &self.last_bytes[byte]
        if node:
            place = put_pair(&self.longer, make_pair(node, byte), 0)
        if place[0]:
            return place[0]
        place[0] = new
        if node:
            shorter = self.step(self.nodes[node].shorter, byte)
        reserve(<void **> &self.nodes, &self.capacity, self.node_count + 1, sizeof(Node))
        self.nodes[new] = Node(self.nodes[shorter].spelling, shorter)
        self.node_count += 1
        return new

    cdef inline uint32_t step(self, uint32_t node, uint8_t byte) noexcept nogil:
        """The node that reading is at after the byte before."""
        cdef uint32_t longer
        while node:
            longer = find_pair(&self.longer, make_pair(node, byte))
            if longer != NOT_FOUND:
                return longer
            node = self.nodes[node].shorter
        return self.last_bytes[byte]


@cython.final
cdef class SpecialSearch:

    def __cinit__(self, SpecialTable table not None):
        self.table = table

    def __dealloc__(self):
        free(self.found)

    cdef int open(self, const uint8_t *data, size_t size) except -1 nogil:
        """Begin with a document, whose bytes stay where they are until it is read."""
        self.data = data
        self.size = size
        self.done = self.searched = self.window_end = self.found_count = 0
        return self.pick_next()

    cdef size_t find(self, size_t *length, uint32_t *id) except? 0 nogil:
        """Where the next token begins and how long it is, white space that belongs to it
        included; the size of the document and 0 if there is none."""
        cdef Match match = self.next
        if match.start == self.size:
            length[0] = 0
            return self.size
        self.pick_next()
        if self.has_flag(match, LSTRIP):
            match.start = self.spaces_start(match.start)
        if self.has_flag(match, RSTRIP):
            match.stop = self.end_with_spaces(match.stop)
        self.done = match.stop
        length[0] = match.stop - match.start
        id[0] = self.table.numbered[match.spelling].id
        return match.start

    cdef int pick_next(self) except -1 nogil:
        """Go to the next match that counts."""
        while self.found_count or self.window_end < self.size:
            if self.found_count == 0:
                self.read_window()
                continue
            self.found_count -= 1
            self.next = self.found[self.found_count]
            if self.next.start < self.searched:
                continue
            self.searched = self.next.stop
            if not self.has_flag(self.next, SINGLE_WORD) or self.stands_alone(self.next):
                return 0
        self.next = Match(self.size, self.size, 0)
        return 0

    cdef int read_window(self) except -1 nogil:
        """Find the longest spelling at each place of the next window."""
        cdef size_t first = self.window_end
        cdef size_t last = first + min(max(<size_t> WINDOW, self.table.longest), self.size - first)
        cdef size_t place = last + min(self.table.longest - 1, self.size - last)
        cdef const uint32_t *last_bytes = self.table.last_bytes
        cdef uint32_t node = 0
        cdef uint32_t spelling
        self.add_steps(place - first)
        while place > first:
            place -= 1
            if node == 0 and last_bytes[self.data[place]] == 0:
                continue
            node = self.table.step(node, self.data[place])
            spelling = self.table.nodes[node].spelling
            if spelling != NOT_FOUND and place < last:
                reserve(
                    <void **> &self.found, &self.capacity, self.found_count + 1, sizeof(Match))
                self.found[self.found_count] = Match(
                    place, place + self.table.numbered[spelling].size, spelling)
                self.found_count += 1
        self.window_end = last
        return 0

    cdef int add_steps(self, size_t count) except -1 nogil:
        """Look for signals after every so many steps."""
        self.steps += count
        if self.steps >= SLICE:
            self.steps = 0
            with gil:
                PyErr_CheckSignals()
        return 0

    # Flags

    cdef inline bint has_flag(self, Match match, uint32_t flag) noexcept nogil:
        return self.table.numbered[match.spelling].flags & flag != 0

    cdef bint stands_alone(self, Match match) noexcept nogil:
        """Whether neither of the characters next to a match is one of a word."""
        cdef size_t before = width_before(self.data, match.start, 0)
        cdef size_t behind = width_behind(self.data, match.stop, self.size)
        return not (
            has_character(&self.table.words, self.data + (match.start - before), before)
            or has_character(&self.table.words, self.data + match.stop, behind)
        )

    cdef size_t end_with_spaces(self, size_t stop) except 0 nogil:
        """Where white space behind `stop` ends, or the next match begins. Matches with LSTRIP
        that are nothing but this white space are gone."""
        stop = self.spaces_end(stop, self.next.start)
        while self.next.start < self.size and self.next.start <= stop:
            if not self.has_flag(self.next, LSTRIP):
                break
            stop = self.spaces_end(stop, self.next.stop)
            if stop < self.next.stop:
                break
            self.pick_next()
            stop = self.spaces_end(stop, self.next.start)
        return min(stop, self.next.start)

    cdef size_t spaces_start(self, size_t place) except? 0 nogil:
        """Where white space before a place begins, behind the last token."""
        cdef size_t width
        while place > self.done:
            width = width_before(self.data, place, self.done)
            if not has_character(&self.table.spaces, self.data + (place - width), width):
                break
            place -= width
            self.add_steps(width)
        return place

    cdef size_t spaces_end(self, size_t place, size_t last) except? 0 nogil:
        """Where white space behind a place ends, unless it reaches `last`."""
        cdef size_t width
        while place < last:
            width = width_behind(self.data, place, self.size)
            if not has_character(&self.table.spaces, self.data + place, width):
                break
            place += width
            self.add_steps(width)
        return place


cdef SpecialTable as_special_table(special):
    """The table of a mapping from spellings to ids; None if it is empty or None."""
    cdef SpecialTable table
    if special is None:
        return None
    table = special if isinstance(special, SpecialTable) else SpecialTable(special)
    return table if table.spellings else None


def special_table(spellings, flags=None):
    """Prepare `encode` and `count_pieces` to cut out these spellings: a mapping to their ids.

    Spellings that have flags are given theirs, as in {b"<e>": ("lstrip", "single_word")}.
    """
    return SpecialTable(spellings, flags)


def cut_special(document, special):
    """Cut out special tokens: the longest at the leftmost place. Other parts have no id.

    (b"a<e>", {b"<e>": 7}) -> [(b"a", None), (b"<e>", 7)]
    """
    cdef bytes data = arguments.document_bytes(document)
    cdef SpecialTable table = as_special_table(special)
    cdef SpecialSearch search
    cdef size_t place, length
    cdef size_t done = 0
    cdef uint32_t id = 0
    if table is None:
        return [(data, None)]
    search = SpecialSearch(table)
    search.open(<const uint8_t *> PyBytes_AS_STRING(data), len(data))
    parts = []
    while done < <size_t> len(data):
        with nogil:
            place = search.find(&length, &id)
        if place > done:
            parts.append((data[done:place], None))
        if length:
            parts.append((data[place : place + length], id))
        done = place + length
        if len(parts) % 4096 == 0:
            PyErr_CheckSignals()
    return parts
