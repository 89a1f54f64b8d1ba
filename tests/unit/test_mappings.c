/* SPDX-License-Identifier: MIT */
/* Lines of maps and numa_maps, valid and invalid. */
#include "../support/test.h"

#include <stdio.h>

#include "platform/maps.h"

/* ---- lines ---- */

TEST(test_extents)
{
	static const struct {
		const char *line;
		uint64_t start, end;
		bool shared, file;
	} good[] = {
		{"560391c44000-560391c46000 r--p 00000000 fd:01 1234 /usr/bin/cat", 0x560391c44000,
		 0x560391c46000, false, true},
		{"5603a432d000-5603a434e000 rw-p 00000000 00:00 0    [heap]\n", 0x5603a432d000,
		 0x5603a434e000, false, false},
		{"1000-2000 rw-s 00000000 00:01 77 /dev/zero (deleted)", 0x1000, 0x2000, true,
		 true},
		{"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]",
		 0xffffffffff600000, 0xffffffffff601000, false, false},
		{"1000-2000 rw-p 00000000 00:00 0 /a\\012b-3000 rw-s", 0x1000, 0x2000, false,
		 false},
	};
	struct nm_mapped mapped;

	for (size_t i = 0; i < NM_ARRAY_SIZE(good); i++) {
		assert_int_equal(nm_mapped_parse_extent(good[i].line, &mapped), 0);
		assert_int_equal(mapped.start, good[i].start);
		assert_int_equal(mapped.end, good[i].end);
		assert_int_equal(mapped.shared, good[i].shared);
		assert_int_equal(mapped.file, good[i].file);
		assert_int_equal(mapped.policy, NM_MEMORY_UNKNOWN);
	}
}

TEST(test_odd_extents)
{
	static const char *const bad[] = {"",
					  "\n",
					  " ",
					  "-",
					  "x",
					  "1000",
					  "1000-",
					  "1000-2000",
					  "1000-2000 ",
					  "1000-2000 rw-p",
					  "1000-2000 rw-p 0 00:00",
					  "1000-2000 rw- 00000000 00:00 0 ",
					  "2000-1000 rw-p 00000000 00:00 0 ",
					  "1000-1000 rw-p 00000000 00:00 0 ",
					  "-1000-2000 rw-p 00000000 00:00 0 ",
					  " 1000-2000 rw-p 00000000 00:00 0 ",
					  "0x1000-2000 rw-p 00000000 00:00 0 ",
					  "1000 2000 rw-p 00000000 00:00 0 ",
					  "1ffffffffffffffff-2 rw-p 00000000 00:00 0 ",
					  "g000-2000 rw-p 00000000 00:00 0 "};
	const struct nm_mapped before = {.start = 7, .page_bytes = 9};
	struct nm_mapped mapped = before;

	for (size_t i = 0; i < NM_ARRAY_SIZE(bad); i++) {
		if (nm_mapped_parse_extent(bad[i], &mapped) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
		assert_memory_equal(&mapped, &before, sizeof(before));
	}
}

TEST(test_policies)
{
	static const struct {
		const char *text;
		enum nm_memory_policy policy;
	} cases[] = {
		{"default", NM_MEMORY_DEFAULT},
		{"local", NM_MEMORY_LOCAL},
		{"prefer:1", NM_MEMORY_PREFERRED},
		{"prefer=static:1", NM_MEMORY_PREFERRED},
		{"prefer (many):0-1", NM_MEMORY_PREFERRED},
		{"prefer (many)=relative:0-1", NM_MEMORY_PREFERRED},
		{"bind:0", NM_MEMORY_BIND},
		{"bind=static|balancing:0,2-3", NM_MEMORY_BIND},
		{"interleave:0-3", NM_MEMORY_INTERLEAVE},
		{"weighted interleave:0-3", NM_MEMORY_INTERLEAVE},
		{"defaults", NM_MEMORY_OTHER},
		{"Default", NM_MEMORY_OTHER},
		{"defaul", NM_MEMORY_OTHER},
		{"locality", NM_MEMORY_OTHER},
		{"weighted", NM_MEMORY_OTHER},
		{"unknown:0", NM_MEMORY_OTHER},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		static const char *const tails[] = {"", "\n", " heap anon=1 kernelpagesize_kB=4"};
		for (size_t j = 0; j < NM_ARRAY_SIZE(tails); j++) {
			struct nm_mapped mapped;
			char line[128];
			snprintf(line, sizeof(line), "7f00 %s%s", cases[i].text, tails[j]);
			assert_int_equal(nm_mapped_parse_policy(line, &mapped), 0);
			assert_int_equal(mapped.start, 0x7f00);
			assert_int_equal(mapped.policy, cases[i].policy);
			assert_false(mapped.shared || mapped.file || mapped.huge);
			bool is_free = cases[i].policy == NM_MEMORY_DEFAULT ||
				       cases[i].policy == NM_MEMORY_LOCAL;
			assert_int_equal(nm_mapped_is_bound(&mapped), !is_free);
		}
	}
}

TEST(test_words)
{
	static const struct {
		const char *line;
		bool shared, file, huge, empty;
		uint64_t page_bytes;
	} cases[] = {
		{"10 default", false, false, false, true, 0},
		{"10 default file=/a", false, true, false, true, 0},
		{"10 default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4", false, false, false,
		 false, 4096},
		{"10 default anon=3 mapmax=1 kernelpagesize_kB=4", false, false, false, false,
		 4096},
		{"10 default anon=3 mapmax=2 kernelpagesize_kB=4", false, false, false, false,
		 4096},
		{"10 default file=/a\\040huge mapped=3 mapmax=12 N0=3 kernelpagesize_kB=4", false,
		 true, false, false, 4096},
		{"10 default file=/dev/hugepages/x huge dirty=3 N0=3 kernelpagesize_kB=2048", false,
		 true, true, false, 2097152},
		{"10 default file=/anon_hugepage\\040(deleted) huge anon=3 N0=3 "
		 "kernelpagesize_kB=1048576",
		 false, false, true, false, 1073741824},
		/* Only huge pages can have no such name. */
		{"10 default file=/anon_hugepage mapped=1 kernelpagesize_kB=4", false, true, false,
		 false, 4096},
		{"10 default hugely mapmax= kernelpagesize_kB=x", false, false, false, true, 0},
		{"10 default mapmax=-2 kernelpagesize_kB=99999999999999999999", false, false, false,
		 true, 0},
		{"10 default mapmax=99999999999999999999 kernelpagesize_kB=18014398509481984",
		 false, false, false, true, 0},
		{"10 default anon=1 kernelpagesize_kB=2", false, false, false, true, 0},
		{"10 default anon=1 kernelpagesize_kB=12", false, false, false, true, 0},
		{"10 default   anon=1  kernelpagesize_kB=4 ", false, false, false, false, 4096},
	};

	for (size_t i = 0; i < NM_ARRAY_SIZE(cases); i++) {
		struct nm_mapped mapped;
		assert_int_equal(nm_mapped_parse_policy(cases[i].line, &mapped), 0);
		assert_int_equal(mapped.shared, cases[i].shared);
		assert_int_equal(mapped.file, cases[i].file);
		assert_int_equal(mapped.huge, cases[i].huge);
		assert_int_equal(mapped.empty, cases[i].empty);
		assert_int_equal(mapped.page_bytes, cases[i].page_bytes);
	}
}

TEST(test_odd_policies)
{
	static const char *const bad[] = {"",
					  "\n",
					  "10",
					  "10\n",
					  "10 ",
					  "10  bind",
					  " 10 default",
					  "-10 default",
					  "default",
					  "0x10 default",
					  "10-20 default",
					  "10 \n",
					  "11111111111111111 default"};
	struct nm_mapped mapped;

	for (size_t i = 0; i < NM_ARRAY_SIZE(bad); i++)
		if (nm_mapped_parse_policy(bad[i], &mapped) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
}

TEST(resident_pages_and_their_nodes)
{
	struct nm_mapped mapped;
	assert_int_equal(
		nm_mapped_parse_policy("10 default anon=7 N0=3 N2=4 kernelpagesize_kB=4", &mapped),
		0);
	assert_int_equal(mapped.resident, 7);
	assert_int_equal(mapped.only_on, -1);
	assert_int_equal(nm_mapped_parse_policy("10 default anon=4 N2=4 N3=0", &mapped), 0);
	assert_int_equal(mapped.resident, 4);
	assert_int_equal(mapped.only_on, 2);
	assert_int_equal(nm_mapped_parse_policy("10 default file=/N1=9 N=3 N1 Nx=2", &mapped), 0);
	assert_int_equal(mapped.resident, 0);
	assert_int_equal(mapped.only_on, -1);
}

RUN_TESTS()
