/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The queues of datagram sockets.
 */
#include <sys/socket.h>

#include "base/config.h"
#include "nal/net/net.h"

void net_widen(int fd, int force, int ask)
{
	int bytes = (int)base_config()->ptl_udp_buffer_kib * 1024;

	if (setsockopt(fd, SOL_SOCKET, force, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, ask, &bytes, sizeof(bytes));
}

uint32_t net_window(int fd)
{
	int bytes = 0;
	socklen_t len = sizeof(bytes);

	/* the kernel makes the buffer twice as large as was asked for, since packets take more
	 * room than their bytes */
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &len);
	return bytes > 0 ? (uint32_t)bytes / 2 : 0;
}
