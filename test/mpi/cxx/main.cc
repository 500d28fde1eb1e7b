/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The C++ bindings of MPI-2 as programs of their time use them: mpi.h is all they include.
 */
#include "check.h"

#include <cstdio>
#include <cstring>

static int cases;

void check(bool good, const char *what)
{
	int mine = good, all = 0;

	MPI::COMM_WORLD.Allreduce(&mine, &all, 1, MPI::INT, MPI::MIN);
	if (!good)
		std::printf("# rank %d: %s\n", MPI::COMM_WORLD.Get_rank(), what);
	if (MPI::COMM_WORLD.Get_rank() == 0)
		std::printf("%sok %d - %s\n", all ? "" : "not ", ++cases, what);
}

static void check_environment()
{
	char name[MPI::MAX_PROCESSOR_NAME] = "";
	int version = 0, subversion = 0, length = 0;
	double start = MPI::Wtime();
	void *memory = MPI::Alloc_mem(100, MPI::INFO_NULL);
	char text[2];

	check(MPI::Is_initialized() && !MPI::Is_finalized(), "Is_initialized, Is_finalized");
	check(MPI::Query_thread() >= MPI::THREAD_FUNNELED && MPI::Is_thread_main(), "Init_thread, Query_thread");
	MPI::Get_version(version, subversion);
	check(version == MPI_VERSION && subversion == MPI_SUBVERSION, "Get_version");
	MPI::Get_processor_name(name, length);
	check(length > 0 && (int)std::strlen(name) == length, "Get_processor_name");
	check(MPI::Wtime() >= start && MPI::Wtick() > 0, "Wtime, Wtick");
	check(memory != NULL, "Alloc_mem");
	MPI::Free_mem(memory);
	check(MPI::Get_address(text + 1) - MPI::Get_address(text) == 1, "Get_address");
	MPI::Pcontrol(1, "more");

	int dims[2] = { 0, 0 };
	MPI::Compute_dims(6, 2, dims);
	check(dims[0] == 3 && dims[1] == 2, "Compute_dims");

	int error_class = MPI::Add_error_class(), error_code = MPI::Add_error_code(error_class);
	char string[MPI::MAX_ERROR_STRING];
	MPI::Add_error_string(error_code, "of our own");
	MPI::Get_error_string(error_code, string, length);
	check(MPI::Get_error_class(error_code) == error_class && std::strcmp(string, "of our own") == 0,
	      "Add_error_class, Add_error_code, Add_error_string");
}

int main(int argc, char **argv)
{
	MPI::Init_thread(argc, argv, MPI::THREAD_FUNNELED);
	check_environment();
	check_messages();
	check_collectives();
	check_objects();
	check_callbacks();
	if (MPI::COMM_WORLD.Get_rank() == 0)
		std::printf("1..%d\n", cases);
	MPI::Finalize();
	return MPI::Is_finalized() ? 0 : 1;
}
