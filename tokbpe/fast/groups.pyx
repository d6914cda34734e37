"""Many documents, or large ones, as work for several threads (see `groups.pxd`). No thread
outlives the call."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport SIZE_MAX, uint8_t, uint32_t

from tokbpe import arguments
from tokbpe.threads import run_all

from .memory cimport free, reserve
from .pairs cimport NOT_FOUND as NONE
from .seeds cimport set_seeds
from .special cimport SpecialSearch

set_seeds()

thread_text = 262144

# Each thread gets so many groups, if they are not too small, so that all end at about one time.
cdef enum:
    GROUPS_FOR_EACH_THREAD = 8

cdef size_t least_group = 65536  # bytes

# So far behind a place a cut is looked for.
cdef enum:
    CUT_RANGE = 65536

THREAD_TEXT_SIZE = thread_text


def use_sizes(least_text, least_of_group):
    """Start a thread for so many bytes, and give it so many at least, from now on. For tests."""
    global thread_text, least_group
    thread_text = least_text
    least_group = least_of_group


cdef class Groups:

    def __dealloc__(self):
        free(self.groups)
        free(self.parts)
        free(self.documents)

    # Parts and groups

    cdef int make_groups(self, threads, bint one_thread, size_t size=SIZE_MAX) except -1:
        """Make groups of the documents, for so many threads if there is text enough.

        size: of the groups that a single thread does, about.
        """
        cdef size_t i, first
        cdef size_t bytes_in_group = 0
        cdef size_t most = max(<size_t> 1, self.total // thread_text)
        self.thread_count = <int> min(<size_t> arguments.thread_count(threads), most)
        if one_thread:
            self.thread_count = 1
        if self.thread_count > 1:
            size = max(
                least_group,
                self.total // (<size_t> self.thread_count * GROUPS_FOR_EACH_THREAD),
            )
        self.part_count = self.group_count = self.next_group = 0
        self.failed = SIZE_MAX
        for i in range(self.count):
            if self.documents[i].size > size and not one_thread:
                self.cut_document(i, size)
            else:
                self.add_part(i, 0, self.documents[i].size, NONE, False)
        first = 0
        for i in range(self.part_count):
            bytes_in_group += self.parts[i].last - self.parts[i].first
            if bytes_in_group >= size or i + 1 == self.part_count:
                reserve(<void **> &self.groups, &self.group_capacity, self.group_count + 1,
                        sizeof(Group))
                self.groups[self.group_count] = Group(first, i + 1)
                self.group_count += 1
                first = i + 1
                bytes_in_group = 0
        return 0

    cdef int add_part(
        self, size_t document, size_t first, size_t last, uint32_t id, bint is_cut
    ) except -1 nogil:
        reserve(<void **> &self.parts, &self.part_capacity, self.part_count + 1, sizeof(Part))
        self.parts[self.part_count] = Part(document, first, last, id, is_cut)
        self.part_count += 1
        return 0

    cdef int cut_document(self, size_t number, size_t size) except -1:
        """Cut a document into parts of about so many bytes, and at its special tokens."""
        cdef Document *document = &self.documents[number]
        cdef SpecialSearch search
        cdef size_t first = 0
        cdef size_t length = 0
        cdef size_t place = document.size
        cdef uint32_t id = NONE
        if self.special is None:
            return self.cut_text(number, 0, document.size, NONE, document.size, size)
        search = SpecialSearch(self.special)
        search.open(document.data, document.size)
        while first < document.size:
            with nogil:
                place = search.find(&length, &id)
                if not length:
                    id = NONE
                self.cut_text(number, first, place, id, place + length, size)
            first = place + length
            if self.part_count % 4096 == 0:
                PyErr_CheckSignals()
        return 0

    cdef int cut_text(
        self, size_t number, size_t first, size_t last, uint32_t id, size_t behind, size_t size
    ) except -1 nogil:
        """Parts of what has no special tokens in it; `behind` begins what follows."""
        cdef const uint8_t *data = self.documents[number].data
        cdef size_t cut
        while last - first > size:
            cut = self.cut_behind(data, first, size, last)
            if cut <= first or cut >= last:
                break
            self.add_part(number, first, cut, NONE, True)
            first = cut
        return self.add_part(number, first, last, id, behind < self.documents[number].size)

    cdef size_t cut_behind(
        self, const uint8_t *data, size_t first, size_t size, size_t last
    ) noexcept nogil:
        """Where data[first:last] may be cut, about `size` bytes from its beginning; `last` or
        `first` if nowhere."""
        return safe_cut(data, first + size, last)

    # Work

    cdef int run_groups(self) except -1:
        """Do all groups."""
        run_all(self.work, min(<size_t> self.thread_count, self.group_count), self.give_up)
        if self.error is not None:
            raise self.error
        return 0

    def give_up(self):
        """Let no thread go on."""
        self.failed = 0

    cdef void stop(self, error):
        """End the work of all threads with an error that is none of a group: of a signal, or of the
        caller's function."""
        self.failed = 0
        self.error = error

    def work(self, int worker_number):
        """Do one group after another, as long as there are any."""
        cdef size_t number = 0
        worker = None
        try:
            worker = self.begin_work()
            while self.next_group < self.group_count:
                number = self.next_group
                self.next_group += 1
                self.do_group(worker, number)
        except BaseException as error:
            # The error of the first group counts: a single thread would have met it first.
            if number + 1 < self.failed:
                self.failed = number + 1 if isinstance(error, Exception) else 0
                self.error = self.told(worker, error)
        finally:
            if worker is not None:
                self.end_work(worker)

    cdef object begin_work(self):
        """What a thread works with; it is the thread that calls."""
        raise NotImplementedError

    cdef int do_group(self, worker, size_t number) except -1:
        raise NotImplementedError

    cdef object told(self, worker, error):
        """An error of the worker, as it is to be told."""
        return error

    cdef int end_work(self, worker) except -1:
        raise NotImplementedError

    cdef int advance(self, size_t group, size_t bytes) except -1:
        """A worker that tells of its progress is so many bytes further, in the group of this
        number, from 1 on."""
        raise NotImplementedError


cdef size_t safe_cut(const uint8_t *data, size_t first, size_t last) noexcept nogil:
    """A place, not far behind the first, where any pattern begins a new piece, whatever follows:
    a space behind an ASCII letter; `last` if there is none.

    A piece that has a letter in it ends with letters, in all compiled patterns, unless these are
    followed by a mark or an apostrophe; and no pattern looks back.
    """
    cdef size_t place
    cdef size_t end = min(last, first + CUT_RANGE)
    for place in range(max(first, <size_t> 1), end):
        if data[place] == b" " and b"a" <= data[place - 1] | 0x20 <= b"z":
            return place
    return last
