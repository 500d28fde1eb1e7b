/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * MPI::Cartcomm, Graphcomm and Distgraphcomm.
 */
#ifndef POSTERN_MPICXX_TOPOLOGY_H
#define POSTERN_MPICXX_TOPOLOGY_H

namespace MPI {

class Cartcomm : public Intracomm {
public:
	Cartcomm(MPI_Comm handle = MPI_COMM_NULL) : Intracomm(handle) {}
	Cartcomm(const Comm_Null &) : Intracomm(MPI_COMM_NULL) {}
	virtual Cartcomm &Clone() const { return *new Cartcomm(duplicate()); }

	Cartcomm Dup() const { return duplicate(); }
	int Get_dim() const
	{
		int n = 0;
		postern::check(MPI_Cartdim_get(handle_, &n));
		return n;
	}
	void Get_topo(int maxdims, int dims[], bool periods[], int coords[]) const
	{
		postern::Ints flags(maxdims, 0);
		postern::check(MPI_Cart_get(handle_, maxdims, dims, flags, coords));
		flags.put_back(maxdims, periods);
	}
	int Get_cart_rank(const int coords[]) const
	{
		int rank = MPI_PROC_NULL;
		postern::check(MPI_Cart_rank(handle_, coords, &rank));
		return rank;
	}
	void Get_coords(int rank, int maxdims, int coords[]) const
	{
		postern::check(MPI_Cart_coords(handle_, rank, maxdims, coords));
	}
	void Shift(int direction, int disp, int &source, int &dest) const
	{
		postern::check(MPI_Cart_shift(handle_, direction, disp, &source, &dest));
	}
	Cartcomm Sub(const bool remain_dims[]) const
	{
		MPI_Comm made = MPI_COMM_NULL;
		postern::Ints flags(Get_dim(), remain_dims);
		postern::check(MPI_Cart_sub(handle_, flags, &made));
		return made;
	}
	int Map(int ndims, const int dims[], const bool periods[]) const
	{
		int rank = MPI_UNDEFINED;
		postern::Ints flags(ndims, periods);
		postern::check(MPI_Cart_map(handle_, ndims, dims, flags, &rank));
		return rank;
	}
};

class Graphcomm : public Intracomm {
public:
	Graphcomm(MPI_Comm handle = MPI_COMM_NULL) : Intracomm(handle) {}
	Graphcomm(const Comm_Null &) : Intracomm(MPI_COMM_NULL) {}
	virtual Graphcomm &Clone() const { return *new Graphcomm(duplicate()); }

	Graphcomm Dup() const { return duplicate(); }
	void Get_dims(int nnodes[], int nedges[]) const { postern::check(MPI_Graphdims_get(handle_, nnodes, nedges)); }
	void Get_topo(int maxindex, int maxedges, int index[], int edges[]) const
	{
		postern::check(MPI_Graph_get(handle_, maxindex, maxedges, index, edges));
	}
	int Get_neighbors_count(int rank) const
	{
		int n = 0;
		postern::check(MPI_Graph_neighbors_count(handle_, rank, &n));
		return n;
	}
	void Get_neighbors(int rank, int maxneighbors, int neighbors[]) const
	{
		postern::check(MPI_Graph_neighbors(handle_, rank, maxneighbors, neighbors));
	}
	int Map(int nnodes, const int index[], const int edges[]) const
	{
		int rank = MPI_UNDEFINED;
		postern::check(MPI_Graph_map(handle_, nnodes, index, edges, &rank));
		return rank;
	}
};

class Distgraphcomm : public Intracomm {
public:
	Distgraphcomm(MPI_Comm handle = MPI_COMM_NULL) : Intracomm(handle) {}
	Distgraphcomm(const Comm_Null &) : Intracomm(MPI_COMM_NULL) {}
	virtual Distgraphcomm &Clone() const { return *new Distgraphcomm(duplicate()); }

	Distgraphcomm Dup() const { return duplicate(); }
	void Get_dist_neighbors_count(int &indegree, int &outdegree, bool &weighted) const
	{
		int flag = 0;
		postern::check(MPI_Dist_graph_neighbors_count(handle_, &indegree, &outdegree, &flag));
		weighted = flag != 0;
	}
	void Get_dist_neighbors(int maxindegree, int sources[], int sourceweights[], int maxoutdegree,
				int destinations[], int destweights[]) const
	{
		postern::check(MPI_Dist_graph_neighbors(handle_, maxindegree, sources, sourceweights, maxoutdegree,
							destinations, destweights));
	}
};

inline Cartcomm Intracomm::Create_cart(int ndims, const int dims[], const bool periods[], bool reorder) const
{
	MPI_Comm made = MPI_COMM_NULL;
	postern::Ints flags(ndims, periods);
	postern::check(MPI_Cart_create(handle_, ndims, dims, flags, reorder, &made));
	return made;
}
inline Graphcomm Intracomm::Create_graph(int nnodes, const int index[], const int edges[], bool reorder) const
{
	MPI_Comm made = MPI_COMM_NULL;
	postern::check(MPI_Graph_create(handle_, nnodes, index, edges, reorder, &made));
	return made;
}
inline Distgraphcomm Intracomm::Dist_graph_create(int n, const int sources[], const int degrees[],
						  const int destinations[], const int weights[], const Info &info,
						  bool reorder) const
{
	MPI_Comm made = MPI_COMM_NULL;
	postern::check(MPI_Dist_graph_create(handle_, n, sources, degrees, destinations, weights, info, reorder,
					     &made));
	return made;
}
inline Distgraphcomm Intracomm::Dist_graph_create(int n, const int sources[], const int degrees[],
						  const int destinations[], const Info &info, bool reorder) const
{
	return Dist_graph_create(n, sources, degrees, destinations, MPI_UNWEIGHTED, info, reorder);
}
inline Distgraphcomm Intracomm::Dist_graph_create_adjacent(int indegree, const int sources[],
							   const int sourceweights[], int outdegree,
							   const int destinations[], const int destweights[],
							   const Info &info, bool reorder) const
{
	MPI_Comm made = MPI_COMM_NULL;
	postern::check(MPI_Dist_graph_create_adjacent(handle_, indegree, sources, sourceweights, outdegree,
						      destinations, destweights, info, reorder, &made));
	return made;
}
inline Distgraphcomm Intracomm::Dist_graph_create_adjacent(int indegree, const int sources[], int outdegree,
							   const int destinations[], const Info &info,
							   bool reorder) const
{
	return Dist_graph_create_adjacent(indegree, sources, MPI_UNWEIGHTED, outdegree, destinations, MPI_UNWEIGHTED,
					  info, reorder);
}

} /* namespace MPI */

#endif
