/* SPDX-License-Identifier: MIT */
/* Communication between the threads of a process, and exclusivity of its pages. */
#include <math.h>

#include "say.h"

/* Equation 2 over the cells beside the diagonal only. */
static double amount_of_others(const struct nm_sharing *sharing)
{
	double threads = (double)sharing->nr_threads;
	return sharing->nr_threads > 1 ? sharing->amount * threads / (threads - 1) : (double)NAN;
}

static void add_fields(struct nm_entry *entry, uint32_t pid, const struct nm_sharing *sharing,
		       const struct nm_exclusivity *pages)
{
	nm_entry_field(entry, "PID", "%u", pid);
	nm_entry_field(entry, "SHARING_THREADS", "%zu", sharing->nr_threads);
	nm_field_figure(entry, "SHARING_AMOUNT", sharing->amount);
	nm_field_figure(entry, "SHARING_AMOUNT_OTHERS", amount_of_others(sharing));
	nm_field_figure(entry, "HETEROGENEITY", sharing->heterogeneity);
	nm_field_figure(entry, "HETEROGENEITY_OTHERS", sharing->heterogeneity_others);
	nm_field_permille(entry, "EXCLUSIVITY_PERMILLE", nm_exclusivity_average(pages));
	nm_entry_field(entry, "PAGES", "%lu", (unsigned long)pages->pages);
}

void nm_entry_sharing(struct nm_entry *entry, uint32_t pid, const struct nm_sharing *sharing,
		      const struct nm_exclusivity *pages)
{
	char amount[NM_WORD_BYTES], uneven[NM_WORD_BYTES], exclusivity[NM_WORD_BYTES];
	nm_entry_begin(entry, NM_MESSAGE_SUMMARY, LOG_DEBUG);
	add_fields(entry, pid, sharing, pages);
	nm_entry_say(entry,
		     "PID %u: %zu thread%s, communication %s (heterogeneity %s), exclusivity %s of "
		     "%lu page%s",
		     pid, sharing->nr_threads, nm_plural(sharing->nr_threads, "", "s"),
		     nm_say_figure(sharing->amount, amount),
		     nm_say_figure(sharing->heterogeneity, uneven),
		     nm_say_percent(nm_exclusivity_average(pages), exclusivity),
		     (unsigned long)pages->pages, nm_plural(pages->pages, "", "s"));
}
