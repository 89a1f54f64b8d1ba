/* SPDX-License-Identifier: MIT */
#include "../support/test.h"

#include <stdint.h>
#include <string.h>

#include "numa-migrd/base.h"

#define TEXT(literal) literal, sizeof(literal) - 1

struct example {
	const char *text;
	size_t length;
	const char *expected;
};

static void check_examples(const struct example *examples, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char out[256];
		size_t length = nm_escape(out, sizeof(out), examples[i].text, examples[i].length);

		assert_string_equal(out, examples[i].expected);
		assert_int_equal(length, strlen(out));
	}
}

TEST(test_printable_stays)
{
	static const struct example examples[] = {
		{TEXT(""), ""},
		{TEXT("postgres: writer"), "postgres: writer"},
		{TEXT(") R 1"), ") R 1"},
		{TEXT("größe"), "größe"},
		{TEXT("日本語"), "日本語"},
		{TEXT("\U0001f427"), "\U0001f427"},
		{TEXT("\U0010fffd"), "\U0010fffd"},
	};

	check_examples(examples, NM_ARRAY_SIZE(examples));
}

TEST(test_controls)
{
	static const struct example examples[] = {
		{TEXT("a\nb"), "a\\x0ab"},
		{TEXT("\r\t"), "\\x0d\\x09"},
		{TEXT("\x1b[31m"), "\\x1b[31m"},
		{TEXT("a\0b"), "a\\x00b"},
		{TEXT("\x7f"), "\\x7f"},
		{TEXT("\xc2\x80\xc2\x9f"), "\\xc2\\x80\\xc2\\x9f"}, /* C1 */
		{TEXT("\xc2\x9b"), "\\xc2\\x9b"},		    /* C1: CSI */
		{TEXT("\xc2\xa0"), "\xc2\xa0"},
	};

	check_examples(examples, NM_ARRAY_SIZE(examples));
}

TEST(test_backslash)
{
	static const struct example examples[] = {
		{TEXT("\\"), "\\x5c"},
		{TEXT("\\x0a"), "\\x5cx0a"},
	};

	check_examples(examples, NM_ARRAY_SIZE(examples));
}

TEST(test_invalid_utf8)
{
	static const struct example examples[] = {
		{TEXT("\xff"), "\\xff"},
		{TEXT("\x80"), "\\x80"},
		{TEXT("\xc3"), "\\xc3"},			    /* cut short */
		{TEXT("\xc3("), "\\xc3("},			    /* no continuation */
		{TEXT("\xe6\x97"), "\\xe6\\x97"},		    /* cut short */
		{TEXT("\xf0\x9f\x90"), "\\xf0\\x9f\\x90"},	    /* cut short */
		{TEXT("\xc0\xaf"), "\\xc0\\xaf"},		    /* overlong */
		{TEXT("\xc1\xbf"), "\\xc1\\xbf"},		    /* overlong */
		{TEXT("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf"},	    /* overlong */
		{TEXT("\xf0\x8f\xbf\xbf"), "\\xf0\\x8f\\xbf\\xbf"}, /* overlong */
		{TEXT("\xed\xa0\x80"), "\\xed\\xa0\\x80"},	    /* surrogate */
		{TEXT("\xed\xbf\xbf"), "\\xed\\xbf\\xbf"},	    /* surrogate */
		{TEXT("\xed\x9f\xbf"), "\xed\x9f\xbf"},		    /* just before */
		{TEXT("\xee\x80\x80"), "\xee\x80\x80"},		    /* just after */
		{TEXT("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80"}, /* above U+10FFFF */
		{TEXT("\xf8\x88\x80\x80\x80"), "\\xf8\\x88\\x80\\x80\\x80"},
	};

	check_examples(examples, NM_ARRAY_SIZE(examples));
}

TEST(test_invisible_and_bidi)
{
	static const struct example examples[] = {
		/* right-to-left override and embedding, each closed, since compilers reject an open
		 * one */
		{TEXT("\xe2\x80\xae\xe2\x80\xac"), "\\xe2\\x80\\xae\\xe2\\x80\\xac"},
		{TEXT("\xe2\x80\xab\xe2\x80\xac"), "\\xe2\\x80\\xab\\xe2\\x80\\xac"},
		{TEXT("\xe2\x81\xa6\xe2\x81\xa9"), "\\xe2\\x81\\xa6\\xe2\\x81\\xa9"}, /* isolates */
		{TEXT("\xe2\x80\x8e\xe2\x80\x8f"), "\\xe2\\x80\\x8e\\xe2\\x80\\x8f"}, /* marks */
		{TEXT("\xd8\x9c"), "\\xd8\\x9c"},
		{TEXT("\xe2\x80\xa8\xe2\x80\xa9"),
		 "\\xe2\\x80\\xa8\\xe2\\x80\\xa9"}, /* separators */
		{TEXT("\xe2\x80\x8b"), "\\xe2\\x80\\x8b"},
		{TEXT("\xef\xbb\xbf"), "\\xef\\xbb\\xbf"},
		{TEXT("\xef\xbf\xbe"), "\\xef\\xbf\\xbe"},	    /* noncharacter */
		{TEXT("\xf3\xa0\x81\x81"), "\\xf3\\xa0\\x81\\x81"}, /* tag letter */
		{TEXT("\xe2\x80\xb0\xe2\x80\x90"), "\u2030\u2010"},
	};

	check_examples(examples, NM_ARRAY_SIZE(examples));
}

TEST(test_cut_at_size)
{
	char out[9];

	assert_int_equal(nm_escape(out, 9, TEXT("12345678")), 8);
	assert_string_equal(out, "12345678");
	assert_int_equal(nm_escape(out, 9, TEXT("123456789")), 8);
	assert_string_equal(out, "12345…");
	assert_int_equal(nm_escape(out, 4, TEXT("abcd")), 3);
	assert_string_equal(out, "…");
	assert_int_equal(nm_escape(out, 4, TEXT("abc")), 3);
	assert_string_equal(out, "abc");
}

TEST(test_cut_keeps_characters_whole)
{
	char out[16];

	nm_escape(out, 9, TEXT("123日本"));
	assert_string_equal(out, "123…");
	nm_escape(out, 10, TEXT("123日本"));
	assert_string_equal(out, "123日本");
	nm_escape(out, 9, TEXT("1234\n5"));
	assert_string_equal(out, "1234…");
	nm_escape(out, 9, TEXT("1\n\n"));
	assert_string_equal(out, "1\\x0a…");
}

/* Any bytes give one line of printable valid UTF-8 that fits and is unchanged by another
 * escaping. */
TEST(test_any_bytes)
{
	struct nm_rng rng;

	nm_rng_seed(&rng, 1);
	for (int round = 0; round < 20000; round++) {
		char text[24], out[64], again[512];
		size_t length = nm_rng_below(&rng, sizeof(text) + 1);
		size_t size = 4 + nm_rng_below(&rng, sizeof(out) - 3);

		for (size_t i = 0; i < length; i++)
			text[i] = (char)nm_rng_next(&rng);
		size_t written = nm_escape(out, size, text, length);
		assert_true(written < size);
		assert_int_equal(strlen(out), written);
		for (size_t i = 0; i < written; i++)
			assert_true((unsigned char)out[i] >= 0x20 && out[i] != 0x7f);
		size_t backslashes = 0;
		for (size_t i = 0; i < written; i++)
			backslashes += out[i] == '\\';
		/* Only backslashes of existing escapes grow when escaped again. */
		assert_int_equal(nm_escape(again, sizeof(again), out, written),
				 written + 3 * backslashes);
	}
}

TEST(test_utf8_decode)
{
	uint32_t code = 0;

	assert_int_equal(nm_utf8_decode(TEXT("a"), &code), 1);
	assert_int_equal(code, 'a');
	assert_int_equal(nm_utf8_decode(TEXT("ß"), &code), 2);
	assert_int_equal(code, 0xdf);
	assert_int_equal(nm_utf8_decode(TEXT("…"), &code), 3);
	assert_int_equal(code, 0x2026);
	assert_int_equal(nm_utf8_decode(TEXT("\U0001f427"), &code), 4);
	assert_int_equal(code, 0x1f427);
	assert_int_equal(nm_utf8_decode(TEXT("\xff"), &code), 0);
	assert_int_equal(nm_utf8_decode("", 0, &code), 0);
	assert_int_equal(code, 0x1f427);
}

RUN_TESTS()
