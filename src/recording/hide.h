/* SPDX-License-Identifier: MIT */
/* Replaces names and addresses by a keyed hash, for recordings that are shown to others. Pure. */
#ifndef NM_RECORDING_HIDE_H
#define NM_RECORDING_HIDE_H

#include "fields.h"

/* SipHash-2-4 (Aumasson and Bernstein, 2012), so that names cannot be guessed without the key. */
uint64_t nm_hide_hash(const uint64_t key[2], const void *data, size_t size);

#define NM_HIDDEN_NAME_BYTES 15U /* "~", 13 hex digits, NUL */
/* Equal names stay equal; "" stays "". */
void nm_hide_name(const uint64_t key[2], const char *name, char ret[NM_HIDDEN_NAME_BYTES]);

/* Hashes whole pages: the result shows which threads share a page, but neither its address nor its
 * neighbours. 0 stays 0. */
uint64_t nm_hide_address(const uint64_t key[2], uint64_t address);

/* Returns whether the record may be written: false for answers of the machine and for settings,
 * which may contain names. */
bool nm_hide_may_show(const struct nm_recorded *record);

/*
 * Returns the record without texts that may contain names: settings and sentences become "", and of
 * the journal's fields only those with numbers or words of this program remain, in `room`. Names
 * marked as secret in shapes are not changed here: see struct nm_bytes.
 */
struct nm_recorded nm_hide_texts(const struct nm_recorded *record, struct nm_bytes *room);

#endif
