/* SPDX-License-Identifier: MIT */
/*
 * Programs that read affinities while they are moved, on the running kernel. Needs two CPUs; node k
 * is CPU k. Without arguments the subjects run shortly. For measurements, in which each thread is
 * moved once a second:
 *
 * test_move_counts readings SECONDS
 *     Fails if more than one reading of a thousand is narrow.
 * test_move_counts count TIMES computes|sleeps MS COMMAND [ARG]…
 *     A thread that computes or sleeps up to MS milliseconds between two starts, starts a command
 *     that prints how many CPUs it sees. Both are moved, as the service would: FORK records are
 *     read in each interval. Fails if two of the commands see fewer than an ordinary run.
 * test_move_counts load SECONDS IDLE
 *     Ten busy threads for each CPU, IDLE of them of SCHED_IDLE; prints how long the moves keep the
 *     loop of the service.
 */
#define SET_UP set_up
#define TEAR_DOWN tear_down
#include "../support/test.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>

#include "move_live_fixture.h"
#include "sample/sample.h"

#define INTERVAL_NS (250 * NM_NSEC_PER_MSEC)

static unsigned readings_s = 2;
static unsigned times = 30;
static unsigned apart_ms;			  /* at most, between two starts */
static bool computes;				  /* between them */
static uint64_t pause_ns = 20 * NM_NSEC_PER_MSEC; /* between two moves */
static uint64_t interval_ns = 20 * NM_NSEC_PER_MSEC;
static unsigned nr_busy = 4, nr_idle = 2;
static bool moves_children;
static unsigned child_moves;
static char *const nproc[] = {(char *)(uintptr_t) "nproc", NULL};
static char *const *command = nproc;
static uint32_t narrow_most = UINT32_MAX; /* in readings of a million, or in starts */

/* ---- the victim ---- */

/* Answers how many of its readings were narrow, in parts per million. */
static void read_own_affinity(void)
{
	uint64_t end_ns = nm_clock_ns() + readings_s * NM_NSEC_PER_SEC;
	uint64_t readings = 0, narrow = 0;
	cpu_set_t whole, now;
	(void)sched_getaffinity(0, sizeof(whole), &whole);
	while (nm_clock_ns() < end_ns) {
		(void)sched_getaffinity(0, sizeof(now), &now);
		readings++;
		narrow += CPU_COUNT(&now) < CPU_COUNT(&whole);
	}
	answer((uint32_t)(1e6 * (double)narrow / (double)readings));
}

/* Returns the number that the command prints; -1: none. */
static int run_command(void)
{
	int ends[2], number = -1;
	if (pipe(ends) < 0)
		return -1;
	pid_t child = fork();
	if (child == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)execvp(command[0], command);
		_exit(127);
	}
	close(ends[1]);
	FILE *output = fdopen(ends[0], "r");
	if (!output || fscanf(output, "%d", &number) != 1)
		number = -1;
	if (output)
		(void)fclose(output);
	(void)waitpid(child, NULL, 0);
	return number;
}

/* The thread's work between two starts. */
static void wait_between_starts(unsigned *seed)
{
	uint64_t length_ns = (unsigned)rand_r(seed) % (apart_ms + 1) * NM_NSEC_PER_MSEC;
	uint64_t end_ns = nm_clock_ns() + length_ns;
	if (!computes)
		usleep((useconds_t)(length_ns / 1000));
	while (nm_clock_ns() < end_ns)
		continue;
}

/* Answers how many of the commands saw other CPUs than the victim had at first. */
static void start_commands(void)
{
	cpu_set_t whole;
	uint32_t others = 0;
	unsigned seed = 1;
	(void)sched_getaffinity(getppid(), sizeof(whole), &whole);
	for (unsigned i = 0; i < times; i++) {
		wait_between_starts(&seed);
		others += run_command() != CPU_COUNT(&whole);
	}
	answer(others);
}

/* Answers the error of a request for SCHED_DEADLINE, which the thread gives up at once. */
static void ask_for_deadline(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attributes = {.size = sizeof(attributes),
			.policy = SCHED_DEADLINE,
			.runtime_ns = 1 * NM_NSEC_PER_MSEC,
			.deadline_ns = 100 * NM_NSEC_PER_MSEC,
			.period_ns = 100 * NM_NSEC_PER_MSEC};
	const struct sched_param none = {0};
	uint32_t error = syscall(SYS_sched_setattr, 0, &attributes, 0) < 0 ? (uint32_t)errno : 0;
	(void)sched_setscheduler(0, SCHED_OTHER, &none);
	answer(error);
}

/* As runtimes do that give each new thread the affinity of their first one. */
static void *copy_leader(void *unused)
{
	cpu_set_t mask;
	(void)sched_getaffinity(getpid(), sizeof(mask), &mask);
	(void)sched_setaffinity(0, sizeof(mask), &mask);
	answer((uint32_t)syscall(SYS_gettid));
	while (pause() < 0)
		continue;
	return unused;
}

static void *work(void *idle)
{
	const struct sched_param none = {0};
	if (idle)
		(void)sched_setscheduler(0, SCHED_IDLE, &none);
	answer((uint32_t)syscall(SYS_gettid));
	for (;;)
		continue;
	return NULL;
}

static void create_busy(void)
{
	pthread_t thread;
	static char is_idle;
	for (unsigned i = 0; i < nr_busy; i++)
		if (pthread_create(&thread, NULL, work, i < nr_idle ? &is_idle : NULL) != 0)
			_exit(1);
}

static void *obey(void *unused)
{
	char letter;
	pthread_t thread;
	answer((uint32_t)syscall(SYS_gettid));
	while (read(orders[0], &letter, 1) == 1) {
		if (letter == 'r')
			read_own_affinity();
		if (letter == 'e')
			start_commands();
		if (letter == 'd')
			ask_for_deadline();
		if (letter == 'b')
			create_busy();
		if (letter == 'l' && pthread_create(&thread, NULL, copy_leader, NULL) != 0)
			_exit(1);
	}
	return unused;
}

/* ---- subjects ---- */

static void take_record(void *context, const struct nm_task_event *event)
{
	(void)context;
	nm_moves_task_event(moves, event);
}

static void ignore_sample(void *context, struct nm_sample *sample)
{
	(void)context;
	(void)sample;
}

/* Without records, a walk restores what the moved threads created. */
static void end_interval(struct nm_source *source)
{
	const struct nm_sample_sink sink = {.on_sample = ignore_sample, .on_task = take_record};
	if (source)
		(void)nm_source_drain(source, &sink);
	else
		nm_moves_records_lost(moves);
	nm_moves_update(moves, now_ns());
}

/* Moves a thread to the node where it does not run. */
static bool move_away(uint32_t pid, uint32_t tid)
{
	struct nm_proc_stat stat;
	if (nm_proc_stat_of(platform, pid, tid, &stat) < 0)
		return false;
	return move_task(pid, tid, stat.start_ticks, stat.processor == 0);
}

/* The service moves no process in the interval in which it was started. */
static bool has_run_a_while(uint32_t pid)
{
	struct nm_proc_stat stat;
	const uint64_t ticks = INTERVAL_NS / (NM_NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
	return nm_proc_stat_of(platform, pid, pid, &stat) == 0 &&
	       nm_proc_ticks_now(platform) >= stat.start_ticks + ticks;
}

/* Moves the threads of the commands that the thread has started. */
static void move_children(uint32_t tid)
{
	char path[64];
	unsigned child;
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%u/children", victim, tid);
	FILE *children = fopen(path, "re");
	while (children && fscanf(children, "%u", &child) == 1) {
		(void)snprintf(path, sizeof(path), "/proc/%u/task", child);
		DIR *tasks = has_run_a_while(child) ? opendir(path) : NULL;
		struct dirent *task;
		while (tasks && (task = readdir(tasks)))
			child_moves += task->d_name[0] != '.' &&
				       move_away(child, (uint32_t)atoi(task->d_name));
		if (tasks)
			(void)closedir(tasks);
	}
	if (children)
		(void)fclose(children);
}

/* Moves the thread until it answers; again in the next interval if that is refused. Returns the
 * answer. */
static uint32_t move_until_answer(uint32_t tid, struct nm_source *source)
{
	struct pollfd answers_wait = {.fd = answers[0], .events = POLLIN};
	uint64_t next_ns = now_ns(), due_ns = next_ns;
	while (poll(&answers_wait, 1, 20) == 0) {
		nm_moves_poll(moves, now_ns());
		if (now_ns() < next_ns)
			continue;
		next_ns = now_ns() + interval_ns;
		end_interval(source);
		if (now_ns() < due_ns)
			continue;
		if (moves_children)
			move_children(tid);
		if (move_away((uint32_t)victim, tid))
			due_ns += pause_ns;
	}
	wait_for_window();
	end_interval(source);
	return read_answer();
}

/* Returns the number of the thread that obeys; skips on a machine of one CPU. */
static uint32_t begin(void **state)
{
	if (*state)
		skip();
	return live_start(obey);
}

TEST(a_thread_that_reads_its_affinity)
{
	uint32_t tid = begin(state);
	give('r');
	uint32_t narrow = move_until_answer(tid, NULL);
	print_counts("reading its affinity");
	print_message("%u of a million readings were narrow\n", narrow);
	assert_mask(tid, original);
	assert_true(narrow <= narrow_most);
}

/* Opens the rings with the records; NULL: not permitted here. */
static struct nm_source *open_records(void)
{
	char error[256];
	struct nm_config *config = NULL;
	struct nm_source *source = NULL;
	assert_int_equal(nm_config_default(&config), 0);
	if (nm_source_open(platform, topology, config, error, sizeof(error), &source) < 0)
		print_message("without records: %s\n", error);
	nm_config_free(config);
	return source;
}

TEST(programs_that_count_their_cpus)
{
	uint32_t tid = begin(state);
	nm_auto(nm_source_freep) struct nm_source *source = moves_children ? open_records() : NULL;
	give('e');
	uint32_t others = move_until_answer(tid, source);
	print_counts("starting programs");
	print_message("%u of %u saw other CPUs; %u moves of their threads\n", others, times,
		      child_moves);
	assert_mask(tid, original);
	assert_true(others <= narrow_most);
	times = 1; /* not moved */
	assert_int_equal(order('e'), 0);
}

TEST(deadline_is_granted_after_the_move)
{
	struct nm_proc_stat stat;
	uint32_t tid = begin(state);
	uint32_t error = order('d');
	if (error) {
		print_message("SCHED_DEADLINE: %s: skipped\n", strerror((int)error));
		skip();
	}
	usleep(20000); /* until it waits for an order */
	assert_int_equal(nm_proc_stat_of(platform, (uint32_t)victim, tid, &stat), 0);
	assert_true(move_to(tid, stat.processor == 0));
	assert_int_equal(nm_moves_open(moves), 1);
	/* The kernel may refuse an affinity that is smaller than the root domain. */
	error = order('d');
	assert_true(error == 0 || error == EPERM);
	wait_for_window();
	assert_int_equal(order('d'), 0);
	assert_mask(tid, original);
}

TEST(a_thread_that_copies_the_affinity_of_the_leader)
{
	(void)begin(state);
	for (unsigned i = 0; i < 10; i++) {
		assert_true(move_to((uint32_t)victim, i % 2));
		wait_for_window();
		assert_mask(order('l'), original);
	}
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return a < b ? -1 : a > b;
}

/* Each of the threads is moved once a second, as long as the readings take. */
TEST(busy_threads_on_full_cpus)
{
	uint32_t *tids = calloc(nr_busy, sizeof(*tids));
	uint64_t *took_ns = calloc((size_t)readings_s * nr_busy, sizeof(*took_ns));
	size_t count = 0;
	assert_true(tids && took_ns);
	(void)begin(state);
	give('b');
	for (unsigned i = 0; i < nr_busy; i++)
		tids[i] = read_answer();
	uint64_t end_ns = now_ns() + readings_s * NM_NSEC_PER_SEC;
	while (now_ns() < end_ns && count < (size_t)readings_s * nr_busy) {
		uint64_t before_ns = now_ns();
		(void)move_away((uint32_t)victim, tids[count % nr_busy]);
		took_ns[count++] = now_ns() - before_ns;
		usleep((useconds_t)(1000000 / nr_busy));
		nm_moves_poll(moves, now_ns());
		if (count % nr_busy == 0)
			nm_moves_update(moves, now_ns());
	}
	wait_for_window();
	qsort(took_ns, count, sizeof(*took_ns), compare_times);
	print_counts("busy threads");
	print_message("a move took %.0f us, 99 of 100 at most %.0f, all at most %.0f\n",
		      (double)took_ns[count / 2] * 1e-3, (double)took_ns[count * 99 / 100] * 1e-3,
		      (double)took_ns[count - 1] * 1e-3);
	for (unsigned i = 0; i < nr_busy; i++)
		assert_mask(tids[i], original);
	free(tids);
	free(took_ns);
}

/* Runs one test, and measures as the service works: a move per second. */
static void measure(const char *test)
{
	pause_ns = NM_NSEC_PER_SEC;
	interval_ns = INTERVAL_NS;
	cmocka_set_test_filter(test);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	if (argc == 3 && strcmp(mode, "readings") == 0) {
		measure("a_thread_that_reads_its_affinity");
		readings_s = (unsigned)atoi(argv[2]);
		narrow_most = 1000;
	} else if (argc > 5 && strcmp(mode, "count") == 0) {
		measure("programs_that_count_their_cpus");
		times = (unsigned)atoi(argv[2]);
		computes = strcmp(argv[3], "computes") == 0;
		apart_ms = (unsigned)atoi(argv[4]);
		command = argv + 5;
		narrow_most = 1;
		moves_children = true;
	} else if (argc == 4 && strcmp(mode, "load") == 0) {
		measure("busy_threads_on_full_cpus");
		readings_s = (unsigned)atoi(argv[2]);
		nr_busy = 10 * (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
		nr_idle = (unsigned)atoi(argv[3]);
	} else if (argc > 1) {
		fprintf(stderr, "usage: see the beginning of the source\n");
		return 64;
	}
	return RUN_REGISTERED(NULL, NULL);
}
