/* A lock for some instructions: who has to wait for it tries again and again. It needs no Python,
   and is a number: 0 is free. */

#ifndef TOKBPE_LOCK_H
#define TOKBPE_LOCK_H

#include <stdint.h>

#ifdef _MSC_VER
#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <intrin.h>
#include <windows.h>
typedef volatile long tokbpe_lock;
#define TOKBPE_TAKE(lock) _InterlockedExchange(lock, 1)
#define TOKBPE_GIVE(lock) _InterlockedExchange(lock, 0)
#define TOKBPE_IS_TAKEN(lock) (*(lock) != 0)
#define TOKBPE_LET_OTHERS_RUN() SwitchToThread()
#else
#include <sched.h>
typedef int32_t tokbpe_lock;
#define TOKBPE_TAKE(lock) __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)
#define TOKBPE_GIVE(lock) __atomic_store_n(lock, 0, __ATOMIC_RELEASE)
#define TOKBPE_IS_TAKEN(lock) __atomic_load_n(lock, __ATOMIC_RELAXED)
#define TOKBPE_LET_OTHERS_RUN() sched_yield()
#endif

/* Who has it may have been put aside: after so many looks others may run. */
#define TOKBPE_LOOKS 100

static inline void tokbpe_take(tokbpe_lock *lock)
{
    while (TOKBPE_TAKE(lock)) {
        int looks = 0;
        while (TOKBPE_IS_TAKEN(lock))
            if (++looks % TOKBPE_LOOKS == 0)
                TOKBPE_LET_OTHERS_RUN();
    }
}

static inline void tokbpe_give(tokbpe_lock *lock)
{
    TOKBPE_GIVE(lock);
}

#endif
