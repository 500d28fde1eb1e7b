# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
"""A recipe for Spack: `spack repo add`, or a copy in a repository of one's own."""
from spack.package import *


class Postern(MesonPackage):
    """Portals 3.3 message passing, an MPI on top of it, and libraries for programs of Myrinet Express, Open-MX, RWAPI
    and Directed Point."""

    homepage = "https://www.sandia.gov/portals/"
    # the folder that `meson dist` put the archive in, or a git repository
    url = "file:///srv/postern/postern-0.2.0.tar.xz"

    license("BSD-3-Clause")

    # an archive from a place of one's own: spack install --no-checksum, or put its hash here
    version("0.2.0")

    variant("ofi", default=True, description="transport over libfabric")
    variant("verbs", default=False, description="transport over InfiniBand verbs")
    variant("net", default=True, description="transports between machines")
    variant("pmix", default=True, description="jobs of PMIx launchers")
    variant("fortran", default=True, description="MPI for Fortran")
    variant("bench", default=True, description="programs that measure")

    provides("mpi@:5.0")

    conflicts("+ofi", when="~net")
    conflicts("+verbs", when="~net")
    conflicts("target=x86:", msg="systems of 32 bits are not supported")

    depends_on("c", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("meson@1.0:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    depends_on("libsodium", when="+net")
    depends_on("libfabric@1.11:", when="+ofi")
    depends_on("pmix@4:", when="+pmix")
    depends_on("rdma-core", when="+verbs")

    def meson_args(self):
        def feature(name):
            return "enabled" if self.spec.satisfies("+" + name) else "disabled"

        nals = ["shm"]
        if self.spec.satisfies("+net"):
            nals = ["shm", "verbs", "ofi", "udp", "eth", "sim"]
        return [
            "-Dnals=" + ",".join(nals),
            "-Dofi=" + feature("ofi"),
            "-Dverbs=" + feature("verbs"),
            "-Dpmix=" + feature("pmix"),
            "-Dfortran=" + feature("fortran"),
            "-Dbench=" + ("true" if self.spec.satisfies("+bench") else "false"),
            "-Dtests=disabled",
        ]

    def setup_run_environment(self, env):
        env.set("MPICC", join_path(self.prefix.bin, "mpicc"))
        env.set("MPICXX", join_path(self.prefix.bin, "mpicxx"))
        if self.spec.satisfies("+fortran"):
            env.set("MPIF77", join_path(self.prefix.bin, "mpif77"))
            env.set("MPIF90", join_path(self.prefix.bin, "mpif90"))

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = join_path(self.prefix.bin, "mpicc")
        self.spec.mpicxx = join_path(self.prefix.bin, "mpicxx")
        if self.spec.satisfies("+fortran"):
            self.spec.mpifc = join_path(self.prefix.bin, "mpif90")
            self.spec.mpif77 = join_path(self.prefix.bin, "mpif77")
