/* SPDX-License-Identifier: MIT */
#include "report/dump.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
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
	nm_autofree char *escaped = nm_must(malloc(size));
	(void)nm_escape(escaped, size, text, length);
	return json_string(escaped);
}

static json_t *shares_value(const struct nm_shares *shares)
{
	json_t *list = nm_must(json_array());
	for (size_t i = 0; i < shares->count; i++)
		nm_must_do(json_array_append_new(list, isfinite(shares->items[i])
							       ? json_real(shares->items[i])
							       : json_null()));
	return list;
}

/* Returns NULL if the value is unavailable. */
static json_t *value_of(const struct nm_field *field, const void *row)
{
	const void *value = (const char *)row + field->offset;
	switch (field->type) {
	case NM_FIELD_TEXT: {
		const char *text = *(const char *const *)value;
		return text ? text_value(text) : NULL;
	}
	case NM_FIELD_FLAG:
		return json_boolean(*(const bool *)value);
	case NM_FIELD_NUMBER: {
		int64_t number = *(const int64_t *)value;
		return number >= 0 ? json_integer(number) : NULL;
	}
	case NM_FIELD_REAL:
		return json_real(*(const double *)value); /* NULL if it is not finite */
	case NM_FIELD_SHARES: {
		const struct nm_shares *shares = value;
		return shares->items ? shares_value(shares) : NULL;
	}
	}
	return NULL;
}

json_t *nm_row_json(const struct nm_table *table, const void *row)
{
	json_t *object = nm_must(json_object());
	for (size_t i = 0; i < table->count; i++) {
		json_t *value = value_of(&table->fields[i], row);
		if (value)
			nm_must_do(
				json_object_set_new_nocheck(object, table->fields[i].name, value));
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
	if (json_dumpf(value, dump->out, FORMAT) < 0)
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

void nm_dump_expect(struct nm_dump *dump, size_t rows)
{
	dump->is_scarce = rows > NM_DUMP_ROWS_MAX - dump->rows;
}

static struct nm_dump_share *share_of(struct nm_dump *dump, uint64_t domain)
{
	for (size_t i = 0; i < dump->nr_shares; i++)
		if (dump->shares[i].domain == domain)
			return &dump->shares[i];
	NM_RESERVE(dump->shares, dump->shares_capacity, dump->nr_shares);
	dump->shares[dump->nr_shares] = (struct nm_dump_share){.domain = domain};
	return &dump->shares[dump->nr_shares++];
}

bool nm_dump_admit_of(struct nm_dump *dump, uint64_t domain)
{
	struct nm_dump_share *share = dump->is_scarce ? share_of(dump, domain) : NULL;
	if (share && share->rows >= NM_DUMP_ROWS_MAX - dump->rows) {
		dump->left_out++;
		return false;
	}
	bool room = nm_dump_admit(dump);
	if (share)
		share->rows += room;
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
	/* Not F_SEAL_SHRINK: documents.c empties it. Others can open it only for reading. */
	if (lseek(fd, 0, SEEK_SET) < 0 || fchmod(fd, 0444) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0) {
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
	free(dump->shares);
	*dump = (struct nm_dump){0};
}
