/* SPDX-License-Identifier: MIT */
/* The rules of the policies, and the parameters that --parameters FILE may change. */
#include "settings.h"

#define COMMON                                                                                     \
	.moves_per_interval = 64, .q1 = 2, .q2 = 4, .delta_r = 0.8, .q3_better = 4, .q3_equal = 2, \
	.q3_worse = 1, .q4 = 3, .t_min_s = 1, .t_max_s = 4, .delta_g = 0.9,                        \
	.max_tracked = 1000000, .page_factor = 2, .call_limit_ms = 10, .maps_budget_ms = 100,      \
	.ring_kb = 512

const struct nm_policy_rules nm_rules_own = {
	COMMON,
	.gate = NM_GATE_BENEFIT,
	.lottery = NM_LOTTERY_PROPORTIONAL,
	.feedback = NM_FEEDBACK_MOVED,
	.rollback = true,
	.history_s = 10,
	.min_run = 0.1,
	.min_samples = 10,
	.home_share = 0.8,
	.warmup_s = 3,
	.cooldown = 8,
	.n = 8,
	.q1_sibling = 1,
	.free_max = 0.05,
	.gate_sigmas = 3,
	.remote_below = 0.5,
	.record_band = 0.05,
	.record_age = 60,
	.noise_gate = 3,
	.mapping_s = 1,
	.mapping_gain = 0.1,
	.sharing_window_s = 10,
	.page_min_accesses = 4,
	.page_cooldown_s = 10,
	.page_decay_s = 10,
	.rollback_pages = 1048576,
	.balance_begin = 0.5,
	.balance_end = 0.25,
	.balance_persist = 2,
	.balance_overload = 1,
	.balance_idle_max = 0.05,
};

/* Without the limits that the papers do not contain. */
const struct nm_policy_rules nm_rules_paper = {
	COMMON,
	.paper = true,
	.gate = NM_GATE_PAPER,
	.lottery = NM_LOTTERY_PAPER,
	.feedback = NM_FEEDBACK_GLOBAL,
	.cross_owner_swap = true,
	.min_samples = 1,
	.n = 1,
	.q1_sibling = 2,
	.mapping_s = 0.1,
	.sharing_window_s = 120,
	.balance_begin = -1000,
	.balance_end = -1000,
	.balance_persist = 1,
	.balance_min_gain = NM_CONFIG_ANY_GAIN,
};

#define NUMBER(n, t, l, h)                                                                         \
	{                                                                                          \
		.group = "", .name = #n, .type = (t),                                              \
		.offset = offsetof(struct nm_config, rules.n), .low = (l), .high = (h)             \
	}
#define COUNT(n, l, h) NUMBER(n, NM_SETTING_COUNT, l, h)
#define REAL(n, l, h) NUMBER(n, NM_SETTING_REAL, l, h)

/* clang-format off */
const struct nm_setting nm_parameters[] = {
	REAL(history_s, 0, 3600),
	REAL(min_run, 0, 1),
	COUNT(min_samples, 1, 1000000),
	REAL(home_share, 0, 1),
	REAL(warmup_s, 0, 3600),
	COUNT(cooldown, 0, 10000),
	COUNT(moves_per_interval, 1, 4096),

	COUNT(n, 1, 1024),
	REAL(q1, 0, 1000),
	REAL(q1_sibling, 0, 1000),
	REAL(q2, 0, 1000),
	REAL(free_max, 0, 1),
	REAL(gate_sigmas, 0, 10),

	REAL(delta_r, 0, 1),
	REAL(remote_below, 0, 1),
	REAL(q3_better, 0, 1000),
	REAL(q3_equal, 0, 1000),
	REAL(q3_worse, 0, 1000),
	REAL(q4, 0, 1000),
	REAL(record_band, 0, 1),
	COUNT(record_age, 0, 1000000),
	REAL(t_min_s, 0.1, 60),
	REAL(t_max_s, 0.1, 60),

	REAL(delta_g, 0, 1),
	REAL(noise_gate, 0, 100),

	REAL(mapping_s, 0.1, 60),
	REAL(mapping_gain, 0, 1),
	COUNT(sharing_window_s, 1, 120),
	COUNT(max_tracked, 1000, 100000000),
	REAL(page_factor, 1, 100),
	COUNT(page_min_accesses, 0, 255),
	REAL(page_cooldown_s, 0, 3600),
	REAL(page_decay_s, 0, 3600),
	COUNT(rollback_pages, 0, 100000000),

	REAL(balance_begin, -1000, 1000),
	REAL(balance_end, -1000, 1000),
	COUNT(balance_persist, 1, 1000),
	REAL(balance_overload, 0, 1000),
	REAL(balance_min_gain, -1000000000000, 1000000000000),
	REAL(balance_idle_max, 0, 1),

	REAL(call_limit_ms, 0.1, 1000),
	REAL(maps_budget_ms, 0.1, 1000),
};
/* clang-format on */

const size_t nm_parameter_count = NM_ARRAY_SIZE(nm_parameters);
