/* SPDX-License-Identifier: MIT */
/* Settings that are valid alone and invalid together: each rule on both sides, with line and
 * remedy. */
#include "../support/test.h"

#include "config_cases.h"

READINGS(test_event_must_be_named,
	 {"sampling:\n{ source = 'event'; };",
	  "conf:2: sampling.source: found 'event', allowed: only if sampling.event is set"},
	 {"sampling: { source = 'event'; }; parameters: { sampling: { event = 'x/period=9/'; }; };",
	  "sampling.source = 'event'; sampling.event = 'x/period=9/'"},
	 {"sampling: { source = 'event'; }; parameters: { sampling: { event = 'A:B'; }; };",
	  "sampling.source = 'event'; sampling.event = 'A:B'"})

#define IMAR2 "threads: { policy = 'imar2'; };\n"

READINGS(
	test_interval_bounds,
	{"", "parameters:2: t_min_s: found 3, allowed: at most t_max_s, which is 2",
	 .parameters = "t_max_s = 2;\nt_min_s = 3;"},
	{"", "parameters:2: t_min_s: found 1, allowed: at most t_max_s, which is 0.5",
	 .parameters = "\nt_max_s = 0.5;"},
	{"", "t_min_s = 4", .parameters = "t_min_s = 4;"},
	{IMAR2 "parameters: { general: { interval_s = 5; }; };",
	 "conf:2: general.interval_s: found 5, allowed with threads.policy = 'imar2': from t_min_s "
	 "to t_max_s, which are 1 and 4"},
	{IMAR2, "threads.policy = 'imar2'; t_min_s = 2", .parameters = "t_min_s = 2;"},
	{IMAR2 "parameters: { general: { interval_s = 0.5; }; };",
	 "general.interval_s = 0.5; threads.policy = 'imar2'; t_min_s = 0.5",
	 .parameters = "t_min_s = 0.5;"},
	{"parameters: { general: { interval_s = 60; }; };", "general.interval_s = 60"})

#define NO_TICKETS "q1 = 0; q1_sibling = 0; q2 = 0"

READINGS(test_tickets,
	 {"threads: { policy = 'imar2-paper'; };",
	  "parameters:1: delta_r: found 0, allowed: above 0, unless remote_below is: otherwise no "
	  "thread is considered",
	  .parameters = "delta_r = 0;"},
	 {IMAR2, "threads.policy = 'imar2'; delta_r = 0", .parameters = "delta_r = 0;"},
	 {"",
	  "parameters:1: q3_better, q3_equal, q3_worse: found 4, 2 and 3, allowed: in descending "
	  "order, otherwise threads move to nodes where they were slower",
	  .parameters = "q3_worse = 3;"},
	 {"", "q3_better = 2; q3_worse = 2", .parameters = "q3_better = 2; q3_worse = 2;"},
	 {"threads: { policy = 'lbma'; };",
	  "parameters:1: q1: found 0, allowed: above 0, unless other tickets are: otherwise no "
	  "candidate has tickets",
	  .parameters = NO_TICKETS ";"},
	 {"threads: { policy = 'lbma-paper'; };", "threads.policy = 'lbma-paper'; " NO_TICKETS,
	  .parameters = NO_TICKETS ";"},
	 {IMAR2, "threads.policy = 'imar2'; " NO_TICKETS, .parameters = NO_TICKETS ";"})

READINGS(test_balancing_has_bounds_in_order,
	 {"", "parameters:1: balance_end: found 0.75, allowed: at most balance_begin, which is 0.5",
	  .parameters = "balance_end = 0.75;"},
	 {"", "balance_end = 0.5", .parameters = "balance_end = 0.5;"})

RUN_TESTS()
