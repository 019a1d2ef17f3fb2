"""Names, limits and waiting times that the agent and the monitor share. Only data."""

# A record of how a process ended (last_words): a folder in the run directory; one file for each
# process, named by the milliseconds of its end and its pid.
ENDED_FOLDER = "ended"
ENDED_NAME = "%013d-%d.json"
# A file of this name in the run directory turns it off: the setting `last_words`.
NO_LAST_WORDS = "no-last-words"
# More files than anyone reads; the oldest are removed first.
MAX_ENDED_FILES = 500
MAX_FALLBACKS = 10  # in one record

# Nobody means a smaller limit, and its ratio of a large budget would be rounded to 0: no limit.
MIN_LIMIT = 64 << 20
MAX_LIMIT = 1 << 50
# How long a monitor waits for the answer to a free, a limit or a count of tensors. The agent itself
# gives up waiting for a safe moment sooner (FreeJob.SECONDS); a release that runs is answered when
# it ends.
ASK_SECONDS = 30.0
# How long a Free When Possible waits for a safe moment.
WHEN_POSSIBLE_SECONDS = 600.0
# Why a Free can do nothing for the life of a process: waiting for a safe moment is of no use.
NEVER_FREED = ("free_threaded",)

# What `mpsbar run --limit` gives its command, in bytes; torch reads variables of its own.
LIMIT_VARIABLE = "MPSBAR_LIMIT"

# Variables of `mpsbar run --explain`: the folder for the agent's files, and a mark that mpsbar, not
# the user, asked for the profile log.
EXPLAIN_VARIABLE = "MPSBAR_EXPLAIN"
PROFILE_VARIABLE = "MPSBAR_EXPLAIN_PROFILE"
