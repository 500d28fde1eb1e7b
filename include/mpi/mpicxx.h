/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The C++ bindings of MPI-2 (MPI-2.2 chapter 16): namespace MPI over the functions of C, for programs that
 * were written for them. MPI-3 removed them; new programs call the functions of C. There is no library
 * behind them, so they work with any compiler and any version of C++. Files (MPI::File) are not there.
 *
 * mpi.h includes this file in C++ where POSTERN_MPI_CXX is defined, which mpicxx does, unless one of
 * MPICH_SKIP_MPICXX, OMPI_SKIP_MPICXX and MPI_NO_CPPBIND is defined. A program may include it by itself.
 */
#ifndef POSTERN_MPICXX_H
#define POSTERN_MPICXX_H

#ifndef __cplusplus
#error mpicxx.h has the C++ bindings of MPI: compile this file as C++, or include mpi.h
#endif

#include "mpi.h"

#include "cxx/errors.h"

#include "cxx/datatype.h"
#include "cxx/objects.h"

#include "cxx/request.h"

#include "cxx/comm.h"

#include "cxx/topology.h"
#include "cxx/win.h"

#include "cxx/callbacks.h"
#include "cxx/constants.h"
#include "cxx/environment.h"

#endif
