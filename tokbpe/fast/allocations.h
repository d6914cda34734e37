/* What asks the system for memory, and gives it back: all compiled code does it by these names.

   In a debug build they count, and let chosen requests fail, as if there were no memory. The numbers
   are the same for all extension modules: the first that is loaded leaves them in `sys`, under
   TOKBPE_ALLOCATIONS, where tests find them too (tests/test_allocations.py). Elsewhere the names are
   those of the C library. */
#ifndef TOKBPE_ALLOCATIONS_H
#define TOKBPE_ALLOCATIONS_H

#include <stdlib.h>

#ifndef TOKBPE_DEBUG_BUILD
#define tokbpe_malloc malloc
#define tokbpe_calloc calloc
#define tokbpe_realloc realloc
#define tokbpe_free free
#else

#include <Python.h>
#include <stdint.h>

#define TOKBPE_ALLOCATIONS "_tokbpe_allocations"

struct tokbpe_allocations {
    int64_t made;                       /* requests, from 1 on */
    int64_t live;                       /* blocks that are not freed */
    int64_t first_failing, last_failing; /* requests; none if the last comes before the first */
    int64_t failed;
};

static struct tokbpe_allocations *tokbpe_allocations;

/* As a module is loaded, which is done with the GIL. */
__attribute__((constructor)) static void tokbpe_share_allocations(void)
{
    PyObject *capsule = PySys_GetObject(TOKBPE_ALLOCATIONS);
    if (capsule != NULL) {
        tokbpe_allocations = PyCapsule_GetPointer(capsule, TOKBPE_ALLOCATIONS);
    } else {
        tokbpe_allocations = calloc(1, sizeof(struct tokbpe_allocations));
        if (tokbpe_allocations != NULL)
            capsule = PyCapsule_New(tokbpe_allocations, TOKBPE_ALLOCATIONS, NULL);
        if (capsule != NULL)
            (void)PySys_SetObject(TOKBPE_ALLOCATIONS, capsule);
        Py_XDECREF(capsule);
    }
    if (tokbpe_allocations == NULL || PyErr_Occurred())
        Py_FatalError("allocations cannot be counted");
}

static inline int tokbpe_may_allocate(void)
{
    struct tokbpe_allocations *all = tokbpe_allocations;
    int64_t number = __atomic_add_fetch(&all->made, 1, __ATOMIC_RELAXED);
    if (number < __atomic_load_n(&all->first_failing, __ATOMIC_RELAXED)
        || number > __atomic_load_n(&all->last_failing, __ATOMIC_RELAXED))
        return 1;
    (void)__atomic_add_fetch(&all->failed, 1, __ATOMIC_RELAXED);
    return 0;
}

static inline void *tokbpe_counted(void *memory)
{
    if (memory != NULL)
        (void)__atomic_add_fetch(&tokbpe_allocations->live, 1, __ATOMIC_RELAXED);
    return memory;
}

static inline void *tokbpe_malloc(size_t size)
{
    return tokbpe_may_allocate() ? tokbpe_counted(malloc(size)) : NULL;
}

static inline void *tokbpe_calloc(size_t count, size_t size)
{
    return tokbpe_may_allocate() ? tokbpe_counted(calloc(count, size)) : NULL;
}

static inline void *tokbpe_realloc(void *memory, size_t size)
{
    if (memory == NULL)
        return tokbpe_malloc(size);
    return tokbpe_may_allocate() ? realloc(memory, size) : NULL;
}

static inline void tokbpe_free(void *memory)
{
    if (memory != NULL)
        (void)__atomic_add_fetch(&tokbpe_allocations->live, -1, __ATOMIC_RELAXED);
    free(memory);
}

#endif
#endif
