/* SPDX-License-Identifier: MIT */
#include "numa-migrd/base.h"

#include <string.h>

static bool ends_with(const char *name, size_t length, const char *end)
{
	size_t size = strlen(end);

	return length > size && memcmp(name + length - size, end, size) == 0;
}

/* A directory of root with one cgroup per container, which belongs to no unit of systemd, or the unit
 * of Slurm, with one per job. */
static bool is_parent_of_containers(const char *name, size_t length)
{
	static const char *const names[] = {"docker",	 "lxc",	       "kubepods",
					    "burstable", "besteffort", "slurmstepd.scope"};

	for (size_t i = 0; i < NM_ARRAY_SIZE(names); i++)
		if (length == strlen(names[i]) && memcmp(name, names[i], length) == 0)
			return true;
	return false;
}

static bool ends_domain(const char *name, size_t length)
{
	bool is_of_one_user =
		length > strlen("user-") && memcmp(name, "user-", strlen("user-")) == 0;

	if (ends_with(name, length, ".slice"))
		return is_of_one_user;
	return !is_parent_of_containers(name, length);
}

/* Returns the length of the path of the top-level cgroup; 0: none. */
static size_t domain_length(const char *cgroup)
{
	const char *place = cgroup;

	while (*place == '/') {
		const char *name = place + 1;
		size_t length = strcspn(name, "/");
		if (length == 0)
			break;
		place = name + length;
		if (ends_domain(name, length))
			break;
	}
	return (size_t)(place - cgroup);
}

uint64_t nm_domain_of(uint32_t uid, const char *cgroup)
{
	size_t length = cgroup ? domain_length(cgroup) : 0;

	return length ? nm_hash_add(NM_HASH_START, cgroup, length)
		      : nm_hash_add(NM_HASH_START, &uid, sizeof(uid));
}

void nm_usage_add(struct nm_usage *usage, uint64_t domain, uint64_t holder, uint64_t amount)
{
	usage->all += amount;
	if (holder == domain)
		usage->own += amount;
}

bool nm_usage_has_room(const struct nm_usage *usage, uint64_t most)
{
	return usage->all < most && usage->own < most - usage->all;
}

double nm_debts_of(const struct nm_debts *debts, uint64_t domain)
{
	for (unsigned i = 0; i < NM_DEBTS; i++)
		if (debts->debts[i].domain == domain)
			return debts->debts[i].amount;
	return 0;
}

void nm_debts_add(struct nm_debts *debts, uint64_t domain, double amount, double most)
{
	struct nm_debt *debt = &debts->debts[0];
	double left = most - nm_debts_of(debts, domain);

	if (left <= 0)
		return;
	for (unsigned i = 0; i < NM_DEBTS && debt->domain != domain; i++)
		if (debts->debts[i].domain == domain || debts->debts[i].amount < debt->amount)
			debt = &debts->debts[i];
	if (debt->domain != domain)
		*debt = (struct nm_debt){.domain = domain};
	debt->amount += amount < left ? amount : left;
}

void nm_debts_repay(struct nm_debts *debts, double amount)
{
	for (unsigned i = 0; i < NM_DEBTS; i++) {
		struct nm_debt *debt = &debts->debts[i];
		debt->amount = debt->amount > amount ? debt->amount - amount : 0;
	}
}
