/* SPDX-License-Identifier: MIT */
/* Which language runtime a program brings along, by the beginning of its file. Pure. */
#ifndef NUMA_MIGRD_DOCTOR_RUNTIME_H
#define NUMA_MIGRD_DOCTOR_RUNTIME_H

#include "numa-migrd/runtime.h"

/* What is read of a file: a linker puts program headers, notes and the dynamic section's strings of
 * so small a program as java's launcher there. */
#define NM_RUNTIME_BYTES (64U << 10)

/*
 * Go: an ELF file for this machine with the note of a Go build (cmd/link, type 4, "Go"). JVM: one
 * that needs libjli.so, as the JDK's launchers do; a program that embeds libjvm.so is not
 * recognised. Anything else, also what is cut short or damaged: NONE. Gatherer of the doctor.
 */
enum nm_runtime nm_runtime_of_program(const void *bytes, size_t length);

#endif
