/* SPDX-License-Identifier: MIT */
/* What the words mean, alone and under each other. */
#include <string.h>

#include "numa-migrd/steer.h"

#define WORD_BYTES 16

static const char *const words[] = {
	[NM_STEER_NONE] = "",
	[NM_STEER_OFF] = "off",
	[NM_STEER_OBSERVE] = "observe",
	[NM_STEER_ON] = "on",
};

int nm_steer_parse(const char *text, size_t length, struct nm_steering *ret)
{
	char word[WORD_BYTES];
	enum nm_thread_policy policy;

	while (length > 0 && memchr(" \t\n", text[length - 1], sizeof(" \t\n")))
		length--;
	if (length == 0 || length >= sizeof(word) || memchr(text, '\0', length))
		return -EINVAL;
	memcpy(word, text, length);
	word[length] = '\0';
	for (unsigned i = NM_STEER_OFF; i < NM_ARRAY_SIZE(words); i++) {
		if (strcmp(words[i], word) != 0)
			continue;
		*ret = (struct nm_steering){.word = (enum nm_steer_word)i};
		return 0;
	}
	int r = nm_policy_by_name(word, &policy);
	if (r == 0)
		*ret = (struct nm_steering){.word = NM_STEER_POLICY, .policy = policy};
	return r;
}

const char *nm_steer_name(const struct nm_steering *steering)
{
	return steering->word == NM_STEER_POLICY ? nm_policy_name(steering->policy)
						 : words[steering->word];
}

bool nm_steer_is_free(enum nm_thread_policy wanted, enum nm_thread_policy configured)
{
	return wanted == configured || wanted == NM_POLICY_NONE || wanted == NM_POLICY_LBMA;
}

struct nm_steering nm_steer_under(struct nm_steering above, struct nm_steering said)
{
	if (above.word == NM_STEER_OFF || said.word == NM_STEER_NONE)
		return above;
	said.asked = said.asked || above.asked;
	return said;
}

bool nm_steer_is_below(const char *cgroup, const char *directory)
{
	size_t length = strcmp(directory, "/") == 0 ? 0 : strlen(directory);

	return strncmp(cgroup, directory, length) == 0 &&
	       (cgroup[length] == '/' || cgroup[length] == '\0');
}
