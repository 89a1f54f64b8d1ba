/* SPDX-License-Identifier: MIT */
#include "numa-migrd/dump.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL /* of Linux 6.3 */
#define MFD_NOEXEC_SEAL 8U
#endif

/* Nine digits: no measurement is more exact. */
#define FORMAT (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9))

/* ---- rows ---- */

/* jansson refuses text that is not UTF-8. */
static json_t *text_value(const char *text)
{
	json_t *value = json_string(text);
	if (value)
		return value;
	size_t length = strlen(text), size = 4 * length + 4;
	nm_autofree char *escaped = malloc(size);
	if (!escaped)
		return NULL;
	(void)nm_escape(escaped, size, text, length);
	return json_string(escaped);
}

static json_t *shares_value(const struct nm_shares *shares)
{
	json_t *list = json_array();
	for (size_t i = 0; list && i < shares->count; i++)
		(void)json_array_append_new(list, json_real(shares->items[i]));
	return list;
}

/* Returns false if the value is unavailable; otherwise *ret may be NULL if memory is short. */
static bool value_of(const struct nm_field *field, const void *row, json_t **ret)
{
	const void *value = (const char *)row + field->offset;
	switch (field->type) {
	case NM_FIELD_TEXT: {
		const char *text = *(const char *const *)value;
		*ret = text ? text_value(text) : NULL;
		return text;
	}
	case NM_FIELD_FLAG:
		*ret = json_boolean(*(const bool *)value);
		return true;
	case NM_FIELD_NUMBER:
		*ret = json_integer(*(const int64_t *)value);
		return *(const int64_t *)value >= 0;
	case NM_FIELD_REAL:
		*ret = json_real(*(const double *)value);
		return isfinite(*(const double *)value);
	case NM_FIELD_SHARES:
		*ret = shares_value(value);
		return ((const struct nm_shares *)value)->items;
	}
	return false;
}

json_t *nm_row_json(const struct nm_table *table, const void *row)
{
	json_t *object = json_object();
	for (size_t i = 0; object && i < table->count; i++) {
		json_t *value = NULL;
		if (!value_of(&table->fields[i], row, &value))
			json_decref(value);
		else if (json_object_set_new_nocheck(object, table->fields[i].name, value) < 0)
			json_decref(NM_TAKE(object));
	}
	return object;
}

/* ---- the document ---- */

int nm_dump_open(struct nm_dump *dump)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	/* The flag is required by vm.memfd_noexec = 2, and unknown to older kernels. */
	int fd = memfd_create("numa-migrd", flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("numa-migrd", flags);
	if (fd < 0)
		return -errno;
	dump->out = fdopen(fd, "w");
	if (!dump->out) {
		int r = -errno;
		close(fd);
		return r;
	}
	(void)fputc('{', dump->out);
	return 0;
}

static void begin_section(struct nm_dump *dump, const char *name)
{
	(void)fprintf(dump->out, "%s\"%s\":", dump->sections++ > 0 ? ",\n" : "", name);
}

static void write_value(struct nm_dump *dump, json_t *value)
{
	if (!value)
		dump->error = -ENOMEM;
	else if (json_dumpf(value, dump->out, FORMAT) < 0)
		dump->error = -EIO;
	json_decref(value);
}

void nm_dump_value(struct nm_dump *dump, const char *name, json_t *value)
{
	begin_section(dump, name);
	write_value(dump, value);
}

void nm_dump_begin(struct nm_dump *dump, const char *name)
{
	begin_section(dump, name);
	(void)fputc('[', dump->out);
	dump->has_rows = false;
}

bool nm_dump_admit(struct nm_dump *dump)
{
	bool room = dump->rows < NM_DUMP_ROWS_MAX;
	dump->rows += room;
	dump->left_out += !room;
	return room;
}

void nm_dump_row(struct nm_dump *dump, json_t *row)
{
	(void)fputs(dump->has_rows ? ",\n" : "\n", dump->out);
	dump->has_rows = true;
	write_value(dump, row);
}

void nm_dump_end(struct nm_dump *dump)
{
	(void)fputc(']', dump->out);
}

int nm_dump_finish(struct nm_dump *dump)
{
	nm_dump_value(dump, "rows_left_out", json_integer(dump->left_out));
	(void)fputs("}\n", dump->out);
	if (dump->error == 0 && (fflush(dump->out) != 0 || ferror(dump->out)))
		dump->error = -EIO;
	if (dump->error < 0)
		return dump->error;
	int fd = fcntl(fileno(dump->out), F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* The reader has the same offset. */
	if (lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
		int r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

void nm_dump_clear(struct nm_dump *dump)
{
	if (dump->out)
		(void)fclose(dump->out);
	*dump = (struct nm_dump){0};
}
