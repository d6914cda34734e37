/* Memory for large tables that are read here and there, in C for what compilers and systems differ
 * in. */
#ifndef TOKBPE_MEMORY_H
#define TOKBPE_MEMORY_H

#if defined(__linux__) && !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* madvise */
#endif

#include <stddef.h>
#include <stdint.h>

#include "allocations.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

#define TOKBPE_LINE ((uintptr_t)64)
#define TOKBPE_LARGE_PAGE ((uintptr_t)1 << 21)

#if defined(__GNUC__)
#define TOKBPE_PREFETCH(address) __builtin_prefetch(address)
#else
#define TOKBPE_PREFETCH(address) ((void)(address))
#endif

static inline void tokbpe_prefetch(const void *address)
{
    TOKBPE_PREFETCH(address);
}

static inline uintptr_t tokbpe_rounded_up(uintptr_t place, uintptr_t unit)
{
    return (place + unit - 1) / unit * unit;
}

/* Ask for large pages, where there are any, before memory is touched for the first time: a page
 * takes the system about as long as 500 words take us. */
static inline void tokbpe_large_pages(void *memory, size_t size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    uintptr_t first = tokbpe_rounded_up((uintptr_t)memory, TOKBPE_LARGE_PAGE);
    uintptr_t last = ((uintptr_t)memory + size) / TOKBPE_LARGE_PAGE * TOKBPE_LARGE_PAGE;
    if (last > first)
        (void)madvise((void *)first, last - first, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size;
#endif
}

/* Zeroed memory that begins at a cache line, or at a large page; NULL if there is none. It is
 * `memory` that is to be freed. */
static inline void *tokbpe_zeroed(size_t count, size_t size, void **memory)
{
    uintptr_t unit = TOKBPE_LINE;
    *memory = NULL;
    if (count > ((size_t)-1 - TOKBPE_LARGE_PAGE) / size)
        return NULL;
    if (count * size >= TOKBPE_LARGE_PAGE)
        unit = TOKBPE_LARGE_PAGE;
    *memory = tokbpe_calloc(1, count * size + unit);
    if (*memory == NULL)
        return NULL;
    tokbpe_large_pages(*memory, count * size + unit);
    return (void *)tokbpe_rounded_up((uintptr_t)*memory, unit);
}

#endif
