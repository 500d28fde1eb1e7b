/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI::Request and its kinds: persistent and generalized requests.
 */
#ifndef POSTERN_MPICXX_REQUEST_H
#define POSTERN_MPICXX_REQUEST_H

namespace MPI {

class Request {
public:
	Request(MPI_Request handle = MPI_REQUEST_NULL) : handle_(handle) {}
	operator MPI_Request() const { return handle_; }
	bool operator==(const Request &other) const { return handle_ == other.handle_; }
	bool operator!=(const Request &other) const { return handle_ != other.handle_; }
	bool operator==(MPI_Request other) const { return handle_ == other; }
	bool operator!=(MPI_Request other) const { return handle_ != other; }

	void Wait(Status &status) { postern::check(MPI_Wait(&handle_, status.c())); }
	void Wait() { postern::check(MPI_Wait(&handle_, MPI_STATUS_IGNORE)); }
	bool Test(Status &status)
	{
		int flag = 0;
		postern::check(MPI_Test(&handle_, &flag, status.c()));
		return flag != 0;
	}
	bool Test()
	{
		int flag = 0;
		postern::check(MPI_Test(&handle_, &flag, MPI_STATUS_IGNORE));
		return flag != 0;
	}
	bool Get_status(Status &status) const
	{
		int flag = 0;
		postern::check(MPI_Request_get_status(handle_, &flag, status.c()));
		return flag != 0;
	}
	bool Get_status() const
	{
		int flag = 0;
		postern::check(MPI_Request_get_status(handle_, &flag, MPI_STATUS_IGNORE));
		return flag != 0;
	}
	void Free() { postern::check(MPI_Request_free(&handle_)); }
	void Cancel() const
	{
		MPI_Request handle = handle_;
		postern::check(MPI_Cancel(&handle));
	}

	static int Waitany(int count, Request requests[], Status &status) { return wait_any(count, requests, status.c()); }
	static int Waitany(int count, Request requests[]) { return wait_any(count, requests, MPI_STATUS_IGNORE); }
	static bool Testany(int count, Request requests[], int &index, Status &status)
	{
		return test_any(count, requests, index, status.c());
	}
	static bool Testany(int count, Request requests[], int &index)
	{
		return test_any(count, requests, index, MPI_STATUS_IGNORE);
	}
	static void Waitall(int count, Request requests[], Status statuses[])
	{
		postern::Handles<MPI_Request, Request> handles(count, requests);
		postern::Statuses got(count);
		int error = MPI_Waitall(count, handles, got);

		handles.put_back(count, requests);
		got.put_back(count, statuses);
		postern::check(error);
	}
	static void Waitall(int count, Request requests[])
	{
		postern::Handles<MPI_Request, Request> handles(count, requests);
		int error = MPI_Waitall(count, handles, MPI_STATUSES_IGNORE);

		handles.put_back(count, requests);
		postern::check(error);
	}
	static bool Testall(int count, Request requests[], Status statuses[])
	{
		postern::Handles<MPI_Request, Request> handles(count, requests);
		postern::Statuses got(count);
		int flag = 0, error = MPI_Testall(count, handles, &flag, got);

		handles.put_back(count, requests);
		if (flag)
			got.put_back(count, statuses);
		postern::check(error);
		return flag != 0;
	}
	static bool Testall(int count, Request requests[])
	{
		postern::Handles<MPI_Request, Request> handles(count, requests);
		int flag = 0, error = MPI_Testall(count, handles, &flag, MPI_STATUSES_IGNORE);

		handles.put_back(count, requests);
		postern::check(error);
		return flag != 0;
	}
	static int Waitsome(int count, Request requests[], int indices[], Status statuses[])
	{
		return some(MPI_Waitsome, count, requests, indices, statuses);
	}
	static int Waitsome(int count, Request requests[], int indices[])
	{
		return some(MPI_Waitsome, count, requests, indices, 0);
	}
	static int Testsome(int count, Request requests[], int indices[], Status statuses[])
	{
		return some(MPI_Testsome, count, requests, indices, statuses);
	}
	static int Testsome(int count, Request requests[], int indices[])
	{
		return some(MPI_Testsome, count, requests, indices, 0);
	}

protected:
	MPI_Request handle_;

private:
	static int wait_any(int count, Request requests[], MPI_Status *status)
	{
		postern::Handles<MPI_Request, Request> handles(count, requests);
		int index = MPI_UNDEFINED, error = MPI_Waitany(count, handles, &index, status);

		handles.put_back(count, requests);
		postern::check(error);
		return index;
	}
	static bool test_any(int count, Request requests[], int &index, MPI_Status *status)
	{
		postern::Handles<MPI_Request, Request> handles(count, requests);
		int flag = 0, error = MPI_Testany(count, handles, &index, &flag, status);

		handles.put_back(count, requests);
		postern::check(error);
		return flag != 0;
	}
	typedef int Some(int, MPI_Request[], int *, int[], MPI_Status[]);
	static int some(Some *function, int count, Request requests[], int indices[], Status statuses[])
	{
		postern::Handles<MPI_Request, Request> handles(count, requests);
		postern::Statuses got(count);
		int done = MPI_UNDEFINED;
		int error = function(count, handles, &done, indices, got);

		handles.put_back(count, requests);
		if (statuses && done != MPI_UNDEFINED)
			got.put_back(done, statuses);
		postern::check(error);
		return done;
	}
};

class Prequest : public Request {
public:
	Prequest(MPI_Request handle = MPI_REQUEST_NULL) : Request(handle) {}
	Prequest(const Request &other) : Request(other) {}

	void Start() { postern::check(MPI_Start(&handle_)); }
	static void Startall(int count, Prequest requests[])
	{
		postern::Handles<MPI_Request, Prequest> handles(count, requests);
		int error = MPI_Startall(count, handles);

		handles.put_back(count, requests);
		postern::check(error);
	}
};

class Grequest : public Request {
public:
	typedef int Query_function(void *extra_state, Status &status);
	typedef int Free_function(void *extra_state);
	typedef int Cancel_function(void *extra_state, bool complete);

	Grequest(MPI_Request handle = MPI_REQUEST_NULL) : Request(handle) {}
	Grequest(const Request &other) : Request(other) {}

	static inline Grequest Start(Query_function *query, Free_function *free, Cancel_function *cancel,
				     void *extra_state);
	void Complete() { postern::check(MPI_Grequest_complete(handle_)); }
};

} /* namespace MPI */

#endif
