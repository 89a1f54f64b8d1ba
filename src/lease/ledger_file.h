/* SPDX-License-Identifier: MIT */
/* What writing and reading the ledger share. */
#ifndef NM_ACTUATE_LEDGER_FILE_H
#define NM_ACTUATE_LEDGER_FILE_H

#include "numa-migrd/ledger.h"

#define NM_LEDGER_HEADER "numa-migrd-ledger 1 " /* and the boot id */

#endif
