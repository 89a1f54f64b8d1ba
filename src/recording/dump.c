/* SPDX-License-Identifier: MIT */
#include "fields.h"

const char *nm_recorded_kind_name(enum nm_recorded_kind kind)
{
	static const char *const names[NM_RECORDED_KINDS] = {
		[NM_RECORDED_START] = "start",	       [NM_RECORDED_TOPOLOGY] = "topology",
		[NM_RECORDED_INTERVAL] = "interval",   [NM_RECORDED_THREADS] = "threads",
		[NM_RECORDED_PROCESSES] = "processes", [NM_RECORDED_VERDICT] = "verdict",
		[NM_RECORDED_DECISION] = "decision",   [NM_RECORDED_RECEIPT] = "receipt",
		[NM_RECORDED_ENTRY] = "entry",	       [NM_RECORDED_END] = "end",
		[NM_RECORDED_CALL] = "call",	       [NM_RECORDED_ANSWER] = "answer",
		[NM_RECORDED_SOURCE] = "source",       [NM_RECORDED_SAMPLES] = "samples",
	};
	return kind < NM_RECORDED_KINDS && names[kind] ? names[kind] : "unknown";
}

void nm_recorded_print(const struct nm_recorded *record, FILE *out)
{
	const struct nm_shape *shape = nm_shape_of(record->kind);
	(void)fprintf(out, "%s ", nm_recorded_kind_name(record->kind));
	if (record->kind == NM_RECORDED_TOPOLOGY)
		nm_topology_print(record->topology, out);
	else if (shape)
		nm_shape_print(shape, (const char *)record + nm_shape_place(record->kind), out);
	(void)fputc('\n', out);
}

int nm_recording_dump(struct nm_recording *recording, FILE *out)
{
	struct nm_recorded record;
	int r;
	while ((r = nm_recording_next(recording, &record)) > 0)
		nm_recorded_print(&record, out);
	if (r == 0 && (fflush(out) != 0 || ferror(out)))
		r = -EIO;
	return r;
}
