/* SPDX-License-Identifier: MIT */
/* The list of released processes and threads. It outlives the task table, which is rebuilt at every
 * resume, and through its file also the daemon. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/file.h"
#include "numa-migrd/proc.h"
#include "task_table.h"

/*
 * Beyond a domain's quota, entries of exited tasks are dropped, or else the oldest thread of the
 * domain. From a full list the oldest thread is dropped; explicitly released processes are dropped
 * last.
 */
#define HEADER "numa-migrd-given-back 4 " /* followed by the boot id */
#define HEADER_BYTES 128
#define LINE_BYTES 96 /* "process", four numbers */
/* Number of entries beyond those alive at the last check that are kept without another check. */
#define SLACK 64

struct given {
	uint32_t id; /* tid of a FOREIGN thread, or pid of a RELEASED process */
	uint64_t start_ticks;
	enum nm_eligibility eligibility;
	uint64_t domain;
};

struct nm_released_list {
	struct given *items;
	size_t count, capacity;
	size_t alive;	   /* number of entries alive at the last check */
	unsigned kept_off; /* number of entries that may be dropped before all are checked again */
	bool changed;	   /* since the last save */
};

void nm_released_list_new(struct nm_released_list **ret)
{
	*ret = nm_must(calloc(1, sizeof(**ret)));
}

void nm_released_list_free(struct nm_released_list *memory)
{
	if (!memory)
		return;
	free(memory->items);
	free(memory);
}

static struct given *find_given(const struct nm_released_list *memory, uint32_t id,
				uint64_t start_ticks, enum nm_eligibility eligibility)
{
	for (size_t i = 0; i < memory->count; i++) {
		struct given *given = &memory->items[i];
		if (given->id == id && given->start_ticks == start_ticks &&
		    given->eligibility == eligibility)
			return given;
	}
	return NULL;
}

bool nm_tasks_remembers(const struct nm_released_list *memory, uint32_t id, uint64_t start_ticks,
			enum nm_eligibility eligibility)
{
	return find_given(memory, id, start_ticks, eligibility) != NULL;
}

/* A task that cannot be read counts as alive: an unnecessary entry does no harm. */
static bool is_gone(struct nm_platform *platform, const struct given *given)
{
	struct nm_proc_stat stat;
	int r = nm_proc_stat_of(platform, given->id, given->id, &stat);
	return r == -ESRCH || (r == 0 && stat.start_ticks != given->start_ticks);
}

static void drop_gone(struct nm_released_list *memory, struct nm_platform *platform)
{
	size_t kept = 0;
	for (size_t i = 0; i < memory->count; i++)
		if (!is_gone(platform, &memory->items[i]))
			memory->items[kept++] = memory->items[i];
	memory->changed = memory->changed || kept != memory->count;
	memory->count = memory->alive = kept;
}

static bool has_released_room(const struct nm_released_list *memory, uint64_t domain)
{
	struct nm_quota quota = {.limit = NM_RELEASED_MOST};
	for (size_t i = 0; i < memory->count; i++)
		nm_quota_count(&quota, domain, memory->items[i].domain, 1);
	return nm_quota_permits(&quota, domain);
}

/* Returns the oldest thread of the domain or, if the list is full, of any; -1: there is
 * room. */
static ptrdiff_t least_needed(const struct nm_released_list *memory, uint64_t domain)
{
	ptrdiff_t any = -1;
	for (size_t i = 0; i < memory->count; i++) {
		if (memory->items[i].eligibility == NM_ELIGIBILITY_RELEASED)
			continue;
		if (memory->items[i].domain == domain)
			return (ptrdiff_t)i;
		any = any < 0 ? (ptrdiff_t)i : any;
	}
	if (memory->count < NM_RELEASED_MOST)
		return -1;
	return any < 0 ? 0 : any;
}

/* If few have exited, all are checked only once in SLACK additions, so that no program can overload
 * the daemon with living threads. */
static void drop_entries(struct nm_released_list *memory, struct nm_platform *platform,
			 uint64_t domain)
{
	if (memory->kept_off == 0) {
		size_t before = memory->count;
		drop_gone(memory, platform);
		memory->kept_off = before - memory->count < SLACK ? SLACK : 0;
	}
	if (has_released_room(memory, domain))
		return;
	memory->kept_off -= memory->kept_off > 0;
	ptrdiff_t index = least_needed(memory, domain);
	if (index < 0)
		return;
	memory->count--;
	memmove(memory->items + index, memory->items + index + 1,
		(memory->count - (size_t)index) * sizeof(*memory->items));
}

void nm_tasks_remember(struct nm_released_list *memory, struct nm_platform *platform, uint32_t id,
		       uint64_t start_ticks, enum nm_eligibility eligibility, uint64_t domain)
{
	if (nm_tasks_remembers(memory, id, start_ticks, eligibility))
		return;
	if (!has_released_room(memory, domain))
		drop_entries(memory, platform, domain);
	NM_RESERVE(memory->items, memory->capacity, memory->count);
	memory->items[memory->count++] = (struct given){
		.id = id, .start_ticks = start_ticks, .eligibility = eligibility, .domain = domain};
	memory->changed = true;
}

static int read_birth(struct nm_platform *platform, uint32_t pid, uint64_t *ret_start_ticks,
		      uint64_t *ret_domain)
{
	struct nm_proc_stat stat;
	uint32_t uid = 0; /* read or unused, which the analyzer cannot detect */
	nm_autofree char *cgroup = NULL;
	int directory = nm_proc_open_stat(platform, 0, pid, &stat);
	if (directory < 0)
		return directory;
	int r = nm_proc_read_owner(platform, directory, &uid);
	if (r == 0)
		(void)nm_proc_read_cgroup(platform, directory, &cgroup); /* may not be known */
	platform->ops->close(platform, directory);
	if (r < 0)
		return r;
	/* The number of a thread can be opened, too. */
	if (!stat.is_leader)
		return -ESRCH;
	*ret_start_ticks = stat.start_ticks;
	*ret_domain = nm_proc_domain(platform, uid, cgroup);
	return 0;
}

int nm_released_list_release(struct nm_released_list *memory, struct nm_platform *platform,
			     uint32_t pid)
{
	uint64_t start_ticks;
	uint64_t domain;
	int r = read_birth(platform, pid, &start_ticks, &domain);
	if (r < 0)
		return r;
	nm_tasks_remember(memory, platform, pid, start_ticks, NM_ELIGIBILITY_RELEASED, domain);
	return 0;
}

int nm_released_list_manage(struct nm_released_list *memory, struct nm_platform *platform,
			    uint32_t pid)
{
	uint64_t start_ticks, domain;
	for (size_t i = 0; i < memory->count; i++) {
		if (memory->items[i].id != pid ||
		    memory->items[i].eligibility != NM_ELIGIBILITY_RELEASED)
			continue;
		memory->count--;
		memmove(memory->items + i, memory->items + i + 1,
			(memory->count - i) * sizeof(*memory->items));
		memory->changed = true;
		return 1;
	}
	return read_birth(platform, pid, &start_ticks, &domain);
}

/* ---- the file ---- */

static const struct {
	const char *name;
	enum nm_eligibility eligibility;
} kinds[] = {{"process", NM_ELIGIBILITY_RELEASED}, {"thread", NM_ELIGIBILITY_FOREIGN}};

/* A line of earlier versions, which is skipped. */
#define UNDONE "undone"

/* The last number had a meaning in earlier versions. */
static size_t write_line(char *out, const struct given *given)
{
	size_t kind = 0;
	while (kinds[kind].eligibility != given->eligibility)
		kind++;
	return (size_t)snprintf(out, LINE_BYTES, "%s %" PRIu32 " %" PRIu64 " %" PRIu64 " 0\n",
				kinds[kind].name, given->id, given->start_ticks, given->domain);
}

int nm_released_list_save(struct nm_released_list *memory, struct nm_platform *platform,
			  int directory, const char *boot_id)
{
	if (!memory->changed)
		return 0;
	if (memory->count > memory->alive * 2 + SLACK)
		drop_gone(memory, platform);
	nm_autofree char *text = nm_must(malloc(HEADER_BYTES + memory->count * LINE_BYTES));
	size_t length = (size_t)snprintf(text, HEADER_BYTES, HEADER "%.64s\n", boot_id);
	for (size_t i = 0; i < memory->count; i++)
		length += write_line(text + length, &memory->items[i]);
	int r = nm_replace_own(directory, NM_RELEASED_NAME, text, length);
	memory->changed = r < 0;
	return r;
}

static int parse_line(const char *line, struct given *ret)
{
	char kind[8];
	char end;
	struct given given = {0};
	uint64_t unused;
	if (sscanf(line, "%7s %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 "%c", kind, &given.id,
		   &given.start_ticks, &given.domain, &unused, &end) != 5 ||
	    !given.id)
		return -EBADMSG;
	for (size_t i = 0; i < NM_ARRAY_SIZE(kinds); i++) {
		if (strcmp(kind, kinds[i].name) != 0)
			continue;
		given.eligibility = kinds[i].eligibility;
		*ret = given;
		return 0;
	}
	return -EBADMSG;
}

/* Returns -EBADMSG if lines were skipped. */
static int parse_lines(struct nm_released_list *memory, struct nm_platform *platform, char *text)
{
	struct given given;
	char *rest = NULL;
	int result = 0;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, UNDONE, strlen(UNDONE)) == 0)
			continue;
		int r = parse_line(line, &given);
		if (r == 0)
			nm_tasks_remember(memory, platform, given.id, given.start_ticks,
					  given.eligibility, given.domain);
		result = r < 0 ? r : result;
	}
	return result;
}

static int parse_text(struct nm_released_list *memory, struct nm_platform *platform, char *text,
		      const char *boot_id)
{
	if (strncmp(text, HEADER, strlen(HEADER)) != 0)
		return -EBADMSG;
	char *boot = text + strlen(HEADER);
	char *end = strchr(boot, '\n');
	if (!end)
		return -EBADMSG;
	*end = '\0';
	return strcmp(boot, boot_id) == 0 ? parse_lines(memory, platform, end + 1) : 0;
}

int nm_released_list_load(struct nm_released_list *memory, struct nm_platform *platform,
			  int directory, const char *boot_id)
{
	const size_t size = HEADER_BYTES + NM_RELEASED_MOST * LINE_BYTES;
	nm_auto(nm_closep) int fd = nm_open_own(directory, NM_RELEASED_NAME, O_RDONLY);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	nm_autofree char *text = nm_must(malloc(size));
	int r = nm_read_all(fd, text, size);
	if (r < 0)
		return r;
	r = parse_text(memory, platform, text, boot_id);
	drop_gone(memory, platform);
	return r;
}
