/* SPDX-License-Identifier: MIT */
/* Identifies the language runtime of a program by the beginning of its file. Pure. */
#ifndef NUMA_MIGRD_DOCTOR_RUNTIME_H
#define NUMA_MIGRD_DOCTOR_RUNTIME_H

#include "numa-migrd/proc.h"

/* Number of bytes read from a file: linkers place program headers, notes and the dynamic section's
 * strings of a program as small as java's launcher there. */
#define NM_RUNTIME_BYTES (64U << 10)

/*
 * Go: an ELF file for this machine with the note of a Go build (cmd/link, type 4, "Go"). JVM: one
 * that needs libjli.so, as the JDK's launchers do; a program that embeds libjvm.so is not
 * recognised. NONE for all other files, including truncated or damaged ones. Called when the doctor
 * collects facts.
 */
enum nm_runtime nm_runtime_of_program(const void *bytes, size_t length);

#endif
