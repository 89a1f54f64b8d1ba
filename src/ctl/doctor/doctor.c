/* SPDX-License-Identifier: MIT */
#include "doctor.h"

#include "checks.h"
#include "gather.h"

int nm_doctor_run(const struct nm_doctor_options *options, struct nm_findings *ret)
{
	nm_auto(nm_facts_clear) struct nm_facts facts = {0};
	int r = nm_facts_gather(options, &facts);

	return r < 0 ? r : nm_doctor_examine(&facts, ret);
}
