/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI::Status, Info, Group and Op.
 */
#ifndef POSTERN_MPICXX_OBJECTS_H
#define POSTERN_MPICXX_OBJECTS_H

namespace MPI {

class Status {
public:
	Status() : status_() {}
	Status(const MPI_Status &status) : status_(status) {}
	operator MPI_Status() const { return status_; }
	MPI_Status *c() { return &status_; } /* for the functions of C */

	int Get_count(const Datatype &type) const
	{
		int count = 0;
		postern::check(MPI_Get_count(&status_, type, &count));
		return count;
	}
	int Get_elements(const Datatype &type) const
	{
		int count = 0;
		postern::check(MPI_Get_elements(&status_, type, &count));
		return count;
	}
	bool Is_cancelled() const
	{
		int flag = 0;
		postern::check(MPI_Test_cancelled(&status_, &flag));
		return flag != 0;
	}
	int Get_source() const { return status_.MPI_SOURCE; }
	int Get_tag() const { return status_.MPI_TAG; }
	int Get_error() const { return status_.MPI_ERROR; }
	void Set_source(int source) { status_.MPI_SOURCE = source; }
	void Set_tag(int tag) { status_.MPI_TAG = tag; }
	void Set_error(int error) { status_.MPI_ERROR = error; }
	void Set_elements(const Datatype &type, int count)
	{
		postern::check(MPI_Status_set_elements(&status_, type, count));
	}
	void Set_cancelled(bool flag) { postern::check(MPI_Status_set_cancelled(&status_, flag)); }

private:
	MPI_Status status_;
};

namespace postern {

/* The statuses of an array, from a function of C. */
class Statuses {
public:
	explicit Statuses(int n) : statuses_(new MPI_Status[n > 0 ? n : 1]()) {}
	~Statuses() { delete[] statuses_; }
	operator MPI_Status *() { return statuses_; }
	void put_back(int n, Status statuses[]) const
	{
		for (int i = 0; i < n; i++)
			statuses[i] = statuses_[i];
	}

private:
	Statuses(const Statuses &);
	Statuses &operator=(const Statuses &);
	MPI_Status *statuses_;
};

} /* namespace postern */

class Info {
public:
	Info(MPI_Info handle = MPI_INFO_NULL) : handle_(handle) {}
	operator MPI_Info() const { return handle_; }
	bool operator==(const Info &other) const { return handle_ == other.handle_; }
	bool operator!=(const Info &other) const { return handle_ != other.handle_; }
	bool operator==(MPI_Info other) const { return handle_ == other; }
	bool operator!=(MPI_Info other) const { return handle_ != other; }

	static Info Create()
	{
		MPI_Info made = MPI_INFO_NULL;
		postern::check(MPI_Info_create(&made));
		return made;
	}
	Info Dup() const
	{
		MPI_Info made = MPI_INFO_NULL;
		postern::check(MPI_Info_dup(handle_, &made));
		return made;
	}
	void Free() { postern::check(MPI_Info_free(&handle_)); }
	void Set(const char *key, const char *value) { postern::check(MPI_Info_set(handle_, key, value)); }
	void Delete(const char *key) { postern::check(MPI_Info_delete(handle_, key)); }
	bool Get(const char *key, int valuelen, char *value) const
	{
		int flag = 0;
		postern::check(MPI_Info_get(handle_, key, valuelen, value, &flag));
		return flag != 0;
	}
	bool Get_valuelen(const char *key, int &valuelen) const
	{
		int flag = 0;
		postern::check(MPI_Info_get_valuelen(handle_, key, &valuelen, &flag));
		return flag != 0;
	}
	int Get_nkeys() const
	{
		int n = 0;
		postern::check(MPI_Info_get_nkeys(handle_, &n));
		return n;
	}
	void Get_nthkey(int n, char *key) const { postern::check(MPI_Info_get_nthkey(handle_, n, key)); }

private:
	MPI_Info handle_;
};

class Group {
public:
	Group(MPI_Group handle = MPI_GROUP_NULL) : handle_(handle) {}
	operator MPI_Group() const { return handle_; }
	bool operator==(const Group &other) const { return handle_ == other.handle_; }
	bool operator!=(const Group &other) const { return handle_ != other.handle_; }
	bool operator==(MPI_Group other) const { return handle_ == other; }
	bool operator!=(MPI_Group other) const { return handle_ != other; }

	int Get_size() const
	{
		int size = 0;
		postern::check(MPI_Group_size(handle_, &size));
		return size;
	}
	int Get_rank() const
	{
		int rank = MPI_UNDEFINED;
		postern::check(MPI_Group_rank(handle_, &rank));
		return rank;
	}
	static void Translate_ranks(const Group &group1, int n, const int ranks1[], const Group &group2, int ranks2[])
	{
		postern::check(MPI_Group_translate_ranks(group1, n, ranks1, group2, ranks2));
	}
	static int Compare(const Group &group1, const Group &group2)
	{
		int result = MPI_UNEQUAL;
		postern::check(MPI_Group_compare(group1, group2, &result));
		return result;
	}
	static Group Union(const Group &group1, const Group &group2)
	{
		MPI_Group made = MPI_GROUP_NULL;
		postern::check(MPI_Group_union(group1, group2, &made));
		return made;
	}
	static Group Intersect(const Group &group1, const Group &group2)
	{
		MPI_Group made = MPI_GROUP_NULL;
		postern::check(MPI_Group_intersection(group1, group2, &made));
		return made;
	}
	static Group Difference(const Group &group1, const Group &group2)
	{
		MPI_Group made = MPI_GROUP_NULL;
		postern::check(MPI_Group_difference(group1, group2, &made));
		return made;
	}
	Group Incl(int n, const int ranks[]) const
	{
		MPI_Group made = MPI_GROUP_NULL;
		postern::check(MPI_Group_incl(handle_, n, ranks, &made));
		return made;
	}
	Group Excl(int n, const int ranks[]) const
	{
		MPI_Group made = MPI_GROUP_NULL;
		postern::check(MPI_Group_excl(handle_, n, ranks, &made));
		return made;
	}
	Group Range_incl(int n, const int ranges[][3]) const
	{
		MPI_Group made = MPI_GROUP_NULL;
		postern::check(MPI_Group_range_incl(handle_, n, const_cast<int(*)[3]>(ranges), &made));
		return made;
	}
	Group Range_excl(int n, const int ranges[][3]) const
	{
		MPI_Group made = MPI_GROUP_NULL;
		postern::check(MPI_Group_range_excl(handle_, n, const_cast<int(*)[3]>(ranges), &made));
		return made;
	}
	void Free() { postern::check(MPI_Group_free(&handle_)); }

private:
	MPI_Group handle_;
};

typedef void User_function(const void *invec, void *inoutvec, int len, const Datatype &datatype);

class Op {
public:
	Op(MPI_Op handle = MPI_OP_NULL) : handle_(handle) {}
	operator MPI_Op() const { return handle_; }
	bool operator==(const Op &other) const { return handle_ == other.handle_; }
	bool operator!=(const Op &other) const { return handle_ != other.handle_; }
	bool operator==(MPI_Op other) const { return handle_ == other; }
	bool operator!=(MPI_Op other) const { return handle_ != other; }

	inline void Init(User_function *function, bool commute);
	void Free() { postern::check(MPI_Op_free(&handle_)); }
	bool Is_commutative() const
	{
		int flag = 0;
		postern::check(MPI_Op_commutative(handle_, &flag));
		return flag != 0;
	}
	void Reduce_local(const void *inbuf, void *inoutbuf, int count, const Datatype &type) const
	{
		postern::check(MPI_Reduce_local(inbuf, inoutbuf, count, type, handle_));
	}

private:
	MPI_Op handle_;
};

} /* namespace MPI */

#endif
