// SPDX-License-Identifier: MIT
/*
 * Sets and restores kernel.numa_balancing. The state file contains "old ours"; it is written before
 * the sysctl, so that a crash in between loses nothing. If the sysctl no longer has the value that
 * we set, another program has changed it since, and that value stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "numa-migrd/proc.h"
#include "privileged.h"

#define SYSCTL "sys/kernel/numa_balancing"

struct state {
	int old, ours;
};

/* Parses a small number that is followed by `end`; returns the text after that, or NULL. */
static const char *parse_number(const char *text, char end, int *ret)
{
	char *after;
	long number = strtol(text, &after, 10);

	if (after == text || *after != end || number < 0 || number > INT_MAX)
		return NULL;
	*ret = (int)number;
	return after + 1;
}

static int sysctl_read(int proc_fd, int *ret)
{
	char text[32];
	int r = nm_read_text(proc_fd, SYSCTL, text, sizeof(text));

	if (r < 0)
		return r;
	return parse_number(text, '\n', ret) ? 0 : -EPROTO;
}

static int sysctl_write(int proc_fd, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d\n", value);
	return nm_write_text(proc_fd, SYSCTL, text);
}

/* Returns 0, -ENOENT if nothing was changed, or -EINVAL if the file is not ours or incomplete. */
static int state_load(const char *path, struct state *ret)
{
	nm_auto(nm_closep) int fd = -1;
	struct stat status;
	struct state state;
	char text[32];

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? -ENOENT : -EINVAL;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid())
		return -EINVAL;
	if (nm_read_all(fd, text, sizeof(text)) < 0)
		return -EINVAL;
	const char *rest = parse_number(text, ' ', &state.old);
	rest = rest ? parse_number(rest, '\n', &state.ours) : NULL;
	if (!rest || *rest)
		return -EINVAL;
	*ret = state;
	return 0;
}

static int state_save(const char *path, struct state state)
{
	char text[32], fresh[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return -ENOENT;
	nm_autofree char *parent = nm_must(strndup(path, (size_t)(slash - path)));
	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return -ENAMETOOLONG;
	if (mkdir(parent, 0700) < 0 && errno != EEXIST)
		return -errno;
	snprintf(text, sizeof(text), "%d %d\n", state.old, state.ours);
	int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	int r = nm_write_text(AT_FDCWD, fresh, text);
	if (r < 0)
		return r;
	return rename(fresh, path) < 0 ? -errno : 0;
}

int nm_numa_balancing_set(const struct nm_helper_context *context, bool nodes)
{
	struct state previous = {0};
	int current;

	int r = sysctl_read(context->proc_fd, &current);
	if (r < 0 || nm_balances_nodes(current) == nodes)
		return r;
	int value = nm_balancing_with(current, nodes);
	bool had = state_load(context->state_path, &previous) == 0;
	bool untouched = had && previous.ours == current;
	/* We made this setting, and another program has changed it since: its value stays. */
	if (had && nm_balances_nodes(previous.ours) == nodes)
		return -EALREADY;
	r = state_save(context->state_path,
		       (struct state){.old = untouched ? previous.old : current, .ours = value});
	if (r < 0)
		return r;
	r = sysctl_write(context->proc_fd, value);
	if (r < 0 && had)
		(void)state_save(context->state_path, previous);
	else if (r < 0)
		(void)unlink(context->state_path);
	return r;
}

int nm_helper_restore(const struct nm_helper_context *context)
{
	struct state state;
	int current;

	int r = state_load(context->state_path, &state);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		(void)unlink(context->state_path);
		return r;
	}
	r = sysctl_read(context->proc_fd, &current);
	if (r == 0 && current == state.ours)
		r = sysctl_write(context->proc_fd, state.old);
	if (r < 0)
		return r;
	return unlink(context->state_path) < 0 ? -errno : 0;
}
