// SPDX-License-Identifier: MIT
/* Other processes' memory: each of these is a worker's call, with an end (worker.h). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "linux.h"
#include "numa-migrd/runtime.h"
#include "private_pages.h"
#include "privileged.h"
#include "worker_subject.h"

#define TEXT_MOST (1U << 20) /* of a numa_maps read whole: ten thousand mappings */
#define MAPS_MOST (4U << 20) /* of a maps, read in pieces: forty thousand mappings */
#define PAGES_SAMPLED 512U
#define READ_BUDGET_NS (5 * NM_NSEC_PER_MSEC)

/* ---- for both callers ---- */

static int call_where(struct nm_linux *self, enum nm_worker_caller caller,
		      const struct nm_memory_query *question, int *ret)
{
	struct nm_worker_call call = {
		.request = {.act = NM_WORKER_WHERE, .count = question->count},
		.pid = question->pid,
		.start_ticks = question->start_ticks,
		.addresses = question->addresses,
		.fd = -1,
		.body = ret,
		.body_size = question->count * sizeof(*ret)};
	size_t whole = call.body_size;

	if (question->count == 0)
		return 0;
	int r = nm_worker_client_call(self->workers, caller, &call);
	return r == 0 && call.body_size != whole ? -EPROTO : r;
}

static int call_open_maps(struct nm_linux *self, enum nm_worker_caller caller,
			  struct nm_worker_call *call, enum nm_maps_file file)
{
	call->request = (struct nm_worker_request){.act = NM_WORKER_OPEN_MAPS, .file = file};
	call->fd = -1;
	int r = nm_worker_client_call(self->workers, caller, call);
	return r < 0 ? r : call->ret_fd;
}

static ssize_t call_read_maps(struct nm_linux *self, enum nm_worker_caller caller,
			      struct nm_worker_call *call, uint64_t budget_ns)
{
	if (call->body_size > NM_WORKER_TEXT_MOST)
		call->body_size = NM_WORKER_TEXT_MOST;
	call->request = (struct nm_worker_request){.act = NM_WORKER_READ_MAPS,
						   .count = (uint32_t)call->body_size,
						   .budget_ns = budget_ns};
	int r = nm_worker_client_call(self->workers, caller, call);
	return r < 0 ? r : (ssize_t)call->body_size;
}

/* ---- the loop's questions: on the asker's thread ---- */

static int answer_where(struct nm_linux *self, const struct nm_memory_query *question,
			struct nm_memory_answer *ret)
{
	nm_autofree int *nodes = calloc(question->count + 1, sizeof(*nodes));
	int r = nodes ? call_where(self, NM_WORKER_LOOP, question, nodes) : -ENOMEM;

	if (r < 0)
		return r;
	ret->nodes = NM_TAKE(nodes);
	ret->count = question->count;
	return 0;
}

static int read_whole(struct nm_linux *self, struct nm_worker_call *call, char *text, size_t size)
{
	size_t used = 0;
	int r;

	while ((r = nm_asker_goes_on(self->asker)) == 0) {
		call->body = text + used;
		call->body_size = size - 1 - used;
		if (call->body_size == 0)
			return -EFBIG;
		ssize_t got = call_read_maps(self, NM_WORKER_LOOP, call, READ_BUDGET_NS);
		if (got < 0)
			return (int)got;
		used += (size_t)got;
		text[used] = '\0';
		if (got == 0)
			return (int)used;
	}
	return r;
}

static int answer_numa_maps(struct nm_linux *self, const struct nm_memory_query *question,
			    struct nm_memory_answer *ret)
{
	struct nm_worker_call call = {.pid = question->pid, .start_ticks = question->start_ticks};
	nm_autofree char *text = malloc(TEXT_MOST);
	nm_auto(nm_closep) int fd = -1;

	if (!text)
		return -ENOMEM;
	fd = call_open_maps(self, NM_WORKER_LOOP, &call, NM_NUMA_MAPS);
	if (fd < 0)
		return fd;
	call.fd = fd;
	int used = read_whole(self, &call, text, TEXT_MOST);
	if (used < 0)
		return used;
	char *fitting = realloc(text, (size_t)used + 1);
	ret->text = fitting ? fitting : text;
	text = NULL;
	return 0;
}

/* Examines `count` pages; those in memory go into *ret, 512 at most. */
static int sample_pages(struct nm_linux *self, const struct nm_memory_query *question, char *maps,
			size_t length, unsigned count, struct nm_memory_answer *ret)
{
	nm_autofree uint64_t *addresses = calloc(count, sizeof(*addresses));
	nm_autofree int *nodes = calloc(count, sizeof(*nodes));
	struct nm_memory_query where = *question;
	unsigned found = 0;

	if (!addresses || !nodes)
		return -ENOMEM;
	where.count = nm_private_pages_choose(maps, length, count, addresses);
	where.addresses = addresses;
	int r = call_where(self, NM_WORKER_LOOP, &where, nodes);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < where.count && found < PAGES_SAMPLED; i++)
		if (nodes[i] >= 0)
			nodes[found++] = nodes[i];
	free(ret->nodes);
	ret->nodes = NM_TAKE(nodes);
	ret->count = found;
	return 0;
}

/* Where little of its address space is in memory, more of it is looked at. */
static int answer_pages(struct nm_linux *self, const struct nm_memory_query *question,
			struct nm_memory_answer *ret)
{
	struct nm_worker_call call = {.pid = question->pid, .start_ticks = question->start_ticks};
	nm_autofree char *maps = malloc(MAPS_MOST);
	nm_auto(nm_closep) int fd = -1;

	if (!maps)
		return -ENOMEM;
	fd = call_open_maps(self, NM_WORKER_LOOP, &call, NM_MAPS);
	if (fd < 0)
		return fd;
	call.fd = fd;
	int used = read_whole(self, &call, maps, MAPS_MOST);
	int r = used < 0 ? used
			 : sample_pages(self, question, maps, (size_t)used, PAGES_SAMPLED, ret);
	if (r == 0 && ret->count < PAGES_SAMPLED / 4)
		r = sample_pages(self, question, maps, (size_t)used, NM_WORKER_PAGES_MOST, ret);
	return r;
}

static int answer_clear_refs(struct nm_linux *self, const struct nm_memory_query *question)
{
	struct nm_worker_call call = {.request = {.act = NM_WORKER_CLEAR_REFS},
				      .pid = question->pid,
				      .start_ticks = question->start_ticks,
				      .fd = question->fd};

	return nm_worker_client_call(self->workers, NM_WORKER_LOOP, &call);
}

/* A program that has more mappings than are read here may yet have one. */
static int search_maps(struct nm_linux *self, struct nm_worker_call *call)
{
	struct nm_runtime_search search = {0};
	char text[NM_WORKER_TEXT_MOST];
	ssize_t got = 1;

	for (size_t read = 0; read < MAPS_MOST; read += (size_t)got) {
		int r = nm_asker_goes_on(self->asker);
		if (r < 0)
			return r;
		call->body = text;
		call->body_size = sizeof(text);
		got = call_read_maps(self, NM_WORKER_LOOP, call, READ_BUDGET_NS);
		if (got < 0)
			return (int)got;
		nm_runtime_search(&search, text, (size_t)got);
		if (got == 0 || search.found != NM_RUNTIME_NONE)
			return (int)search.found;
	}
	return -EFBIG;
}

static int answer_runtime(struct nm_linux *self, const struct nm_memory_query *question)
{
	struct nm_worker_call call = {.pid = question->pid, .start_ticks = question->start_ticks};
	nm_auto(nm_closep) int fd = call_open_maps(self, NM_WORKER_LOOP, &call, NM_MAPS);

	if (fd < 0)
		return fd;
	call.fd = fd;
	return search_maps(self, &call);
}

void nm_linux_answer(void *context, const struct nm_memory_query *question,
		     struct nm_memory_answer *ret)
{
	struct nm_linux *self = context;

	ret->result = nm_worker_client_ready(self->workers, NM_WORKER_LOOP);
	nm_asker_starts(self->asker);
	if (ret->result < 0)
		return;
	switch (question->kind) {
	case NM_MEMORY_QUERY_WHERE:
		ret->result = answer_where(self, question, ret);
		break;
	case NM_MEMORY_QUERY_NUMA_MAPS:
		ret->result = answer_numa_maps(self, question, ret);
		break;
	case NM_MEMORY_QUERY_PAGES:
		ret->result = answer_pages(self, question, ret);
		break;
	case NM_MEMORY_QUERY_CLEAR_REFS:
		ret->result = answer_clear_refs(self, question);
		break;
	case NM_MEMORY_QUERY_RUNTIME:
		ret->result = answer_runtime(self, question);
		break;
	}
}

/* ---- nm_platform_ops: the loop's ---- */

int nm_linux_memory_query(struct nm_platform *platform, const struct nm_memory_query *question,
			  uint64_t *ret_ticket)
{
	struct nm_linux *self = nm_linux(platform);
	struct nm_memory_query own = *question;
	struct nm_worker_subject subject;

	if (question->count > NM_WORKER_PAGES_MOST)
		return -EINVAL;
	int r = nm_worker_subject_of(self->proc, question->pid, question->start_ticks, &subject);
	if (r < 0)
		return r;
	own.tenant = subject.tenant;
	own.start_ticks = subject.tid_ticks;
	own.fd = -1;
	if (question->kind == NM_MEMORY_QUERY_CLEAR_REFS)
		own.fd = nm_linux_open_clear_refs(self, (pid_t)question->pid,
						  question->start_ticks);
	if (question->kind == NM_MEMORY_QUERY_CLEAR_REFS && own.fd < 0)
		return own.fd;
	return nm_asker_ask(self->asker, &own, ret_ticket);
}

int nm_linux_memory_poll(struct nm_platform *platform, uint64_t ticket,
			 struct nm_memory_answer *ret)
{
	return nm_asker_take(nm_linux(platform)->asker, ticket, ret);
}

void nm_linux_memory_cancel(struct nm_platform *platform, uint64_t ticket)
{
	nm_asker_forget(nm_linux(platform)->asker, ticket);
}

bool nm_linux_worker_news(struct nm_platform *platform, struct nm_worker_news *ret)
{
	return nm_worker_client_news(nm_linux(platform)->workers, ret);
}

void nm_linux_worker_counts(struct nm_platform *platform, struct nm_worker_counts *ret)
{
	*ret = nm_worker_client_counts(nm_linux(platform)->workers);
}

/* ---- nm_platform_ops: the mover's ---- */

int nm_linux_open_maps(struct nm_platform *platform, int directory, const char *name)
{
	struct nm_worker_call call = {.directory = directory};
	enum nm_maps_file file = strcmp(name, "numa_maps") == 0 ? NM_NUMA_MAPS : NM_MAPS;

	return call_open_maps(nm_linux(platform), NM_WORKER_MOVER, &call, file);
}

ssize_t nm_linux_read_maps(struct nm_platform *platform, int directory, int fd, char *buffer,
			   size_t size, uint64_t budget_ns, uint64_t *ret_held_ns)
{
	struct nm_worker_call call = {
		.directory = directory, .fd = fd, .body = buffer, .body_size = size};
	ssize_t got = call_read_maps(nm_linux(platform), NM_WORKER_MOVER, &call, budget_ns);

	if (got >= 0)
		*ret_held_ns = call.held_ns;
	return got;
}

int nm_linux_pages_where(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			 unsigned count, const uint64_t *addresses, int *ret)
{
	const struct nm_memory_query question = {.pid = (uint32_t)tid,
						 .start_ticks = start_ticks,
						 .count = count,
						 .addresses = addresses};

	return call_where(nm_linux(platform), NM_WORKER_MOVER, &question, ret);
}

int nm_linux_pages_find(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			unsigned nr_ranges, const struct nm_worker_range *ranges, uint64_t budget_ns,
			struct nm_worker_found *ret)
{
	struct nm_worker_call call = {.request = {.act = NM_WORKER_FIND,
						  .count = nr_ranges,
						  .budget_ns = budget_ns},
				      .pid = (uint32_t)tid,
				      .start_ticks = start_ticks,
				      .ranges = ranges,
				      .fd = -1,
				      .body = ret,
				      .body_size = sizeof(*ret)};

	int r = nm_worker_client_call(nm_linux(platform)->workers, NM_WORKER_MOVER, &call);
	if (r == 0 && (call.body_size != sizeof(*ret) || ret->count > NM_WORKER_PAGES_MOST))
		return -EPROTO;
	return r;
}

int nm_linux_pages_migrate(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			   uint64_t from_nodes, unsigned to_node, uint64_t *ret_held_ns)
{
	struct nm_worker_call call = {.request = {.act = NM_WORKER_MIGRATE,
						  .from_nodes = from_nodes,
						  .to_node = to_node},
				      .pid = (uint32_t)tid,
				      .start_ticks = start_ticks,
				      .fd = -1};

	*ret_held_ns = 0;
	if (!nm_generation_stands(nm_linux(platform)->generation))
		return -ECANCELED;
	int r = nm_worker_client_call(nm_linux(platform)->workers, NM_WORKER_MOVER, &call);
	*ret_held_ns = call.held_ns;
	return r;
}

int nm_linux_pages_move(struct nm_platform *platform, pid_t tid, uint64_t start_ticks,
			unsigned count, const uint64_t *addresses, const int *nodes, int *statuses,
			uint64_t *ret_held_ns)
{
	nm_autofree int *told = calloc(count + 1, sizeof(*told));
	struct nm_worker_call call = {.request = {.act = NM_WORKER_MOVE, .count = count},
				      .pid = (uint32_t)tid,
				      .start_ticks = start_ticks,
				      .addresses = addresses,
				      .nodes = nodes,
				      .fd = -1,
				      .body = told,
				      .body_size = count * sizeof(*told)};

	*ret_held_ns = 0;
	if (!told)
		return -ENOMEM;
	if (!nm_generation_stands(nm_linux(platform)->generation))
		return -ECANCELED;
	for (unsigned i = 0; i < count; i++)
		told[i] = NM_WORKER_UNTOLD;
	int r = nm_worker_client_call(nm_linux(platform)->workers, NM_WORKER_MOVER, &call);
	for (unsigned i = 0; i < count; i++)
		if (told[i] != NM_WORKER_UNTOLD)
			statuses[i] = told[i];
	*ret_held_ns = call.held_ns;
	return r;
}

int nm_linux_pages_prepare(struct nm_platform *platform)
{
	return nm_worker_client_ready(nm_linux(platform)->workers, NM_WORKER_MOVER);
}

void nm_linux_pages_stop(struct nm_platform *platform, bool stop)
{
	nm_worker_client_stop(nm_linux(platform)->workers, NM_WORKER_MOVER, stop);
}
