/* SPDX-License-Identifier: MIT */
#include "numa-migrd/base.h"

double nm_quota_of(const struct nm_quota *quota, uint64_t domain)
{
	for (unsigned i = 0; i < NM_QUOTA_DOMAINS; i++)
		if (quota->owed[i].domain == domain)
			return quota->owed[i].amount;
	return 0;
}

bool nm_quota_permits(const struct nm_quota *quota, uint64_t domain)
{
	return quota->used < quota->limit &&
	       nm_quota_of(quota, domain) < quota->limit - quota->used;
}

/* Returns the entry of the domain, which may replace the one that owes least. */
static struct nm_quota_owed *entry_of(struct nm_quota *quota, uint64_t domain)
{
	struct nm_quota_owed *entry = &quota->owed[0];

	for (unsigned i = 0; i < NM_QUOTA_DOMAINS && entry->domain != domain; i++)
		if (quota->owed[i].domain == domain || quota->owed[i].amount < entry->amount)
			entry = &quota->owed[i];
	if (entry->domain != domain)
		*entry = (struct nm_quota_owed){.domain = domain};
	return entry;
}

/* The debt of a replaced domain remains in `used`: the limit of all must not depend on their
 * number. */
void nm_quota_add(struct nm_quota *quota, uint64_t domain, double amount)
{
	double left = quota->limit - nm_quota_of(quota, domain);
	double added = amount < left ? amount : left;

	if (added <= 0)
		return;
	entry_of(quota, domain)->amount += added;
	quota->used += added;
}

void nm_quota_count(struct nm_quota *quota, uint64_t domain, uint64_t holder, uint64_t amount)
{
	quota->used += (double)amount;
	if (holder == domain)
		entry_of(quota, domain)->amount += (double)amount;
}

/* The sum is formed anew: differences of rounded numbers would not reach 0. */
void nm_quota_repay(struct nm_quota *quota, double amount)
{
	quota->used = 0;
	for (unsigned i = 0; i < NM_QUOTA_DOMAINS; i++) {
		struct nm_quota_owed *entry = &quota->owed[i];
		entry->amount = entry->amount > amount ? entry->amount - amount : 0;
		quota->used += entry->amount;
	}
}

void nm_quota_repay_together(struct nm_quota *quota, double amount)
{
	double kept = quota->used > amount ? 1 - amount / quota->used : 0;

	quota->used *= kept;
	for (unsigned i = 0; i < NM_QUOTA_DOMAINS; i++)
		quota->owed[i].amount *= kept;
}
