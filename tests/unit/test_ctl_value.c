// SPDX-License-Identifier: MIT
/* Values in messages of the bus, from any sender: they must not contain control sequences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

#include "../../src/ctl/ctl.h"

/* A message on an unconnected bus. */
struct letter {
	sd_bus *bus;
	sd_bus_message *message;
	int other_end;
};

static int set_up(void **state)
{
	struct letter *letter = calloc(1, sizeof(*letter));
	int ends[2];

	assert_non_null(letter);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	letter->other_end = ends[1];
	assert_true(sd_bus_new(&letter->bus) >= 0);
	assert_true(sd_bus_set_fd(letter->bus, ends[0], ends[0]) >= 0);
	assert_true(sd_bus_start(letter->bus) >= 0);
	assert_true(sd_bus_message_new_signal(letter->bus, &letter->message, "/a", "a.b", "C") >=
		    0);
	*state = letter;
	return 0;
}

static int tear_down(void **state)
{
	struct letter *letter = *state;

	sd_bus_message_unref(letter->message);
	sd_bus_close(letter->bus);
	sd_bus_unref(letter->bus);
	close(letter->other_end);
	free(letter);
	return 0;
}

/* The caller frees it. */
static json_t *read_back(struct letter *letter)
{
	json_t *value = NULL;

	assert_true(sd_bus_message_seal(letter->message, 1, 0) >= 0);
	assert_int_equal(nm_value_read(letter->message, &value), 0);
	return value;
}

/* SECURITY: bus-answers */
static void names_and_texts_are_cleaned(void **state)
{
	struct letter *letter = *state;

	assert_true(sd_bus_message_append(letter->message, "a{sv}", 2, "a\033[2Jb", "s",
					  "c\033]0;d\007", "e\nf", "as", 1, "\302\233g") >= 0);
	json_t *value = read_back(letter);
	assert_string_equal(json_string_value(json_object_get(value, "a?[2Jb")), "c?]0;d?");
	assert_string_equal(json_string_value(json_array_get(json_object_get(value, "e\nf"), 0)),
			    "?g");
	json_decref(value);
}

static void numbers_stay_whole(void **state)
{
	struct letter *letter = *state;

	assert_true(sd_bus_message_append(letter->message, "tdb", UINT64_MAX, 0.5, 1) >= 0);
	json_t *value = read_back(letter);
	assert_string_equal(json_string_value(json_array_get(value, 0)), "18446744073709551615");
	assert_true(json_real_value(json_array_get(value, 1)) == 0.5);
	assert_true(json_is_true(json_array_get(value, 2)));
	json_decref(value);
}

static void nested_variants_are_unwrapped(void **state)
{
	struct letter *letter = *state;

	assert_true(sd_bus_message_append(letter->message, "v", "v", "v", "u", 7U) >= 0);
	json_t *value = read_back(letter);
	assert_int_equal(json_integer_value(value), 7);
	json_decref(value);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(names_and_texts_are_cleaned),
		TEST(numbers_stay_whole),
		TEST(nested_variants_are_unwrapped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
