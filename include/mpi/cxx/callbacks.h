/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * C++ functions that MPI calls: of error handlers, operations, attributes and generalized requests. A
 * function of C stands between, for objects in C++ are more than handles. None but those of error handlers
 * may throw.
 */
#ifndef POSTERN_MPICXX_CALLBACKS_H
#define POSTERN_MPICXX_CALLBACKS_H

namespace MPI {
namespace postern {

/* An object for a handle, for the time of a call. */
template <class Object> class Named {
public:
	template <class Handle> explicit Named(Handle handle) : object_(handle) {}
	Object &get() { return object_; }

private:
	Object object_;
};
/* A communicator is one of several classes. */
template <> class Named<Comm> {
public:
	explicit Named(MPI_Comm handle) : object_(make(handle)) {}
	~Named() { delete object_; }
	Comm &get() { return *object_; }

private:
	Named(const Named &);
	Named &operator=(const Named &);
	static Comm *make(MPI_Comm handle)
	{
		int inter = 0, topology = MPI_UNDEFINED;

		if (handle == MPI_COMM_NULL)
			return new Comm_Null;
		PMPI_Comm_test_inter(handle, &inter);
		if (inter)
			return new Intercomm(handle);
		PMPI_Topo_test(handle, &topology);
		if (topology == MPI_CART)
			return new Cartcomm(handle);
		if (topology == MPI_GRAPH)
			return new Graphcomm(handle);
		if (topology == MPI_DIST_GRAPH)
			return new Distgraphcomm(handle);
		return new Intracomm(handle);
	}
	Comm *object_;
};

/* ---- error handlers: the function runs when the call that failed has returned */

inline Handler *handler_of_comm(MPI_Comm comm)
{
	MPI_Errhandler handle = MPI_ERRHANDLER_NULL;
	Handler *h;

	if (PMPI_Comm_get_errhandler(comm, &handle) != MPI_SUCCESS)
		return 0;
	h = find_handler(handle);
	PMPI_Errhandler_free(&handle);
	return h;
}
inline Handler *handler_of_win(MPI_Win win)
{
	MPI_Errhandler handle = MPI_ERRHANDLER_NULL;
	Handler *h;

	if (PMPI_Win_get_errhandler(win, &handle) != MPI_SUCCESS)
		return 0;
	h = find_handler(handle);
	PMPI_Errhandler_free(&handle);
	return h;
}
inline void call_handler(int code)
{
	Noted note = noted();
	Handler *h = 0;

	noted().where = Noted::NOTHING;
	if (note.code != code)
		return; /* of a call of C, which has had its answer */
	if (note.where == Noted::IN_COMM) {
		h = handler_of_comm(note.comm);
		/* errors of no communicator are those of MPI_COMM_SELF, by the handler of the world */
		if (!h || !h->of_comm)
			h = handler_of_comm(MPI_COMM_WORLD);
		if (h && h->of_comm) {
			Named<Comm> comm(note.comm);
			h->of_comm(comm.get(), &code);
		}
	} else if (note.where == Noted::IN_WIN) {
		h = handler_of_win(note.win);
		if (h && h->of_win) {
			Named<Win> win(note.win);
			h->of_win(win.get(), &code);
		}
	}
}

/* ---- operations: MPI says not which one it calls, so each C++ function has a function of its own */

enum { OPERATIONS = 128 };
inline User_function **operations()
{
	static User_function *functions[OPERATIONS];
	return functions;
}
template <int N> void run_operation(void *in, void *inout, int *len, MPI_Datatype *type)
{
	operations()[N](in, inout, *len, Datatype(*type));
}
template <int N> struct Operation {
	static MPI_User_function *at(int n) { return n == N - 1 ? run_operation<N - 1> : Operation<N - 1>::at(n); }
};
template <> struct Operation<0> {
	static MPI_User_function *at(int) { return 0; }
};
inline MPI_User_function *c_function_of(User_function *function)
{
	for (int i = 0; i < OPERATIONS; i++) {
		User_function *none = 0;

		if (__atomic_compare_exchange_n(&operations()[i], &none, function, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE) || none == function)
			return Operation<OPERATIONS>::at(i);
	}
	return 0; /* which MPI_Op_create refuses */
}

/* ---- attributes of Comm */

struct Comm_keyval {
	Comm::Copy_attr_function *copy;
	Comm::Delete_attr_function *del;
	void *extra_state;
};
extern "C" {
inline int postern_mpicxx_copy_comm(MPI_Comm handle, int keyval, void *state, void *value, void *copy, int *flag)
{
	const Comm_keyval *k = static_cast<Comm_keyval *>(state);
	Named<Comm> object(handle);
	bool copied = false;
	int error = k->copy(object.get(), keyval, k->extra_state, value, copy, copied);

	*flag = copied;
	return error;
}
inline int postern_mpicxx_delete_comm(MPI_Comm handle, int keyval, void *value, void *state)
{
	const Comm_keyval *k = static_cast<Comm_keyval *>(state);
	Named<Comm> object(handle);

	return k->del(object.get(), keyval, value, k->extra_state);
}
}

/* ---- attributes of Datatype */

struct Datatype_keyval {
	Datatype::Copy_attr_function *copy;
	Datatype::Delete_attr_function *del;
	void *extra_state;
};
extern "C" {
inline int postern_mpicxx_copy_type(MPI_Datatype handle, int keyval, void *state, void *value, void *copy, int *flag)
{
	const Datatype_keyval *k = static_cast<Datatype_keyval *>(state);
	Named<Datatype> object(handle);
	bool copied = false;
	int error = k->copy(object.get(), keyval, k->extra_state, value, copy, copied);

	*flag = copied;
	return error;
}
inline int postern_mpicxx_delete_type(MPI_Datatype handle, int keyval, void *value, void *state)
{
	const Datatype_keyval *k = static_cast<Datatype_keyval *>(state);
	Named<Datatype> object(handle);

	return k->del(object.get(), keyval, value, k->extra_state);
}
}

/* ---- attributes of Win */

struct Win_keyval {
	Win::Copy_attr_function *copy;
	Win::Delete_attr_function *del;
	void *extra_state;
};
extern "C" {
inline int postern_mpicxx_copy_win(MPI_Win handle, int keyval, void *state, void *value, void *copy, int *flag)
{
	const Win_keyval *k = static_cast<Win_keyval *>(state);
	Named<Win> object(handle);
	bool copied = false;
	int error = k->copy(object.get(), keyval, k->extra_state, value, copy, copied);

	*flag = copied;
	return error;
}
inline int postern_mpicxx_delete_win(MPI_Win handle, int keyval, void *value, void *state)
{
	const Win_keyval *k = static_cast<Win_keyval *>(state);
	Named<Win> object(handle);

	return k->del(object.get(), keyval, value, k->extra_state);
}
}

/* ---- generalized requests */

struct Grequest_state {
	Grequest::Query_function *query;
	Grequest::Free_function *free;
	Grequest::Cancel_function *cancel;
	void *extra_state;
};
extern "C" {
inline int postern_mpicxx_query(void *state, MPI_Status *status)
{
	const Grequest_state *g = static_cast<Grequest_state *>(state);
	Status object(*status);
	int error = g->query(g->extra_state, object);

	*status = object;
	return error;
}
inline int postern_mpicxx_free(void *state)
{
	Grequest_state *g = static_cast<Grequest_state *>(state);
	int error = g->free(g->extra_state);

	delete g;
	return error;
}
inline int postern_mpicxx_cancel(void *state, int complete)
{
	const Grequest_state *g = static_cast<Grequest_state *>(state);

	return g->cancel(g->extra_state, complete != 0);
}
}

} /* namespace postern */

inline void Op::Init(User_function *function, bool commute)
{
	postern::check(MPI_Op_create(postern::c_function_of(function), commute, &handle_));
}

inline int Comm::Create_keyval(Copy_attr_function *copy, Delete_attr_function *del, void *extra_state)
{
	postern::Comm_keyval *k = new postern::Comm_keyval;
	int keyval = MPI_KEYVAL_INVALID;

	/* it stays, for attributes may outlive the key */
	k->copy = copy;
	k->del = del;
	k->extra_state = extra_state;
	postern::check(MPI_Comm_create_keyval(postern::postern_mpicxx_copy_comm,
		postern::postern_mpicxx_delete_comm, &keyval, k));
	return keyval;
}

inline int Datatype::Create_keyval(Copy_attr_function *copy, Delete_attr_function *del, void *extra_state)
{
	postern::Datatype_keyval *k = new postern::Datatype_keyval;
	int keyval = MPI_KEYVAL_INVALID;

	/* it stays, for attributes may outlive the key */
	k->copy = copy;
	k->del = del;
	k->extra_state = extra_state;
	postern::check(MPI_Type_create_keyval(postern::postern_mpicxx_copy_type,
		postern::postern_mpicxx_delete_type, &keyval, k));
	return keyval;
}

inline int Win::Create_keyval(Copy_attr_function *copy, Delete_attr_function *del, void *extra_state)
{
	postern::Win_keyval *k = new postern::Win_keyval;
	int keyval = MPI_KEYVAL_INVALID;

	/* it stays, for attributes may outlive the key */
	k->copy = copy;
	k->del = del;
	k->extra_state = extra_state;
	postern::check(MPI_Win_create_keyval(postern::postern_mpicxx_copy_win,
		postern::postern_mpicxx_delete_win, &keyval, k));
	return keyval;
}

inline Grequest Grequest::Start(Query_function *query, Free_function *free, Cancel_function *cancel,
				void *extra_state)
{
	postern::Grequest_state *g = new postern::Grequest_state;
	MPI_Request made = MPI_REQUEST_NULL;

	g->query = query;
	g->free = free;
	g->cancel = cancel;
	g->extra_state = extra_state;
	postern::check(MPI_Grequest_start(postern::postern_mpicxx_query, postern::postern_mpicxx_free,
					  postern::postern_mpicxx_cancel, g, &made));
	return made;
}

} /* namespace MPI */

#endif
