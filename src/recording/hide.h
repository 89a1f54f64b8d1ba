/* SPDX-License-Identifier: MIT */
/* Names and addresses by a keyed hash, for recordings that are to be shown to others. Pure. */
#ifndef NM_RECORDING_HIDE_H
#define NM_RECORDING_HIDE_H

#include "fields.h"

/* SipHash-2-4 (Aumasson and Bernstein, 2012): nobody who lacks the key can try names. */
uint64_t nm_hide_hash(const uint64_t key[2], const void *data, size_t size);

#define NM_HIDDEN_NAME_BYTES 15U /* "~", 13 hex digits, NUL */
/* Equal names are equal still; "" stays "". */
void nm_hide_name(const uint64_t key[2], const char *name, char ret[NM_HIDDEN_NAME_BYTES]);

/* Whole pages: who shares one shows, and neither where it is nor what lies beside it. 0 stays 0. */
uint64_t nm_hide_address(const uint64_t key[2], uint64_t address);

/* Has no name in it whatever it is about: false for what the machine said, and for settings. */
bool nm_hide_may_show(const struct nm_recorded *record);

/*
 * The same without texts in which names may be: settings and sentences are "", of the journal's
 * fields those of numbers and of words of ours are left, in `room`. What shapes call secret is
 * still as it was: see struct nm_bytes.
 */
struct nm_recorded nm_hide_texts(const struct nm_recorded *record, struct nm_bytes *room);

#endif
