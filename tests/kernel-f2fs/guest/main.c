/* The guest's agent: `agent manifest DIR`, `agent fill DIR SEED PROFILE`, `agent change DIR SEED PROFILE`.
 * Manifests and lines go to standard output; a failed call ends the agent with 1. */
#define _GNU_SOURCE
#include "agent.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct profile SMALL = {
	.sequence = 0, .names = 800, .own_inodes = 0, .depth = 12, .long_blocks = 300, .churn = 60, .changes = 42,
};
static const struct profile FULL = {
	.sequence = 1, .names = 2000, .own_inodes = 1, .depth = 60, .long_blocks = 3100, .churn = 600, .changes = 160,
};

static const struct profile *profile_of(const char *name)
{
	if (!strcmp(name, "small"))
		return &SMALL;
	if (!strcmp(name, "full"))
		return &FULL;
	fprintf(stderr, "agent: profile %s: small or full\n", name);
	exit(2);
}

static void checkpoint(const char *root)
{
	int directory = open(root, O_RDONLY);
	if (directory < 0 || syncfs(directory))
		die("syncfs", root);
	close(directory);
}

int main(int count, char **words)
{
	const char *job = count > 2 ? words[1] : "";
	if (!strcmp(job, "manifest") && count == 3) {
		manifest(words[2], stdout);
	} else if (!strcmp(job, "fill") && count == 5) {
		fill(words[2], strtoull(words[3], NULL, 10), profile_of(words[4]));
		checkpoint(words[2]);
	} else if (!strcmp(job, "change") && count == 5) {
		change(words[2], strtoull(words[3], NULL, 10), profile_of(words[4]), stdout);
	} else {
		fprintf(stderr, "agent: manifest DIR, fill DIR SEED PROFILE, change DIR SEED PROFILE\n");
		return 2;
	}
	if (fflush(stdout) || ferror(stdout))
		die("write", "standard output");
	return 0;
}
