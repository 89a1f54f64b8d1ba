/* SPDX-License-Identifier: MIT */
/* Lines of maps and numa_maps, valid and invalid, and files of them in pieces of any size. */
#include "../support/test.h"

#include "../../src/mover/mappings.h"
#include "mover_fixture.h"

#include "../support/live_calls.h"
#include "numa-migrd/base.h"
#include "numa-migrd/regions.h"

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

/* ---- files ---- */

static struct nm_mappings *read_all(struct fake *fake, int expected)
{
	struct nm_mappings *mappings;

	nm_mappings_new(&fake->platform, &mappings);
	fake->open_files++; /* the directory */
	assert_int_equal(nm_mappings_read(mappings, FAKE_DIRECTORY, NM_NSEC_PER_SEC), expected);
	return mappings;
}

TEST_BETWEEN(set_up, tear_down, test_adjacent_and_invalid_mappings)
{
	struct test *test = *state;
	const struct nm_mapped *all;

	strcpy(test->fake->maps, "1000-3000 rw-p 00000000 00:00 0 \n"
				 "3000-4000 rw-p 00000000 00:00 0 \n"
				 "8000-9000 rw-s 00000000 00:01 5 /x\n"
				 "nonsense\n"
				 "a000-b000 rw-p 00000000 00:00 0 \n"
				 "9000-c000 rw-p 00000000 00:00 0 \n" /* overlaps */
				 "d000-e000 rw-p 00000000 00:00 0");  /* cut short */
	strcpy(test->fake->numa_maps, "1000 default anon=2 kernelpagesize_kB=4\n"
				      "7000 bind:0 anon=2 kernelpagesize_kB=4\n" /* no such start */
				      "nonsense\n"
				      "8000 default file=/x\n"
				      "a000 prefer:1 anon=1 kernelpagesize_kB=4\n"
				      "1000 bind:0\n" /* out of order */
				      "f000 bind:0\n");
	nm_auto(nm_mappings_freep) struct nm_mappings *mappings = read_all(test->fake, 0);
	assert_int_equal(nm_mappings_all(mappings, &all), 4);
	assert_int_equal(all[0].policy, NM_MEMORY_DEFAULT);
	assert_int_equal(all[1].policy, NM_MEMORY_UNKNOWN);
	assert_true(all[2].shared && all[2].file && all[2].empty);
	assert_int_equal(all[3].policy, NM_MEMORY_PREFERRED);
	assert_int_equal(all[3].end, 0xb000);

	assert_ptr_equal(nm_mappings_find(mappings, 0x1000, 0x2000), &all[0]);
	assert_ptr_equal(nm_mappings_find(mappings, 0x2fff, 1), &all[0]);
	assert_ptr_equal(nm_mappings_find(mappings, 0x3000, 0x1000), &all[1]);
	assert_ptr_equal(nm_mappings_find(mappings, 0xafff, 1), &all[3]);
	assert_null(nm_mappings_find(mappings, 0xfff, 1));
	assert_null(nm_mappings_find(mappings, 0x2000, 0x1001));
	assert_null(nm_mappings_find(mappings, 0x4000, 1));
	assert_null(nm_mappings_find(mappings, 0xb000, 1));
	assert_null(nm_mappings_find(mappings, UINT64_MAX, UINT64_MAX));
	assert_null(nm_mappings_find(mappings, 0x1000, UINT64_MAX));
}

/* The owner binds parts of a mapping of maps before numa_maps is read. */
TEST_BETWEEN(set_up, tear_down, test_bound_in_between)
{
	struct test *test = *state;
	struct nm_range *ranges = NULL;
	const struct nm_mapped *found;
	size_t count = 0;

	strcpy(test->fake->maps, "1000-6000 rw-p 00000000 00:00 0 \n"
				 "8000-a000 rw-p 00000000 00:00 0 \n");
	strcpy(test->fake->numa_maps, "1000 default anon=2 kernelpagesize_kB=4\n"
				      "3000 bind:0 anon=1 kernelpagesize_kB=4\n"
				      "5000 default anon=1 kernelpagesize_kB=4\n"
				      "8000 default anon=1 kernelpagesize_kB=4\n"
				      "9000 bind:1 anon=1 kernelpagesize_kB=4\n");
	nm_auto(nm_mappings_freep) struct nm_mappings *mappings = read_all(test->fake, 0);
	found = nm_mappings_find(mappings, 0x1000, 0x2000);
	assert_true(found && found->policy == NM_MEMORY_DEFAULT);
	found = nm_mappings_find(mappings, 0x8000, 0x1000);
	assert_true(found && found->policy == NM_MEMORY_DEFAULT);
	assert_null(nm_mappings_find(mappings, 0x2000, 0x2000));
	assert_null(nm_mappings_find(mappings, 0x3000, 0x1000));
	assert_null(nm_mappings_find(mappings, 0x5000, 0x1000));
	assert_null(nm_mappings_find(mappings, 0x9000, 0x1000));
	nm_maps_ranges(&mappings->maps, &(struct nm_maps_rules){0}, &ranges, &count);
	assert_int_equal(count, 2);
	assert_true(ranges[0].start == 0x1000 && ranges[0].end == 0x3000);
	assert_true(ranges[1].start == 0x8000 && ranges[1].end == 0x9000);
	free(ranges);
}

TEST_BETWEEN(set_up, tear_down, test_ranges_of_kinds)
{
	struct test *test = *state;
	struct nm_range *ranges = NULL;
	size_t count = 0;

	strcpy(test->fake->maps, "1000-3000 rw-p 00000000 00:00 0 \n"
				 "3000-4000 rw-p 00000000 00:00 0 \n"
				 "4000-5000 rw-p 00000000 00:00 0 \n"
				 "6000-7000 rw-p 00000000 00:00 0 \n"
				 "8000-9000 rw-s 00000000 00:01 5 /x\n"
				 "a000-b000 rw-p 00000000 00:00 0 \n"
				 "200000-400000 rw-p 00000000 00:0f 9 /anon_hugepage (deleted)\n");
	strcpy(test->fake->numa_maps,
	       "1000 default anon=2 kernelpagesize_kB=4\n"
	       "3000 local anon=1 kernelpagesize_kB=4\n"
	       "4000 bind:0 anon=1 kernelpagesize_kB=4\n"
	       "6000 default\n"
	       "8000 default file=/x mapped=1 kernelpagesize_kB=4\n"
	       "200000 default file=/anon_hugepage\\040(deleted) huge anon=1 "
	       "kernelpagesize_kB=2048\n");
	nm_auto(nm_mappings_freep) struct nm_mappings *mappings = read_all(test->fake, 0);
	nm_maps_ranges(&mappings->maps, &(struct nm_maps_rules){0}, &ranges, &count);
	assert_int_equal(count, 2);
	assert_true(ranges[0].start == 0x1000 && ranges[0].end == 0x4000);
	assert_true(ranges[1].start == 0x200000 && ranges[1].page_bytes == 0x200000);
	free(ranges);
	nm_maps_ranges(&mappings->maps,
		       &(struct nm_maps_rules){.move_bound = true, .move_shared = true}, &ranges,
		       &count);
	assert_int_equal(count, 3);
	assert_int_equal(ranges[0].end, 0x5000);
	assert_int_equal(ranges[1].start, 0x8000);
	free(ranges);
}

/* Names of the maximum length and beyond must not be read as other fields. */
/* SECURITY: many-mappings */
TEST_BETWEEN(set_up, tear_down, test_overlong_lines)
{
	struct test *test = *state;
	const struct nm_mapped *all;
	char name[8192];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(test->fake->maps, FAKE_TEXT,
		 "1000-2000 rw-p 00000000 fd:01 5 /%s\n3000-4000 rw-p 00000000 00:00 0 \n", name);
	snprintf(test->fake->numa_maps, FAKE_TEXT,
		 "1000 default file=/%s huge kernelpagesize_kB=4\n3000 default anon=1\n", name);
	nm_auto(nm_mappings_freep) struct nm_mappings *mappings = read_all(test->fake, 0);
	assert_int_equal(nm_mappings_all(mappings, &all), 2);
	assert_int_equal(all[0].policy, NM_MEMORY_OTHER);
	assert_true(all[0].file);
	assert_int_equal(all[1].policy, NM_MEMORY_DEFAULT);
}

TEST_BETWEEN(set_up, tear_down, test_empty_files)
{
	struct test *test = *state;
	const struct nm_mapped *all;

	test->fake->maps[0] = test->fake->numa_maps[0] = '\0';
	nm_auto(nm_mappings_freep) struct nm_mappings *mappings = read_all(test->fake, 0);
	assert_int_equal(nm_mappings_all(mappings, &all), 0);
	assert_null(nm_mappings_find(mappings, 0x1000, 1));
}

TEST_BETWEEN(set_up, tear_down, test_process_gone)
{
	struct test *test = *state;

	test->fake->pid = 0;
	nm_mappings_free(read_all(test->fake, -ESRCH));
}

/* A file without end. */
/* SECURITY: many-mappings */
TEST_BETWEEN(set_up, tear_down, test_too_many)
{
	struct test *test = *state;
	struct fake *fake = test->fake;
	struct nm_mappings *mappings;
	int r = -EAGAIN;

	fake->read_ns = 1;
	nm_mappings_new(&fake->platform, &mappings);
	for (uint64_t i = 0; r == -EAGAIN && i < 200; i++) {
		size_t used = 0;
		for (uint64_t j = 0; j < 1000; j++) {
			uint64_t begin = (i * 1000 + j + 1) << 12;
			used += (size_t)snprintf(fake->maps + used, FAKE_TEXT - used,
						 "%" PRIx64 "-%" PRIx64 " rw-p 0 00:00 0\n", begin,
						 begin + 4096);
		}
		fake->offset[0] = 0;
		while (r == -EAGAIN && fake->offset[0] < used) {
			fake->open_files++;
			r = nm_mappings_read(mappings, FAKE_DIRECTORY, 1);
		}
	}
	nm_mappings_free(mappings);
	assert_int_equal(r, -EFBIG);
}

/* Random bytes may be refused, and accepted mappings ascend. */
TEST_BETWEEN(set_up, tear_down, test_noise)
{
	static const char alphabet[] =
		"0123456789abcdef-- \n\n:rwps=bind default file=/huge mapmax";
	struct test *test = *state;
	const struct nm_mapped *all;
	struct nm_rng rng;

	nm_rng_seed(&rng, 20241122);
	for (unsigned round = 0; round < 300; round++) {
		for (size_t i = 0; i < 3000; i++) {
			test->fake->maps[i] = alphabet[nm_rng_below(&rng, sizeof(alphabet) - 1)];
			test->fake->numa_maps[i] =
				alphabet[nm_rng_below(&rng, sizeof(alphabet) - 1)];
		}
		test->fake->maps[3000] = test->fake->numa_maps[3000] = '\0';
		nm_auto(nm_mappings_freep) struct nm_mappings *mappings = read_all(test->fake, 0);
		size_t count = nm_mappings_all(mappings, &all);
		for (size_t i = 0; i < count; i++)
			assert_true(all[i].start < all[i].end &&
				    (i == 0 || all[i - 1].end <= all[i].start));
	}
}

/* The maps of this process match the assumed format of the kernel. */
TEST(test_own)
{
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	nm_auto(nm_mappings_freep) struct nm_mappings *mappings = NULL;
	nm_autofree char *heap = malloc(100000);
	int on_stack = 0;

	memset(heap, 1, 100000);
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	if (access("/proc/self/numa_maps", R_OK) < 0) {
		print_message("this kernel has no numa_maps: skipped\n");
		skip();
	}
	nm_mappings_new(platform, &mappings);
	int r;
	do {
		int self = platform->ops->open_directory(platform, NM_ROOT, "proc/self");
		assert_true(self >= 0);
		r = live_read(platform, mappings, self, NM_NSEC_PER_MSEC);
	} while (r == -EAGAIN);
	assert_int_equal(r, 0);
	const struct nm_mapped *found = nm_mappings_find(mappings, (uintptr_t)heap, 100000);
	assert_non_null(found);
	assert_false(found->file || found->empty || found->policy == NM_MEMORY_UNKNOWN);
	assert_int_equal(found->page_bytes, sysconf(_SC_PAGESIZE));
	assert_non_null(nm_mappings_find(mappings, (uintptr_t)&on_stack, sizeof(on_stack)));
	found = nm_mappings_find(mappings, (uintptr_t)test_own, 1);
	assert_true(found && found->file);
	assert_null(nm_mappings_find(mappings, 0, 1));
}

/* The lines of the kernel match the count of pages; a single node has more pages than those touched
 * here. */
TEST(test_own_pages)
{
	const struct nm_platform_options options = {.root_path = "/",
						    .worker_program = NM_WORKER_BUILT};
	nm_auto(nm_platform_freep) struct nm_platform *platform = NULL;
	nm_auto(nm_memory_answer_clear) struct nm_memory_answer answer = {.result = -EAGAIN};
	const struct nm_memory_query question = {
		.kind = NM_MEMORY_QUERY_NUMA_MAPS, .pid = (uint32_t)getpid(), .start_ticks = 0};
	uint64_t ticket = 0;
	nm_autofree char *heap = malloc(4 << 20);

	memset(heap, 1, 4 << 20);
	assert_int_equal(nm_platform_linux_new(&options, &platform), 0);
	if (access("/proc/self/numa_maps", R_OK) < 0 ||
	    access("/sys/devices/system/node/node1", F_OK) == 0) {
		print_message("no numa_maps, or more nodes than one: skipped\n");
		skip();
	}
	assert_int_equal(platform->ops->memory_query(platform, &question, &ticket), 0);
	while (platform->ops->memory_poll(platform, ticket, &answer) == -EAGAIN)
		live_wait(platform);
	assert_int_equal(answer.result, 0);
	assert_true(answer.pages->whole && answer.pages->own[0] >= 1024);
	assert_true(answer.pages->own_bytes >= 4 << 20);
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
