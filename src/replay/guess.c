/* SPDX-License-Identifier: MIT */
/*
 * Another configuration asks other questions than were asked. What the recording last said of a
 * file is the answer; the recorded daemon's own masks are not: a thread's is the first that was
 * seen, or what the replay has set. What nobody ever asked is not known.
 */
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "replay.h"

/* By what was asked; the text is its key. */
struct known {
	char *key;
	struct nm_recorded_answer answer; /* bytes are ours */
	uint8_t *bytes;
};

struct nm_guess {
	struct nm_recording *answers;
	void *tree;
	struct known *last; /* given out, so that it may be changed */
	int next_fd;
};

static int compare_known(const void *one, const void *other)
{
	return strcmp(((const struct known *)one)->key, ((const struct known *)other)->key);
}

static void known_free(void *pointer)
{
	struct known *known = pointer;
	if (!known)
		return;
	free(known->key);
	free(known->bytes);
	free(known);
}

/* Handles of directories and files differ from run to run; those of threads and processes are the
 * question. */
static int key_of(const char *operation, int64_t handle, const char *path, char **ret)
{
	if (path[0] != '\0')
		return asprintf(ret, "%s %s", operation, path) < 0 ? -ENOMEM : 0;
	return asprintf(ret, "%s %" PRIi64, operation, handle) < 0 ? -ENOMEM : 0;
}

static struct known *find(struct nm_guess *guess, const char *key)
{
	struct known wanted = {.key = (char *)key};
	struct known **found = tfind(&wanted, &guess->tree, compare_known);
	return found ? *found : NULL;
}

static struct known *find_or_make(struct nm_guess *guess, char *key)
{
	struct known *known = find(guess, key);
	if (known) {
		free(key);
		return known;
	}
	known = calloc(1, sizeof(*known));
	if (known)
		known->key = key;
	else
		free(key);
	if (known && !tsearch(known, &guess->tree, compare_known)) {
		known_free(known);
		return NULL;
	}
	return known;
}

static int set(struct known *known, int64_t result, const void *bytes, size_t length)
{
	uint8_t *copy = malloc(length + 1);
	if (!copy)
		return -ENOMEM;
	if (length)
		memcpy(copy, bytes, length);
	free(known->bytes);
	known->bytes = copy;
	known->answer = (struct nm_recorded_answer){
		.operation = "", .path = "", .result = result, .bytes = copy, .length = length};
	return 0;
}

static int learn(struct nm_guess *guess, const struct nm_recorded_answer *answer)
{
	char *key;
	if (strcmp(answer->operation, "affinity_set") == 0)
		return 0;
	int r = key_of(answer->operation, answer->handle, answer->path, &key);
	if (r < 0)
		return r;
	struct known *known = find_or_make(guess, key);
	if (!known)
		return -ENOMEM;
	/* Later ones are of the recorded daemon's making. */
	if (known->bytes && strcmp(answer->operation, "affinity_get") == 0)
		return 0;
	return set(known, answer->result, answer->bytes, answer->length);
}

int nm_guess_new(int fd, struct nm_guess **ret)
{
	char error[256];
	struct nm_guess *guess = calloc(1, sizeof(*guess));
	int r = guess ? nm_recording_open(fd, error, sizeof(error), &guess->answers) : -ENOMEM;
	if (r < 0) {
		free(guess);
		return r;
	}
	guess->next_fd = 3;
	nm_recording_only(guess->answers, 1U << NM_RECORDED_CALL | 1U << NM_RECORDED_ANSWER |
						  1U << NM_RECORDED_INTERVAL |
						  1U << NM_RECORDED_DECISION);
	*ret = guess;
	return 0;
}

void nm_guess_free(struct nm_guess *guess)
{
	if (!guess)
		return;
	nm_recording_free(guess->answers);
	tdestroy(guess->tree, known_free);
	free(guess);
}

int nm_guess_advance(struct nm_guess *guess, struct nm_replay_moves *recorded,
		     uint64_t *ret_interval)
{
	struct nm_recorded record;
	int r;
	while ((r = nm_recording_next(guess->answers, &record)) > 0) {
		*ret_interval = record.interval;
		if (record.kind == NM_RECORDED_CALL)
			return 1;
		if (record.kind == NM_RECORDED_ANSWER)
			r = learn(guess, &record.answer);
		else if (record.kind == NM_RECORDED_DECISION)
			r = nm_replay_note(recorded, &record.decision, record.interval);
		if (r < 0)
			return r;
	}
	return r;
}

const struct nm_recorded_answer *nm_guess_answer(struct nm_guess *guess, const char *operation,
						 int64_t handle, const char *path)
{
	nm_autofree char *key = NULL;
	if (key_of(operation, handle, path, &key) < 0)
		return NULL;
	const struct known *known = find(guess, key);
	return known ? &known->answer : NULL;
}

void nm_guess_set_mask(struct nm_guess *guess, int64_t tid, hwloc_const_bitmap_t mask)
{
	nm_autofree char *text = NULL;
	char *key;
	if (hwloc_bitmap_list_asprintf(&text, mask) < 0 ||
	    key_of("affinity_get", tid, "", &key) < 0)
		return;
	struct known *known = find_or_make(guess, key);
	if (known)
		(void)set(known, 0, text, strlen(text));
}

int nm_guess_open(struct nm_guess *guess, const char *operation, const char *path)
{
	const struct nm_recorded_answer *answer = nm_guess_answer(guess, operation, 0, path);
	if (!answer || answer->result < 0)
		return answer ? (int)answer->result : -ENOENT;
	/* Paths are kept by descriptor: small numbers, used again. */
	if (++guess->next_fd > 60000)
		guess->next_fd = 3;
	return guess->next_fd;
}
