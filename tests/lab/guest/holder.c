/* SPDX-License-Identifier: MIT */
/*
 * holder COUNT: an ordinary user without any right makes COUNT processes hold their own mmap_lock
 * for as long as this program lives, uninterruptibly. In a user namespace of its own it mounts a FUSE
 * file system and never answers the read of its one file, whose page thus stays locked; each process
 * has just touched many pages, so that there are samples of it, and then maps that file, opened for
 * direct I/O: the kernel drops the file's pages first, waits for the locked one, and holds the lock
 * meanwhile. Prints the ids of the processes, one a line, as they do so. FUSE_*: fuse(4),
 * <linux/fuse.h>.
 */
#include "lab.h"

#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { FILE_NODE = 2, FILE_BYTES = LAB_PAGE, REQUEST_BYTES = 1 << 17, MEMORY = 512 << 20, PIECE = 1 << 20 };

static char file_path[64];

/* ---- the file system ---- */

static void reply(int fuse, const struct fuse_in_header *request, int error, const void *body,
		  size_t length)
{
	static char message[LAB_PAGE];
	struct fuse_out_header header = {.len = (uint32_t)(sizeof(header) + length),
					 .error = error,
					 .unique = request->unique};

	memcpy(message, &header, sizeof(header));
	if (length)
		memcpy(message + sizeof(header), body, length);
	if (write(fuse, message, header.len) < 0)
		err(1, "answer to request %u", request->opcode);
}

static struct fuse_attr attributes(uint64_t node)
{
	bool file = node == FILE_NODE;

	return (struct fuse_attr){.ino = node,
				  .mode = file ? S_IFREG | 0444 : S_IFDIR | 0555,
				  .nlink = 1,
				  .size = file ? FILE_BYTES : 0,
				  .blksize = LAB_PAGE};
}

static void answer_init(int fuse, const struct fuse_in_header *request)
{
	struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
				    .minor = FUSE_KERNEL_MINOR_VERSION,
				    .max_readahead = LAB_PAGE,
				    .max_write = LAB_PAGE,
				    .max_background = 64,
				    .congestion_threshold = 48};

	reply(fuse, request, 0, &out, sizeof(out));
}

/* The first who opens it reads through the page cache, all others past it. */
static void answer_open(int fuse, const struct fuse_in_header *request)
{
	static unsigned int opened;
	struct fuse_open_out out = {.open_flags = FOPEN_KEEP_CACHE};

	if (opened++ > 0)
		out.open_flags |= FOPEN_DIRECT_IO;
	reply(fuse, request, 0, &out, sizeof(out));
}

static void answer_lookup(int fuse, const struct fuse_in_header *request)
{
	struct fuse_entry_out out = {.nodeid = FILE_NODE,
				     .entry_valid = 3600,
				     .attr_valid = 3600,
				     .attr = attributes(FILE_NODE)};

	reply(fuse, request, 0, &out, sizeof(out));
}

static void answer_getattr(int fuse, const struct fuse_in_header *request)
{
	struct fuse_attr_out out = {.attr_valid = 3600, .attr = attributes(request->nodeid)};

	reply(fuse, request, 0, &out, sizeof(out));
}

static void answer(int fuse, const struct fuse_in_header *request, int said)
{
	switch (request->opcode) {
	case FUSE_INIT:
		answer_init(fuse, request);
		break;
	case FUSE_LOOKUP:
		answer_lookup(fuse, request);
		break;
	case FUSE_GETATTR:
		answer_getattr(fuse, request);
		break;
	case FUSE_OPEN:
		answer_open(fuse, request);
		break;
	case FUSE_READ: /* never */
		if (write(said, "r", 1) != 1)
			err(1, "pipe");
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(fuse, request, -ENOSYS, NULL, 0);
	}
}

static void serve(int fuse, int said)
{
	static _Alignas(8) char request[REQUEST_BYTES];

	for (;;) {
		ssize_t got = read(fuse, request, sizeof(request));
		if (got < (ssize_t)sizeof(struct fuse_in_header)) {
			if (got < 0 && (errno == EINTR || errno == ENOENT))
				continue;
			err(1, "/dev/fuse");
		}
		answer(fuse, (const struct fuse_in_header *)request, said);
	}
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(1, "%s", path);
	close(fd);
}

/* The mount, in namespaces of our own; its end of /dev/fuse. */
static int mount_file_system(void)
{
	char map[64], options[128], folder[] = "/tmp/holder.XXXXXX";
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (uid == 0)
		errx(1, "this is for an ordinary user");
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		err(1, "unshare");
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	write_file("/proc/self/gid_map", map);
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0 || !mkdtemp(folder))
		err(1, "/dev/fuse or %s", folder);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	if (mount("holder", folder, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		err(1, "mount");
	snprintf(file_path, sizeof(file_path), "%s/file", folder);
	return fuse;
}

/* ---- those who use it ---- */

static void read_it(void)
{
	char byte;
	int fd = open(file_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, &byte, 1) < 0)
		err(1, "%s", file_path);
	errx(1, "it was answered");
}

/* Pages that were not accessed recently, so that it is not known where they are. */
static void *touch_for_ever(void *memory)
{
	unsigned char *bytes = memory;

	for (size_t at = 0;; at = (at + PIECE) % MEMORY) {
		lab_touch(bytes + at, PIECE);
		madvise(bytes + at, PIECE, MADV_DONTNEED);
	}
	return NULL;
}

static void hold(void)
{
	pthread_t thread;
	unsigned char *memory = lab_map(MEMORY, false);
	int fd = open(file_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || pthread_create(&thread, NULL, touch_for_ever, memory) != 0)
		err(1, "%s", file_path);
	usleep(300000);
	printf("%d\n", getpid());
	fflush(stdout);
	if (mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		err(1, "mmap");
	errx(1, "it was answered");
}

/* Ends with us, or once its mmap(2) does. */
static void start(void (*run)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (pid > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run();
}

int main(int argc, char **argv)
{
	int said[2];
	char byte;

	if (argc != 2)
		errx(64, "usage: holder COUNT");
	unsigned long count = lab_number(argv[1]);
	int fuse = mount_file_system();
	if (pipe2(said, O_CLOEXEC) < 0)
		err(1, "pipe");
	/* The parent answers: with its end the connection ends, and with that all waiting. */
	pid_t user = fork();
	if (user < 0)
		err(1, "fork");
	if (user > 0)
		serve(fuse, said[1]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(fuse);
	close(said[1]);
	start(read_it);
	if (read(said[0], &byte, 1) != 1)
		err(1, "nobody reads");
	for (unsigned long i = 0; i < count; i++)
		start(hold);
	for (;;)
		pause();
}
