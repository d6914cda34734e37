/* How the engine is compiled, as the compiler itself tells. */
#ifndef TOKBPE_BUILD_H
#define TOKBPE_BUILD_H

#define TOKBPE_TEXT_OF(value) #value
#define TOKBPE_TEXT(macro) TOKBPE_TEXT_OF(macro)

#if defined(__clang__)
#define TOKBPE_COMPILER "Clang " __clang_version__
#elif defined(__GNUC__)
#define TOKBPE_COMPILER "GCC " __VERSION__
#elif defined(_MSC_FULL_VER)
#define TOKBPE_COMPILER "MSVC " TOKBPE_TEXT(_MSC_FULL_VER)
#else
#define TOKBPE_COMPILER "an unknown compiler"
#endif

/* The year and the month, 0 where the compiler does not tell. */
#if defined(__STDC_VERSION__)
#define TOKBPE_C_STANDARD __STDC_VERSION__
#else
#define TOKBPE_C_STANDARD 0L
#endif

/* MSVC does not tell; without optimization it is asked for the debugging library. */
#if defined(__OPTIMIZE__) || (defined(_MSC_VER) && !defined(__clang__) && !defined(_DEBUG))
#define TOKBPE_OPTIMIZED 1
#else
#define TOKBPE_OPTIMIZED 0
#endif

#if defined(__has_feature)
#define TOKBPE_HAS_FEATURE(name) __has_feature(name)
#else
#define TOKBPE_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || TOKBPE_HAS_FEATURE(address_sanitizer)
#define TOKBPE_SANITIZER "AddressSanitizer"
#elif defined(__SANITIZE_THREAD__) || TOKBPE_HAS_FEATURE(thread_sanitizer)
#define TOKBPE_SANITIZER "ThreadSanitizer"
#else
#define TOKBPE_SANITIZER ""
#endif

/* Whether the module tells a Python without the GIL that it can do without. */
#if defined(CYTHON_FREETHREADING_COMPATIBLE) && CYTHON_FREETHREADING_COMPATIBLE
#define TOKBPE_WITHOUT_GIL 1
#else
#define TOKBPE_WITHOUT_GIL 0
#endif

#endif
