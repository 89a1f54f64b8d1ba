/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "replay.h"

#define SHOWN_BYTES 192

void nm_player_stop(struct nm_player *player, const char *format, ...)
{
	va_list arguments;
	if (player->ended)
		return;
	player->ended = true;
	va_start(arguments, format);
	(void)vsnprintf(player->problem, sizeof(player->problem), format, arguments);
	va_end(arguments);
}

/* Journal entries contain the time of day; topologies have a separate reader. */
static bool is_skipped(const struct nm_recorded *record)
{
	return record->kind == NM_RECORDED_ENTRY || record->kind == NM_RECORDED_END ||
	       record->kind == NM_RECORDED_TOPOLOGY;
}

const struct nm_recorded *nm_player_peek(struct nm_player *player)
{
	int r = 1;
	if (player->ended)
		return NULL;
	while (!player->has_next && r > 0) {
		r = nm_recording_next(player->stream, &player->next);
		player->has_next = r > 0 && !is_skipped(&player->next);
	}
	if (r < 0)
		nm_player_stop(player, "%s", nm_recording_error(player->stream));
	return player->has_next ? &player->next : NULL;
}

const struct nm_recorded *nm_player_take(struct nm_player *player, enum nm_recorded_kind kind,
					 const char *wanted_by)
{
	const struct nm_recorded *record = nm_player_peek(player);
	if (!record) {
		nm_player_stop(player, "%s", "");
		return NULL;
	}
	if (record->kind != kind) {
		nm_player_stop(player,
			       "interval %" PRIu64 ": the replay is at %s, and the recording at %s",
			       player->interval, wanted_by, nm_recorded_kind_name(record->kind));
		return NULL;
	}
	player->has_next = false;
	return record;
}

static bool is_answer(const struct nm_recorded *record, const char *operation, int64_t handle,
		      const char *path)
{
	return record->kind == NM_RECORDED_ANSWER &&
	       strcmp(record->answer.operation, operation) == 0 &&
	       record->answer.handle == handle && strcmp(record->answer.path, path) == 0;
}

static void report_other_request(struct nm_player *player, const struct nm_recorded *record,
				 const char *operation, int64_t handle, const char *path)
{
	bool answers = record->kind == NM_RECORDED_ANSWER;
	const char *other =
		answers ? record->answer.operation : nm_recorded_kind_name(record->kind);
	const char *other_path = answers ? record->answer.path : "";
	char asked[SHOWN_BYTES], has[SHOWN_BYTES], has_path[SHOWN_BYTES];
	(void)nm_escape(asked, sizeof(asked), path, strlen(path));
	(void)nm_escape(has, sizeof(has), other, strlen(other));
	(void)nm_escape(has_path, sizeof(has_path), other_path, strlen(other_path));
	nm_player_stop(player,
		       "interval %" PRIu64 ": the replay asks for %s %" PRIi64 " \"%s\", and the "
		       "recording has %s \"%s\"",
		       player->interval, operation, handle, asked, has, has_path);
}

const struct nm_recorded_answer *nm_player_answer(struct nm_player *player, const char *operation,
						  int64_t handle, const char *path)
{
	const struct nm_recorded *record = nm_player_peek(player);
	if (!record || is_answer(record, operation, handle, path)) {
		player->has_next = false;
		return record ? &record->answer : NULL;
	}
	report_other_request(player, record, operation, handle, path);
	return NULL;
}

/* ---- outputs ---- */

static void report_difference(struct nm_player *player, const struct nm_recorded *recorded,
			      const struct nm_recorded *replayed)
{
	nm_autofree char *one = NULL, *other = NULL;
	size_t one_size, other_size, at = 0;
	FILE *out = open_memstream(&one, &one_size);
	if (out) {
		nm_recorded_print(recorded, out);
		(void)fclose(out);
	}
	out = open_memstream(&other, &other_size);
	if (out) {
		nm_recorded_print(replayed, out);
		(void)fclose(out);
	}
	while (one && other && one[at] && one[at] == other[at])
		at++;
	size_t from = at > 60 ? at - 60 : 0;
	nm_player_stop(player,
		       "interval %" PRIu64 ": not the same: recorded \"%s%.160s\", replayed "
		       "\"%s%.160s\"",
		       player->interval, from ? "..." : "", one ? one + from : "",
		       from ? "..." : "", other ? other + from : "");
}

static int check(struct nm_player *player, const struct nm_recorded *record)
{
	bool same = false;
	const struct nm_recorded *recorded = nm_player_peek(player);
	if (!recorded) {
		/* Truncated within an interval. */
		nm_player_stop(player, "%s", "");
		return 0;
	}
	int r = nm_recorded_equal(recorded, record, &same);
	if (r < 0)
		return r;
	if (!same)
		report_difference(player, recorded, record);
	player->has_next = false;
	player->checked += same;
	return 0;
}

static int on_record(void *context, const struct nm_recorded *record)
{
	struct nm_player *player = context;
	if (is_skipped(record) || player->ended)
		return 0;
	if (record->kind == NM_RECORDED_INTERVAL) {
		player->interval = record->about.number;
		player->intervals++;
	}
	if (record->kind == NM_RECORDED_DECISION && record->decision.kind != NM_DECISION_HOME)
		player->sent += record->decision.nr_steps;
	return check(player, record);
}

static int open_for_stages(void *context, struct nm_platform **ret)
{
	struct nm_player *player = context;
	*ret = &player->stages;
	return 0;
}

struct nm_record_sink nm_player_sink(struct nm_player *player)
{
	return (struct nm_record_sink){
		.context = player,
		.add = on_record,
		.open_platform = open_for_stages,
	};
}

void nm_player_clear(struct nm_player *player)
{
	nm_recording_free(player->stream);
	nm_paths_clear(&player->paths);
	nm_recording_free(player->topologies);
}
