/* SPDX-License-Identifier: MIT */
/* Workloads and published results of the papers, and the rows to compare with. */
#include "papers.h"

#define PAPER(threads) "threads: { " threads " };"
#define PARAMETER(threads) " parameters: { threads: { " threads " }; };"
#define PAPER_TARGETS "targets: { min_cpu_percent = 0; min_rss_mb = 1; };"
#define EXCLUSIVE " pages: { policy = \"exclusivity\"; };"
#define IMAR2(performance)                                                                         \
	PAPER("policy = \"imar2-paper\";") PARAMETER("performance = \"" performance "\";")
#define BALANCE(selection)                                                                         \
	PAPER("policy = \"balance-paper\";") PARAMETER("selection = \"" selection "\";")
#define OUR(policy) "threads: { policy = \"" policy "\"; };"

/* clang-format off */
#define SYSTEM {.policy = {.name = "system"}}
#define DAEMON(label, text) {.policy = {.name = (label), .config = (text)}}
#define DTAS(label, selection) {.policy = {.name = "DTAS, " label, .config = BALANCE(selection), .dtas = true}}
#define BY_HAND(label, where) {.policy = {.name = (label), .placed = true, .placement = (where)}}
#define A_NODE_EACH BY_HAND("by hand, a node each", NM_SIM_PLACE_DIRECT)
#define IN_ORDER BY_HAND("by hand, in order", NM_SIM_PLACE_ORACLE)
#define INTERLEAVED BY_HAND("by hand, interleaved", NM_SIM_PLACE_INTERLEAVE)
#define KERNEL {.policy = {.name = "kernel", .numa_balancing = true}}
#define KERNEL_AND(label, text) {.policy = {.name = "kernel + " label, .numa_balancing = true, .config = (text)}}
#define BEST OUR("imar2") EXCLUSIVE

/* In the order of tables 3 and 5. */
static const struct papers_row imar2_rows[] = {
	SYSTEM,
	A_NODE_EACH,
	INTERLEAVED,
	DAEMON("LBMA", PAPER("policy = \"lbma-paper\";")),
	DAEMON("IMAR2", IMAR2("product")),
	DAEMON("IMAR2 L", IMAR2("latency")),
	DAEMON("IMAR2 OF", IMAR2("operations")),
	DAEMON("IMAR2 I", IMAR2("intensity")),
	DAEMON("IMAR2 OR,L,I", IMAR2("product_instructions")),
	DAEMON("IMAR2 OR", IMAR2("instructions")),
	KERNEL,
	KERNEL_AND("lbma (ours)", OUR("lbma")),
	KERNEL_AND("imar2 (ours)", OUR("imar2")),
	DAEMON("lbma (ours)", OUR("lbma")),
	DAEMON("imar2 (ours)", OUR("imar2")),
	DAEMON("best (ours)", BEST),
	DAEMON("auto", OUR("auto")),
	KERNEL_AND("auto", OUR("auto")),
	IN_ORDER,
};

static const struct papers_row kmaf_rows[] = {
	SYSTEM,
	DAEMON("kMAF", PAPER("policy = \"kmaf-paper\";") EXCLUSIVE),
	IN_ORDER,
	DAEMON("threads only", PAPER("policy = \"kmaf-paper\";")),
	{.policy = {.name = "data only", .config = PAPER("policy = \"none\";") PAPER_TARGETS EXCLUSIVE, .paper_rules = true}},
	DAEMON("kmaf (ours)", OUR("kmaf") EXCLUSIVE),
	DAEMON("best (ours)", BEST),
	INTERLEAVED,
	KERNEL,
	KERNEL_AND("kmaf (ours)", OUR("kmaf") EXCLUSIVE),
};

/* How often threads are mapped, and from how many samples. */
#define MAPPED(label, times, seconds)                                                              \
	{.policy = {.name = (label),                                                               \
		    .config = PAPER("policy = \"kmaf-paper\";")                                      \
			    EXCLUSIVE " parameters: { mapping_s = " seconds "; };",                \
		    .dense = (times)}}
static const struct papers_row rate_rows[] = {
	SYSTEM,
	MAPPED("1x, every 0.1 s", 1, "0.1"),
	MAPPED("1x, every 1 s", 1, "1.0"),
	MAPPED("1x, every 10 s", 1, "10.0"),
	MAPPED("10x, every 0.1 s", 10, "0.1"),
	MAPPED("10x, every 1 s", 10, "1.0"),
	MAPPED("10x, every 10 s", 10, "10.0"),
	MAPPED("50x, every 0.1 s", 50, "0.1"),
	MAPPED("50x, every 1 s", 50, "1.0"),
	MAPPED("50x, every 10 s", 50, "10.0"),
	IN_ORDER,
};

/* Without caches all threads of a program have one intensity. */
static const struct papers_row intensity_rows[] = {
	SYSTEM,
	DAEMON("IMAR2", IMAR2("product")),
	DAEMON("IMAR2 I", IMAR2("intensity")),
};

static const struct papers_row kmlb_rows[] = {
	SYSTEM,
	DAEMON("total min", BALANCE("total_min")),
	DAEMON("remote min", BALANCE("remote_min")),
	DAEMON("local max", BALANCE("local_max")),
	DTAS("total min", "total_min"),
	DTAS("remote min", "remote_min"),
	DTAS("local max", "local_max"),
	DAEMON("balance (ours)", OUR("balance")),
	DAEMON("best (ours)", BEST),
	A_NODE_EACH,
	IN_ORDER,
	INTERLEAVED,
	KERNEL,
	KERNEL_AND("best (ours)", BEST),
};

static const struct papers_row exclusivity_rows[] = {
	SYSTEM,
	DAEMON("first fit", BALANCE("first_fit")),
	DAEMON("most benefit plus", BALANCE("most_benefit_plus")),
	DAEMON("exclusivity", BALANCE("exclusivity")),
	DAEMON("balance (ours)", OUR("balance")),
	DAEMON("best (ours)", BEST),
	A_NODE_EACH,
	IN_ORDER,
	INTERLEAVED,
	KERNEL,
	KERNEL_AND("best (ours)", BEST),
};

#define CHOICE(label, rule) {.policy = {.name = "kernel's choice: " label, .choice = (rule)}}

/* The papers' kernels as they are: the model's load balancer chooses among the waiting threads. */
static const struct papers_row choice_kmlb_rows[] = {
	SYSTEM,
	CHOICE("total min", NM_SIM_CHOOSE_TOTAL_MIN),
	CHOICE("remote min", NM_SIM_CHOOSE_REMOTE_MIN),
	CHOICE("local max", NM_SIM_CHOOSE_LOCAL_MAX),
};
static const struct papers_row choice_exclusivity_rows[] = {
	SYSTEM,
	CHOICE("exclusivity", NM_SIM_CHOOSE_EXCLUSIVITY),
};

/* The shipped policy beside that of the paper. */
#define AUTO_ROWS(label, text)                                                                     \
	{                                                                                          \
		SYSTEM, DAEMON(label, text), DAEMON("auto", OUR("auto")),                          \
		KERNEL_AND("auto", OUR("auto")), KERNEL, IN_ORDER, A_NODE_EACH                     \
	}
static const struct papers_row auto_imar2_rows[] = AUTO_ROWS("IMAR2", IMAR2("product"));
static const struct papers_row auto_kmaf_rows[] =
	AUTO_ROWS("kMAF", PAPER("policy = \"kmaf-paper\";") EXCLUSIVE);
static const struct papers_row auto_kmlb_rows[] = AUTO_ROWS("remote min", BALANCE("remote_min"));
static const struct papers_row auto_exclusivity_rows[] =
	AUTO_ROWS("exclusivity", BALANCE("exclusivity"));

/* ---- workloads ---- */

static const char *const nas[] = {"bt", "cg", "dc", "ep", "is", "lu", "sp", "ua"};

/* LBMA and IMAR2, section 5: four users run the NAS programs in different orders, with `first`
 * threads each and `second` seconds between two programs. */
static int fill_users(const struct papers_table *table, unsigned index,
		      struct nm_sim_workload *ret)
{
	(void)index;
	for (unsigned u = 0; u < 4; u++) {
		struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
		if (!user)
			return -ENOMEM;
		user->idle_s = table->second;
		for (unsigned i = 0; i < NM_ARRAY_SIZE(nas); i++)
			if (!nm_sim_user_add(user, nas[(2 * u + i) % NM_ARRAY_SIZE(nas)],
					     table->first))
				return -ENOMEM;
	}
	return 0;
}

/* kMAF, section 5, figures 8 and 11: a program alone with a thread on each CPU or, in a table of
 * one workload, the programs one after another. */
static int fill_alone(const struct papers_table *table, unsigned index,
		      struct nm_sim_workload *ret)
{
	struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
	for (unsigned i = 0; i < NM_ARRAY_SIZE(nas); i++)
		if (table->workloads == 1 || i == index)
			if (!user || !nm_sim_user_add(user, nas[i], table->first))
				return -ENOMEM;
	return 0;
}

/*
 * kMLB, table 3: the number of programs of SPEC CPU2006 in each case, and their sizes, which are
 * rounded estimates after Henning, "SPEC CPU2006 memory footprint" (2007). The table has 34
 * compute-bound programs in case 3 and the text 35; here one povray is added.
 */
static const struct {
	const char *name;
	double mb;
	bool memory;
	unsigned count[3];
} spec[] = {
	{"bwaves", 880, true, {1, 1, 1}},     {"gcc", 940, true, {1, 1, 1}},
	{"GemsFDTD", 840, true, {2, 1, 1}},   {"lbm", 410, true, {2, 2, 1}},
	{"leslie3d", 125, true, {2, 1, 1}},   {"libquantum", 100, true, {6, 5, 3}},
	{"mcf", 1680, true, {1, 1, 1}},	      {"milc", 680, true, {5, 5, 3}},
	{"omnetpp", 170, true, {5, 4, 4}},    {"soplex", 440, true, {6, 5, 3}},
	{"sphinx3", 45, true, {2, 1, 1}},     {"xalancbmk", 420, true, {2, 1, 1}},
	{"astar", 330, false, {0, 1, 1}},     {"bzip2", 850, false, {1, 1, 1}},
	{"cactusADM", 650, false, {1, 1, 1}}, {"calculix", 160, false, {1, 1, 1}},
	{"dealII", 800, false, {1, 1, 1}},    {"gobmk", 30, false, {4, 4, 6}},
	{"gromacs", 15, false, {1, 1, 1}},    {"h264ref", 65, false, {1, 1, 1}},
	{"hmmer", 30, false, {3, 4, 6}},      {"namd", 46, false, {2, 2, 2}},
	{"povray", 5, false, {3, 4, 6}},      {"sjeng", 175, false, {1, 1, 1}},
	{"tonto", 40, false, {2, 4, 5}},      {"wrf", 700, false, {0, 1, 1}},
	{"zeusmp", 510, false, {0, 1, 1}},
};

/* Their behaviour is taken in turn from the programs of the model, for about 200 s alone. */
static int add_spec(size_t row, unsigned turn, struct nm_sim_workload *ret)
{
	static const char *const bound[] = {"stream", "sp", "cg", "lu"};
	static const char *const busy[] = {"compute", "ep", "bt"};
	bool memory = spec[row].memory;
	const char *like =
		memory ? bound[turn % NM_ARRAY_SIZE(bound)] : busy[turn % NM_ARRAY_SIZE(busy)];
	struct nm_sim_user *user = nm_sim_workload_add(ret, spec[row].name);
	struct nm_sim_program *program = user ? nm_sim_user_add(user, like, 1) : NULL;
	if (!program)
		return -ENOMEM;
	program->footprint_mb = spec[row].mb;
	program->phases[0].giga = memory ? 150 : 400;
	program->phases[0].period_giga = 0;
	return 0;
}

/* kMLB: 56 programs of one thread on 16 CPUs; `first` is the case, from 1. */
static int fill_mix(const struct papers_table *table, unsigned index, struct nm_sim_workload *ret)
{
	unsigned turns[2] = {0};
	(void)index;
	for (size_t i = 0; i < NM_ARRAY_SIZE(spec); i++)
		for (unsigned k = 0; k < spec[i].count[table->first - 1]; k++) {
			int r = add_spec(i, turns[spec[i].memory]++, ret);
			if (r < 0)
				return r;
		}
	return 0;
}

/* Exclusivity, section 4, figure 14: 29 programs of 16 threads on 32 CPUs. */
static int fill_many(const struct papers_table *table, unsigned index, struct nm_sim_workload *ret)
{
	(void)table, (void)index;
	static const char *const names[] = {"table", "stencil", "compute", "stream",
					    "cg",    "table",	"ua"};
	for (unsigned i = 0; i < 29; i++) {
		struct nm_sim_user *user = nm_sim_workload_add(ret, "user");
		struct nm_sim_program *program =
			user ? nm_sim_user_add(user, names[i % NM_ARRAY_SIZE(names)], 16) : NULL;
		if (!program)
			return -ENOMEM;
		program->footprint_mb = 300;
		program->phases[0].giga /= 10;
		/* Table 2 of the paper: the leader first touches the memory of 22 of its 30
		 * programs. */
		program->touch =
			(i + 1) * 22 / 30 > i * 22 / 30 ? NM_SIM_TOUCH_MASTER : NM_SIM_TOUCH_OWN;
	}
	return 0;
}

/* ---- tables ---- */

#define ROWS(array) .rows = (array), .nr_rows = NM_ARRAY_SIZE(array)
#define USERS(table, label, model, threads, idle_s)                                                \
	.name = (table), .title = label ", idle " #idle_s " s", .machine = (model),                \
	.fill = fill_users, .first = (threads), .second = (idle_s), .workloads = 1
#define CT1(table, idle_s) USERS(table, "ct1", "ring-4x10", 10, idle_s)
#define CT2(table, idle_s) USERS(table, "ct2", "mesh-4x20", 20, idle_s)
#define ALONE_ON(model, table, count)                                                                        \
	.name = (table), .title = "kMAF, programs alone", .machine = (model),                  \
	.fill = fill_alone, .first = 64, .workloads = (count)
#define ALONE(table, count) ALONE_ON("x7550-4x8", table, count)
#define MIX_ON(model, table, number)                                                                         \
	.name = (table), .title = "kMLB, case " #number, .machine = (model),                   \
	.fill = fill_mix, .first = (number), .workloads = 1
#define MIX(table, number) MIX_ON("e5620-2x4", table, number)
#define MANY_ON(model, table)                                                                                \
	.name = (table), .title = "exclusivity, 29 programs", .machine = (model),              \
	.fill = fill_many, .workloads = 1
#define MANY(table) MANY_ON("o6320-4x8", table)
#define IMAR2_PUBLISHED(...)                                                                       \
	.slowest = true, ROWS(imar2_rows), .published = {__VA_ARGS__}
#define AUTO_PUBLISHED(...) ROWS(auto_imar2_rows), .published = {__VA_ARGS__}

/* Tables 3 and 5 of LBMA and IMAR2 in seconds. The baseline of table 5 at 48 s contradicts its text
 * and figure 5, which give 288 s. */
const struct papers_table papers_tables[] = {
	{CT1("imar2-ct1", 0), IMAR2_PUBLISHED(2158, 2311, 2233, 1719, 1658, 1867, 1688, 1734, 1744, 1642)},
	{CT1("imar2-ct1", 50), IMAR2_PUBLISHED(1997, 2225, 1971, 1384, 1490, 1521, 1529, 1532, 1483, 1476)},
	{CT1("imar2-ct1", 100), IMAR2_PUBLISHED(1877, 1936, 1861, 1384, 1309, 1379, 1376, 1468, 1359, 1386)},
	{CT1("imar2-ct1", 200), IMAR2_PUBLISHED(1700, 1674, 1647, 1053, 1177, 1253, 1284, 1310, 1225, 1273)},
	{CT2("imar2-ct2", 0), IMAR2_PUBLISHED(374, 303, 583, 329, 330, 328, 324, 340, 326, 324)},
	{CT2("imar2-ct2", 12), IMAR2_PUBLISHED(341, 303, 446, 310, 314, 305, 302, 315, 306, 301)},
	{CT2("imar2-ct2", 24), IMAR2_PUBLISHED(317, 304, 398, 304, 311, 299, 295, 309, 306, 298)},
	{CT2("imar2-ct2", 48), IMAR2_PUBLISHED(288, 302, 398, 280, 293, 279, 286, 290, 282, 282)},
	{ALONE("kmaf", NM_ARRAY_SIZE(nas)), ROWS(kmaf_rows), .published = {0, -13.8, -15.3, -6.4, -2.0}},
	{MIX("kmlb", 1), ROWS(kmlb_rows), .published = {0, -4.02, -3.98, -4.35, -19.65, -16.79, -15.04}},
	{MIX("kmlb", 2), ROWS(kmlb_rows), .published = {0, -4.61, -4.01, -3.98, -13.57, -11.55, -14.75}},
	{MIX("kmlb", 3), ROWS(kmlb_rows), .published = {0, -1.58, -1.98, -2.61, -7.34, -7.64, -9.57}},
	{MANY("exclusivity"), ROWS(exclusivity_rows), .published = {0, 0, -11.1, -10.7}},
	{ALONE_ON("x7550-4x8-llc", "kmaf-llc", NM_ARRAY_SIZE(nas)), ROWS(kmaf_rows), .published = {0, -13.8, -15.3, -6.4, -2.0}},
	{MIX_ON("e5620-2x4-llc", "kmlb-llc", 1), ROWS(kmlb_rows), .published = {0, -4.02, -3.98, -4.35, -19.65, -16.79, -15.04}},
	{MANY_ON("o6320-4x8-llc", "exclusivity-llc"), ROWS(exclusivity_rows), .published = {0, 0, -11.1, -10.7}},
	{ALONE_ON("x7550-4x8-llc", "kmaf-rate", NM_ARRAY_SIZE(nas)), ROWS(rate_rows), .published = {0, -13.8}},
	{USERS("intensity", "without caches", "x7550-4x8", 8, 0), .slowest = true, ROWS(intensity_rows), .published = {2158, 1658, 1744}},
	{USERS("intensity", "with caches", "x7550-4x8-llc", 8, 0), .slowest = true, ROWS(intensity_rows), .published = {2158, 1658, 1744}},
	{MIX("choice", 1), ROWS(choice_kmlb_rows), .published = {0, -4.02, -3.98, -4.35}},
	{MANY("choice"), ROWS(choice_exclusivity_rows), .published = {0, -10.7}},
	{MIX_ON("e5620-2x4-llc", "choice-llc", 1), ROWS(choice_kmlb_rows), .published = {0, -4.02, -3.98, -4.35}},
	{MANY_ON("o6320-4x8-llc", "choice-llc"), ROWS(choice_exclusivity_rows), .published = {0, -10.7}},
	{CT1("auto", 0), AUTO_PUBLISHED(2158, 1658)},
	{CT1("auto", 50), AUTO_PUBLISHED(1997, 1490)},
	{CT1("auto", 100), AUTO_PUBLISHED(1877, 1309)},
	{CT1("auto", 200), AUTO_PUBLISHED(1700, 1177)},
	{CT2("auto", 0), AUTO_PUBLISHED(374, 330)},
	{CT2("auto", 48), AUTO_PUBLISHED(288, 293)},
	{ALONE("auto", 1), ROWS(auto_kmaf_rows), .published = {0, -13.8}},
	{MIX("auto", 1), ROWS(auto_kmlb_rows), .published = {0, -3.98}},
	{MANY("auto"), ROWS(auto_exclusivity_rows), .published = {0, -10.7}},
};
/* clang-format on */
const size_t papers_table_count = NM_ARRAY_SIZE(papers_tables);
