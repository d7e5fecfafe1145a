/* `change`: after `fill` and a checkpoint, changes that end with an fsync each, then changes without.
 *
 * The first quarter may hold operations whose fsync takes a checkpoint (a new name for a file, a second
 * link, a new directory); the rest has none, so that a volume which is cut off now needs roll-forward.
 * The line of a file is written after its fsync, as the kernel shows the file then: it must be equal
 * after recovery. Files changed without an fsync have no line. */
#define _GNU_SOURCE
#include "agent.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 4096ull

static uint64_t seed;
static int sequence;
static const char *mounted;
static char folder[128];
static FILE *lines;

static uint64_t below(uint64_t bound)
{
	return next(&seed) % bound;
}

static void check(int result, const char *what, const char *path)
{
	if (result)
		die(what, path);
}

/* Both paths of a file: from the root of the volume, and the guest's. */
struct place {
	char name[512];
	char path[768];
};

static struct place place(const char *kind, int number)
{
	struct place at;
	snprintf(at.name, sizeof at.name, "%s/%s-%d", folder, kind, number);
	snprintf(at.path, sizeof at.path, "%s%s", mounted, at.name);
	return at;
}

static void write_at(const struct place *at, uint64_t offset, uint64_t bytes)
{
	put(at->path, offset, bytes, next(&seed), sequence);
}

static void durable(const struct place *at)
{
	sync_file(at->path);
	manifest_line(mounted, at->name, lines);
}

static uint64_t size_of(const struct place *at)
{
	struct stat status;
	check(stat(at->path, &status), "stat", at->path);
	return status.st_size;
}

static void allocate(const struct place *at, int mode, uint64_t offset, uint64_t bytes)
{
	int file = open_file(at->path);
	check(fallocate(file, mode, offset, bytes), "fallocate", at->path);
	close(file);
}

static void data_only(const struct place *at)
{
	write_at(at, below(4 * BLOCK), 1 + below(BLOCK));
	int file = open_file(at->path);
	check(fdatasync(file), "fdatasync", at->path);
	close(file);
	manifest_data_line(mounted, at->name, lines);
}

/* Changes whose fsync takes a checkpoint. */
static void checkpointing(int step)
{
	struct place from = place("new", step), to = place("moved", step), inner;
	switch (step % 3) {
	case 0:
		write_at(&from, 0, 1 + below(3 * BLOCK));
		sync_file(from.path);
		check(rename(from.path, to.path), "rename", to.path);
		durable(&to);
		manifest_gone_line(from.name, lines);
		break;
	case 1:
		write_at(&from, 0, 1 + below(3 * BLOCK));
		check(link(from.path, to.path), "link", to.path);
		durable(&to);
		break;
	default:
		check(mkdir(to.path, 0750), "mkdir", to.path);
		snprintf(inner.name, sizeof inner.name, "%.400s/file", to.name);
		snprintf(inner.path, sizeof inner.path, "%.600s/file", to.path);
		write_at(&inner, 0, 1 + below(3 * BLOCK));
		durable(&inner);
	}
}

/* Changes whose fsync writes nodes for roll-forward. */
static void chained(int step)
{
	struct place new = place("new", step), small = place("inline", below(4));
	struct place file = place("blocks", below(8)), sparse = place("sparse", below(2));
	switch (step % 14) {
	case 0: write_at(&new, 0, 1 + below(3000)); durable(&new); break;
	case 1: write_at(&new, 0, 1 + below(30 * BLOCK)); durable(&new); break;
	case 2: write_at(&file, below(size_of(&file)), 1 + below(2 * BLOCK)); durable(&file); break;
	case 3: write_at(&file, size_of(&file), 1 + below(3 * BLOCK)); durable(&file); break;
	case 4: check(truncate(file.path, below(size_of(&file))), "truncate", file.path); durable(&file); break;
	case 5: set_attribute(small.path, "user.cut", next(&seed), 40); durable(&small); break;
	case 6: set_attribute(file.path, "user.large", next(&seed), 300 + below(3000)); durable(&file); break;
	case 7: write_at(&small, 3000, 5000 + below(BLOCK)); durable(&small); break;
	case 8: allocate(&new, 0, below(BLOCK), 6 * BLOCK); write_at(&new, BLOCK, BLOCK); durable(&new); break;
	case 9:
		write_at(&new, 0, 12 * BLOCK);
		allocate(&new, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2 * BLOCK + 5, 4 * BLOCK);
		durable(&new);
		break;
	case 10:
		check(chown(file.path, 40 + step, 50 + step), "chown", file.path);
		check(chmod(file.path, 0604), "chmod", file.path);
		set_times(file.path, 1234567890 + step, 77 + step);
		durable(&file);
		break;
	case 11: data_only(&file); break;
	case 12:
		set_attribute(sparse.path, "user.before", next(&seed), 20);
		write_at(&sparse, (900 + below(2100)) * BLOCK + 9, 4 * BLOCK);
		durable(&sparse);
		break;
	default:
		check(close(open_file(new.path)), "create", new.path);
		check(truncate(new.path, 5000 + below(90 * BLOCK)), "truncate", new.path);
		durable(&new);
	}
}

/* Changes that a cut may lose, on files that have no line. */
static void unsynced(void)
{
	for (int n = 0; n < 3; n++) {
		struct place lost = place("lost", n), file = place("blocks", 8 + n), kept = place("renamed-after", n);
		struct place ghost = place("ghost", n);
		write_at(&lost, 0, 1 + below(6 * BLOCK));
		write_at(&file, below(size_of(&file)), 1 + below(4 * BLOCK));
		int opened = open_file(file.path);
		check(sync_file_range(opened, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				SYNC_FILE_RANGE_WAIT_AFTER), "sync_file_range", file.path);
		close(opened);
		write_at(&ghost, 0, 1 + below(2 * BLOCK));
		sync_file(ghost.path);
		check(n ? unlink(ghost.path) : rename(ghost.path, kept.path), "unlink", ghost.path);
	}
	struct place gone = place("inline", 5);
	check(unlink(gone.path), "unlink", gone.path);
}

void change(const char *root, uint64_t from_seed, const struct profile *profile, FILE *out)
{
	seed = from_seed ^ 0x637574;
	sequence = profile->sequence;
	mounted = root;
	lines = out;
	snprintf(folder, sizeof folder, "/fill-%llu/cut", (unsigned long long)from_seed);
	for (int step = 0; step < profile->changes; step++)
		if (step < profile->changes / 4 && below(2))
			checkpointing(step);
		else
			chained(step);
	unsynced();
}
