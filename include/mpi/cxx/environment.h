/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The functions of namespace MPI that belong to no object.
 */
#ifndef POSTERN_MPICXX_ENVIRONMENT_H
#define POSTERN_MPICXX_ENVIRONMENT_H

namespace MPI {

inline void Init(int &argc, char **&argv) { postern::check(MPI_Init(&argc, &argv)); }
inline void Init() { postern::check(MPI_Init(0, 0)); }
inline int Init_thread(int &argc, char **&argv, int required)
{
	int provided = MPI_THREAD_SINGLE;
	postern::check(MPI_Init_thread(&argc, &argv, required, &provided));
	return provided;
}
inline int Init_thread(int required)
{
	int provided = MPI_THREAD_SINGLE;
	postern::check(MPI_Init_thread(0, 0, required, &provided));
	return provided;
}
inline void Finalize() { postern::check(MPI_Finalize()); }
inline bool Is_initialized()
{
	int flag = 0;
	postern::check(MPI_Initialized(&flag));
	return flag != 0;
}
inline bool Is_finalized()
{
	int flag = 0;
	postern::check(MPI_Finalized(&flag));
	return flag != 0;
}
inline bool Is_thread_main()
{
	int flag = 0;
	postern::check(MPI_Is_thread_main(&flag));
	return flag != 0;
}
inline int Query_thread()
{
	int provided = MPI_THREAD_SINGLE;
	postern::check(MPI_Query_thread(&provided));
	return provided;
}

inline void Get_version(int &version, int &subversion) { postern::check(MPI_Get_version(&version, &subversion)); }
inline void Get_processor_name(char *name, int &length) { postern::check(MPI_Get_processor_name(name, &length)); }
inline double Wtime() { return MPI_Wtime(); }
inline double Wtick() { return MPI_Wtick(); }
/* A profiling library's MPI_Pcontrol takes what it needs; the standard one takes the level alone. */
inline void Pcontrol(const int level, ...) { postern::check(MPI_Pcontrol(level)); }

inline int Get_error_class(int error_code)
{
	int error_class = MPI_ERR_UNKNOWN;
	postern::check(MPI_Error_class(error_code, &error_class));
	return error_class;
}
inline void Get_error_string(int error_code, char *string, int &length)
{
	postern::check(MPI_Error_string(error_code, string, &length));
}
inline int Add_error_class()
{
	int error_class = MPI_ERR_UNKNOWN;
	postern::check(MPI_Add_error_class(&error_class));
	return error_class;
}
inline int Add_error_code(int error_class)
{
	int error_code = MPI_ERR_UNKNOWN;
	postern::check(MPI_Add_error_code(error_class, &error_code));
	return error_code;
}
inline void Add_error_string(int error_code, const char *string)
{
	postern::check(MPI_Add_error_string(error_code, string));
}

inline void *Alloc_mem(Aint size, const Info &info)
{
	void *base = 0;
	postern::check(MPI_Alloc_mem(size, info, &base));
	return base;
}
inline void Free_mem(void *base) { postern::check(MPI_Free_mem(base)); }
inline Aint Get_address(void *location)
{
	Aint address = 0;
	postern::check(MPI_Get_address(location, &address));
	return address;
}
inline void Attach_buffer(void *buffer, int size) { postern::check(MPI_Buffer_attach(buffer, size)); }
inline int Detach_buffer(void *&buffer)
{
	int size = 0;
	postern::check(MPI_Buffer_detach(&buffer, &size));
	return size;
}
inline void Compute_dims(int nnodes, int ndims, int dims[]) { postern::check(MPI_Dims_create(nnodes, ndims, dims)); }

inline void Open_port(const Info &info, char *port_name) { postern::check(MPI_Open_port(info, port_name)); }
inline void Close_port(const char *port_name) { postern::check(MPI_Close_port(port_name)); }
inline void Publish_name(const char *service, const Info &info, const char *port_name)
{
	postern::check(MPI_Publish_name(service, info, port_name));
}
inline void Unpublish_name(const char *service, const Info &info, const char *port_name)
{
	postern::check(MPI_Unpublish_name(service, info, port_name));
}
inline void Lookup_name(const char *service, const Info &info, char *port_name)
{
	postern::check(MPI_Lookup_name(service, info, port_name));
}

} /* namespace MPI */

#endif
