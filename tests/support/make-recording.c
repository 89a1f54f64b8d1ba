/* SPDX-License-Identifier: MIT */
/* Writes a synthetic recording: make-recording KIND FILE. */
#include "made_recording.h"

static const struct {
	const char *name;
	struct made_recording_options options;
} kinds[] = {
	{"usual", {MADE_USUAL}},
	{"hostile",
	 {MADE_ALL, .nodes = 2, .processes = 8, .threads = 3, .intervals = 40,
	  .names = made_hostile_names, .message = "</td></table><script>alert(4)</script>&",
	  .config = "</pre><script>alert(5)</script>\n"}},
	{"large", {MADE_ALL, .nodes = 32, .processes = 50, .threads = 64, .intervals = 60}},
	{"bare", {.nodes = 2, .processes = 1, .threads = 2, .intervals = 5}},
	{"empty", {.nodes = 2, .processes = 0, .threads = 1, .intervals = 0}},
};

int main(int argc, char **argv)
{
	size_t i = 0;
	while (argc == 3 && i < NM_ARRAY_SIZE(kinds) && strcmp(kinds[i].name, argv[1]) != 0)
		i++;
	if (argc != 3 || i == NM_ARRAY_SIZE(kinds)) {
		fprintf(stderr, "Usage: make-recording usual|hostile|large|bare|empty FILE\n");
		return 64;
	}
	int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int r = fd < 0 ? -errno : made_recording(fd, &kinds[i].options);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[2], strerror(-r));
	return r < 0;
}
