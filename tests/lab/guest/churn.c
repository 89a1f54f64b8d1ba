/* SPDX-License-Identifier: MIT */
/*
 * churn SECONDS: creates short-lived processes with short-lived threads, whose names are chosen to
 * break programs that print or parse them. Prints the numbers of processes and threads.
 */
#include "lab.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { BATCH = 8, THREADS = 3 };

static const char *const names[] = {
	"new\nline",  "\033[31mred", "bad\xff\xfe\xc3", "x) R 1 1 1 0", "%s%n%1000d",
	"\"quo'te\\", " ",	     "tab\ttab",
};

static void *work(void *name)
{
	unsigned char page[LAB_PAGE];

	prctl(PR_SET_NAME, name);
	for (int i = 0; i < 100; i++)
		lab_touch(page, sizeof(page));
	return NULL;
}

static void live(unsigned int which)
{
	const char *name = names[which % (sizeof(names) / sizeof(names[0]))];
	pthread_t threads[THREADS];

	prctl(PR_SET_NAME, name);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)(size_t)name) != 0)
			_exit(1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned int made = 0;
	time_t end;

	if (argc != 2)
		errx(64, "usage: churn SECONDS");
	end = time(NULL) + (time_t)lab_number(argv[1]);
	while (time(NULL) < end) {
		for (unsigned int i = 0; i < BATCH; i++, made++) {
			pid_t child = fork();

			if (child < 0)
				err(1, "fork");
			if (child == 0)
				live(made);
		}
		while (wait(NULL) > 0)
			;
	}
	printf("%u %u\n", made, made * THREADS);
	return 0;
}
