/* SPDX-License-Identifier: MIT */
/* What writing and reading the ledger share. */
#ifndef NM_ACTUATE_LEDGER_FILE_H
#define NM_ACTUATE_LEDGER_FILE_H

#include "numa-migrd/ledger.h"

#define NM_LEDGER_HEADER "numa-migrd-ledger 1 " /* and the boot id */

/* Opens a file that may be ours, or refuses it: see nm_ledger_open(). */
int nm_ledger_open_file(int directory, const char *name, int flags);

/* Writes all of it, whatever write(2) does in between. */
int nm_ledger_write(int fd, const char *text, size_t length);

#endif
