/* What the parts of the guest's agent share: errors, pseudo-random numbers, lines of manifests. */
#ifndef AGENT_H
#define AGENT_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Prints what failed and errno's text to standard error, and exits with 1. */
void die(const char *what, const char *path) __attribute__((noreturn));

/* The next number of the seed's sequence (splitmix64). */
uint64_t next(uint64_t *seed);

/* Writes the manifest of the tree below `root` to `out`. */
void manifest(const char *root, FILE *out);

/* Writes the line of `name`, a path from `root` that starts with `/`. */
void manifest_line(const char *root, const char *name, FILE *out);

/* Writes the fields of `name` that fdatasync makes durable: type, size and CRC. */
void manifest_data_line(const char *root, const char *name, FILE *out);

/* Writes a line which says that `name` is not there. */
void manifest_gone_line(const char *name, FILE *out);

/* Sizes of the work of `fill`. */
struct profile {
	int sequence;      /* 1: 8-byte words of a block count up; 0: they are equal, which compresses well */
	int names;         /* of the largest directory */
	int own_inodes;    /* 1: names of large directories are files; 0: they are links to a few files */
	int depth;         /* of the deepest path */
	int long_blocks;   /* blocks of the longest file without holes */
	int churn;         /* random operations */
	int changes;       /* operations of `change`, each with an fsync */
};

/* Fills `root` with files, directories, links and attributes, as `seed` draws them. */
void fill(const char *root, uint64_t seed, const struct profile *profile);

/* After `fill` and a checkpoint: changes, each with an fsync, whose lines go to `out`; then changes
 * without one. */
void change(const char *root, uint64_t seed, const struct profile *profile, FILE *out);

/* Work on files, all of which exit when the kernel reports an error. Paths are absolute. */
void put(const char *path, uint64_t offset, uint64_t bytes, uint64_t seed, int sequence);
int open_file(const char *path);
void sync_file(const char *path);
void set_times(const char *path, int64_t seconds, long nanoseconds);
void set_attribute(const char *path, const char *name, uint64_t seed, size_t bytes);

#endif
