/* SPDX-License-Identifier: MIT */
/* Recordings: the daemon makes them, and they are read without it. */
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"
#include "numa-migrd/recording.h"

#define LIMIT_MB 1024ULL
/* Additional time limit in the daemon, in case this program is killed. */
#define GRACE_S 60

/* ---- record ---- */

/* Signals that end a recording, which are blocked and awaited. */
static sigset_t hold_signals(void)
{
	sigset_t signals;
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	return signals;
}

/* Waits until the time is over or the user interrupts. */
static void wait_for_end(const sigset_t *signals, uint64_t seconds)
{
	const struct timespec until = {.tv_sec = (time_t)seconds};
	while (sigtimedwait(signals, NULL, seconds ? &until : NULL) < 0 && errno == EINTR)
		;
}

int nm_ctl_create_recording(const char *file, int *ret)
{
	int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return nm_ctl_fail(file, errno == EEXIST ? "exists; recordings are not overwritten"
							 : strerror(errno));
	*ret = fd;
	return EXIT_SUCCESS;
}

static int request_recording(const struct nm_ctl *ctl, int fd)
{
	nm_auto(json_decrefp) json_t *nothing = NULL;
	uint64_t limit_mb = ctl->limit_mb ? ctl->limit_mb : LIMIT_MB;
	uint64_t seconds = ctl->seconds ? ctl->seconds + GRACE_S : 0;
	return nm_ctl_ask_once("Record", NM_RIGHT_STEER, &nothing, "htt", fd, limit_mb << 20,
			       seconds);
}

int nm_ctl_record(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(json_decrefp) json_t *nothing = NULL;
	struct stat about;
	int fd, r = nm_ctl_create_recording(words[0], &fd);
	if (r != EXIT_SUCCESS)
		return r;
	const sigset_t signals = hold_signals();
	r = request_recording(ctl, fd);
	if (r != EXIT_SUCCESS) {
		(void)unlink(words[0]);
		(void)close(fd);
		return r;
	}
	if (isatty(STDERR_FILENO))
		(void)fprintf(stderr, "recording into %s%s\n", words[0],
			      ctl->seconds ? "" : "; Ctrl-C ends it");
	wait_for_end(&signals, ctl->seconds);
	r = nm_ctl_ask_once("StopRecording", NM_RIGHT_STEER, &nothing, "");
	if (fstat(fd, &about) == 0)
		(void)printf("%s: %lld bytes\n", words[0], (long long)about.st_size);
	(void)close(fd);
	return r;
}

/* ---- replay ---- */

/* Finds it relative to this program, as installed or in the build tree. */
static int find_replay(char *ret, size_t size)
{
	static const char *const places[] = {"../libexec/numa-migrd/numa-migrd-replay",
					     "../lab/numa-migrd-replay"};
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length < 0)
		return -errno;
	self[length] = '\0';
	const char *folder = dirname(self);
	for (size_t i = 0; i < NM_ARRAY_SIZE(places); i++) {
		(void)snprintf(ret, size, "%s/%s", folder, places[i]);
		if (access(ret, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

int nm_ctl_replay(const struct nm_ctl *ctl, char *const *words)
{
	(void)ctl;
	char path[8192];
	if (find_replay(path, sizeof(path)) < 0)
		return nm_ctl_fail("numa-migrd-replay", "not found beside numa-migrctl");
	(void)execl(path, path, "--", words[0], (char *)NULL);
	return nm_ctl_fail(path, strerror(errno));
}

/* ---- dump ---- */

int nm_ctl_open_recording(const char *file, struct nm_recording **ret)
{
	char error[256];
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return nm_ctl_fail(file, strerror(errno));
	if (nm_recording_open(fd, error, sizeof(error), ret) < 0)
		return nm_ctl_fail(file, error);
	return EXIT_SUCCESS;
}

int nm_ctl_recording_read(const char *file, const struct nm_recording *recording, int r)
{
	unsigned long long torn = nm_recording_torn(recording);
	if (r < 0)
		return nm_ctl_fail(file, nm_recording_error(recording));
	if (torn)
		(void)fprintf(stderr,
			      "numa-migrctl: %s: the last %llu bytes are incomplete, and were "
			      "dropped\n",
			      file, torn);
	return EXIT_SUCCESS;
}

int nm_ctl_dump(const struct nm_ctl *ctl, char *const *words)
{
	nm_auto(nm_recording_freep) struct nm_recording *recording = NULL;
	(void)ctl;
	int status = nm_ctl_open_recording(words[0], &recording);
	if (status != EXIT_SUCCESS)
		return status;
	int r = nm_recording_dump(recording, stdout);
	status = nm_ctl_close_output();
	if (r == -EIO)
		return status;
	r = nm_ctl_recording_read(words[0], recording, r);
	return r == EXIT_SUCCESS ? status : r;
}
