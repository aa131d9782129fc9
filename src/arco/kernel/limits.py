"""Every limit, with its unit in its name, and what it protects.

Code that bounds a body, a name, a page or a retry takes the number from this file, so that one page can list
them all. What must never enter: a default that is a matter of taste rather than protection, and anything
computed at run time.
"""

# One JSON text as it arrives: protects memory before a single byte of it is interpreted.
JSON_BODY_BYTES_MAX = 16 * 1024 * 1024

# Arrays and objects inside each other: protects the interpreter's stack from a body that is only brackets.
JSON_DEPTH_MAX = 64

# Digits of one number: protects against conversions whose time grows with the square of the length.
JSON_NUMBER_DIGITS_MAX = 1000

# Dimensions of one partition key: protects planners, which multiply partitions by dimensions.
PARTITION_DIMENSIONS_MAX = 16

# One encoded partition key (ASCII, so bytes are characters): protects the objects and events that carry keys.
PARTITION_KEY_BYTES_MAX = 4096

# Partitions that one event names by its ranges: each becomes rows of state, and two dates can name millions.
PARTITIONS_OF_AN_EVENT_MAX = 100_000

# One object name and one of its segments: what every store and every file system takes.
KEY_BYTES_MAX = 1024
KEY_SEGMENT_BYTES_MAX = 255

# One part of an asset's name: keeps table folders and file names within a segment.
ASSET_NAME_CHARS_MAX = 128

# How far ahead of our own clock a position may lie before it is refused: one broken clock must not drag all others.
POSITION_LEAD_MS_MAX = 24 * 3600 * 1000

# One listing request: bounds the memory of whoever reads it.
LIST_PAGE_KEYS_MAX = 10_000

# How often one write is put and read back before its outcome is reported as unknown, and the pauses between.
READBACK_ATTEMPTS_MAX = 6
READBACK_PAUSE_S_FIRST = 0.05
READBACK_PAUSE_S_MAX = 5.0

# How often a compare-and-swap is repeated on newer state before the caller is told to come back.
SWAP_ATTEMPTS_MAX = 64

# How many earlier write ids a compare-and-swap object remembers: within so many overwrites a lost reply is resolved exactly.
CAS_RECENT_WRITES_MAX = 16

# One compare-and-swap object: it is read whole on every swing.
CAS_OBJECT_BYTES_MAX = 8 * 1024 * 1024

# Threads that wait for the disk, and lock files that keys share: more shards, fewer strangers waiting for each other.
LOCAL_IO_THREADS = 32
LOCAL_FOLDER_THREADS = 8
LOCAL_LOCK_SHARDS = 4096

# A request to a store, and reaching it at all; and how often a read is repeated.
STORE_REQUEST_TIMEOUT_S = 60
STORE_CONNECT_TIMEOUT_S = 5
STORE_READ_RETRIES_MAX = 4
STORE_READ_RETRY_TOTAL_S = 20

# Links handed to browsers and clients.
SIGNED_LINK_TTL_S_MAX = 7 * 24 * 3600

# Links to files of state: how long one lives unless its asker says otherwise, how long at most, and how many at once.
STATE_LINK_TTL_S = 3600
STATE_LINK_TTL_S_MAX = 24 * 3600
STATE_LINKS_MAX = 10_000

# Files that one server sends at once, each this much at a time: together they bound what sending takes of memory.
FILES_SENT_AT_ONCE_MAX = 64
FILE_SENT_BYTES_MAX = 1024 * 1024

# Tier 1: operations in one grouped commit, commits kept inline in the manifest, and the caps of its L0 deltas.
COMMIT_GROUP_OPERATIONS_MAX = 64
OPERATION_BYTES_MAX = 256 * 1024
MANIFEST_TAIL_COMMITS_MAX = 128
MANIFEST_TAIL_BYTES_MAX = 256 * 1024
STATE_DELTAS_MAX = 50
STATE_DELTAS_BYTES_MAX = 256 * 1024 * 1024
STATE_DELTAS_AGE_S_MAX = 3600

# Rows of a row group in files of state: what a browser reads at least of a file that has a row it wants. DuckDB writes whole
# vectors of 2,048.
STATE_ROW_GROUP_ROWS_MAX = 10_240

# How long the checkpointer of a server waits for more, so that a burst of commits makes one file.
CHECKPOINT_DELAY_S = 0.8

# Servers that take turns at the catalog's manifest: the lease, the pauses of whoever waits, and when it goes on without.
TURN_LEASE_S = 30.0
TURN_BACKOFF_S_FIRST = 0.05
TURN_BACKOFF_S_MAX = 5.0
TURN_WAIT_S = 10.0

# Commits to one table that stand in line in one process: how long one may be at the head before the next goes on beside it, and
# how many wait. Whoever comes to a longer line does not join it.
LINE_HEAD_S_MAX = 5.0
LINE_WAITING_MAX = 1024

# Keys of recent tier-1 operations that a process remembers; older ones are looked up in the chain of commits.
REMEMBERED_KEYS_MAX = 100_000

# Idempotency: how long a key is remembered, when a silent attempt may be taken over, and how long a duplicate waits.
IDEMPOTENCY_LIFETIME_S = 3600
IDEMPOTENCY_TAKEOVER_S = 600
DUPLICATE_WAIT_S = 5.0
DUPLICATE_POLL_S = 0.25

# How long upkeep leaves a marker alone after its key's lifetime.
MARKER_GRACE_S = 24 * 3600

# How far in the future a key's own time may lie before the key is refused: clocks differ by minutes, not by hours.
IDEMPOTENCY_KEY_LEAD_S = 600

# An answer that a marker holds itself; a larger one is made again from the metadata file.
MARKER_ANSWER_BYTES_MAX = 64 * 1024

# Metadata files kept in memory: bounds a server with many tables.
METADATA_CACHE_FILES_MAX = 2048

# Tables whose pointer and metadata a server remembers.
POINTER_CACHE_TABLES_MAX = 4096

# A staged create that nobody commits: how long its place is kept.
STAGED_INTENT_LIFETIME_S = 24 * 3600

# How long a server that is told to stop waits for requests under way, and then for what they left to do.
GRACEFUL_STOP_S = 30

# The head of a request, before anything of it is understood: protects memory. Every legal name fits into the URL: 16 levels
# and a table of 255 characters each, percent-encoded.
URL_BYTES_MAX = 64 * 1024
HEADERS_MAX = 100
HEADERS_BYTES_MAX = 64 * 1024

# A client that sends nothing, or a byte now and then: how long the head of a request, and its body, may take to arrive, how
# long an open connection may rest between requests, and how long one may leave an answer unread.
HEAD_READ_S = 10
BODY_READ_S = 60
KEEP_ALIVE_S = 75
ANSWER_READ_S = 60

# A body that nobody will read: how long the client may go on sending it, so that it gets to hear the answer.
BODY_DISCARD_S = 2

# How long a request may take before its client is answered: below the 60 s after which most proxies give up, so that the
# client hears from us what is known. The work itself goes on.
REQUEST_TIMEOUT_S = 50

# How long the store may take to answer whether the server is ready.
READY_TIMEOUT_S = 5

# Workspaces whose names a server reads before it is ready: bounds what a start costs. Others are read when they are asked for.
READY_WORKSPACES_MAX = 64

# What one server does at once: more wait outside. Connections stay below the 1,024 files a process may open by default.
REQUESTS_AT_ONCE_MAX = 256
CONNECTIONS_MAX = 800
BODIES_BYTES_MAX = 256 * 1024 * 1024

# One event of the ledger, and one segment of events: bounds the memory of whoever reads one.
LEDGER_EVENT_BYTES_MAX = 1024 * 1024
LEDGER_SEGMENT_EVENTS_MAX = 1000
LEDGER_SEGMENT_BYTES_MAX = 8 * 1024 * 1024

# Events that wait in one process for their segment: past it callers are told to come back instead of filling memory.
LEDGER_WAITING_BYTES_MAX = 64 * 1024 * 1024

# Segments that a follower of the ledger holds at once, and days whose segments it remembers by name.
LEDGER_TAIL_READS_MAX = 8
LEDGER_RECENT_DAYS_MAX = 31

# New names tried for one segment before the source of names is reported as broken.
LEDGER_NAME_ATTEMPTS_MAX = 4

# One round of the fold: segments and their bytes, receipts, and objects that are read or written side by side.
FOLD_BATCH_SEGMENTS_MAX = 5_000
FOLD_BATCH_BYTES_MAX = 256 * 1024 * 1024
FOLD_BATCH_RECEIPTS_MAX = 1_000
FOLD_READS_MAX = 32

# New names tried for one object of the fold before the source of names is reported as broken.
FOLD_NAME_ATTEMPTS_MAX = 4

# What the fold has consumed: lists that a manifest names before they are merged, and names in one list.
CONSUMED_LISTS_MAX = 16
CONSUMED_LIST_NAMES_MAX = 50_000

# Segments of one domain that a notification names: the newest stay, a listing finds what fell out.
FOLD_HINTED_SEGMENTS_MAX = 1_000

# Missing segments that a manifest names one by one.
FOLD_GAPS_MAX = 1_000

# How far back the published state can be asked for.
AS_OF_REACH_S = 30 * 24 * 3600

# Events that one request may send: they fit into one segment of each domain.
POSTED_EVENTS_MAX = LEDGER_SEGMENT_EVENTS_MAX

# Edges that the inputs and outputs of one OpenLineage event make with each other: they stand in one event of ours.
OPENLINEAGE_EDGES_MAX = 2000

# Columns of one edge that is said by hand, and the words about it.
LINEAGE_COLUMNS_MAX = 1000
LINEAGE_WHY_CHARS_MAX = 2000

# Names in the catalog: keeps messages, listings and URLs within reason.
NAME_CHARS_MAX = 255
NAMESPACE_LEVELS_MAX = 16
LOCATION_CHARS_MAX = 2048
REF_NAME_CHARS_MAX = 255

# One commit: bounds the work that a single request can ask for.
COMMIT_UPDATES_MAX = 10_000
COMMIT_REQUIREMENTS_MAX = 1_000

# One metadata file, uncompressed: it is held in memory whole.
METADATA_BYTES_MAX = 256 * 1024 * 1024

# How far ahead of our own clock a snapshot's time may lie.
SNAPSHOT_LEAD_MS_MAX = 24 * 3600 * 1000

# Tasks of one plan: a request that expands to more is almost always a mistake.
PLAN_TASKS_MAX = 100_000

# Objects that are read side by side while the facts for a plan are gathered.
PLANNING_READS_MAX = 32

# Values of one dynamic dimension: they stand in one document, and in every planning snapshot.
DYNAMIC_VALUES_MAX = 10_000
DYNAMIC_VALUE_CHARS_MAX = 200

# Files that one pattern of an input may mean: their names stand in the planning snapshot and in the plan.
INPUT_FILES_MAX = 100_000

# Checks: a name goes into every event and quarantined row, listed values into every deployment, examples into every result.
CHECK_NAME_CHARS_MAX = 200
CHECK_VALUES_MAX = 10_000
CHECK_SAMPLE_ROWS_MAX = 20

# What people say of a table: kept in tier 1, carried by the manifest's tail and shown in every listing.
OWNER_CHARS_MAX = 255
DESCRIPTION_CHARS_MAX = 10_000
TAGS_MAX = 100
TAG_CHARS_MAX = 128
PII_COLUMNS_MAX = 1000
PII_KIND_CHARS_MAX = 64
COLUMN_PATH_CHARS_MAX = 1024
COLUMN_TYPE_CHARS_MAX = 4096

# One table's row of tier 1: a full group of commits with such rows still fits into the manifest.
TABLE_DOCUMENT_BYTES_MAX = 100 * 1024

# Objects that a verification reads ahead while it walks a chain.
VERIFY_READ_AHEAD_MAX = 32

# One object of a run's log: it is read whole by everybody who follows the run.
RUN_LOG_BYTES_MAX = 8 * 1024 * 1024

# Objects of a run's log that are read at once when a run is opened.
RUN_LOG_READS_MAX = 32

# Segments of the ledger that are read at once.
LEDGER_READS_MAX = 32

# Files of state that one reader fetches and checks side by side: protects memory and the store.
STATE_FETCHES_MAX = 16

# Cuts that one reader keeps open: each holds its names and its lineage in memory.
OPEN_CUTS_MAX = 8

# One page of a list of answers, and what a walk along lineage collects before it says that there is more.
ANSWER_PAGE_ITEMS_MAX = 1000
LINEAGE_NODES_MAX = 10_000
LINEAGE_DEPTH_MAX = 100

# What an explanation looks at on its way upstream: names and tasks of so many assets, everything about a few of them, and runs in
# which an asset's last task is looked for.
EXPLAINED_NODES_MAX = 2_000
EXPLAINED_ASSETS_MAX = 100
EXPLAINED_RUNS_MAX = 20

# Partitions that an asset is expected to have and that are looked for one by one.
EXPECTED_PARTITIONS_MAX = 10_000

# How often one decision is tried again, on a log that others write to or a store that is silent.
RUN_LOG_TRIES_MAX = 24

# Runs: how long a worker may be silent, how often others look at the log, and how long a cancelled task may take to stop.
TASK_LEASE_S = 30.0
RUN_POLL_S = 2.0
TASK_STOP_S = 30.0

# How often an attempt's outcome is asked for before the driver gives up and leaves the run to be resumed.
TASK_SETTLE_TRIES_MAX = 12

# Commits of one attempt to publish, each on a newer base, before it gives way to whoever else commits to the table.
PUBLISH_REBASES_MAX = 20
