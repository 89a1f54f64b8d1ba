/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl.h"

/* Where there is no such program, cat(1). */
static const char pager_command[] = "eval \"${PAGER-less}\" || [ $? != 127 ] || exec cat";

/* Run with somebody else's rights, as by sudo(8): he may have been given no more than this command.
 */
static bool is_elevated(void)
{
	static const char *const callers[] = {"SUDO_UID", "PKEXEC_UID", "DOAS_USER"};
	char own[16];
	if (getauxval(AT_SECURE))
		return true;
	(void)snprintf(own, sizeof(own), "%u", (unsigned)geteuid());
	for (size_t i = 0; i < NM_ARRAY_SIZE(callers); i++) {
		const char *caller = getenv(callers[i]);
		if (caller && strcmp(caller, own) != 0)
			return true;
	}
	return false;
}

static bool wants_pager(const struct nm_ctl *ctl)
{
	const char *command = getenv("PAGER");
	if (command && (command[0] == '\0' || strcmp(command, "cat") == 0))
		return false;
	return ctl->pager && !ctl->follow && isatty(STDOUT_FILENO);
}

/* Nothing of the caller's environment but how his terminal is to be written to. */
static void become_secure_pager(void)
{
	const char *term = getenv("TERM"), *locale = setlocale(LC_CTYPE, NULL);
	char *environment[5], terminal[64], characters[64];
	(void)snprintf(terminal, sizeof(terminal), "TERM=%s", term ? term : "dumb");
	(void)snprintf(characters, sizeof(characters), "LC_CTYPE=%s", locale ? locale : "C");
	environment[0] = terminal;
	environment[1] = characters;
	environment[2] = (char[]){"LESS=FRSX"};
	environment[3] = (char[]){"LESSSECURE=1"};
	environment[4] = NULL;
	(void)execle("/usr/bin/less", "less", (char *)NULL, environment);
	(void)execle("/bin/less", "less", (char *)NULL, environment);
	(void)execle("/bin/cat", "cat", (char *)NULL, environment);
}

/*
 * less(1) ends by itself where all fits on the screen, and keeps colours; it must not become a way
 * to run commands for somebody who may only run numa-migrctl with sudo.
 */
static void become_pager(int in)
{
	if (dup2(in, STDIN_FILENO) < 0)
		_exit(127);
	if (is_elevated()) {
		become_secure_pager();
		_exit(127);
	}
	(void)setenv("LESS", "FRSX", 0);
	(void)setenv("LESSSECURE", "1", 1);
	(void)execl("/bin/sh", "sh", "-c", pager_command, (char *)NULL);
	_exit(127);
}

/* The reader ends the pager, not us by dying before it: neither interrupts nor a closed pipe end
 * us. */
static void outlive_signals(void)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	(void)sigaction(SIGINT, &ignore, NULL);
	(void)sigaction(SIGPIPE, &ignore, NULL);
}

static int start(struct nm_pager *pager)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	(void)fflush(stdout);
	pager->child = fork();
	if (pager->child == 0) {
		close(ends[1]);
		become_pager(ends[0]);
	}
	close(ends[0]);
	FILE *out = pager->child < 0 ? NULL : fdopen(ends[1], "w");
	if (!out) {
		close(ends[1]);
		return -ENOMEM;
	}
	pager->out = out;
	outlive_signals();
	return 0;
}

void nm_pager_open(const struct nm_ctl *ctl, struct nm_pager *ret)
{
	*ret = (struct nm_pager){.out = stdout, .child = -1};
	if (wants_pager(ctl))
		(void)start(ret); /* without one it is shown all the same */
}

int nm_ctl_close_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_SUCCESS;
	perror("numa-migrctl: standard output");
	return EXIT_FAILURE;
}

/* Whoever leaves the pager early has seen enough: that is no failure. */
int nm_pager_close(struct nm_pager *pager)
{
	if (pager->out == stdout)
		return nm_ctl_close_output();
	(void)fclose(pager->out);
	(void)waitpid(pager->child, NULL, 0);
	return EXIT_SUCCESS;
}

static int no_memory(void)
{
	(void)fprintf(stderr, "numa-migrctl: %s\n", strerror(ENOMEM));
	return EXIT_FAILURE;
}

int nm_ctl_print_json(const struct nm_ctl *ctl, const json_t *document)
{
	struct nm_pager pager;
	if (!document)
		return no_memory();
	nm_pager_open(ctl, &pager);
	(void)json_dumpf(document, pager.out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	(void)fputc('\n', pager.out);
	return nm_pager_close(&pager);
}

int nm_ctl_print_document(const struct nm_ctl *ctl, const char *name, json_t *value)
{
	nm_auto(json_decrefp) json_t *document =
		json_pack("{siso}", "version", NM_CTL_JSON_VERSION, name, value);
	return nm_ctl_print_json(ctl, document);
}

int nm_ctl_print_pair(const struct nm_ctl *ctl, const char *name, const json_t *value,
		      const char *second_name, const json_t *second_value)
{
	nm_auto(json_decrefp) json_t *document =
		json_pack("{sisOsO}", "version", NM_CTL_JSON_VERSION, name, value, second_name,
			  second_value);
	return nm_ctl_print_json(ctl, document);
}
