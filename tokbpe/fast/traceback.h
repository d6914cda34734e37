/* An exception without a traceback, as there is one where Python has no memory for that.

   Cython's `except` gives back a reference to the traceback without a look whether there is one.
   (`finally` looks.) So in modules that include this, references that are NULL are nothing to give
   back. */
#ifndef TOKBPE_TRACEBACK_H
#define TOKBPE_TRACEBACK_H

#include <Python.h>

#undef Py_DECREF
#define Py_DECREF(object) Py_XDECREF(object)

#endif
