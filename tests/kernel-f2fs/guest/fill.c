/* `fill`: a tree that uses each form F2FS has for files, directories, links and attributes. Names and
 * sizes are fixed where a limit of the format is tested and drawn from the seed elsewhere.
 *
 * Limits: inline data of 3488 bytes (without extra attributes), 923 block addresses in an inode, 50
 * fewer with inline attributes, 1018 in a direct node. */
#define _GNU_SOURCE
#include "agent.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BLOCK 4096ull
#define IN_INODE 873ull
#define PER_NODE 1018ull
#define CHURN_FILES 24

static const struct profile *profile;
static uint64_t seed;
static char base[256];

/* The path of `name` in the tree: one of a few buffers, used in turn. */
static char *at(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *at(const char *format, ...)
{
	static char buffers[4][4096];
	static int turn;
	char *path = buffers[turn++ & 3];
	size_t head = strlen(base);
	va_list values;
	memcpy(path, base, head);
	va_start(values, format);
	vsnprintf(path + head, 4096 - head, format, values);
	va_end(values);
	return path;
}

static void check(int result, const char *what, const char *path)
{
	if (result)
		die(what, path);
}

static uint64_t below(uint64_t bound)
{
	return next(&seed) % bound;
}

static void make_directory(const char *path)
{
	check(mkdir(path, 0755), "mkdir", path);
}

static void write_new(const char *path, uint64_t offset, uint64_t bytes)
{
	put(path, offset, bytes, next(&seed), profile->sequence);
}

static void allocate(const char *path, int mode, uint64_t offset, uint64_t bytes)
{
	int file = open_file(path);
	check(fallocate(file, mode, offset, bytes), "fallocate", path);
	close(file);
}

static void sizes(void)
{
	static const uint64_t around[] = { 0, 1, 7, 100, 3487, 3488, 3489, 3687, 3688, 3689, 4095, 4096, 4097, 5 * BLOCK + 1 };
	make_directory(at("/sizes"));
	for (size_t n = 0; n < sizeof around / sizeof *around; n++) {
		char *path = at("/sizes/%llu", (unsigned long long)around[n]);
		close(open_file(path));
		if (around[n])
			write_new(path, 0, around[n]);
	}
	for (int n = 0; n < 6; n++)
		write_new(at("/sizes/drawn-%d", n), 0, 1 + below(40 * BLOCK));
	write_new(at("/sizes/past-inode"), 0, (IN_INODE + 3) * BLOCK - 5);
	write_new(at("/sizes/longest"), 0, profile->long_blocks * BLOCK + 77);
	sync_file(at("/sizes/past-inode"));
}

/* Files with holes. The last addresses need a second direct node, an indirect and a double-indirect one. */
static void holes(void)
{
	static const uint64_t blocks[] = { 1, 200, IN_INODE - 1, IN_INODE, IN_INODE + PER_NODE,
		IN_INODE + 2 * PER_NODE, IN_INODE + 3 * PER_NODE + 5, IN_INODE + 2 * PER_NODE + PER_NODE * PER_NODE + 9,
		IN_INODE + 2 * PER_NODE + 2 * PER_NODE * PER_NODE + 17 };
	make_directory(at("/holes"));
	for (size_t n = 0; n < sizeof blocks / sizeof *blocks; n++)
		write_new(at("/holes/at-%llu", (unsigned long long)blocks[n]), blocks[n] * BLOCK + n, BLOCK + 100);
	for (size_t n = 0; n < sizeof blocks / sizeof *blocks; n += 2)
		write_new(at("/holes/many"), blocks[n] * BLOCK, BLOCK);
	close(open_file(at("/holes/size-only")));
	check(truncate(at("/holes/size-only"), 123456789), "truncate", "size-only");
	write_new(at("/holes/punched"), 0, 30 * BLOCK);
	allocate(at("/holes/punched"), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 3 * BLOCK + 10, 9 * BLOCK);
	allocate(at("/holes/allocated"), 0, 0, 20 * BLOCK + 1);
	allocate(at("/holes/kept-size"), FALLOC_FL_KEEP_SIZE, 0, 12 * BLOCK);
	write_new(at("/holes/kept-size"), 4, 9);
	write_new(at("/holes/zeroed"), 0, 12 * BLOCK);
	allocate(at("/holes/zeroed"), FALLOC_FL_ZERO_RANGE, 2 * BLOCK + 1, 5 * BLOCK);
	write_new(at("/holes/collapsed"), 0, 20 * BLOCK + 3);
	allocate(at("/holes/collapsed"), FALLOC_FL_COLLAPSE_RANGE, 4 * BLOCK, 6 * BLOCK);
	write_new(at("/holes/inserted"), 0, 20 * BLOCK + 3);
	allocate(at("/holes/inserted"), FALLOC_FL_INSERT_RANGE, 4 * BLOCK, 6 * BLOCK);
}

static void truncates(void)
{
	static const uint64_t to[] = { 0, 10, 3488, 4096, 5000, 20 * BLOCK, 100 * BLOCK };
	make_directory(at("/truncated"));
	for (size_t n = 0; n < sizeof to / sizeof *to; n++) {
		char *path = at("/truncated/to-%llu", (unsigned long long)to[n]);
		write_new(path, 0, 30 * BLOCK);
		sync_file(path);
		check(truncate(path, to[n]), "truncate", path);
	}
	write_new(at("/truncated/deep"), (IN_INODE + 2 * PER_NODE + 4) * BLOCK, BLOCK);
	write_new(at("/truncated/deep"), 0, 3 * BLOCK);
	sync_file(at("/truncated/deep"));
	check(truncate(at("/truncated/deep"), 2 * BLOCK + 9), "truncate", "deep");
	write_new(at("/truncated/inline-grown"), 0, 50);
	sync_file(at("/truncated/inline-grown"));
	write_new(at("/truncated/inline-grown"), 3000, 9000);
	write_new(at("/truncated/inline-cut"), 0, 2000);
	check(truncate(at("/truncated/inline-cut"), 1001) || truncate(at("/truncated/inline-cut"), 1500),
	      "truncate", "inline-cut");
}

/* The name of entry `n`: of 1 to 255 bytes, some outside ASCII. */
static const char *entry_name(int n)
{
	static char name[256];
	static const char filler[] =
		"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
		"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
		"abcdefghijklmnopqrstuvwxyzabcdefghijkl";
	if (n % 50 == 9)
		snprintf(name, sizeof name, "%08d-%.*s", n, n % 246 + 1, filler);
	else if (n % 50 == 5)
		snprintf(name, sizeof name, "%d\\new\nline", n);
	else if (n % 10 == 7)
		snprintf(name, sizeof name, "Gr\xc3\xbcn %d.txt", n);
	else
		snprintf(name, sizeof name, n & 1 ? "name-%04d" : "%d", n);
	return name;
}

static void names(const char *directory, int count)
{
	make_directory(at("/%s", directory));
	for (int n = 0; n < count; n++) {
		char *path = at("/%s/%s", directory, entry_name(n));
		if (profile->own_inodes || n < 3) {
			close(open_file(path));
			if (n % 3 == 0)
				write_new(path, 0, 1 + below(200));
		} else {
			char *to = at("/%s/%s", directory, entry_name(n % 3));
			check(link(to, path), "link", path);
		}
	}
	for (int n = 3; n < count; n += 7)
		check(unlink(at("/%s/%s", directory, entry_name(n))), "unlink", directory);
	for (int n = 4; n < count; n += 21) {
		char *from = at("/%s/%s", directory, entry_name(n)), *to = at("/%s/renamed-%d", directory, n);
		check(rename(from, to), "rename", to);
	}
}

static void deep(void)
{
	char path[4096] = "/deep";
	make_directory(at("%s", path));
	for (int level = 0; level < profile->depth; level++) {
		snprintf(path + strlen(path), 32, "/level-%d", level);
		make_directory(at("%s", path));
		if (level % 4 == 0)
			write_new(at("%s/file", path), 0, 20 + below(200));
	}
}

static void links(void)
{
	static char long_target[4096];
	static const int lengths[] = { 1, 60, 300, 3400, 3490, 4000, 4090 };
	make_directory(at("/links"));
	for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
		memset(long_target, 'a' + n, lengths[n]);
		long_target[lengths[n]] = 0;
		char *path = at("/links/to-%d", lengths[n]);
		check(symlink(long_target, path), "symlink", path);
	}
	set_times(at("/links/to-60"), 5, 6);
	set_attribute(at("/links/to-60"), "trusted.of-link", next(&seed), 24);
	write_new(at("/links/hard-0"), 0, 6000);
	for (int n = 1; n < 5; n++)
		check(link(at("/links/hard-0"), at("/links/hard-%d", n)), "link", "hard");
	check(unlink(at("/links/hard-2")), "unlink", "hard-2");
	make_directory(at("/links/moved-from"));
	make_directory(at("/links/moved-to"));
	write_new(at("/links/moved-from/file"), 0, 100);
	check(rename(at("/links/moved-from"), at("/links/moved-to/directory")), "rename", "directory");
	write_new(at("/links/replaced"), 0, 5000);
	write_new(at("/links/replacing"), 0, 50);
	check(rename(at("/links/replacing"), at("/links/replaced")), "rename", "replaced");
	write_new(at("/links/exchange-a"), 0, 70);
	make_directory(at("/links/exchange-b"));
	check(renameat2(AT_FDCWD, at("/links/exchange-a"), AT_FDCWD, at("/links/exchange-b"), RENAME_EXCHANGE),
	      "exchange", "links");
}

static void attributes(void)
{
	make_directory(at("/attributes"));
	for (int n = 0; n < 8; n++) {
		char *path = at("/attributes/%d", n);
		write_new(path, 0, n & 1 ? 80 : 3 * BLOCK);
		set_attribute(path, "user.small", next(&seed), n * 5);
		set_attribute(path, "user.=\\ odd", next(&seed), 3);
		if (n & 1)
			set_attribute(path, "trusted.other", next(&seed), 30);
		if (n & 2)
			set_attribute(path, "security.large", next(&seed), 400 + below(3000));
		if (n & 4) {
			set_attribute(path, "user.small", next(&seed), 33);
			check(removexattr(path, "user.=\\ odd"), "removexattr", path);
		}
	}
	set_attribute(at("/attributes"), "user.of-directory", next(&seed), 700);
	set_attribute(at("/attributes/0"), "user.gone", next(&seed), 2000);
	check(removexattr(at("/attributes/0"), "user.gone"), "removexattr", "0");
}

static void owners_and_times(void)
{
	static const int64_t seconds[] = { 0, 1, -1, 1700000000, 2147483647, 2147483648ll, 4294967296ll, -2208988800ll };
	make_directory(at("/owners"));
	for (int n = 0; n < 8; n++) {
		char *path = at("/owners/%d", n);
		write_new(path, 0, 10);
		check(chown(path, n * 7001, n * 100003), "chown", path);
		check(chmod(path, (n * 01111 + 0640) & 07777), "chmod", path);
		set_times(path, seconds[n], n * 123456789 % 1000000000);
	}
	check(mknod(at("/owners/fifo"), S_IFIFO | 0600, 0), "mknod", "fifo");
	check(mknod(at("/owners/socket"), S_IFSOCK | 0600, 0), "mknod", "socket");
	check(mknod(at("/owners/character"), S_IFCHR | 0620, makedev(5, 1)), "mknod", "character");
	check(mknod(at("/owners/block"), S_IFBLK | 0660, makedev(259, 70000)), "mknod", "block");
	make_directory(at("/owners/sticky"));
	check(chmod(at("/owners/sticky"), 03777), "chmod", "sticky");
	set_times(at("/owners/sticky"), 99, 99);
}

/* Random operations on a few files. */
static void churn(void)
{
	make_directory(at("/churn"));
	for (int step = 0; step < profile->churn; step++) {
		char *path = at("/churn/%d", (int)below(CHURN_FILES)), *other = at("/churn/%d", (int)below(CHURN_FILES));
		switch (below(10)) {
		case 0: unlink(path); break;
		case 1: rename(path, other); break;
		case 2: close(open_file(path)); check(truncate(path, below(60 * BLOCK)), "truncate", path); break;
		case 3: close(open_file(path)); sync_file(path); break;
		case 4: close(open_file(path)); set_attribute(path, "user.churn", next(&seed), below(600)); break;
		case 5: link(path, other); break;
		default: write_new(path, below(50 * BLOCK), 1 + below(10 * BLOCK)); break;
		}
	}
}

/* Files for `change`. */
static void bases(void)
{
	make_directory(at("/cut"));
	for (int n = 0; n < 6; n++)
		write_new(at("/cut/inline-%d", n), 0, 200 + 100 * n);
	for (int n = 0; n < 12; n++)
		write_new(at("/cut/blocks-%d", n), 0, (4 + 3 * n) * BLOCK + 11 * n);
	for (int n = 0; n < 3; n++) {
		write_new(at("/cut/sparse-%d", n), 5 * BLOCK, BLOCK);
		write_new(at("/cut/sparse-%d", n), (IN_INODE + 10) * BLOCK, 3 * BLOCK);
		write_new(at("/cut/sparse-%d", n), (IN_INODE + 2 * PER_NODE + n) * BLOCK, 2 * BLOCK);
	}
}

void fill(const char *root, uint64_t from_seed, const struct profile *sizes_of_work)
{
	profile = sizes_of_work;
	seed = from_seed;
	snprintf(base, sizeof base, "%s/fill-%llu", root, (unsigned long long)from_seed);
	make_directory(base);
	sizes();
	holes();
	truncates();
	names("one", 1);
	names("two-hundred", 200);
	names("many", profile->names);
	make_directory(at("/empty"));
	deep();
	links();
	attributes();
	owners_and_times();
	churn();
	bases();
}
