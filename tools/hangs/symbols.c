/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * libdw is loaded by its name and never linked. The few functions used have not changed since
 * 2007; they are declared here, so that no headers are needed. Only debugging information that
 * lies in the program's own files is read: a search for more may ask servers in the network.
 */
#include "tools/hangs/symbols.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- libdw ----------------------------------------------------------------------------------- */

typedef struct Dwfl Dwfl;
typedef struct Dwfl_Module Dwfl_Module;
typedef struct Dwfl_Line Dwfl_Line;

/* As in elfutils/libdwfl.h. */
struct dwfl_callbacks {
	int (*find_elf)(Dwfl_Module *mod, void **userdata, const char *name, uint64_t base,
			char **file, void **elf);
	int (*find_debuginfo)(Dwfl_Module *mod, void **userdata, const char *name, uint64_t base,
			      const char *file, const char *link, uint32_t crc, char **debuginfo);
	int (*section_address)(void);
	char **debuginfo_path;
};

#define DWFL_CALLS(X)                                                                              \
	X(Dwfl *, begin, (const struct dwfl_callbacks *))                                          \
	X(void, end, (Dwfl *))                                                                     \
	X(int, linux_proc_report, (Dwfl *, pid_t))                                                 \
	X(int, report_end, (Dwfl *, void *, void *))                                               \
	X(int, linux_proc_find_elf,                                                                \
	  (Dwfl_Module *, void **, const char *, uint64_t, char **, void **))                      \
	X(Dwfl_Module *, addrmodule, (Dwfl *, uint64_t))                                           \
	X(const char *, module_addrname, (Dwfl_Module *, uint64_t))                                \
	X(const char *, module_info,                                                               \
	  (Dwfl_Module *, void ***, uint64_t *, uint64_t *, uint64_t *, uint64_t *, const char **, \
	   const char **))                                                                         \
	X(Dwfl_Line *, module_getsrc, (Dwfl_Module *, uint64_t))                                   \
	X(const char *, lineinfo, (Dwfl_Line *, uint64_t *, int *, int *, uint64_t *, uint64_t *))

#define DWFL_MEMBER(type, name, args) type(*name) args;
static struct {
	DWFL_CALLS(DWFL_MEMBER)
} dw;

static const char *why_not;

static bool load_libdw(void)
{
	static int loaded; /* 0: not tried; -1: failed */
	void *handle;

	if (loaded)
		return loaded > 0;
	loaded = -1;
	why_not = "libdw cannot be loaded; install elfutils' library (Debian: libdw1)";
	handle = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return false;
#define DWFL_SYMBOL(type, name, args)                                                              \
	*(void **)&dw.name = dlsym(handle, "dwfl_" #name);                                         \
	if (!dw.name)                                                                              \
		return false;
	DWFL_CALLS(DWFL_SYMBOL)
	why_not = NULL;
	loaded = 1;
	return true;
}

const char *symbols_why_not(void)
{
	load_libdw();
	return why_not;
}

static int find_no_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, uint64_t base,
			     const char *file, const char *link, uint32_t crc, char **debuginfo)
{
	(void)mod, (void)userdata, (void)name, (void)base, (void)file, (void)link, (void)crc;
	*debuginfo = NULL;
	return -1;
}

struct symbols {
	Dwfl *dwfl;
	struct dwfl_callbacks callbacks;
};

struct symbols *symbols_open(pid_t pid)
{
	struct symbols *s = load_libdw() ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return NULL;
	s->callbacks = (struct dwfl_callbacks){ .find_elf = dw.linux_proc_find_elf,
						.find_debuginfo = find_no_debuginfo };
	s->dwfl = dw.begin(&s->callbacks);
	if (s->dwfl && !dw.linux_proc_report(s->dwfl, pid) && !dw.report_end(s->dwfl, NULL, NULL))
		return s;
	symbols_close(s);
	return NULL;
}

void symbols_close(struct symbols *s)
{
	if (s && s->dwfl)
		dw.end(s->dwfl);
	free(s);
}

/* ---- one address ----------------------------------------------------------------------------- */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Texts of files are printed to terminals. */
static void clean_text(char *text)
{
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

/* An address in a process, as far as it is known. */
struct spot {
	char symbol[64];
	char file[96]; /* of the program or library, without folders */
	uint64_t offset;
	Dwfl_Module *module;
};

static void spot_by_libdw(const struct symbols *s, uint64_t address, struct spot *spot)
{
	const char *symbol, *main = NULL, *name;
	uint64_t start = 0;

	spot->module = dw.addrmodule(s->dwfl, address);
	if (!spot->module)
		return;
	name = dw.module_info(spot->module, NULL, &start, NULL, NULL, NULL, &main, NULL);
	symbol = dw.module_addrname(spot->module, address);
	snprintf(spot->symbol, sizeof(spot->symbol), "%s", symbol ? symbol : "");
	snprintf(spot->file, sizeof(spot->file), "%s", last_part(main ? main : name ? name : "?"));
	spot->offset = address - start;
}

/* The offset in a file that is mapped there, as addr2line(1) wants it for most files. */
static void spot_by_maps(pid_t pid, uint64_t address, struct spot *spot)
{
	uint64_t first, past, offset;
	char path[40], line[512], name[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %255s", &first,
			   &past, &offset, name) != 4 ||
		    address < first || address >= past)
			continue;
		snprintf(spot->file, sizeof(spot->file), "%.*s", (int)sizeof(spot->file) - 1,
			 last_part(name));
		spot->offset = address - first + offset;
		break;
	}
	if (f)
		fclose(f);
}

/* A return address lies behind the call; the call may be the function's last instruction. */
static void find_spot(const struct symbols *s, pid_t pid, uint64_t frame, struct spot *spot)
{
	*spot = (struct spot){ .module = NULL };
	if (s)
		spot_by_libdw(s, frame - 1, spot);
	if (!spot->file[0])
		spot_by_maps(pid, frame - 1, spot);
	clean_text(spot->symbol);
	clean_text(spot->file);
}

/* ---- the place ------------------------------------------------------------------------------- */

static bool begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* MPI_Recv, PMPI_Recv */
static bool is_entry(const char *symbol)
{
	symbol += symbol[0] == 'P';
	return begins(symbol, "MPI_") && symbol[4] >= 'A' && symbol[4] <= 'Z';
}

/* mpi_recv_, pmpi_recv_, mpi_recv_f08_ */
static bool is_fortran_entry(const char *symbol)
{
	size_t len = strlen(symbol);

	symbol += symbol[0] == 'p';
	return len > 5 && begins(symbol, "mpi_") && symbol[strlen(symbol) - 1] == '_';
}

static bool is_library(const struct spot *spot)
{
	return begins(spot->file, "libpostern-mpi") || begins(spot->file, "libmpi_abi") ||
	       begins(spot->file, "libportals") || begins(spot->file, "libmpi.so");
}

/* The first frame outside of the library; with symbols also where all is one file. */
static bool is_program(const struct spot *spot, bool entered)
{
	if (spot->symbol[0] && entered)
		return !is_library(spot) && !is_entry(spot->symbol) &&
		       !is_fortran_entry(spot->symbol);
	return !is_library(spot) && (entered || spot->file[0]);
}

static void describe_line(const struct spot *spot, uint64_t frame, struct place *place)
{
	Dwfl_Line *line = spot->module ? dw.module_getsrc(spot->module, frame - 1) : NULL;
	const char *file;
	int number = 0;

	file = line ? dw.lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
	if (file)
		snprintf(place->at, sizeof(place->at), "%s:%d", last_part(file), number);
	else if (spot->symbol[0])
		snprintf(place->at, sizeof(place->at), "%s in %s", spot->symbol, spot->file);
	else if (spot->file[0])
		snprintf(place->at, sizeof(place->at), "%s+0x%" PRIx64, spot->file, spot->offset);
	clean_text(place->at);
}

void symbols_place(struct symbols *s, pid_t pid, const uint64_t *frame, unsigned int n,
		   struct place *place)
{
	struct spot spot;

	*place = (struct place){ .call = "" };
	for (unsigned int i = 0; i < n; i++) {
		find_spot(s, pid, frame[i], &spot);
		if (!s && i == 0 && !is_library(&spot))
			return; /* a static program: nothing tells the library from the rest */
		if (!place->call[0] && is_entry(spot.symbol)) {
			snprintf(place->call, sizeof(place->call), "%s",
				 spot.symbol + (spot.symbol[0] == 'P'));
		} else if (is_program(&spot, place->call[0] != '\0')) {
			if (s && !place->call[0])
				continue; /* a static program, below its entry */
			describe_line(&spot, frame[i], place);
			return;
		}
	}
}
