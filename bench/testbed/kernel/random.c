/* Preloaded before the kernel of the testbed. It replaces the host's random numbers by SplitMix64 with the seed in
 * SEED, so that everything in the guest, including NetEm's losses, is the same for the same seed. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
	static uint64_t state;
	static int begun;
	unsigned char *bytes = buffer;
	uint64_t word = 0;

	(void)flags;
	if (!begun) {
		const char *seed = getenv("SEED");
		state = seed ? strtoull(seed, NULL, 0) : 0;
		begun = 1;
	}
	for (size_t i = 0; i < length; i++) {
		if (i % 8 == 0) {
			state += 0x9E3779B97F4A7C15u;
			word = state;
			word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
			word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
			word ^= word >> 31;
		}
		bytes[i] = word >> (8 * (i % 8));
	}
	return (ssize_t)length;
}
