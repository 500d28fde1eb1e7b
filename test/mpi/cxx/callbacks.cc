/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Errors as exceptions and as calls of handlers, attributes with functions, and generalized requests.
 */
#include "check.h"

#include <cstring>

namespace {

MPI::Intracomm &world = MPI::COMM_WORLD;
int errors, last_error;
MPI_Comm last_comm;
MPI_Win last_win;

/* Its own arguments are all that it has. */
void note_error(MPI::Comm &comm, int *code, ...)
{
	errors++;
	last_error = *code;
	last_comm = comm;
}
void note_win_error(MPI::Win &win, int *code, ...)
{
	errors++;
	last_error = *code;
	last_win = win;
}

/* the class of the exception that a message to nobody throws, or MPI::SUCCESS */
int sends_to_nobody(const MPI::Comm &comm)
{
	try {
		comm.Send(NULL, 0, MPI::INT, comm.Get_size(), 0);
	} catch (const MPI::Exception &e) {
		char text[MPI::MAX_ERROR_STRING];
		int length;

		MPI::Get_error_string(e.Get_error_code(), text, length);
		return std::strcmp(text, e.Get_error_string()) == 0 ? e.Get_error_class() : -1;
	}
	return MPI::SUCCESS;
}

void exceptions()
{
	MPI::Intracomm comm = world.Dup();

	comm.Set_errhandler(MPI::ERRORS_RETURN);
	check(sends_to_nobody(comm) == MPI::SUCCESS && comm.Get_errhandler() == MPI::ERRORS_RETURN,
	      "ERRORS_RETURN: nothing is thrown");
	comm.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
	check(comm.Get_errhandler() == MPI::ERRORS_THROW_EXCEPTIONS && comm.Get_errhandler() != MPI::ERRORS_RETURN,
	      "ERRORS_THROW_EXCEPTIONS is what was set");
	check(sends_to_nobody(comm) == MPI::ERR_RANK, "an error is thrown");
	check(sends_to_nobody(comm.Dup()) == MPI::ERR_RANK, "also of a copy, which has the handler");
	check(world.Get_errhandler() == MPI::ERRORS_ARE_FATAL, "another communicator has its own");

	MPI::Errhandler handler = MPI::Comm::Create_errhandler(note_error);
	comm.Set_errhandler(handler);
	handler.Free();
	errors = 0;
	check(sends_to_nobody(comm) == MPI::SUCCESS && errors == 1 && MPI::Get_error_class(last_error) == MPI::ERR_RANK &&
		      last_comm == (MPI_Comm)comm,
	      "a handler in C++ is called once, with the communicator");
	comm.Call_errhandler(MPI::ERR_OTHER);
	check(errors == 2 && last_error == MPI::ERR_OTHER, "Call_errhandler");
	comm.Free();

	MPI::Errhandler old = world.Get_errhandler();
	int thrown = MPI::SUCCESS;
	world.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
	try {
		MPI::Datatype(MPI::DATATYPE_NULL).Get_size();
	} catch (const MPI::Exception &e) {
		thrown = e.Get_error_class();
	}
	world.Set_errhandler(old);
	check(thrown == MPI::ERR_TYPE, "an error of no communicator is the world's");

	MPI::Win win = MPI::Win::Create(NULL, 0, 1, MPI::INFO_NULL, world);
	win.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
	thrown = MPI::SUCCESS;
	try {
		win.Put(NULL, 0, MPI::INT, world.Get_size(), 0, 0, MPI::INT);
	} catch (const MPI::Exception &e) {
		thrown = e.Get_error_class();
	}
	check(thrown == MPI::ERR_RANK && win.Get_errhandler() == MPI::ERRORS_THROW_EXCEPTIONS,
	      "an error of a window is thrown");
	win.Set_errhandler(MPI::Win::Create_errhandler(note_win_error));
	errors = 0;
	win.Call_errhandler(MPI::ERR_WIN);
	check(errors == 1 && last_win == (MPI_Win)win, "a window's handler in C++");
	win.Free();
}

int copies, deletions;

template <class Object>
int copy_attr(const Object &, int, void *extra, void *value, void *copy, bool &flag)
{
	copies += *static_cast<int *>(extra);
	*static_cast<void **>(copy) = value;
	flag = true;
	return MPI::SUCCESS;
}
template <class Object> int delete_attr(Object &, int, void *, void *extra)
{
	deletions += *static_cast<int *>(extra);
	return MPI::SUCCESS;
}
/* a communicator is what it was made as */
int copy_cart(const MPI::Comm &comm, int, void *, void *, void *, bool &flag)
{
	copies = dynamic_cast<const MPI::Cartcomm *>(&comm) != NULL;
	flag = false;
	return MPI::SUCCESS;
}
int copy_type(const MPI::Datatype &, int, void *extra, const void *value, void *copy, bool &flag)
{
	copies += *static_cast<int *>(extra);
	*static_cast<const void **>(copy) = value;
	flag = true;
	return MPI::SUCCESS;
}

void attributes()
{
	int step = 10, value = 3, *got = NULL, dims[1] = { world.Get_size() };
	int key = MPI::Comm::Create_keyval(copy_attr<MPI::Comm>, delete_attr<MPI::Comm>, &step);
	int lost = MPI::Comm::Create_keyval(MPI::Comm::NULL_COPY_FN, MPI::Comm::NULL_DELETE_FN, NULL);
	int kept = MPI::Comm::Create_keyval(MPI::Comm::DUP_FN, MPI::Comm::NULL_DELETE_FN, NULL);
	MPI::Intracomm comm = world.Dup();

	copies = deletions = 0;
	comm.Set_attr(key, &value);
	comm.Set_attr(lost, &value);
	comm.Set_attr(kept, &value);
	MPI::Intracomm copy = comm.Dup();
	check(copies == 10 && copy.Get_attr(key, &got) && got == &value && copy.Get_attr(kept, &got) &&
		      !copy.Get_attr(lost, &got),
	      "attributes are copied by functions in C++");
	copy.Delete_attr(key);
	copy.Free();
	comm.Free();
	check(deletions == 20, "and deleted");
	MPI::Comm::Free_keyval(key);
	check(key == MPI::KEYVAL_INVALID, "Free_keyval");
	int *tag_ub = NULL;
	check(world.Get_attr(MPI::TAG_UB, &tag_ub) && *tag_ub >= 32767, "TAG_UB");

	bool periods[1] = { false };
	MPI::Cartcomm line = world.Create_cart(1, dims, periods, false);
	key = MPI::Comm::Create_keyval(copy_cart, MPI::Comm::NULL_DELETE_FN, NULL);
	line.Set_attr(key, &value);
	copies = 0;
	line.Dup().Free();
	check(copies == 1, "the function sees the class of the communicator");
	line.Free();

	key = MPI::Datatype::Create_keyval(copy_type, delete_attr<MPI::Datatype>, &step);
	copies = deletions = 0;
	MPI::Datatype type = MPI::INT.Dup();
	type.Set_attr(key, &value);
	MPI::Datatype other = type.Dup();
	bool there = other.Get_attr(key, &got) && got == &value;
	type.Free();
	other.Free();
	check(there && copies == 10 && deletions == 20, "attributes of datatypes");
	key = MPI::Win::Create_keyval(MPI::Win::NULL_COPY_FN, delete_attr<MPI::Win>, &step);
	deletions = 0;
	MPI::Win win = MPI::Win::Create(NULL, 0, 1, MPI::INFO_NULL, world);
	win.Set_attr(key, &value);
	there = win.Get_attr(key, &got) && got == &value;
	win.Free();
	check(there && deletions == 10, "attributes of windows");
}

int queried, freed, cancelled;

int query(void *extra, MPI::Status &status)
{
	queried++;
	status.Set_elements(MPI::INT, *static_cast<int *>(extra));
	status.Set_cancelled(cancelled != 0);
	status.Set_source(MPI::UNDEFINED);
	status.Set_tag(99);
	return MPI::SUCCESS;
}
int free_it(void *)
{
	freed++;
	return MPI::SUCCESS;
}
int cancel_it(void *, bool complete)
{
	cancelled = complete ? -1 : 1;
	return MPI::SUCCESS;
}

void generalized()
{
	int elements = 5;
	MPI::Grequest request = MPI::Grequest::Start(query, free_it, cancel_it, &elements);
	MPI::Status status;
	bool early = request.Test();

	request.Cancel();
	request.Complete();
	request.Wait(status);
	check(!early && queried == 1 && freed == 1 && cancelled == 1 && status.Get_elements(MPI::INT) == 5 &&
		      status.Is_cancelled() && status.Get_tag() == 99 && request == MPI::REQUEST_NULL,
	      "a generalized request");
}

} // namespace

void check_callbacks()
{
	exceptions();
	attributes();
	generalized();
}
