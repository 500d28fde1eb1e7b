/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI::Win, one-sided communication.
 */
#ifndef POSTERN_MPICXX_WIN_H
#define POSTERN_MPICXX_WIN_H

namespace MPI {

class Win {
public:
	typedef Win_errhandler_function Errhandler_function;
	typedef Win_errhandler_function Errhandler_fn;
	typedef int Copy_attr_function(const Win &oldwin, int keyval, void *extra_state, void *value_in, void *value_out,
				       bool &flag);
	typedef int Delete_attr_function(Win &win, int keyval, void *value, void *extra_state);

	Win(MPI_Win handle = MPI_WIN_NULL) : handle_(handle) {}
	operator MPI_Win() const { return handle_; }
	bool operator==(const Win &other) const { return handle_ == other.handle_; }
	bool operator!=(const Win &other) const { return handle_ != other.handle_; }
	bool operator==(MPI_Win other) const { return handle_ == other; }
	bool operator!=(MPI_Win other) const { return handle_ != other; }

	static Win Create(const void *base, Aint size, int disp_unit, const Info &info, const Intracomm &comm)
	{
		MPI_Win made = MPI_WIN_NULL;
		postern::check(MPI_Win_create(const_cast<void *>(base), size, disp_unit, info, comm, &made));
		return made;
	}
	void Free() { postern::check(MPI_Win_free(&handle_)); }
	Group Get_group() const
	{
		MPI_Group group = MPI_GROUP_NULL;
		postern::check(MPI_Win_get_group(handle_, &group));
		return group;
	}
	void Put(const void *origin, int origin_count, const Datatype &origin_type, int target, Aint disp,
		 int target_count, const Datatype &target_type) const
	{
		postern::check(MPI_Put(origin, origin_count, origin_type, target, disp, target_count, target_type,
				       handle_));
	}
	void Get(void *origin, int origin_count, const Datatype &origin_type, int target, Aint disp, int target_count,
		 const Datatype &target_type) const
	{
		postern::check(MPI_Get(origin, origin_count, origin_type, target, disp, target_count, target_type,
				       handle_));
	}
	void Accumulate(const void *origin, int origin_count, const Datatype &origin_type, int target, Aint disp,
			int target_count, const Datatype &target_type, const Op &op) const
	{
		postern::check(MPI_Accumulate(origin, origin_count, origin_type, target, disp, target_count,
					      target_type, op, handle_));
	}
	void Fence(int assert) const { postern::check(MPI_Win_fence(assert, handle_)); }
	void Start(const Group &group, int assert) const { postern::check(MPI_Win_start(group, assert, handle_)); }
	void Complete() const { postern::check(MPI_Win_complete(handle_)); }
	void Post(const Group &group, int assert) const { postern::check(MPI_Win_post(group, assert, handle_)); }
	void Wait() const { postern::check(MPI_Win_wait(handle_)); }
	bool Test() const
	{
		int flag = 0;
		postern::check(MPI_Win_test(handle_, &flag));
		return flag != 0;
	}
	void Lock(int lock_type, int rank, int assert) const
	{
		postern::check(MPI_Win_lock(lock_type, rank, assert, handle_));
	}
	void Unlock(int rank) const { postern::check(MPI_Win_unlock(rank, handle_)); }
	void Set_name(const char *name) { postern::check(MPI_Win_set_name(handle_, name)); }
	void Get_name(char *name, int &length) const { postern::check(MPI_Win_get_name(handle_, name, &length)); }

	static Errhandler Create_errhandler(Errhandler_function *function) { return postern::make_handler(0, function); }
	void Set_errhandler(const Errhandler &handler) const
	{
		postern::check(MPI_Win_set_errhandler(handle_, handler.of_win()));
	}
	Errhandler Get_errhandler() const
	{
		MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
		postern::check(MPI_Win_get_errhandler(handle_, &handler));
		return handler;
	}
	void Call_errhandler(int code) const
	{
		postern::noted().where = postern::Noted::NOTHING;
		int error = MPI_Win_call_errhandler(handle_, code);
		postern::check(error != MPI_SUCCESS ? error : postern::noted().where ? code : MPI_SUCCESS);
	}

	static inline int Create_keyval(Copy_attr_function *copy, Delete_attr_function *del, void *extra_state);
	static void Free_keyval(int &keyval) { postern::check(MPI_Win_free_keyval(&keyval)); }
	void Set_attr(int keyval, const void *value)
	{
		postern::check(MPI_Win_set_attr(handle_, keyval, const_cast<void *>(value)));
	}
	bool Get_attr(int keyval, void *value) const
	{
		int flag = 0;
		postern::check(MPI_Win_get_attr(handle_, keyval, value, &flag));
		return flag != 0;
	}
	void Delete_attr(int keyval) { postern::check(MPI_Win_delete_attr(handle_, keyval)); }
	static int NULL_COPY_FN(const Win &, int, void *, void *, void *, bool &flag)
	{
		flag = false;
		return MPI_SUCCESS;
	}
	static int DUP_FN(const Win &, int, void *, void *value, void *copy, bool &flag)
	{
		*static_cast<void **>(copy) = value;
		flag = true;
		return MPI_SUCCESS;
	}
	static int NULL_DELETE_FN(Win &, int, void *, void *) { return MPI_SUCCESS; }

private:
	MPI_Win handle_;
};

} /* namespace MPI */

#endif
