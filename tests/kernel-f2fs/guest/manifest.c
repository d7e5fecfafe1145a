/* Manifests: a tree as text, as ../MANIFEST.md defines it. Every inode is read through the kernel's
 * ordinary system calls. */
#define _GNU_SOURCE
#include "agent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define POLYNOMIAL 0x82f63b78u /* CRC-32C, reflected */
#define BUFFER (1u << 20)

static uint32_t table[8][256];
/* zeros[k] takes the state of the CRC over 2^k zero bytes: its columns. */
static uint32_t zeros[63][32];
static unsigned char buffer[BUFFER];

static uint32_t multiply(const uint32_t matrix[32], uint32_t vector)
{
	uint32_t sum = 0;
	for (int bit = 0; vector; bit++, vector >>= 1)
		if (vector & 1)
			sum ^= matrix[bit];
	return sum;
}

static void crc_tables(void)
{
	if (table[0][1])
		return;
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t crc = byte;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		table[0][byte] = crc;
	}
	for (int slice = 1; slice < 8; slice++)
		for (int byte = 0; byte < 256; byte++) {
			uint32_t before = table[slice - 1][byte];
			table[slice][byte] = before >> 8 ^ table[0][before & 255];
		}
	for (int bit = 0; bit < 32; bit++) {
		uint32_t state = 1u << bit;
		zeros[0][bit] = state >> 8 ^ table[0][state & 255];
	}
	for (int power = 1; power < 63; power++)
		for (int bit = 0; bit < 32; bit++)
			zeros[power][bit] = multiply(zeros[power - 1], zeros[power - 1][bit]);
}

static uint32_t crc_bytes(uint32_t state, const unsigned char *bytes, size_t count)
{
	for (; count >= 8; count -= 8, bytes += 8) {
		uint64_t word;
		memcpy(&word, bytes, 8); /* little-endian, as the guest is */
		word ^= state;
		state = 0;
		for (int at = 0; at < 8; at++)
			state ^= table[7 - at][word >> 8 * at & 255];
	}
	for (; count; count--, bytes++)
		state = state >> 8 ^ table[0][(state ^ *bytes) & 255];
	return state;
}

static uint32_t crc_zeros(uint32_t state, uint64_t count)
{
	for (int power = 0; count; power++, count >>= 1)
		if (count & 1)
			state = multiply(zeros[power], state);
	return state;
}

/* CRC of `size` bytes of a file. Holes are skipped where the kernel reports them. */
static uint32_t crc_of_file(const char *path, uint64_t size)
{
	int file = open(path, O_RDONLY);
	if (file < 0)
		die("open", path);
	crc_tables();
	uint32_t state = ~0u;
	uint64_t at = 0;
	while (at < size) {
		off_t data = lseek(file, at, SEEK_DATA);
		if (data < 0 && errno != ENXIO)
			die("seek data", path);
		uint64_t start = data < 0 || (uint64_t)data > size ? size : (uint64_t)data;
		state = crc_zeros(state, start - at);
		if ((at = start) == size)
			break;
		off_t hole = lseek(file, at, SEEK_HOLE);
		if (hole < 0)
			die("seek hole", path);
		uint64_t end = (uint64_t)hole < size ? (uint64_t)hole : size;
		while (at < end) {
			size_t want = end - at < BUFFER ? end - at : BUFFER;
			ssize_t got = pread(file, buffer, want, at);
			if (got <= 0)
				die("read", path);
			state = crc_bytes(state, buffer, got);
			at += got;
		}
	}
	close(file);
	return ~state;
}

static void print_escaped(const char *text, size_t length, int equals, FILE *out)
{
	for (size_t at = 0; at < length; at++) {
		unsigned char byte = text[at];
		if (byte <= 0x20 || byte >= 0x7f || byte == '\\' || (equals && byte == '='))
			fprintf(out, "\\x%02x", byte);
		else
			fputc(byte, out);
	}
}

static char type_letter(unsigned mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return 'f';
	case S_IFDIR: return 'd';
	case S_IFLNK: return 'l';
	case S_IFBLK: return 'b';
	case S_IFCHR: return 'c';
	case S_IFIFO: return 'p';
	case S_IFSOCK: return 's';
	default: return '?';
	}
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void print_xattrs(const char *path, FILE *out)
{
	static char names[1 << 16], value[1 << 16];
	char *sorted[4096];
	size_t count = 0;
	ssize_t bytes = llistxattr(path, names, sizeof names);
	if (bytes < 0)
		die("list of attributes", path);
	for (char *name = names; name < names + bytes && count < 4096; name += strlen(name) + 1)
		sorted[count++] = name;
	qsort(sorted, count, sizeof *sorted, by_bytes);
	for (size_t at = 0; at < count; at++) {
		ssize_t length = lgetxattr(path, sorted[at], value, sizeof value);
		if (length < 0)
			die("attribute", path);
		fputs(" xattr.", out);
		print_escaped(sorted[at], strlen(sorted[at]), 1, out);
		fputc('=', out);
		for (ssize_t byte = 0; byte < length; byte++)
			fprintf(out, "%02x", (unsigned char)value[byte]);
	}
}

static void print_time(const char *field, struct statx_timestamp time, FILE *out)
{
	fprintf(out, " %s=%lld.%09u", field, (long long)time.tv_sec, time.tv_nsec);
}

static void absolute(const char *root, const char *name, char path[8192])
{
	if (snprintf(path, 8192, "%s%s", root, name) >= 8192)
		die("length of path", name);
}

static void examine(const char *path, struct statx *found)
{
	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, found))
		die("statx", path);
}

void manifest_line(const char *root, const char *name, FILE *out)
{
	char path[8192], target[8192];
	struct statx found;
	absolute(root, name, path);
	examine(path, &found);
	char type = type_letter(found.stx_mode);
	print_escaped(name, strlen(name), 0, out);
	fprintf(out, " type=%c mode=%04o links=%u uid=%u gid=%u size=%llu blocks=%llu ino=%llu", type,
		found.stx_mode & 07777, found.stx_nlink, found.stx_uid, found.stx_gid,
		(unsigned long long)found.stx_size, (unsigned long long)found.stx_blocks,
		(unsigned long long)found.stx_ino);
	print_time("mtime", found.stx_mtime, out);
	print_time("ctime", found.stx_ctime, out);
	if (found.stx_mask & STATX_BTIME)
		print_time("btime", found.stx_btime, out);
	if (type == 'b' || type == 'c')
		fprintf(out, " rdev=%u:%u", found.stx_rdev_major, found.stx_rdev_minor);
	if (type == 'f')
		fprintf(out, " crc=%08x", crc_of_file(path, found.stx_size));
	if (type == 'l') {
		ssize_t length = readlink(path, target, sizeof target);
		if (length < 0)
			die("readlink", path);
		fputs(" target=", out);
		print_escaped(target, length, 0, out);
	}
	print_xattrs(path, out);
	fputc('\n', out);
}

void manifest_data_line(const char *root, const char *name, FILE *out)
{
	char path[8192];
	struct statx found;
	absolute(root, name, path);
	examine(path, &found);
	print_escaped(name, strlen(name), 0, out);
	fprintf(out, " type=%c size=%llu crc=%08x\n", type_letter(found.stx_mode),
		(unsigned long long)found.stx_size, crc_of_file(path, found.stx_size));
}

void manifest_gone_line(const char *name, FILE *out)
{
	print_escaped(name, strlen(name), 0, out);
	fputs(" type=none\n", out);
}

/* The paths found so far. */
static char **paths;
static size_t found_paths, room;

static void collect(const char *root, const char *name)
{
	char path[8192], inner[8192];
	absolute(root, name, path);
	DIR *directory = opendir(path);
	if (!directory)
		die("opendir", path);
	struct dirent *entry;
	while (errno = 0, entry = readdir(directory)) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(inner, sizeof inner, "%s/%s", strcmp(name, "/") ? name : "", entry->d_name) >=
		    (int)sizeof inner)
			die("length of path", name);
		if (found_paths == room)
			paths = realloc(paths, (room = room * 2 + 1024) * sizeof *paths);
		if (!paths || !(paths[found_paths++] = strdup(inner)))
			die("memory", path);
		struct stat status;
		absolute(root, paths[found_paths - 1], path);
		if (lstat(path, &status))
			die("lstat", path);
		if (S_ISDIR(status.st_mode))
			collect(root, paths[found_paths - 1]);
	}
	if (errno)
		die("readdir", name);
	closedir(directory);
}

void manifest(const char *root, FILE *out)
{
	found_paths = 0;
	collect(root, "/");
	qsort(paths, found_paths, sizeof *paths, by_bytes);
	manifest_line(root, "/", out);
	for (size_t at = 0; at < found_paths; at++)
		manifest_line(root, paths[at], out);
}
