/* SPDX-License-Identifier: MIT */
/* Writes a recording as an HTML page. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl.h"
#include "page/page.h"

/* The recording is read completely before the first byte of the page is written. */
static int write_page(const char *file, const char *output, FILE *out)
{
	nm_auto(nm_recording_freep) struct nm_recording *recording = NULL;
	const char *slash = strrchr(file, '/');
	int status = nm_ctl_open_recording(file, &recording);
	if (status != EXIT_SUCCESS)
		return status;
	int r = nm_report_write(recording, slash ? slash + 1 : file, out);
	if (r == -EIO && nm_recording_error(recording)[0] == '\0')
		return nm_ctl_fail(output, "page incomplete");
	return nm_ctl_recording_read(file, recording, r);
}

/* Only a regular file is replaced. */
static bool is_replaceable(const char *output)
{
	struct stat about;
	return lstat(output, &about) < 0 ? errno == ENOENT : S_ISREG(about.st_mode);
}

/*
 * A recording must not be overwritten: it cannot be restored, while a page can be generated again.
 */
static bool is_recording(const char *output)
{
	nm_auto(nm_recording_freep) struct nm_recording *recording = NULL;
	char error[256];
	int fd = open(output, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int r = fd < 0 ? -errno : nm_recording_open(fd, error, sizeof(error), &recording);
	return r == 0 || r == -EPROTONOSUPPORT;
}

/*
 * Writes a temporary file next to the output and renames it, so that the page is complete or
 * missing. It describes the recording, so that only its owner may read it (mkostemp(3): mode 0600).
 */
static int write_file(const char *file, const char *output)
{
	nm_autofree char *fresh = NULL;
	if (!is_replaceable(output))
		return nm_ctl_fail(output, "not a regular file");
	if (is_recording(output))
		return nm_ctl_fail(output, "is a recording; not overwritten");
	if (asprintf(&fresh, "%s.XXXXXX", output) < 0) {
		fresh = NULL;
		return nm_ctl_fail(output, strerror(ENOMEM));
	}
	int fd = mkostemp(fresh, O_CLOEXEC);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out)
		return nm_ctl_fail(output, strerror(errno));
	int status = write_page(file, output, out);
	if (fclose(out) != 0 && status == EXIT_SUCCESS)
		status = nm_ctl_fail(output, strerror(errno));
	if (status == EXIT_SUCCESS && rename(fresh, output) < 0)
		status = nm_ctl_fail(output, strerror(errno));
	if (status != EXIT_SUCCESS)
		(void)unlink(fresh);
	return status;
}

int nm_ctl_report(const struct nm_ctl *ctl, char *const *words)
{
	if (ctl->output && strcmp(ctl->output, "-") != 0)
		return write_file(words[0], ctl->output);
	if (!ctl->output && isatty(STDOUT_FILENO))
		return nm_ctl_wrong_usage("standard output is a terminal: use -o FILE", NULL);
	return write_page(words[0], "standard output", stdout);
}
