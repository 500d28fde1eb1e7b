/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the Postern authors
 *
 * The agreement of the client and the server.
 */
#ifndef EXAMPLES_SERVICE_H
#define EXAMPLES_SERVICE_H

enum {
	SERVICE_INDEX = 10,  /* portal index of both sides */
	SERVICE_REQUEST = 1, /* match bits of requests; other bits are a client's texts */
	SERVICE_TEXT = 256,  /* bytes of a text, with its end */
};

#endif
