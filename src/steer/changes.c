/* SPDX-License-Identifier: MIT */
/* What inotify tells of directories that are known. */
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "tree.h"

#define EVENT_BYTES 16384
#define READS_AT_ONCE 64
/* Whoever changes many of his own all the time is heeded when his processes are looked at. */
#define OTHERS_AT_ONCE 256U

/* One that was made anew under the name would be another. */
static void take_gone(struct nm_steer *steer, struct nm_steer_directory *directory)
{
	steer->counts.changes++;
	steer->ops.changed(steer->ops.context, directory->path, NULL);
	nm_steer_drop(steer, directory);
}

static void take_gone_child(struct nm_steer *steer, const struct nm_steer_directory *parent,
			    const char *name)
{
	nm_autofree char *path = NULL;

	if (asprintf(&path, "%s/%s", strcmp(parent->path, "/") == 0 ? "" : parent->path, name) <
	    0) {
		path = NULL;
		return;
	}
	struct nm_steer_directory *child = nm_steer_find(steer, path);
	if (child)
		take_gone(steer, child);
}

static void forget_all_said(struct nm_steer *steer)
{
	for (size_t i = 0; i < steer->count; i++)
		steer->directories[i]->known = false;
}

/* A child's attributes are told to its parent's watch too, by name; its own tells of them. */
static void take_event(struct nm_steer *steer, const struct inotify_event *event)
{
	if (event->mask & IN_Q_OVERFLOW) {
		forget_all_said(steer);
		return;
	}
	struct nm_steer_directory *directory = nm_steer_find_watched(steer, event->wd);
	if (!directory)
		return;
	if (event->mask & (IN_DELETE_SELF | IN_IGNORED | IN_UNMOUNT)) {
		if (event->mask & IN_IGNORED)
			(void)nm_steer_watched(steer, directory, -1);
		take_gone(steer, directory);
	} else if (event->mask & IN_DELETE && event->mask & IN_ISDIR && event->len > 0) {
		take_gone_child(steer, directory, event->name);
	} else if (event->mask & IN_ATTRIB && event->len == 0) {
		directory->known = false;
	}
}

static void take_events(struct nm_steer *steer, const char *bytes, size_t length)
{
	struct inotify_event event;

	for (size_t at = 0; length - at >= sizeof(event); at += sizeof(event) + event.len) {
		memcpy(&event, bytes + at, sizeof(event));
		if (length - at - sizeof(event) < event.len)
			return;
		take_event(steer, (const struct inotify_event *)(const void *)(bytes + at));
	}
}

/* However often it changed: what it says now counts. */
static void read_one(struct nm_steer *steer, struct nm_steer_directory *directory)
{
	struct nm_steering before = directory->said;

	if (nm_steer_read(steer, directory, true) < 0)
		return;
	if (before.word == directory->said.word && before.policy == directory->said.policy &&
	    before.asked == directory->said.asked)
		return;
	steer->counts.changes++;
	steer->ops.changed(steer->ops.context, directory->path,
			   directory->roots ? &directory->said : NULL);
}

static void read_changed(struct nm_steer *steer)
{
	unsigned others = 0;

	for (size_t i = 0; i < steer->count; i++) {
		struct nm_steer_directory *directory = steer->directories[i];
		if (directory->known)
			continue;
		if (directory->roots || others++ < OTHERS_AT_ONCE)
			read_one(steer, directory);
	}
}

void nm_steer_drain(struct nm_steer *steer)
{
	struct nm_platform *platform = steer->platform;
	alignas(struct inotify_event) char bytes[EVENT_BYTES];

	for (unsigned i = 0; steer->watch >= 0 && i < READS_AT_ONCE; i++) {
		ssize_t length =
			platform->ops->read_some(platform, steer->watch, bytes, sizeof(bytes));
		if (length <= 0)
			break;
		take_events(steer, bytes, (size_t)length);
	}
	read_changed(steer);
}
