#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# The headers of MX and Open-MX together, in C and C++, for x86-64 and i386: no warning, the layouts that
# programs were compiled with, and macros that have their values. Usage: headers.sh SOURCE_DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=test/tap.sh
. "$here/../tap.sh"
include=$1/include

headers='#include <stddef.h>
#include <mx_internals/mx__driver_interface.h>
#include <mx_internals/mx__fops.h>
#include <mx_raw.h>
#include <open-mx.h>
#include <mx_extensions.h>
#include <myriexpress.h>
/* known to every C and C++ */
#define IS(a, b) extern char checked[(a) == (b) ? 1 : -1]
'
# layout BITS: sizes and offsets, which both interfaces share
layout() {
	local pointer=$(($1 / 8)) type
	echo "$headers"
	echo "IS(sizeof(void *), $pointer);"
	for type in mx_endpoint_addr_t omx_endpoint_addr_t; do echo "IS(sizeof($type), 16);"; done
	for type in mx_return_t mx_status_code_t omx_return_t mx_get_info_key_t omx_info_key_t mx_endpt_handle_t; do
		echo "IS(sizeof($type), 4);"
	done
	for type in mx_endpoint_t mx_request_t omx_endpoint_t omx_request_t mx_unexp_handler_t; do
		echo "IS(sizeof($type), $pointer);"
	done
	for type in mx_segment_t omx_seg_t; do echo "IS(sizeof($type), $((2 * pointer)));"; done
	echo "IS(offsetof(mx_segment_t, segment_length), $pointer); IS(offsetof(omx_seg_t, len), $pointer);"
	for type in mx_param_t omx_endpoint_param_t; do
		echo "IS(sizeof($type), $((2 * pointer))); IS(offsetof($type, val), $pointer);"
		echo "IS(offsetof($type, val.context_id.shift), $((pointer + 1)));"
	done
	echo 'IS(sizeof(mx_mapper_state_t), 36); IS(offsetof(mx_mapper_state_t, flags), 32);'
	# a 64-bit value may stand at every fourth byte of an i386
	if [ "$1" -eq 64 ]; then set -- 48 8 24 32 36 40; else set -- 40 4 20 28 32 36; fi
	for type in mx_status_t omx_status_t; do
		echo "IS(sizeof($type), $1); IS(offsetof($type, match_info), $3); IS(offsetof($type, msg_length), $4);"
		echo "IS(offsetof($type, xfer_length), $5); IS(offsetof($type, context), $6);"
	done
	echo "IS(offsetof(mx_status_t, source), $2); IS(offsetof(omx_status_t, addr), $2);"
}
macros() {
	echo "$headers"
	echo 'IS(MX_U32(UINT64_C(0x123456789abcdef0)), 0x12345678U); IS(MX_L32(UINT64_C(0x123456789abcdef0)), 0x9abcdef0U);
IS(MX_U32((uint32_t)7), 0U); IS(MX_L32((uint32_t)7), 7U); IS(MX_U32(-1), 0U); IS(sizeof(MX_U32(UINT64_MAX)), 4);
IS(MX_MATCH_MASK_NONE, UINT64_MAX); IS(sizeof(MX_MATCH_MASK_NONE), 8); IS(MX_INFINITE, 0);
IS(OMX_TIMEOUT_INFINITE, UINT32_MAX); IS(MX_ANY_NIC, UINT32_MAX); IS(MX__INVALID_HANDLE, -1);
IS(MX_RECV_FINISHED, 1); IS(OMX_UNEXP_HANDLER_RECV_FINISHED, 1); IS(MX_SPEED_OPEN_MX, 2); IS(MX_NET_ETHER, 1);
#if !defined MX_HAS_NET_TYPE || MX_HAS_ICONNECT_V2 != 1 || MX_API != 0x301 || OMX_API != 0x301
#error "a macro that programs ask for is not there"
#endif'
}
# Functions have the types that calls of old programs need, whatever those are called.
calls() {
	echo "$headers"
	echo 'mx_return_t (*send)(mx_endpoint_t, mx_segment_t *, uint32_t, mx_endpoint_addr_t, uint64_t, void *,
			  mx_request_t *) = mx_isend;
omx_return_t (*wait)(omx_endpoint_t, omx_request_t *, omx_status_t *, uint32_t *, uint32_t) = omx_wait;
mx_return_t own(char *str, mx_return_t ret);
int use(void);
int use(void)
{
	mx_param_t param;
	param.key = MX_PARAM_CONTEXT_ID;
	param.val.context_id.bits = 16;
	mx_set_error_handler(own);
	return mx_init() == MX_SUCCESS && mx_set_error_handler(MX_ERRORS_RETURN) == MX_ERRORS_ARE_FATAL &&
	       omx_init() == OMX_SUCCESS && param.val.context_id.bits;
}'
}
compiles() {
	local text=$1
	shift
	"$text" ${bits:+"$bits"} | "$@" -Wall -Wextra -Wpedantic -Werror -I"$include" -fsyntax-only -
}

both=('gcc -std=c11 -x c' 'gcc -std=gnu99 -x c' 'g++ -std=c++17 -x c++' 'g++ -std=c++11 -x c++')
for compiler in "${both[@]}"; do
	read -ra command <<<"$compiler"
	bits=64 check "layouts of x86-64: ${command[*]:0:2}" compiles layout "${command[@]}"
	bits='' check "macros: ${command[*]:0:2}" compiles macros "${command[@]}"
	bits='' check "calls: ${command[*]:0:2}" compiles calls "${command[@]}"
done
wrong() {
	! layout 32 | gcc -std=c11 -x c -I"$include" -fsyntax-only -
}
check 'layouts of i386 are not those of x86-64' wrong
if echo '#include <stdint.h>' | gcc -m32 -ffreestanding -x c -fsyntax-only - 2>/dev/null; then
	bits=32 check 'layouts of i386: gcc' compiles layout gcc -m32 -ffreestanding -std=c11 -x c
else
	tap_skip 'layouts of i386: gcc' 'this gcc has no -m32'
fi
tap_done
