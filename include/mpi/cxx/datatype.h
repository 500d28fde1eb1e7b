/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI::Datatype.
 */
#ifndef POSTERN_MPICXX_DATATYPE_H
#define POSTERN_MPICXX_DATATYPE_H

namespace MPI {

class Datatype {
public:
	typedef int Copy_attr_function(const Datatype &oldtype, int keyval, void *extra_state, const void *value_in,
				       void *value_out, bool &flag);
	typedef int Delete_attr_function(Datatype &type, int keyval, void *value, void *extra_state);

	Datatype(MPI_Datatype handle = MPI_DATATYPE_NULL) : handle_(handle) {}
	operator MPI_Datatype() const { return handle_; }
	bool operator==(const Datatype &other) const { return handle_ == other.handle_; }
	bool operator!=(const Datatype &other) const { return handle_ != other.handle_; }
	bool operator==(MPI_Datatype other) const { return handle_ == other; }
	bool operator!=(MPI_Datatype other) const { return handle_ != other; }

	Datatype Create_contiguous(int count) const
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_contiguous(count, handle_, &made));
		return made;
	}
	Datatype Create_vector(int count, int blocklength, int stride) const
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_vector(count, blocklength, stride, handle_, &made));
		return made;
	}
	Datatype Create_hvector(int count, int blocklength, Aint stride) const
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_create_hvector(count, blocklength, stride, handle_, &made));
		return made;
	}
	Datatype Create_indexed(int count, const int blocklengths[], const int displacements[]) const
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_indexed(count, blocklengths, displacements, handle_, &made));
		return made;
	}
	Datatype Create_hindexed(int count, const int blocklengths[], const Aint displacements[]) const
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_create_hindexed(count, blocklengths, displacements, handle_, &made));
		return made;
	}
	Datatype Create_indexed_block(int count, int blocklength, const int displacements[]) const
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_create_indexed_block(count, blocklength, displacements, handle_, &made));
		return made;
	}
	static Datatype Create_struct(int count, const int blocklengths[], const Aint displacements[],
				      const Datatype types[])
	{
		postern::Handles<MPI_Datatype, Datatype> handles(count, types);
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_create_struct(count, blocklengths, displacements, handles, &made));
		return made;
	}
	Datatype Create_subarray(int ndims, const int sizes[], const int subsizes[], const int starts[], int order) const
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_create_subarray(ndims, sizes, subsizes, starts, order, handle_, &made));
		return made;
	}
	Datatype Create_darray(int size, int rank, int ndims, const int gsizes[], const int distribs[],
			       const int dargs[], const int psizes[], int order) const
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_create_darray(size, rank, ndims, gsizes, distribs, dargs, psizes, order,
						      handle_, &made));
		return made;
	}
	Datatype Create_resized(Aint lb, Aint extent) const
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_create_resized(handle_, lb, extent, &made));
		return made;
	}
	Datatype Dup() const
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_dup(handle_, &made));
		return made;
	}
	static Datatype Create_f90_integer(int range)
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_create_f90_integer(range, &made));
		return made;
	}
	static Datatype Create_f90_real(int precision, int range)
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_create_f90_real(precision, range, &made));
		return made;
	}
	static Datatype Create_f90_complex(int precision, int range)
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_create_f90_complex(precision, range, &made));
		return made;
	}
	static Datatype Match_size(int typeclass, int size)
	{
		MPI_Datatype made = MPI_DATATYPE_NULL;
		postern::check(MPI_Type_match_size(typeclass, size, &made));
		return made;
	}
	void Commit() { postern::check(MPI_Type_commit(&handle_)); }
	void Free() { postern::check(MPI_Type_free(&handle_)); }

	int Get_size() const
	{
		int size = 0;
		postern::check(MPI_Type_size(handle_, &size));
		return size;
	}
	void Get_extent(Aint &lb, Aint &extent) const { postern::check(MPI_Type_get_extent(handle_, &lb, &extent)); }
	void Get_true_extent(Aint &lb, Aint &extent) const
	{
		postern::check(MPI_Type_get_true_extent(handle_, &lb, &extent));
	}
	void Get_envelope(int &integers, int &addresses, int &datatypes, int &combiner) const
	{
		postern::check(MPI_Type_get_envelope(handle_, &integers, &addresses, &datatypes, &combiner));
	}
	void Get_contents(int max_integers, int max_addresses, int max_datatypes, int integers[], Aint addresses[],
			  Datatype datatypes[]) const
	{
		postern::Handles<MPI_Datatype, Datatype> handles(max_datatypes, datatypes);
		postern::check(MPI_Type_get_contents(handle_, max_integers, max_addresses, max_datatypes, integers,
						     addresses, handles));
		handles.put_back(max_datatypes, datatypes);
	}

	inline void Pack(const void *inbuf, int incount, void *outbuf, int outsize, int &position, const Comm &comm) const;
	inline void Unpack(const void *inbuf, int insize, void *outbuf, int outcount, int &position,
			   const Comm &comm) const;
	inline int Pack_size(int incount, const Comm &comm) const;
	void Pack_external(const char *datarep, const void *inbuf, int incount, void *outbuf, Aint outsize,
			   Aint &position) const
	{
		postern::check(MPI_Pack_external(datarep, inbuf, incount, handle_, outbuf, outsize, &position));
	}
	void Unpack_external(const char *datarep, const void *inbuf, Aint insize, Aint &position, void *outbuf,
			     int outcount) const
	{
		postern::check(MPI_Unpack_external(datarep, inbuf, insize, &position, outbuf, outcount, handle_));
	}
	Aint Pack_external_size(const char *datarep, int incount) const
	{
		Aint size = 0;
		postern::check(MPI_Pack_external_size(datarep, incount, handle_, &size));
		return size;
	}

	void Set_name(const char *name) { postern::check(MPI_Type_set_name(handle_, name)); }
	void Get_name(char *name, int &length) const { postern::check(MPI_Type_get_name(handle_, name, &length)); }

	static inline int Create_keyval(Copy_attr_function *copy, Delete_attr_function *del, void *extra_state);
	static void Free_keyval(int &keyval) { postern::check(MPI_Type_free_keyval(&keyval)); }
	void Set_attr(int keyval, const void *value)
	{
		postern::check(MPI_Type_set_attr(handle_, keyval, const_cast<void *>(value)));
	}
	bool Get_attr(int keyval, void *value) const
	{
		int flag = 0;
		postern::check(MPI_Type_get_attr(handle_, keyval, value, &flag));
		return flag != 0;
	}
	void Delete_attr(int keyval) { postern::check(MPI_Type_delete_attr(handle_, keyval)); }
	static int NULL_COPY_FN(const Datatype &, int, void *, const void *, void *, bool &flag)
	{
		flag = false;
		return MPI_SUCCESS;
	}
	static int DUP_FN(const Datatype &, int, void *, const void *value, void *copy, bool &flag)
	{
		*static_cast<const void **>(copy) = value;
		flag = true;
		return MPI_SUCCESS;
	}
	static int NULL_DELETE_FN(Datatype &, int, void *, void *) { return MPI_SUCCESS; }

private:
	MPI_Datatype handle_;
};

} /* namespace MPI */

#endif
