/* SPDX-License-Identifier: MIT */
/* Scripts in words: what a script may contain, and the message of each kind of failure. */
#define SET_UP set_up
#include "../support/test.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int steps, amount, cells[8];

#define SCRIPT_STEP() steps++
#define SCRIPT_SECOND() (steps += 10)

#include "../support/script.h"

static int set_up(void **state)
{
	(void)state;
	steps = amount = 0;
	memset(cells, 0, sizeof(cells));
	return 0;
}

ACTION(add, amount += (int)N(0))
ACTION(sum, amount = (int)(N(0) + N(1)))
ACTION(mark, amount = step_has(step, "high") ? 10 : 1)
QUANTITY(steps, steps)
QUANTITY(ratio, amount / 3.0)
QUANTITY(unknown, NAN)
KNOB(amount, amount)
TEXT(letter, amount == 0 ? NULL : amount == 1 ? "a b" : "c")
KNOB(of, cells[U(0)])
NAMES(amount, {"none", 0}, {"much", 1000})

SCRIPT(a_word_has_numbers, "add 3; amount = 3; add 0x10; amount = 19; sum 4-7; amount = 11",
       "sum 1K 2K; amount = 3072; sum node2 cpu3; amount = 5; mark as high; amount = 10")

SCRIPT(a_quantity_is_compared,
       "set amount = 7; amount != 6; amount < 8; amount <= 7; amount > 6; amount >= 7",
       "amount in 7..9; amount in 5..7; set of 3 = 4; of 3 = 4; of 2 = 0; unknown = nan",
       "set amount = 1; ratio in 0.33..0.34")

SCRIPT(values_have_names,
       "set amount = much; amount = 1000; set amount = none; amount = 0; set amount = EPERM",
       "amount = -1; keep before = amount; add 5; amount = before+5; set of 0 = 8; keep n = of 0",
       "of 0 = n; of 0 = n*1; of 0 > n-1; keep twice = n*2; set of 0 = twice; of 0 = 16")

SCRIPT(texts_are_compared, "letter = none; add 1; letter = a b; letter ~ b; letter !~ c; letter != "
			   "a; add 1; letter ~ c; letter !~ c = c")

SCRIPT(steps_are_made_until_a_condition_holds,
       "until steps = 4 within 4; waited = 4; until steps = 4 within 1; waited = 0",
       "until steps >= 20 within 3s; steps = 24; waited = 2")

SCRIPT(a_line_is_repeated, "add 1", "each 3: add 1; add 10", "amount = 34")

/* ---- failures ---- */

static const char *failing; /* the script of failing_test() */

static void failing_test(void **state)
{
	(void)state;
	run_script((const char *const[]){"add 1", failing, NULL});
}

/* Runs the script as a test in another process, and returns its output, or "" if it passed. */
static const char *failure_of(const char *script)
{
	static char output[4096];
	const struct CMUnitTest tests[] = {cmocka_unit_test(failing_test)};
	size_t length = 0;
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	failing = script;
	pid_t child = fork();
	if (child == 0) {
		if (dup2(ends[1], STDOUT_FILENO) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
			_exit(99);
		int failed = cmocka_run_group_tests(tests, set_up, NULL);
		fflush(NULL);
		_exit(failed);
	}
	close(ends[1]);
	for (ssize_t part;
	     (part = read(ends[0], output + length, sizeof(output) - 1 - length)) > 0;)
		length += (size_t)part;
	output[length] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 0 ? "" : output;
}

TEST(a_failure_prints_line_step_and_value)
{
	static const struct {
		const char *name, *message;
	} rows[] = {
		{"amount = 2", "line 2: amount = 2: found 1"},
		{"add 4; amount in 6..9", "line 2: amount in 6..9: found 5"},
		{"set amount = 1000; amount = none", "line 2: amount = none: found much"},
		{"set amount = EIO; amount = EPERM", "line 2: amount = EPERM: found -5, -EIO"},
		{"unknown = 1", "line 2: unknown = 1: found nan"},
		{"until steps = 9 within 3", "line 2: until steps = 9 within 3: found 3"},
		{"letter = a", "line 2: letter = a: found a b"},
		{"letter !~ b", "line 2: letter !~ b: found a b"},
		{"letter a", "no relation to a text"},
		{"until steps = 9", "\"within\" is missing"},
		{"each 2: add 1; amount = 2", "line 2: amount = 2: found 3"},
		{"sum 1", "line 2: sum 1: number 2 is missing"},
		{"ad 1", "line 2: ad 1: no word or quantity: ad"},
		{"amount", "line 2: amount: no relation to a value"},
		{"amount = lots", "line 2: amount = lots: no value: lots"},
		{"set ratio = 1", "line 2: set ratio = 1: cannot be set"},
		{"keep n = nothing", "line 2: keep n = nothing: no word or quantity: nothing"},
	};
	EACH_ROW(row, rows)
	{
		const char *output = failure_of(row->name);
		if (!strstr(output, row->message))
			fail_msg("%s: expected %s, found %s", row->name, row->message, output);
	}
	assert_string_equal(failure_of("amount = 1"), "");
}

RUN_TESTS()
