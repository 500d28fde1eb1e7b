/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI::Comm, what all communicators have, and MPI::Intracomm and Intercomm.
 */
#ifndef POSTERN_MPICXX_COMM_H
#define POSTERN_MPICXX_COMM_H

namespace MPI {

class Comm {
public:
	typedef Comm_errhandler_function Errhandler_function;
	typedef Comm_errhandler_function Errhandler_fn;
	typedef int Copy_attr_function(const Comm &oldcomm, int keyval, void *extra_state, void *value_in, void *value_out,
				       bool &flag);
	typedef int Delete_attr_function(Comm &comm, int keyval, void *value, void *extra_state);

	virtual ~Comm() {}
	virtual Comm &Clone() const = 0;
	operator MPI_Comm() const { return handle_; }
	bool operator==(const Comm &other) const { return handle_ == other.handle_; }
	bool operator!=(const Comm &other) const { return handle_ != other.handle_; }
	bool operator==(MPI_Comm other) const { return handle_ == other; }
	bool operator!=(MPI_Comm other) const { return handle_ != other; }

	/* point to point */
	void Send(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		postern::check(MPI_Send(buf, count, type, dest, tag, handle_));
	}
	void Bsend(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		postern::check(MPI_Bsend(buf, count, type, dest, tag, handle_));
	}
	void Ssend(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		postern::check(MPI_Ssend(buf, count, type, dest, tag, handle_));
	}
	void Rsend(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		postern::check(MPI_Rsend(buf, count, type, dest, tag, handle_));
	}
	Request Isend(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		MPI_Request made = MPI_REQUEST_NULL;
		postern::check(MPI_Isend(buf, count, type, dest, tag, handle_, &made));
		return made;
	}
	Request Ibsend(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		MPI_Request made = MPI_REQUEST_NULL;
		postern::check(MPI_Ibsend(buf, count, type, dest, tag, handle_, &made));
		return made;
	}
	Request Issend(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		MPI_Request made = MPI_REQUEST_NULL;
		postern::check(MPI_Issend(buf, count, type, dest, tag, handle_, &made));
		return made;
	}
	Request Irsend(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		MPI_Request made = MPI_REQUEST_NULL;
		postern::check(MPI_Irsend(buf, count, type, dest, tag, handle_, &made));
		return made;
	}
	Prequest Send_init(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		MPI_Request made = MPI_REQUEST_NULL;
		postern::check(MPI_Send_init(buf, count, type, dest, tag, handle_, &made));
		return made;
	}
	Prequest Bsend_init(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		MPI_Request made = MPI_REQUEST_NULL;
		postern::check(MPI_Bsend_init(buf, count, type, dest, tag, handle_, &made));
		return made;
	}
	Prequest Ssend_init(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		MPI_Request made = MPI_REQUEST_NULL;
		postern::check(MPI_Ssend_init(buf, count, type, dest, tag, handle_, &made));
		return made;
	}
	Prequest Rsend_init(const void *buf, int count, const Datatype &type, int dest, int tag) const
	{
		MPI_Request made = MPI_REQUEST_NULL;
		postern::check(MPI_Rsend_init(buf, count, type, dest, tag, handle_, &made));
		return made;
	}
	Request Irecv(void *buf, int count, const Datatype &type, int source, int tag) const
	{
		MPI_Request made = MPI_REQUEST_NULL;
		postern::check(MPI_Irecv(buf, count, type, source, tag, handle_, &made));
		return made;
	}
	Prequest Recv_init(void *buf, int count, const Datatype &type, int source, int tag) const
	{
		MPI_Request made = MPI_REQUEST_NULL;
		postern::check(MPI_Recv_init(buf, count, type, source, tag, handle_, &made));
		return made;
	}
	void Recv(void *buf, int count, const Datatype &type, int source, int tag, Status &status) const
	{
		postern::check(MPI_Recv(buf, count, type, source, tag, handle_, status.c()));
	}
	void Probe(int source, int tag, Status &status) const { postern::check(MPI_Probe(source, tag, handle_, status.c())); }
	bool Iprobe(int source, int tag, Status &status) const
	{
		int flag = 0;
		postern::check(MPI_Iprobe(source, tag, handle_, &flag, status.c()));
		return flag != 0;
	}
	void Sendrecv(const void *sendbuf, int sendcount, const Datatype &sendtype, int dest, int sendtag, void *recvbuf,
		      int recvcount, const Datatype &recvtype, int source, int recvtag, Status &status) const
	{
		postern::check(MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
					    source, recvtag, handle_, status.c()));
	}
	void Sendrecv_replace(void *buf, int count, const Datatype &type, int dest, int sendtag, int source,
			      int recvtag, Status &status) const
	{
		postern::check(MPI_Sendrecv_replace(buf, count, type, dest, sendtag, source, recvtag, handle_,
						    status.c()));
	}
	void Recv(void *buf, int count, const Datatype &type, int source, int tag) const
	{
		postern::check(MPI_Recv(buf, count, type, source, tag, handle_, MPI_STATUS_IGNORE));
	}
	void Probe(int source, int tag) const { postern::check(MPI_Probe(source, tag, handle_, MPI_STATUS_IGNORE)); }
	bool Iprobe(int source, int tag) const
	{
		int flag = 0;
		postern::check(MPI_Iprobe(source, tag, handle_, &flag, MPI_STATUS_IGNORE));
		return flag != 0;
	}
	void Sendrecv(const void *sendbuf, int sendcount, const Datatype &sendtype, int dest, int sendtag, void *recvbuf,
		      int recvcount, const Datatype &recvtype, int source, int recvtag) const
	{
		postern::check(MPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype,
					    source, recvtag, handle_, MPI_STATUS_IGNORE));
	}
	void Sendrecv_replace(void *buf, int count, const Datatype &type, int dest, int sendtag, int source,
			      int recvtag) const
	{
		postern::check(MPI_Sendrecv_replace(buf, count, type, dest, sendtag, source, recvtag, handle_,
						    MPI_STATUS_IGNORE));
	}

	/* collective */
	void Barrier() const { postern::check(MPI_Barrier(handle_)); }
	void Bcast(void *buffer, int count, const Datatype &type, int root) const
	{
		postern::check(MPI_Bcast(buffer, count, type, root, handle_));
	}
	void Gather(const void *sendbuf, int sendcount, const Datatype &sendtype, void *recvbuf, int recvcount,
		    const Datatype &recvtype, int root) const
	{
		postern::check(MPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, handle_));
	}
	void Gatherv(const void *sendbuf, int sendcount, const Datatype &sendtype, void *recvbuf, const int recvcounts[],
		     const int displs[], const Datatype &recvtype, int root) const
	{
		postern::check(MPI_Gatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root,
					   handle_));
	}
	void Scatter(const void *sendbuf, int sendcount, const Datatype &sendtype, void *recvbuf, int recvcount,
		     const Datatype &recvtype, int root) const
	{
		postern::check(MPI_Scatter(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, handle_));
	}
	void Scatterv(const void *sendbuf, const int sendcounts[], const int displs[], const Datatype &sendtype,
		      void *recvbuf, int recvcount, const Datatype &recvtype, int root) const
	{
		postern::check(MPI_Scatterv(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root,
					    handle_));
	}
	void Allgather(const void *sendbuf, int sendcount, const Datatype &sendtype, void *recvbuf, int recvcount,
		       const Datatype &recvtype) const
	{
		postern::check(MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, handle_));
	}
	void Allgatherv(const void *sendbuf, int sendcount, const Datatype &sendtype, void *recvbuf,
			const int recvcounts[], const int displs[], const Datatype &recvtype) const
	{
		postern::check(MPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
					      handle_));
	}
	void Alltoall(const void *sendbuf, int sendcount, const Datatype &sendtype, void *recvbuf, int recvcount,
		      const Datatype &recvtype) const
	{
		postern::check(MPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, handle_));
	}
	void Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], const Datatype &sendtype,
		       void *recvbuf, const int recvcounts[], const int rdispls[], const Datatype &recvtype) const
	{
		postern::check(MPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
					     recvtype, handle_));
	}
	void Alltoallw(const void *sendbuf, const int sendcounts[], const int sdispls[], const Datatype sendtypes[],
		       void *recvbuf, const int recvcounts[], const int rdispls[], const Datatype recvtypes[]) const
	{
		int n = peers();
		postern::Handles<MPI_Datatype, Datatype> send(sendbuf == MPI_IN_PLACE ? 0 : n, sendtypes);
		postern::Handles<MPI_Datatype, Datatype> recv(n, recvtypes);

		postern::check(MPI_Alltoallw(sendbuf, sendcounts, sdispls, send, recvbuf, recvcounts, rdispls, recv,
					     handle_));
	}
	void Reduce(const void *sendbuf, void *recvbuf, int count, const Datatype &type, const Op &op, int root) const
	{
		postern::check(MPI_Reduce(sendbuf, recvbuf, count, type, op, root, handle_));
	}
	void Allreduce(const void *sendbuf, void *recvbuf, int count, const Datatype &type, const Op &op) const
	{
		postern::check(MPI_Allreduce(sendbuf, recvbuf, count, type, op, handle_));
	}
	void Reduce_scatter(const void *sendbuf, void *recvbuf, int recvcounts[], const Datatype &type, const Op &op) const
	{
		postern::check(MPI_Reduce_scatter(sendbuf, recvbuf, recvcounts, type, op, handle_));
	}
	void Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, const Datatype &type,
				  const Op &op) const
	{
		postern::check(MPI_Reduce_scatter_block(sendbuf, recvbuf, recvcount, type, op, handle_));
	}

	/* the communicator itself */
	int Get_size() const
	{
		int size = 0;
		postern::check(MPI_Comm_size(handle_, &size));
		return size;
	}
	int Get_rank() const
	{
		int rank = MPI_UNDEFINED;
		postern::check(MPI_Comm_rank(handle_, &rank));
		return rank;
	}
	static int Compare(const Comm &comm1, const Comm &comm2)
	{
		int result = MPI_UNEQUAL;
		postern::check(MPI_Comm_compare(comm1, comm2, &result));
		return result;
	}
	bool Is_inter() const
	{
		int flag = 0;
		postern::check(MPI_Comm_test_inter(handle_, &flag));
		return flag != 0;
	}
	Group Get_group() const
	{
		MPI_Group group = MPI_GROUP_NULL;
		postern::check(MPI_Comm_group(handle_, &group));
		return group;
	}
	int Get_topology() const
	{
		int status = MPI_UNDEFINED;
		postern::check(MPI_Topo_test(handle_, &status));
		return status;
	}
	void Free() { postern::check(MPI_Comm_free(&handle_)); }
	void Disconnect() { postern::check(MPI_Comm_disconnect(&handle_)); }
	void Abort(int code) { postern::check(MPI_Abort(handle_, code)); }
	static inline Intercomm Get_parent();
	static inline Intercomm Join(int fd);
	void Set_name(const char *name) { postern::check(MPI_Comm_set_name(handle_, name)); }
	void Get_name(char *name, int &length) const { postern::check(MPI_Comm_get_name(handle_, name, &length)); }

	/* errors */
	static Errhandler Create_errhandler(Errhandler_function *function) { return postern::make_handler(function, 0); }
	void Set_errhandler(const Errhandler &handler) { postern::check(MPI_Comm_set_errhandler(handle_, handler)); }
	Errhandler Get_errhandler() const
	{
		MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
		postern::check(MPI_Comm_get_errhandler(handle_, &handler));
		return handler;
	}
	void Call_errhandler(int code) const
	{
		postern::noted().where = postern::Noted::NOTHING;
		int error = MPI_Comm_call_errhandler(handle_, code);
		postern::check(error != MPI_SUCCESS ? error : postern::noted().where ? code : MPI_SUCCESS);
	}

	/* attributes */
	static inline int Create_keyval(Copy_attr_function *copy, Delete_attr_function *del, void *extra_state);
	static void Free_keyval(int &keyval) { postern::check(MPI_Comm_free_keyval(&keyval)); }
	void Set_attr(int keyval, const void *value) const
	{
		postern::check(MPI_Comm_set_attr(handle_, keyval, const_cast<void *>(value)));
	}
	bool Get_attr(int keyval, void *value) const
	{
		int flag = 0;
		postern::check(MPI_Comm_get_attr(handle_, keyval, value, &flag));
		return flag != 0;
	}
	void Delete_attr(int keyval) { postern::check(MPI_Comm_delete_attr(handle_, keyval)); }
	static int NULL_COPY_FN(const Comm &, int, void *, void *, void *, bool &flag)
	{
		flag = false;
		return MPI_SUCCESS;
	}
	static int DUP_FN(const Comm &, int, void *, void *value, void *copy, bool &flag)
	{
		*static_cast<void **>(copy) = value;
		flag = true;
		return MPI_SUCCESS;
	}
	static int NULL_DELETE_FN(Comm &, int, void *, void *) { return MPI_SUCCESS; }

protected:
	explicit Comm(MPI_Comm handle) : handle_(handle) {}
	MPI_Comm duplicate() const
	{
		MPI_Comm made = MPI_COMM_NULL;
		postern::check(MPI_Comm_dup(handle_, &made));
		return made;
	}
	MPI_Comm handle_;

private:
	int peers() const
	{
		int n = 0;
		if (Is_inter())
			postern::check(MPI_Comm_remote_size(handle_, &n));
		else
			n = Get_size();
		return n;
	}
};

/* The kind of COMM_NULL, which becomes any other. */
class Comm_Null : public Comm {
public:
	Comm_Null() : Comm(MPI_COMM_NULL) {}
	explicit Comm_Null(MPI_Comm handle) : Comm(handle) {}
	virtual Comm_Null &Clone() const { return *new Comm_Null; }
};

class Intracomm : public Comm {
public:
	Intracomm(MPI_Comm handle = MPI_COMM_NULL) : Comm(handle) {}
	Intracomm(const Comm_Null &) : Comm(MPI_COMM_NULL) {}
	virtual Intracomm &Clone() const { return *new Intracomm(duplicate()); }

	Intracomm Dup() const { return duplicate(); }
	Intracomm Create(const Group &group) const
	{
		MPI_Comm made = MPI_COMM_NULL;
		postern::check(MPI_Comm_create(handle_, group, &made));
		return made;
	}
	Intracomm Split(int color, int key) const
	{
		MPI_Comm made = MPI_COMM_NULL;
		postern::check(MPI_Comm_split(handle_, color, key, &made));
		return made;
	}
	inline Intercomm Create_intercomm(int local_leader, const Comm &peer_comm, int remote_leader, int tag) const;
	inline Cartcomm Create_cart(int ndims, const int dims[], const bool periods[], bool reorder) const;
	inline Graphcomm Create_graph(int nnodes, const int index[], const int edges[], bool reorder) const;
	inline Distgraphcomm Dist_graph_create(int n, const int sources[], const int degrees[], const int destinations[],
					       const int weights[], const Info &info, bool reorder) const;
	inline Distgraphcomm Dist_graph_create(int n, const int sources[], const int degrees[], const int destinations[],
					       const Info &info, bool reorder) const;
	inline Distgraphcomm Dist_graph_create_adjacent(int indegree, const int sources[], const int sourceweights[],
							int outdegree, const int destinations[],
							const int destweights[], const Info &info, bool reorder) const;
	inline Distgraphcomm Dist_graph_create_adjacent(int indegree, const int sources[], int outdegree,
							const int destinations[], const Info &info, bool reorder) const;
	void Scan(const void *sendbuf, void *recvbuf, int count, const Datatype &type, const Op &op) const
	{
		postern::check(MPI_Scan(sendbuf, recvbuf, count, type, op, handle_));
	}
	void Exscan(const void *sendbuf, void *recvbuf, int count, const Datatype &type, const Op &op) const
	{
		postern::check(MPI_Exscan(sendbuf, recvbuf, count, type, op, handle_));
	}

	inline Intercomm Spawn(const char *command, const char *argv[], int maxprocs, const Info &info, int root) const;
	inline Intercomm Spawn(const char *command, const char *argv[], int maxprocs, const Info &info, int root,
			       int errcodes[]) const;
	inline Intercomm Spawn_multiple(int count, const char *commands[], const char **argvs[], const int maxprocs[],
					const Info infos[], int root) const;
	inline Intercomm Spawn_multiple(int count, const char *commands[], const char **argvs[], const int maxprocs[],
					const Info infos[], int root, int errcodes[]) const;
	inline Intercomm Accept(const char *port_name, const Info &info, int root) const;
	inline Intercomm Connect(const char *port_name, const Info &info, int root) const;
};

class Intercomm : public Comm {
public:
	Intercomm(MPI_Comm handle = MPI_COMM_NULL) : Comm(handle) {}
	Intercomm(const Comm_Null &) : Comm(MPI_COMM_NULL) {}
	virtual Intercomm &Clone() const { return *new Intercomm(duplicate()); }

	Intercomm Dup() const { return duplicate(); }
	int Get_remote_size() const
	{
		int size = 0;
		postern::check(MPI_Comm_remote_size(handle_, &size));
		return size;
	}
	Group Get_remote_group() const
	{
		MPI_Group group = MPI_GROUP_NULL;
		postern::check(MPI_Comm_remote_group(handle_, &group));
		return group;
	}
	Intracomm Merge(bool high) const
	{
		MPI_Comm made = MPI_COMM_NULL;
		postern::check(MPI_Intercomm_merge(handle_, high, &made));
		return made;
	}
	Intercomm Create(const Group &group) const
	{
		MPI_Comm made = MPI_COMM_NULL;
		postern::check(MPI_Comm_create(handle_, group, &made));
		return made;
	}
	Intercomm Split(int color, int key) const
	{
		MPI_Comm made = MPI_COMM_NULL;
		postern::check(MPI_Comm_split(handle_, color, key, &made));
		return made;
	}
};

inline Intercomm Comm::Get_parent()
{
	MPI_Comm parent = MPI_COMM_NULL;
	postern::check(MPI_Comm_get_parent(&parent));
	return parent;
}
inline Intercomm Comm::Join(int fd)
{
	MPI_Comm made = MPI_COMM_NULL;
	postern::check(MPI_Comm_join(fd, &made));
	return made;
}
inline Intercomm Intracomm::Create_intercomm(int local_leader, const Comm &peer_comm, int remote_leader, int tag) const
{
	MPI_Comm made = MPI_COMM_NULL;
	postern::check(MPI_Intercomm_create(handle_, local_leader, peer_comm, remote_leader, tag, &made));
	return made;
}
inline Intercomm Intracomm::Spawn(const char *command, const char *argv[], int maxprocs, const Info &info, int root,
				  int errcodes[]) const
{
	MPI_Comm made = MPI_COMM_NULL;
	postern::check(MPI_Comm_spawn(command, const_cast<char **>(argv), maxprocs, info, root, handle_, &made,
				      errcodes));
	return made;
}
inline Intercomm Intracomm::Spawn(const char *command, const char *argv[], int maxprocs, const Info &info,
				  int root) const
{
	return Spawn(command, argv, maxprocs, info, root, MPI_ERRCODES_IGNORE);
}
inline Intercomm Intracomm::Spawn_multiple(int count, const char *commands[], const char **argvs[],
					   const int maxprocs[], const Info infos[], int root, int errcodes[]) const
{
	postern::Handles<MPI_Info, Info> handles(Get_rank() == root ? count : 0, infos);
	MPI_Comm made = MPI_COMM_NULL;
	postern::check(MPI_Comm_spawn_multiple(count, const_cast<char **>(commands), const_cast<char ***>(argvs),
					       maxprocs, handles, root, handle_, &made, errcodes));
	return made;
}
inline Intercomm Intracomm::Spawn_multiple(int count, const char *commands[], const char **argvs[],
					   const int maxprocs[], const Info infos[], int root) const
{
	return Spawn_multiple(count, commands, argvs, maxprocs, infos, root, MPI_ERRCODES_IGNORE);
}
inline Intercomm Intracomm::Accept(const char *port_name, const Info &info, int root) const
{
	MPI_Comm made = MPI_COMM_NULL;
	postern::check(MPI_Comm_accept(port_name, info, root, handle_, &made));
	return made;
}
inline Intercomm Intracomm::Connect(const char *port_name, const Info &info, int root) const
{
	MPI_Comm made = MPI_COMM_NULL;
	postern::check(MPI_Comm_connect(port_name, info, root, handle_, &made));
	return made;
}

inline void Datatype::Pack(const void *inbuf, int incount, void *outbuf, int outsize, int &position,
			   const Comm &comm) const
{
	postern::check(MPI_Pack(inbuf, incount, handle_, outbuf, outsize, &position, comm));
}
inline void Datatype::Unpack(const void *inbuf, int insize, void *outbuf, int outcount, int &position,
			     const Comm &comm) const
{
	postern::check(MPI_Unpack(inbuf, insize, &position, outbuf, outcount, handle_, comm));
}
inline int Datatype::Pack_size(int incount, const Comm &comm) const
{
	int size = 0;
	postern::check(MPI_Pack_size(incount, handle_, comm, &size));
	return size;
}

} /* namespace MPI */

#endif
