/* SPDX-License-Identifier: MIT */
/* The report of numa-migrctl doctor: what it contains, and that it contains no name. */
#include "../support/test.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/ctl/field_report.h"
#include "policy/trial.h"
#include "report/fields.h"

#define SECRET "secretd"

/* Fields whose text the service chooses from a list. */
static bool is_chosen(const char *field)
{
	static const char *const chosen[] = {"state",  "reason", "kind",  "result", "verdict",
					     "policy", "figure", "steer", "version"};
	for (size_t i = 0; i < NM_ARRAY_SIZE(chosen); i++)
		if (strcmp(chosen[i], field) == 0)
			return true;
	return false;
}

/* A row of the table in which every text that may be a name is one. */
static json_t *row_of(const struct nm_table *table)
{
	json_t *row = json_object();
	for (size_t i = 0; i < table->count; i++) {
		const struct nm_field *field = &table->fields[i];
		json_t *value = field->type != NM_FIELD_TEXT ? json_integer(7)
				: is_chosen(field->name)     ? json_string("improved")
							     : json_string(SECRET);
		json_object_set_new(row, field->name, value);
	}
	return row;
}

static json_t *document_of_secrets(void)
{
	json_t *decision = row_of(&nm_decision_table), *trial = row_of(&nm_trial_table);
	json_object_set_new(decision, "fields",
			    json_string("COMM=" SECRET "\nTICKETS=8\nCGROUP=/" SECRET
					".slice\nHOST_" SECRET
					"=1\nGAIN=-3 %\nADDRESS=0xffff8000"));
	json_object_set_new(decision, nm_candidate_table.name,
			    json_pack("[o]", row_of(&nm_candidate_table)));
	json_object_set_new(trial, nm_program_table.name,
			    json_pack("[o]", row_of(&nm_program_table)));
	return json_pack("{s{ss ss ss ss} s[o] s[o] s[o] s[o] so}", "status", "summary", SECRET,
			 "source", "ibs", "compared_today", SECRET, "later", SECRET, "nodes",
			 row_of(&nm_node_table), "processes", row_of(&nm_process_table), "threads",
			 row_of(&nm_thread_table), "decisions", decision, "trial", trial);
}

static struct nm_findings findings_of_secrets(void)
{
	struct nm_findings findings = {0};
	nm_findings_add(&findings, "service", NM_SEVERITY_WARNING, "%s runs", SECRET);
	nm_findings_evidence(&findings, "/home/%s", SECRET);
	nm_findings_remedy(&findings, "stop %s", SECRET);
	return findings;
}

static char *text_of(json_t *document, bool names)
{
	nm_auto(nm_findings_clear) struct nm_findings findings = findings_of_secrets();
	const struct nm_report_source source = {
		.kernel = "6.1.0-" SECRET, .findings = &findings, .document = document};
	nm_auto(json_decrefp) json_t *report = nm_report_compose(&source, names);
	return json_dumps(report, 0);
}

TEST(no_name_of_the_machine_is_in_the_report)
{
	nm_auto(json_decrefp) json_t *document = document_of_secrets();
	nm_autofree char *text = text_of(document, false);
	assert_null(strstr(text, SECRET));
	assert_null(strstr(text, "0xffff"));
}

TEST(with_names_the_report_has_them)
{
	nm_auto(json_decrefp) json_t *document = document_of_secrets();
	nm_autofree char *text = text_of(document, true);
	assert_non_null(strstr(text, "6.1.0-" SECRET));
	assert_non_null(strstr(text, "\"comm\": \"" SECRET "\""));
	assert_non_null(strstr(text, SECRET " runs"));
}

TEST(the_values_of_a_decision_are_in_the_report)
{
	nm_auto(json_decrefp) json_t *document = document_of_secrets();
	nm_autofree char *text = text_of(document, false);
	assert_non_null(strstr(text, "\"kernel\": \"6.1.0\""));
	assert_non_null(strstr(text, "\"TICKETS\": \"8\""));
	assert_non_null(strstr(text, "\"GAIN\": \"-3 %\""));
	assert_non_null(strstr(text, "\"verdict\": \"improved\""));
	assert_non_null(strstr(text, "\"source\": \"ibs\""));
	assert_non_null(strstr(text, "\"check\": \"service\", \"severity\": \"warning\""));
}

static const char *text_at(const json_t *rows, size_t row, const char *field)
{
	return json_string_value(json_object_get(json_array_get(rows, row), field));
}

TEST(the_same_name_has_the_same_number)
{
	nm_auto(json_decrefp) json_t *document =
		json_pack("{s[{sssiss}{sssi}{sssiss}] s[{ss}]}", "processes", "comm", "lu", "uid",
			  1000, "unit", "a.service", "comm", "cg", "uid", 0, "comm", "lu", "uid",
			  1000, "unit", "a.service", "decisions", "partner_comm", "cg");
	const struct nm_report_source source = {.document = document};
	nm_auto(json_decrefp) json_t *report = nm_report_compose(&source, false);
	const json_t *service = json_object_get(report, "service");
	const json_t *rows = json_object_get(service, "processes");
	assert_string_equal(text_at(rows, 0, "comm"), "program 1");
	assert_string_equal(text_at(rows, 1, "comm"), "program 2");
	assert_string_equal(text_at(rows, 2, "comm"), "program 1");
	assert_string_equal(text_at(rows, 2, "uid"), "user 1");
	assert_string_equal(text_at(rows, 1, "uid"), "user 2");
	assert_string_equal(text_at(rows, 2, "unit"), "unit 1");
	rows = json_object_get(service, "decisions");
	assert_string_equal(text_at(rows, 0, "partner_comm"), "program 2");
}

TEST(a_word_that_is_a_sentence_is_left_out)
{
	nm_auto(json_decrefp) json_t *document =
		json_pack("{s{ss} s{ss}}", "trial", "result", "slower: secretd", "status", "source",
			  "secretd/period=97/");
	nm_autofree char *text = text_of(document, false);
	assert_null(strstr(text, SECRET));
}

/* Every sentence that the service writes about the control group is kept. */
TEST(the_result_of_a_comparison_is_in_the_report)
{
	const struct nm_trial_difference differences[] = {
		{.mean = 0.1, .half = (double)NAN, .units = {12, 3}},
		{.mean = 0.1, .half = 0.2, .units = {120, 30}},
		{.mean = 0.3, .half = 0.2, .units = {120, 30}},
		{.mean = -0.3, .half = 0.2, .units = {120, 30}},
	};
	for (size_t i = 0; i < NM_ARRAY_SIZE(differences); i++) {
		char sentence[NM_TRIAL_TEXT_BYTES];
		nm_trial_describe(&differences[i], sentence, sizeof(sentence));
		nm_auto(json_decrefp) json_t *document =
			json_pack("{s{ss} s{ss}}", "trial", "result", sentence, "status",
				  "compared_today", sentence);
		const struct nm_report_source source = {.document = document};
		nm_auto(json_decrefp) json_t *report = nm_report_compose(&source, false);
		assert_true(json_equal(json_object_get(report, "service"), document));
	}
}

/* ---- the file ---- */

TEST(the_file_is_new_and_private)
{
	char folder[] = "/tmp/numa-migrctl-XXXXXX", path[64], other[64];
	struct stat file;
	nm_auto(json_decrefp) json_t *report = json_pack("{si}", "report", 1);
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/report", folder);
	(void)snprintf(other, sizeof(other), "%s/other", folder);

	assert_int_equal(nm_report_write(path, report), 0);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0600);
	nm_auto(json_decrefp) json_t *read = json_load_file(path, 0, NULL);
	assert_true(json_equal(read, report));

	assert_int_equal(nm_report_write(path, report), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(nm_report_write(path, report), -EEXIST);
	assert_int_equal(access(other, F_OK), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(nm_report_write("/nonexistent/report", report), -ENOENT);
	assert_int_equal(rmdir(folder), 0);
}

/* As on a full disk. */
TEST(a_file_that_cannot_be_written_does_not_remain)
{
	char folder[] = "/tmp/numa-migrctl-XXXXXX", path[64];
	const struct rlimit nothing = {0, RLIM_INFINITY};
	struct rlimit usual;
	nm_auto(json_decrefp) json_t *report = json_pack("{si}", "report", 1);
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/report", folder);
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &nothing), 0);
	int r = nm_report_write(path, report);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
	assert_int_equal(r, -EFBIG);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rmdir(folder), 0);
}

RUN_TESTS()
