/* SPDX-License-Identifier: MIT */
/* The reason why hwloc refuses an XML file. In a separate program, as hwloc reads the setting of
 * its messages once per process. */
#include "../support/test.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"
#include "numa-migrd/topology.h"

#define MACHINE                                                                                    \
	"<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" "          \
	"nodeset=\"0x1\" complete_nodeset=\"0x1\">"

static const struct {
	const char *text, *why;
} refused[] = {
	{"<topology version=\"2.0\">" MACHINE
	 "<object type=\"Wrong\x7f\" os_index=\"0\"/></object></topology>\n",
	 "unrecognized object type string Wrong\\x7f"},
	{"<topology version=\"2.0\"><object type=\"Machine\"/></topology>\n", "without cpuset"},
	{"no xml\n", "bad.xml"},
};

/* The error is that of hwloc, and the library prints nothing on stderr. */
TEST(a_refused_xml_reports_the_reason_of_hwloc)
{
	char root[64], path[128], errors[NM_ARRAY_SIZE(refused)][256];
	int results[NM_ARRAY_SIZE(refused)];
	fixture_make(root, sizeof(root));
	snprintf(path, sizeof(path), "%s/bad.xml", root);
	int kept = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC);
	assert_true(kept >= 0 && dup2(file, STDERR_FILENO) >= 0);
	for (size_t i = 0; i < NM_ARRAY_SIZE(refused); i++) {
		const struct nm_topology_source source = {.xml_path = path};
		struct nm_topology *topology = NULL;
		fixture_file(root, "bad.xml", refused[i].text);
		results[i] = nm_topology_load(&source, errors[i], sizeof(errors[i]), &topology);
	}
	off_t length = lseek(STDERR_FILENO, 0, SEEK_END);
	assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
	close(kept);
	close(file);
	fixture_remove(root);
	for (size_t i = 0; i < NM_ARRAY_SIZE(refused); i++) {
		assert_int_equal(results[i], -EINVAL);
		if (!strstr(errors[i], refused[i].why))
			fail_msg("\"%s\" is not in: %s", refused[i].why, errors[i]);
		assert_non_null(strstr(errors[i], "lstopo"));
	}
	assert_int_equal(length, 0);
}

RUN_TESTS()
