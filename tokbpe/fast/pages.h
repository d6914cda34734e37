/* Zeroed memory for large tables that are read here and there: in large pages, where the system has
 * them and is asked (Linux). To be freed by free(). */
#ifndef TOKBPE_PAGES_H
#define TOKBPE_PAGES_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#define TOKBPE_LARGE_PAGE ((size_t)1 << 21)

/* NULL without memory. */
static inline void *tokbpe_zeroed(size_t count, size_t size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    void *memory = NULL;
    if (count >= TOKBPE_LARGE_PAGE / size && count <= ((size_t)-1 >> 1) / size) {
        if (posix_memalign(&memory, TOKBPE_LARGE_PAGE, count * size))
            return NULL;
        (void)madvise(memory, count * size, MADV_HUGEPAGE);
        return memset(memory, 0, count * size);
    }
#endif
    return calloc(count, size);
}

#endif
