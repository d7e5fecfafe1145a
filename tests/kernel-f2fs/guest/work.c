/* Work on single files, for `fill` and `change`. Each function exits when the kernel reports an error. */
#define _GNU_SOURCE
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BLOCK 4096

void die(const char *what, const char *path)
{
	fprintf(stderr, "agent: %s: %s: %s\n", what, path, strerror(errno));
	_exit(1);
}

uint64_t next(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

int open_file(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT, 0644);
	if (file < 0)
		die("open", path);
	return file;
}

/* Writes bytes [offset, offset + bytes). With `sequence` each word depends on seed, block and place in
 * the block; without, the words of a block are equal, and have few bytes that are not zero. */
void put(const char *path, uint64_t offset, uint64_t bytes, uint64_t seed, int sequence)
{
	uint64_t words[BLOCK / 8];
	int file = open_file(path);
	while (bytes) {
		uint64_t block = offset / BLOCK, key = seed + (sequence ? block : 0), word = next(&key);
		if (!sequence)
			word = 1ull << 56 | (word & 0xffff) << 32 | block;
		for (int at = 0; at < BLOCK / 8; at++)
			words[at] = word + (sequence ? at : 0);
		uint64_t within = offset % BLOCK, part = BLOCK - within;
		if (part > bytes)
			part = bytes;
		if (pwrite(file, (char *)words + within, part, offset) != (ssize_t)part)
			die("write", path);
		offset += part;
		bytes -= part;
	}
	if (close(file))
		die("close", path);
}

void sync_file(const char *path)
{
	int file = open(path, O_RDONLY);
	if (file < 0 || fsync(file) || close(file))
		die("fsync", path);
}

void set_times(const char *path, int64_t seconds, long nanoseconds)
{
	struct timespec both[2] = { { seconds, nanoseconds }, { seconds, nanoseconds } };
	if (utimensat(AT_FDCWD, path, both, AT_SYMLINK_NOFOLLOW))
		die("utimensat", path);
}

void set_attribute(const char *path, const char *name, uint64_t seed, size_t bytes)
{
	uint64_t words[BLOCK / 8];
	uint64_t word = next(&seed);
	for (int at = 0; at < BLOCK / 8; at++)
		words[at] = word;
	if (lsetxattr(path, name, words, bytes, 0))
		die(name, path);
}
