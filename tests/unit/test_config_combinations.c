/* SPDX-License-Identifier: MIT */
/* Settings that are valid alone and invalid together: each rule on both sides, with line and
 * remedy. */
#include "../support/test.h"

#include "config_cases.h"

static void allow(const char *text)
{
	nm_config_free(accept(text));
}

static void allow_parameters(const char *settings, const char *text)
{
	nm_config_free(accept_parameters(settings, text));
}

TEST(test_event_must_be_named)
{
	refuse("sampling:\n{ source = \"event\"; };",
	       "conf:2: sampling.source: found \"event\", allowed: only if sampling.event is set");
	allow("sampling: { source = \"event\"; }; parameters: { sampling: { event = "
	      "\"x/period=9/\"; }; };");
	allow("sampling: { source = \"event\"; }; parameters: { sampling: { event = \"A:B\"; }; "
	      "};");
}

TEST(test_interval_bounds)
{
	refuse_parameters("", "t_max_s = 2;\nt_min_s = 3;",
			  "parameters:2: t_min_s: found 3, allowed: at most t_max_s, which is 2");
	refuse_parameters("", "\nt_max_s = 0.5;",
			  "parameters:2: t_min_s: found 1, allowed: at most t_max_s, which is 0.5");
	allow_parameters("", "t_min_s = 4;");
	refuse("threads: { policy = \"imar2\"; };\nparameters: { general: { interval_s = 5; }; };",
	       "conf:2: general.interval_s: found 5, allowed with threads.policy = \"imar2\": from "
	       "t_min_s to t_max_s, which are 1 and 4");
	allow_parameters("threads: { policy = \"imar2\"; };", "t_min_s = 2;");
	allow_parameters("threads: { policy = \"imar2\"; }; parameters: { general: { interval_s = "
			 "0.5; }; };",
			 "t_min_s = 0.5;");
	allow("parameters: { general: { interval_s = 60; }; };");
}

TEST(test_tickets)
{
	static const char none[] = "q1 = 0; q1_sibling = 0; q2 = 0;";

	refuse_parameters(
		"threads: { policy = \"imar2-paper\"; };", "delta_r = 0;",
		"parameters:1: delta_r: found 0, allowed: above 0, unless remote_below is: "
		"otherwise no thread is considered");
	allow_parameters("threads: { policy = \"imar2\"; };", "delta_r = 0;");
	refuse_parameters(
		"", "q3_worse = 3;",
		"parameters:1: q3_better, q3_equal, q3_worse: found 4, 2 and 3, allowed: in "
		"descending order, otherwise threads move to nodes where they were slower");
	allow_parameters("", "q3_better = 2; q3_worse = 2;");
	refuse_parameters("threads: { policy = \"lbma\"; };", none,
			  "parameters:1: q1: found 0, allowed: above 0, unless other tickets are: "
			  "otherwise no candidate has tickets");
	allow_parameters("threads: { policy = \"lbma-paper\"; };", none);
	allow_parameters("threads: { policy = \"imar2\"; };", none);
}

TEST(test_balancing_has_bounds_in_order)
{
	refuse_parameters(
		"", "balance_end = 0.75;",
		"parameters:1: balance_end: found 0.75, allowed: at most balance_begin, which "
		"is 0.5");
	allow_parameters("", "balance_end = 0.5;");
}

RUN_TESTS()
