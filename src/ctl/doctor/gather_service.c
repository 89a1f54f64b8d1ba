/* SPDX-License-Identifier: MIT */
/* Collects facts about the service: its unit, its configuration, and the
 * state left by an earlier run. */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "gather.h"
#include "numa-migrd/base.h"
#include "platform/helper.h"
#include "affinity/move.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"

/*
 * Returns the path of the unit's object, loading the unit if necessary. The caller frees the path.
 */
static int find_unit(sd_bus *bus, char **ret_path)
{
	nm_auto(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const char *path;
	int r = sd_bus_call_method(bus, SYSTEMD, SYSTEMD_PATH, SYSTEMD ".Manager", "LoadUnit", NULL,
				   &reply, "s", NM_FACTS_UNIT);

	if (r >= 0)
		r = sd_bus_message_read(reply, "o", &path);
	if (r < 0)
		return r;
	*ret_path = nm_must(strdup(path));
	return 0;
}

static int read_word(sd_bus *bus, const char *path, const char *property, char *ret, size_t size)
{
	nm_autofree char *word = NULL;
	int r = sd_bus_get_property_string(bus, SYSTEMD, path, SYSTEMD ".Unit", property, NULL,
					   &word);

	if (r < 0)
		return r;
	(void)nm_escape(ret, size, word, strlen(word));
	return 0;
}

static int read_unit(sd_bus *bus, struct nm_facts_unit *unit)
{
	nm_autofree char *path = NULL;
	int r = find_unit(bus, &path);

	if (r == 0)
		r = read_word(bus, path, "LoadState", unit->load, sizeof(unit->load));
	if (r < 0 || strcmp(unit->load, "not-found") == 0)
		return r;
	r = read_word(bus, path, "ActiveState", unit->active, sizeof(unit->active));
	if (r < 0)
		return r;
	unit->exists = true;
	return 0;
}

void nm_gather_unit(const struct nm_doctor_options *options, struct nm_facts *facts)
{
	if (options->bus)
		facts->unit.error = read_unit(options->bus, &facts->unit);
	else
		facts->unit.error = options->bus_error ? options->bus_error : -ENOTCONN;
}

static bool is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return strncmp(path, folder, length) == 0 && path[length] == '/';
}

/* Returns whether the user of the service may create files there, by the owner and mode. */
static bool may_create(const struct stat *folder)
{
	const struct passwd *user = getpwnam(NM_FACTS_USER);

	if (user && folder->st_uid == user->pw_uid)
		return (folder->st_mode & S_IWUSR) && (folder->st_mode & S_IXUSR);
	if (user && folder->st_gid == user->pw_gid)
		return (folder->st_mode & S_IWGRP) && (folder->st_mode & S_IXGRP);
	return (folder->st_mode & S_IWOTH) && (folder->st_mode & S_IXOTH);
}

/* Its unit leaves only the folders of the service writable. They exist once it has run. */
static int check_metrics(const char *root, const char *file)
{
	nm_autofree char *path = NULL;
	struct stat folder;

	if (!file[0])
		return 0;
	bool own = is_below(file, "/var/cache/numa-migrd") || is_below(file, "/run/numa-migrd");
	nm_must_do(asprintf(&path, "%s%s", root, file));
	char *slash = strrchr(path, '/');
	slash[slash == path] = '\0';
	if (stat(path, &folder) < 0)
		return own && errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(folder.st_mode))
		return -ENOTDIR;
	if (!own)
		return -EROFS;
	return may_create(&folder) ? 0 : -EACCES;
}

/* Returns whether the folder has a drop-in. */
static int is_drop_in(void *context, const char *name)
{
	size_t length = strlen(name);

	(void)context;
	return length > strlen(".conf") && strcmp(name + length - strlen(".conf"), ".conf") == 0
		       ? -EEXIST
		       : 0;
}

static bool is_config_missing(struct nm_platform *platform, const struct nm_facts *facts)
{
	return access(facts->config_path, F_OK) < 0 && errno == ENOENT &&
	       platform->ops->list_directory(platform, NM_ROOT, &NM_CONFIG_FOLDER[1], is_drop_in,
					     NULL) != -EEXIST;
}

void nm_gather_service(struct nm_platform *platform, const struct nm_doctor_options *options,
		       struct nm_facts *facts)
{
	/* The path that an administrator would type; other roots are only used in tests. */
	const char *root = strcmp(options->root_path, "/") == 0 ? "" : options->root_path;
	const char *path = options->config_path ? options->config_path : NM_CONFIG_FILE;
	char folder[256];

	facts->helper_socket =
		nm_gather_name(platform, "run", strrchr(NM_HELPER_SOCKET_PATH, '/') + 1);
	facts->left_record = nm_gather_name(platform, "run/numa-migrd", NM_MOVES_NAME);
	if (facts->left_record.value != 1)
		facts->left_record = nm_gather_name(platform, "run/numa-migrd", NM_LEDGER_NAME);
	(void)snprintf(facts->config_path, sizeof(facts->config_path), "%s%s", root, path);
	(void)snprintf(folder, sizeof(folder), "%s%s", root, NM_CONFIG_FOLDER);
	const struct nm_config_files files = {.path = facts->config_path,
					      .folder = options->config_path ? NULL : folder,
					      .may_be_missing = !options->config_path};
	facts->config_error =
		nm_config_load(&files, geteuid(), &facts->config_errors, &facts->config);
	if (facts->config_error == -EACCES)
		(void)nm_config_default(&facts->config);
	facts->config_missing = !options->config_path && is_config_missing(platform, facts);
	if (facts->config)
		facts->metrics_error = check_metrics(root, facts->config->metrics.file);
}
