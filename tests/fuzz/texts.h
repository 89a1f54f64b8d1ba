/* SPDX-License-Identifier: MIT */
/* Texts as written by kernel, systemd and this project, for the seeds. */
#ifndef NM_FUZZ_TEXTS_H
#define NM_FUZZ_TEXTS_H

#include <stddef.h>

#define BOOT "0b5d2a86-8bd1-4a7e-9d6c-5a4e8f6d3c11"

static const struct {
	const char *target;
	const char *before; /* prefix that states the use of the text */
	size_t nr_before;
	const char *text;
} texts[] = {
	{"config", "", 0,
	 "threads = { policy = \"lbma-paper\"; }; parameters: { threads: { lease_expiry_s = 0x10; "
	 "}; };\n"},
	{"config", "", 0,
	 "targets = { include = ( { command = \"a*\"; user = \"0\"; }, { unit = \"b.service\"; } "
	 ");\n"
	 "  exclude = ( { slice = \"user.slice\"; cgroup = \"/a/*\"; } ); };\n"},
	{"config", "", 0,
	 "# a\n// b\n/* c */ general : { interval = 2; seed = 18446744073709551615; };"},
	{"config", "", 0,
	 "sampling = { source = \"event\"; }; parameters: { sampling: { event = "
	 "\"skx::MEM_LOAD_RETIRED:L3_MISS\"; }; };\n"},
	{"config", "", 0, "pages = { keep_free_percent = 1e3; max_mb_per_s = 5000000000L; };\n"},

	{"workload", "", 0,
	 "limit_s = 1000; users = ( { name = \"one\"; threads = 4; idle_s = 2; programs = ( "
	 "\"sp\",\n"
	 "  { like = \"stencil\"; name = \"mine\"; threads = 3; footprint_mb = 64.5; page_kb = 4;\n"
	 "    touch = \"master\"; phases = ( { giga = 5; shared = 0.5; }, { giga = 7; idle_s = 1;\n"
	 "    misses_per_kilo = 0; } ); } ); },\n"
	 "  { placement = \"direct\"; node = 1; start_s = 3; repeat = true; threads = 2;\n"
	 "    programs = ( \"ep\" ); } );\n"},
	{"workload", "", 0,
	 "users = ( { programs = ( { like = \"sp\"; threads = 2; footprint_mb = 8; page_kb = 2048; "
	 "} ); placement = \"interleave\"; } );\n"},

	{"proc", "", 0,
	 "42 (a) R 1) b) S 1 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9 9 1 1 28 0 0 0 0 "
	 "0 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n"},
	{"proc", "", 0,
	 "Name:\ta\\nb\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t42\nNgid:\t0\nPid:\t42\n"
	 "Uid:\t1000\t1000\t1000\t1000\nNSpid:\t42\t7\nVmRSS:\t  1234 kB\nThreads:\t1\n"},
	{"proc", "", 0, "1:name=systemd:/x\n0::/system.slice/a\\x2db.service\n"},
	{"proc", "", 0, "cpu  9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu63 1 2 3 4 5\nintr 1 2\n"},
	{"proc", "", 0, "12345.67 9.99\n"},
	{"proc", "", 0, "0-3,8,10-11\n"},

	{"mappings", "\x10", 1,
	 "7f0000000000-7f0000200000 rw-p 00000000 00:00 0\n"
	 "7f0000200000-7f0000400000 r--s 00001000 fd:01 123   /a\\012b\n"
	 "7f0000000000 default anon=12 dirty=12 N0=4 N3=8 kernelpagesize_kB=4\n"
	 "7f0000200000 bind:0-1 file=/a\\040b mapped=3 mapmax=2 N1=3 kernelpagesize_kB=4\n"},
	{"mappings", "\x00", 1,
	 "7f0000000000-7f0000200000 rw-s 00000000 00:0f 77 /anon_hugepage (deleted)\n"
	 "7f0000000000 prefer (many):0 file=/anon_hugepage\\040(deleted) huge dirty=1 N2=1 "
	 "kernelpagesize_kB=2048\n"},
	{"mappings", "\x10", 1,
	 "7f9742820000-7f9742821000 rw-p 00000000 00:00 0 \n"
	 "7f9742821000-7f9762820000 ---p 00000000 00:00 0 \n"
	 "7f9762820000-7f9762821000 rw-p 00000000 00:00 0 \n"},
	{"mappings", "\x20", 1,
	 "7f1b41000000-7f1b41274000 r-xp 00000000 fe:00 315183   /usr/bin/tini (deleted)\n"},
	{"mappings", "\x00", 1, "anon N0=4096 N1=0\nfile N0=1\nfile_mapped N0=8192 N1=4096\n"},

	{"machine", "\x00", 1,
	 "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
	 "model name\t: x\n"},
	{"machine", "\x00", 1,
	 "Node 1 MemTotal:  4194304 kB\nNode 1 MemFree:  1048576 kB\nNode 1 Dirty:  12 kB\n"
	 "Node 1 Inactive(file):  99 kB\n"},
	{"machine", "\x00", 1,
	 "Node 0, zone      DMA      1      0      0\nNode 1, zone   Normal   1 2 3 4 5 6 7 8 9 10 "
	 "11\n"},
	{"machine", "\x00", 1, "nr_free_pages 1\nthp_migration_split 12\n"},
	{"machine", "\x01\x00\x00\x00\x08\x00\x00\x00\x00", 9,
	 "Node 0, zone   Normal\n  pages free     1\n        spanned  262144\n  start_pfn:         "
	 "  "
	 "4096\nNode 2, zone   Normal\n        spanned  262144\n  start_pfn:           266240\n"},
	{"machine", "\x01\x00\x00\x00\x08\x00\x00\x00\x00", 9, "8000000\n"},
	{"machine", "\x02", 1, "0-3,8,10-11\n"},
	{"machine", "\x02", 1, "00000000,0000ffff\n"},
	{"machine", "\x03", 1,
	 "config1:0-15,32\xff"
	 "event=0x12,umask=1\xff"
	 "4\n\xff"
	 "cpu/event=7,period=1000/"},
	{"machine", "\x03", 1,
	 "config:0-7\xff"
	 "event=3\xff"
	 "8\xff"
	 "cpu/loads,config2=5/"},

	{"machine", "\x04\x05", 2,
	 "MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=9\xff"
	 "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"},
	{"machine", "\x04\x01", 2,
	 "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"},

	{"ledger", "\x00", 1,
	 "numa-migrd-ledger 1 " BOOT "\n"
	 "give 42 42 1000 1100 1 42 1 5 af d0 1 0-7 0-3 .\n"
	 "give 43 42 1000 1100 2 42 0 0 0 0 0 0-7 4-7 .\nreturn 42 1000 1200 .\ngive 44"},
	{"ledger", "\x01", 1,
	 "42 (a) S 1 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9 9 1 1 28 0 0 0 0 0 0 0 0 "
	 "0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n\xff"
	 "numa-migrd-given-back 4 " BOOT "\nprocess 42 4242 7 0\nthread 43 9 7 0\n"},
	{"ledger", "\x02", 1,
	 "numa-migrd-unanswered 1 " BOOT "\nprocess 42 4242 99999999999\nworker 43 9 1000\n"},
	{"ledger", "\x03", 1, "numa-migrd-moves 1 " BOOT "\n"},

	{"steer", "\x00", 1, "\x01\x00\x02on\x00\x01\x05\x02off\x00"},
	{"steer", "", 0, "observe\n"},
	{"steer", "", 0, "lbma"},
	{"steer", "\x05\x07/a/b/..\x00\x04lbma\x00\x01\x03", 15, "\x01\x00\x00"},

	{"escape", "\x09\x40\x00\x00\x00\x00\x00\x00\x00", 9,
	 "a\nb\033[31m\xc3\xa9\xe2\x80\xae\xff\\ MESSAGE=x"},
	{"escape", "\x03\x04\x00\x00\x00\x00\x00\x00\x00", 9, "\xf0\x9f\x98\x80\xf0\x9f\x98"},

	{"doctor", "", 0,
	 "systemd\n\xff"
	 "12\xff"
	 "numa-migrd\n\xff"
	 "13\xff"
	 "numa-migrd-help\n\xff"
	 "14\xff"
	 "rusty\033[31m\xff"
	 "numa-migrd-helper.sock\xff"
	 "moves\xff"},
	{"doctor", "", 0,
	 "systemd\n\xff"
	 "self\xff"
	 "sys\xff"
	 "net\xff"
	 "numa-migrd-helper.sock\xff"
	 "moves\xff"
	 "a.conf\xff"
	 "cgroup.controllers\xff"
	 "a\033[31m\xff"
	 "0-3\n\xff"
	 "cpuset.cpus\xff"
	 "memory.max\xff"
	 "io.max\xff"
	 "b\xff"
	 "-1\n\xff"
	 "2\n\xff"
	 "9\n\xff"
	 "[integrity]\xff"},
	{"targets", "", 0, "abcd\xff/user.slice/user-1000.slice/a/x/b.service\xff"},
};

#undef BOOT

#endif
