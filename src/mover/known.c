// SPDX-License-Identifier: MIT
#include "known.h"

#include "numa-migrd/proc.h"

static void empty_entry(struct nm_known_entry *entry)
{
	nm_mappings_free(entry->ready);
	nm_mappings_free(entry->reading);
	*entry = (struct nm_known_entry){0};
}

void nm_known_clear(struct nm_known *known)
{
	for (size_t i = 0; i < NM_KNOWN_MOST; i++)
		empty_entry(&known->entries[i]);
}

/* A free one, or the one that was asked for longest ago. */
static struct nm_known_entry *choose(struct nm_known *known, const struct nm_known_entry *keep)
{
	struct nm_known_entry *oldest = NULL;

	for (size_t i = 0; i < NM_KNOWN_MOST; i++) {
		struct nm_known_entry *entry = &known->entries[i];
		if (entry == keep)
			continue;
		if (entry->pid == 0)
			return entry;
		if (!oldest || entry->asked_ns < oldest->asked_ns)
			oldest = entry;
	}
	return oldest;
}

static struct nm_known_entry *find(struct nm_known *known, uint32_t pid)
{
	for (size_t i = 0; i < NM_KNOWN_MOST; i++)
		if (known->entries[i].pid == pid)
			return &known->entries[i];
	return NULL;
}

struct nm_known_entry *nm_known_ask(struct nm_known *known, uint32_t pid, uint64_t start_ticks,
				    uint64_t now_ns, const struct nm_known_entry *keep)
{
	struct nm_known_entry *entry = find(known, pid);
	bool other = entry && (entry->start_ticks != start_ticks || entry->dropped);

	if (other && entry == keep)
		return NULL; /* the worker is about to throw it away */
	if (!entry)
		entry = choose(known, keep);
	if (other || entry->pid == 0 || entry->pid != pid) {
		empty_entry(entry);
		entry->pid = pid;
		entry->start_ticks = start_ticks;
	}
	entry->asked_ns = now_ns;
	entry->wanted = true;
	return entry;
}

void nm_known_drop(struct nm_known *known, uint32_t pid)
{
	struct nm_known_entry *entry = find(known, pid);

	if (entry)
		entry->dropped = true;
}

static bool is_due(const struct nm_known_entry *entry, uint64_t now_ns)
{
	if (entry->pid == 0 || !entry->wanted)
		return false;
	return entry->reading || (!entry->ready && !entry->error) || now_ns >= entry->again_ns;
}

bool nm_known_holds(const struct nm_known_entry *entry, uint64_t now_ns)
{
	return entry->ready && !entry->dropped &&
	       now_ns < entry->again_ns + (entry->again_ns - entry->ready_ns);
}

static uint64_t longer(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void nm_known_lacks(struct nm_known_entry *entry)
{
	uint64_t soon = longer(NM_KNOWN_SOON_NS,
			       entry->ready ? 100 * nm_mappings_cost_ns(entry->ready) : 0);

	if (entry->ready_ns + soon < entry->again_ns)
		entry->again_ns = entry->ready_ns + soon;
}

struct nm_known_entry *nm_known_unread(struct nm_known *known, uint64_t now_ns)
{
	struct nm_known_entry *latest = NULL;

	for (size_t i = 0; i < NM_KNOWN_MOST; i++) {
		struct nm_known_entry *entry = &known->entries[i];
		if (entry->dropped)
			empty_entry(entry);
		else if (is_due(entry, now_ns) && (!latest || entry->asked_ns > latest->asked_ns))
			latest = entry;
	}
	return latest;
}

int nm_known_open(struct nm_platform *platform, uint32_t pid, uint64_t start_ticks)
{
	struct nm_proc_stat stat;
	int directory = nm_proc_open_thread(platform, 0, pid);

	if (directory < 0)
		return directory;
	int r = nm_proc_read_stat(platform, directory, &stat);
	if (r == 0 && stat.start_ticks != start_ticks)
		r = -ESRCH;
	if (r < 0) {
		platform->ops->close(platform, directory);
		return r;
	}
	return directory;
}

int nm_known_read(struct nm_known_entry *entry, struct nm_platform *platform, uint64_t budget_ns)
{
	int r = entry->reading ? 0 : nm_mappings_new(platform, &entry->reading);

	if (r < 0)
		return r;
	int directory = nm_known_open(platform, entry->pid, entry->start_ticks);
	if (directory < 0)
		return directory;
	r = nm_mappings_read(entry->reading, directory, budget_ns);
	platform->ops->close(platform, directory);
	return r;
}

void nm_known_publish(struct nm_known *known, struct nm_known_entry *entry, int result,
		      uint64_t before_ns, uint64_t now_ns)
{
	known->turn_ns = now_ns + NM_KNOWN_TURN_SHARE * (now_ns - before_ns);
	if (result == -EAGAIN)
		return;
	uint64_t cost = entry->reading ? nm_mappings_cost_ns(entry->reading) : 0;
	entry->wanted = false;
	entry->error = result;
	entry->ready_ns = now_ns;
	entry->again_ns = now_ns + longer(NM_KNOWN_AGE_NS, 100 * cost);
	nm_mappings_free(entry->ready);
	entry->ready = result == 0 ? NM_TAKE(entry->reading) : NULL;
	nm_mappings_free(NM_TAKE(entry->reading));
	known->reads++;
	known->read_ns += cost;
}
