/* SPDX-License-Identifier: MIT */
/* Reads the files of a configuration: the file, its drop-ins, and the parameters. */
#include <fcntl.h>
#include <string.h>

#include "numa-migrd/base.h"
#include "numa-migrd/file.h"
#include "parse.h"

#define MAX_BYTES ((size_t)1 << 20)
#define MAX_DROP_INS 64

/* The texts of the files, one after the other. */
struct load {
	struct nm_report report;
	uid_t owner;
	char *bytes;
	size_t used;
	struct nm_config_text texts[1 + MAX_DROP_INS + 1];
	size_t count;
	struct dirent **names; /* of drop-ins */
	int nr_names;
};

static void load_clear(struct load *load)
{
	for (size_t i = 0; i < load->count; i++)
		free((char *)load->texts[i].name);
	for (int i = 0; i < load->nr_names; i++)
		free(load->names[i]);
	free(load->names);
	free(load->bytes);
}

static int report_unread(struct load *load, const char *path, int error)
{
	load->report.file = path;
	switch (error) {
	case -ELOOP:
		nm_report_error(&load->report, 0,
				"is a symbolic link, which is not accepted: replace it with the "
				"file");
		break;
	case -EMEDIUMTYPE:
		nm_report_error(&load->report, 0, "is not a regular file");
		break;
	case -EPERM:
		nm_report_error(&load->report, 0,
				"must belong to root or to the user of numa-migrd, and be writable "
				"by its owner only (chown root FILE; chmod go-w FILE)");
		break;
	default:
		nm_report_error(&load->report, 0, "cannot be read: %s%s", strerrordesc_np(-error),
				error == -EFBIG ? " (at most 1 MiB in all)" : "");
	}
	return error;
}

/* Reads a file below the directory; `path` is its name in messages. A missing one is -ENOENT,
 * without an error. */
static int read_file(struct load *load, int directory, const char *name, const char *path)
{
	nm_auto(nm_closep) int fd = nm_open_trusted(directory, name, 0, load->owner);
	if (fd == -ENOENT)
		return fd;
	int length =
		fd < 0 ? fd : nm_read_all(fd, load->bytes + load->used, MAX_BYTES + 1 - load->used);
	if (length < 0)
		return report_unread(load, path, length);
	char *copy = nm_must(strdup(path));
	load->texts[load->count++] = (struct nm_config_text){
		.name = copy, .text = load->bytes + load->used, .length = (size_t)length};
	load->used += (size_t)length + 1;
	return 0;
}

static int is_drop_in(const struct dirent *entry)
{
	const char *suffix = strrchr(entry->d_name, '.');
	return suffix && suffix != entry->d_name && entry->d_name[0] != '.' &&
	       strcmp(suffix, ".conf") == 0;
}

static int by_name(const struct dirent **one, const struct dirent **other)
{
	return strcmp((*one)->d_name, (*other)->d_name);
}

static int read_folder(struct load *load, const char *folder)
{
	nm_auto(nm_closep) int directory =
		nm_open_trusted(AT_FDCWD, folder, O_DIRECTORY, load->owner);
	if (directory == -ENOENT)
		return 0;
	if (directory < 0)
		return report_unread(load, folder, directory);
	load->nr_names = scandirat(directory, ".", &load->names, is_drop_in, by_name);
	if (load->nr_names < 0)
		return report_unread(load, folder, -errno);
	if (load->nr_names > MAX_DROP_INS) {
		load->report.file = folder;
		nm_report_error(&load->report, 0, "contains %d files, allowed: at most %d",
				load->nr_names, MAX_DROP_INS);
		return nm_report_result(&load->report);
	}
	for (int i = 0; i < load->nr_names; i++) {
		nm_autofree char *path = NULL;
		nm_must_do(asprintf(&path, "%s/%s", folder, load->names[i]->d_name));
		int r = read_file(load, directory, load->names[i]->d_name, path);
		if (r < 0) /* removed in the meantime, too */
			return r == -ENOENT ? report_unread(load, path, r) : r;
	}
	return 0;
}

int nm_config_load(const struct nm_config_files *files, uid_t owner,
		   struct nm_config_errors *errors, struct nm_config **ret)
{
	static const struct nm_config_text none = {0};
	nm_auto(load_clear) struct load load = {.report = {.errors = errors},
						.owner = owner,
						.bytes = nm_must(malloc(MAX_BYTES + 1))};
	int r = read_file(&load, AT_FDCWD, files->path, files->path);
	if (r == -ENOENT && !files->may_be_missing)
		return report_unread(&load, files->path, r);
	if (r == 0 || r == -ENOENT)
		r = files->folder ? read_folder(&load, files->folder) : 0;
	size_t count = load.count;
	if (r == 0 && files->parameters) {
		r = read_file(&load, AT_FDCWD, files->parameters, files->parameters);
		if (r == -ENOENT)
			r = report_unread(&load, files->parameters, r);
	}
	if (r < 0)
		return r;
	return nm_config_parse_all(load.texts, count,
				   load.count > count ? &load.texts[count] : &none, errors, ret);
}
