/* SPDX-License-Identifier: MIT */
/* Translates event names into the words of perf_event_attr, by libpfm4
 * (pfm_get_os_event_encoding(3)). */
#include "platform/event.h"

/* libpfm4 contains a copy of the kernel's header under another guard; only one may be included. */
#define __PERFMON_PERF_EVENT_H__
#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

#include "numa-migrd/config.h"

#define NAME_BYTES 320

/*
 * libpfm4 is configured by environment variables only; pfm_initialize(3) reads them and keeps
 * pointers to some. For that call it gets an environment of its own: variables that this process
 * has inherited have no effect, and its own environment does not change. A thread that calls
 * getenv(3) at the same time finds nothing there, but no freed memory as after setenv(3). PMUs that
 * libpfm4 does not detect must encode, too, because we choose the table, and --list-events prints
 * any of them. With its PMUs perf and perf_raw disabled, it does not read the ID of every
 * tracepoint (20 to 50 ms).
 */
static void initialize(void)
{
	static char inactive[] = "LIBPFM_ENCODE_INACTIVE=1",
		    disabled[] = "LIBPFM_DISABLED_PMUS=perf";
	static char *own[] = {inactive, disabled, NULL};
	char **inherited = environ;

	__atomic_store_n(&environ, own, __ATOMIC_SEQ_CST);
	(void)pfm_initialize(); /* each encoding reports a failure again */
	__atomic_store_n(&environ, inherited, __ATOMIC_SEQ_CST);
}

/* Returns PFM_SUCCESS, or libpfm4's error. */
static int encode(const char *name, pfm_os_t os, struct perf_event_attr *ret)
{
	static once_flag once = ONCE_FLAG_INIT;
	struct perf_event_attr attr = {.size = sizeof(attr)};
	pfm_perf_encode_arg_t argument = {.attr = &attr, .size = sizeof(argument)};

	call_once(&once, initialize);
	int r = pfm_get_os_event_encoding(name, PFM_PLM3, os, &argument);
	if (r == PFM_SUCCESS)
		*ret = attr;
	return r;
}

static void take(struct nm_event_word *word, const struct perf_event_attr *attr)
{
	word->type = attr->type;
	word->config = attr->config;
	word->config1 = attr->config1;
}

int nm_event_row_encode(const struct nm_event_table *table, const struct nm_event_row *row,
			unsigned load_latency, struct nm_event_word *ret)
{
	struct nm_event_word word = {
		.kind = row->kind,
		.remark = row->raw,
		.type = row->type,
		.config = row->config,
		.config1 = row->has_threshold ? load_latency : 0,
		.period_multiple = 1,
		.unit = row->unit,
		.precise = row->precise,
		.user_only = true,
		.remote = row->remote,
	};
	char name[NAME_BYTES], threshold[24] = "";
	struct perf_event_attr attr;

	snprintf(word.name, sizeof(word.name), "%s", row->name);
	if (!row->raw) {
		if (row->has_threshold)
			snprintf(threshold, sizeof(threshold), ":ldlat=%u", load_latency);
		snprintf(name, sizeof(name), "%s::%s%s", table->pfm[0], row->name, threshold);
		int r = encode(name, PFM_OS_PERF_EVENT_EXT, &attr);
		word.unencoded = r != PFM_SUCCESS;
		if (word.unencoded)
			word.remark = pfm_strerror(r);
		else
			take(&word, &attr);
	}
	*ret = word;
	return word.unencoded ? -ENOPKG : 0;
}

/* ---- sampling.event ---- */

static bool has_pmu(const struct nm_event_table *table, const char *name, size_t length)
{
	for (size_t i = 0; i < NM_ARRAY_SIZE(table->pfm); i++)
		if (table->pfm[i] && strlen(table->pfm[i]) == length &&
		    strncasecmp(table->pfm[i], name, length) == 0)
			return true;
	return false;
}

/* For an event without a PMU's name, uses the first PMU of the table that knows it. */
static int encode_of_table(const struct nm_event_table *table, const char *event,
			   struct perf_event_attr *ret)
{
	char name[NAME_BYTES];
	int r = PFM_ERR_NOTFOUND;

	for (size_t i = 0; i < NM_ARRAY_SIZE(table->pfm) && r == PFM_ERR_NOTFOUND; i++) {
		if (!table->pfm[i])
			continue;
		snprintf(name, sizeof(name), "%s::%s", table->pfm[i], event);
		r = encode(name, PFM_OS_PERF_EVENT, ret);
	}
	return r;
}

/* Returns whether the privilege levels are those that we set ourselves; libpfm4 refuses other
 * modifiers of perf events. */
static bool is_of_user_mode(const struct perf_event_attr *attr)
{
	return !attr->exclude_user && attr->exclude_kernel && !attr->exclude_host &&
	       attr->exclude_guest;
}

/* Returns NULL, or the reason why memory accesses cannot be sampled by this event. */
static const char *encode_named(const struct nm_event_table *table, const char *event,
				struct perf_event_attr *ret)
{
	const char *colons = strstr(event, "::");

	if (!nm_config_is_event(event))
		return "not spelled like an event of libpfm4";
	if (!table->pfm[0])
		return "libpfm4's PMU of this CPU is not known to numa-migrd";
	if (colons && !has_pmu(table, event, (size_t)(colons - event)))
		return "an event of another PMU";
	int r = colons ? encode(event, PFM_OS_PERF_EVENT, ret) : encode_of_table(table, event, ret);
	if (r != PFM_SUCCESS)
		return pfm_strerror(r);
	if (!is_of_user_mode(ret))
		return "samples are of user mode only, without the modifiers u, k, mg and mh";
	return ret->type == PERF_TYPE_RAW ? NULL : "not an event of the cores";
}

int nm_event_named_encode(const struct nm_event_table *table, const char *name,
			  struct nm_event_word *ret)
{
	struct nm_event_word word = {
		.kind = NM_EVENT_MEMORY, .period_multiple = 1, .precise = true, .user_only = true};
	struct perf_event_attr attr;

	word.remark = encode_named(table, name, &attr);
	word.unencoded = word.remark != NULL;
	snprintf(word.name, sizeof(word.name), "%s", name);
	if (!word.unencoded)
		take(&word, &attr);
	*ret = word;
	return word.unencoded ? -ENOPKG : 0;
}
