/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * Errors in C++: exceptions, and handlers that are C++ functions. Such a handler may throw, but not through
 * the library, which is C. So the library calls one that only notes the error, and the C++ function runs
 * when the call has returned. A call of C on such an object gives the code alone.
 */
#ifndef POSTERN_MPICXX_ERRORS_H
#define POSTERN_MPICXX_ERRORS_H

namespace MPI {

typedef MPI_Aint Aint;
typedef MPI_Offset Offset;
typedef MPI_Fint Fint;

class Comm;
class Comm_Null;
class Intracomm;
class Intercomm;
class Cartcomm;
class Graphcomm;
class Distgraphcomm;
class Datatype;
class Win;

class Exception {
public:
	explicit Exception(int error_code) : code_(error_code), class_(MPI_ERR_UNKNOWN)
	{
		int length = 0;

		text_[0] = '\0';
		PMPI_Error_class(error_code, &class_);
		PMPI_Error_string(error_code, text_, &length);
	}
	virtual ~Exception() {}
	int Get_error_code() const { return code_; }
	int Get_error_class() const { return class_; }
	const char *Get_error_string() const { return text_; }

private:
	int code_, class_;
	char text_[MPI_MAX_ERROR_STRING];
};

typedef void Comm_errhandler_function(Comm &, int *, ...);
typedef void Win_errhandler_function(Win &, int *, ...);

namespace postern { /* what the classes share; not for programs */

/* An error that a handler in C++ is to be called for. */
struct Noted {
	enum { NOTHING, IN_COMM, IN_WIN } where;
	int code;
	MPI_Comm comm;
	MPI_Win win;
};
inline Noted &noted()
{
	static __thread Noted note;
	return note;
}

extern "C" {
inline void postern_mpicxx_note_comm(MPI_Comm *comm, int *code, ...)
{
	noted().where = Noted::IN_COMM;
	noted().code = *code;
	noted().comm = *comm;
}
inline void postern_mpicxx_note_win(MPI_Win *win, int *code, ...)
{
	noted().where = Noted::IN_WIN;
	noted().code = *code;
	noted().win = *win;
}
}

/* The functions of handlers. Entries stay, as the handlers do. */
struct Handler {
	MPI_Errhandler handle;
	Comm_errhandler_function *of_comm;
	Win_errhandler_function *of_win;
	Handler *next;
};
inline Handler *&handlers()
{
	static Handler *first;
	return first;
}
inline Handler *find_handler(MPI_Errhandler handle)
{
	Handler *h = __atomic_load_n(&handlers(), __ATOMIC_ACQUIRE);

	while (h && h->handle != handle)
		h = h->next;
	return h;
}

void call_handler(int code); /* in callbacks.h */

inline void check(int code)
{
	if (code != MPI_SUCCESS)
		call_handler(code);
	else
		noted().where = Noted::NOTHING; /* of what a call of C or a callback has had */
}

inline MPI_Errhandler make_handler(Comm_errhandler_function *of_comm, Win_errhandler_function *of_win)
{
	MPI_Errhandler handle = MPI_ERRHANDLER_NULL;
	Handler *h;

	if (of_comm)
		check(MPI_Comm_create_errhandler(postern_mpicxx_note_comm, &handle));
	else
		check(MPI_Win_create_errhandler(postern_mpicxx_note_win, &handle));
	if (handle == MPI_ERRHANDLER_NULL)
		return handle;
	h = new Handler;
	h->handle = handle;
	h->of_comm = of_comm;
	h->of_win = of_win;
	h->next = __atomic_load_n(&handlers(), __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&handlers(), &h->next, h, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
	}
	return handle;
}

inline void throw_of_comm(Comm &, int *code, ...)
{
	throw Exception(*code);
}
inline void throw_of_win(Win &, int *code, ...)
{
	throw Exception(*code);
}
/* They are made at the first use, for MPI may not be called before. */
inline MPI_Errhandler comm_thrower()
{
	static MPI_Errhandler handle = make_handler(throw_of_comm, 0);
	return handle;
}
inline MPI_Errhandler win_thrower()
{
	static MPI_Errhandler handle = make_handler(0, throw_of_win);
	return handle;
}

/* The handles of an array of objects, for a function of C. */
template <class Handle, class Object> class Handles {
public:
	Handles(int n, const Object objects[]) : handles_(new Handle[n > 0 ? n : 1])
	{
		for (int i = 0; i < n; i++)
			handles_[i] = objects[i];
	}
	~Handles() { delete[] handles_; }
	operator Handle *() { return handles_; }
	void put_back(int n, Object objects[])
	{
		for (int i = 0; i < n; i++)
			objects[i] = handles_[i];
	}

private:
	Handles(const Handles &);
	Handles &operator=(const Handles &);
	Handle *handles_;
};

/* Truth values, as C has them. */
class Ints {
public:
	Ints(int n, const bool values[]) : ints_(new int[n > 0 ? n : 1])
	{
		for (int i = 0; i < n; i++)
			ints_[i] = values && values[i];
	}
	~Ints() { delete[] ints_; }
	operator int *() { return ints_; }
	void put_back(int n, bool values[]) const
	{
		for (int i = 0; i < n; i++)
			values[i] = ints_[i] != 0;
	}

private:
	Ints(const Ints &);
	Ints &operator=(const Ints &);
	int *ints_;
};

} /* namespace postern */

class Errhandler {
public:
	Errhandler(MPI_Errhandler handle = MPI_ERRHANDLER_NULL) : handle_(handle), throws_(false) {}
	/* ERRORS_THROW_EXCEPTIONS, which is another handle for each kind of object */
	enum Throws { THROWS };
	Errhandler(Throws) : handle_(MPI_ERRHANDLER_NULL), throws_(true) {}
	operator MPI_Errhandler() const { return throws_ ? postern::comm_thrower() : handle_; }
	MPI_Errhandler of_win() const { return throws_ ? postern::win_thrower() : handle_; }
	bool operator==(const Errhandler &other) const
	{
		return throws() || other.throws() ? throws() == other.throws() : handle_ == other.handle_;
	}
	bool operator!=(const Errhandler &other) const { return !(*this == other); }
	void Free()
	{
		/* those in C++ stay: they are found by their handles, which objects may still have */
		if (throws_ || postern::find_handler(handle_))
			handle_ = MPI_ERRHANDLER_NULL;
		else
			postern::check(MPI_Errhandler_free(&handle_));
		throws_ = false;
	}

private:
	bool throws() const
	{
		postern::Handler *h = throws_ ? 0 : postern::find_handler(handle_);

		return throws_ || (h && (h->of_comm == postern::throw_of_comm || h->of_win == postern::throw_of_win));
	}
	MPI_Errhandler handle_;
	bool throws_;
};

} /* namespace MPI */

#endif
