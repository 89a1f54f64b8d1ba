/* SPDX-License-Identifier: MIT */
/*
 * The few functions of QEMU's plugin interface that are used here; no package carries its header.
 * They are the same in every version of the interface so far (1 up to QEMU 8, 2 and later from QEMU
 * 9 on); LAB_PLUGIN_VERSION is the version to ask for.
 */
#ifndef NUMA_MIGRD_LAB_QEMU_H
#define NUMA_MIGRD_LAB_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_info; /* not looked at */
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_RW = 3 };

typedef void (*qemu_plugin_simple)(qemu_plugin_id_t id);
typedef void (*qemu_plugin_tb_translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*qemu_plugin_mem_accessed)(unsigned int vcpu, qemu_plugin_meminfo_t info,
					 uint64_t address, void *user);

/* Drops every callback and all translated code, then calls back. */
void qemu_plugin_reset(qemu_plugin_id_t id, qemu_plugin_simple callback);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_tb_translated callback);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction,
				      qemu_plugin_mem_accessed callback,
				      enum qemu_plugin_cb_flags flags,
				      enum qemu_plugin_mem_rw which, void *user);

typedef void (*qemu_plugin_block_executed)(unsigned int vcpu, void *user);
typedef void (*qemu_plugin_vcpu_changed)(qemu_plugin_id_t id, unsigned int vcpu);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
					  qemu_plugin_block_executed callback,
					  enum qemu_plugin_cb_flags flags, void *user);
void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t id, qemu_plugin_vcpu_changed callback);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *instruction);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *instruction); /* as it is encoded */
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);

bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *address);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *address);

/* What QEMU looks for in a plugin. */
QEMU_EXPORT extern int qemu_plugin_version;
QEMU_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc,
				    char **argv);

#endif
