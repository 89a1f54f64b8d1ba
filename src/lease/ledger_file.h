/* SPDX-License-Identifier: MIT */
/* Declarations shared by the writer and the reader of the ledger. */
#ifndef NM_ACTUATE_LEDGER_FILE_H
#define NM_ACTUATE_LEDGER_FILE_H

#include "numa-migrd/ledger.h"

#define NM_LEDGER_HEADER "numa-migrd-ledger 1 " /* followed by the boot ID */

#endif
