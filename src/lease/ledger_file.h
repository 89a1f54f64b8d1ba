/* SPDX-License-Identifier: MIT */
/* Declarations shared by the writer and the reader of the ledger. */
#ifndef NM_ACTUATE_LEDGER_FILE_H
#define NM_ACTUATE_LEDGER_FILE_H

#include "numa-migrd/ledger.h"

#define NM_LEDGER_HEADER "numa-migrd-ledger 1 " /* followed by the boot ID */

/* Returns 1 if the first line is that of a ledger of this boot, 0 if of another boot, or
 * -EBADMSG. */
int nm_ledger_parse_header(const char *line, const char *boot_id);

#endif
