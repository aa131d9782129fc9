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
# Names that were found fit to be one, so that they are not looked through again.
KEYS_CHECKED_KEPT_MAX = 4096

# One part of an asset's name: keeps table folders and file names within a segment.
ASSET_NAME_CHARS_MAX = 128

# How far ahead of our own clock a position may lie before it is refused: one broken clock must not drag all others.
POSITION_LEAD_MS_MAX = 24 * 3600 * 1000

# How far ahead of our own clock the time of an event that others send may lie. Of some events the latest time counts: one from
# next year would be the last word until then.
EVENT_LEAD_MS_MAX = 10 * 60 * 1000

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

# Days whose date in names is remembered: nearly all names are of today.
DATES_KEPT_MAX = 64

# Files that one thread looks at in one go: one that the disk does not answer for holds up no more than these.
LOCAL_HEADS_TOGETHER_MAX = 16
# A look at files that takes longer keeps everybody else waiting; after so many in turn, threads look for a while.
LOCAL_LOOK_S_MAX = 0.01
LOCAL_LOOKS_SLOW_MAX = 3
LOCAL_LOOK_REST_S = 10.0

# A request to a store, and reaching it at all; and how often a read is repeated.
STORE_REQUEST_TIMEOUT_S = 60
STORE_CONNECT_TIMEOUT_S = 5
STORE_READ_RETRIES_MAX = 4
STORE_READ_RETRY_TOTAL_S = 20
# Before a process ends: how often it looks whether an answer is still being handed over, and for how long at most.
LAST_ANSWER_LOOK_S = 0.001
LAST_ANSWER_LOOKS_MAX = 10_000
# And how long a store that is closed waits for answers that nobody needs any more.
LAST_ANSWERS_S = 2.0

# Links handed to browsers and clients.
SIGNED_LINK_TTL_S_MAX = 7 * 24 * 3600

# Links to files of state: how long one lives unless its asker says otherwise, how long at most, and how many at once.
STATE_LINK_TTL_S = 3600
STATE_LINK_TTL_S_MAX = 24 * 3600
STATE_LINKS_MAX = 10_000

# Files that one server sends at once, each this much at a time: together they bound what sending takes of memory.
FILES_SENT_AT_ONCE_MAX = 64
FILE_SENT_BYTES_MAX = 1024 * 1024

# Tier 1: operations in one grouped commit and their bytes (the manifest holds them inline, and has an end), commits kept
# inline in the manifest, and the caps of its L0 deltas.
COMMIT_GROUP_OPERATIONS_MAX = 64
COMMIT_GROUP_BYTES_MAX = 2 * 1024 * 1024
OPERATION_BYTES_MAX = 256 * 1024
MANIFEST_TAIL_COMMITS_MAX = 128
MANIFEST_TAIL_BYTES_MAX = 256 * 1024
STATE_DELTAS_MAX = 50
STATE_DELTAS_BYTES_MAX = 256 * 1024 * 1024
STATE_DELTAS_AGE_S_MAX = 3600
# Commits that the history of one table is looked for in: each is a request.
HISTORY_COMMITS_MAX = 1000
# What a block of a manifest may be when it is unpacked.
AVRO_BLOCK_BYTES_MAX = 256 * 1024 * 1024

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
GROUP_COMMITS_MAX = 64
GROUP_PATIENCE_S_MAX = 0.05

# Commits at one table of one process, waiting and at work: beyond it they are sent away before anything is done, so that one hot
# table leaves room for everybody else. And how long one may wait for its turn before it is sent away, having done nothing.
TABLE_QUEUE_MAX = 192
TABLE_QUEUE_S_MAX = 20.0

# The pause of a commit that lost its swing to another process: about as long as a commit takes, and longer with every loss.
CONTENTION_PAUSE_S_FIRST = 0.001
CONTENTION_PAUSE_S_MAX = 2.0

# Metrics: how long what was found in the folded state is told again, how long it is waited for, and how many assets of a
# workspace have series. And after how long a worker's counts are where the others see them.
METRICS_STATE_S = 15.0
METRICS_WRITTEN_S = 0.25
METRICS_PATIENCE_S = 5.0
METRICS_ASSETS_MAX = 1000

# Keys of recent tier-1 operations that a process remembers; older ones are looked up in the chain of commits.
REMEMBERED_KEYS_MAX = 100_000

# Idempotency: how long a key is remembered, when a silent attempt may be taken over, and how long a duplicate waits.
IDEMPOTENCY_LIFETIME_S = 3600
IDEMPOTENCY_TAKEOVER_S = 600
DUPLICATE_WAIT_S = 5.0
DUPLICATE_POLL_S = 0.25

# How long after its arrival a request may go on with what another of its key left. Its client has waited for so long before it
# sends the same to another server, and deletes its files because that one says that nothing was done (docs/transactions.md).
REQUEST_FRESH_S = 20.0

# Transactions: how many tables one may change (the server's default, and the most it can be told) and by how many changes, when
# an attempt that fell silent may be sent back by whoever it stands in the way of, and how long one behind another waits.
TRANSACTION_TABLES_MAX = 10
TRANSACTION_TABLES_EVER_MAX = 100
TRANSACTION_CHANGES_MAX = 1000
TRANSACTION_STALE_S = 60.0
TRANSACTION_WAIT_S = 10.0
TRANSACTION_POLL_S = 0.1

# How long the record of a transaction is kept.
TRANSACTION_KEPT_S = 30 * 24 * 3600

# How often several tables are looked at for one moment that all of them share, and how many may be asked for at once.
SIDE_BY_SIDE_READINGS_MAX = 10
TABLES_TOGETHER_MAX = 100

# How long upkeep leaves a marker alone after its key's lifetime.
MARKER_GRACE_S = 24 * 3600

# How long after a commit was prepared its absence from history proves that it never happened: receipts and markers are kept
# for longer, by half of the grace at least.
HISTORY_KNOWN_S = IDEMPOTENCY_LIFETIME_S + MARKER_GRACE_S // 2

# How long upkeep leaves alone what nobody seems to need, by the store's clock; and how much the clocks of servers may differ from
# it before a grace is no grace any more.
UPKEEP_GRACE_S = 24 * 3600
UPKEEP_CLOCKS_S = 3600

# How long a file stays that no version of its table names. Whoever writes without a note of it (every Iceberg client does) has to
# send its commit within two days, and a commit under way is given up after half a day: so long a file is certainly nobody's.
ORPHAN_FILE_S = 3 * 24 * 3600
COMMIT_LASTS_S_MAX = 12 * 3600

# How long a dropped table that is to be purged can still be restored.
UNDROP_HOLD_S = 7 * 24 * 3600

# Receipts: those of commits that were only about to happen, and those of commits that nobody ever folded.
PENDING_RECEIPT_S = 24 * 3600
COMMITTED_RECEIPT_S = 90 * 24 * 3600

# Upkeep: objects that are taken away side by side, receipts of one pass, metadata files that are read of one table to know its
# history, those that are read to note what they named, files of one table that go in one pass, manifests that are read side by
# side and held until they are, and examples in the report of a dry run.
UPKEEP_DELETES_MAX = 32
UPKEEP_RECEIPTS_MAX = 100_000
UPKEEP_HISTORY_READS_MAX = 1_000
UPKEEP_VERSIONS_MAX = 2_000
UPKEEP_FILES_MAX = 200_000
UPKEEP_MANIFEST_READS_MAX = 16
UPKEEP_EXAMPLES_MAX = 1_000

# How far in the future a key's own time may lie before the key is refused: clocks differ by minutes, not by hours.
IDEMPOTENCY_KEY_LEAD_S = 600

# Metadata files that a workspace keeps in memory as they are stored: so many, and so many bytes.
METADATA_CACHE_FILES_MAX = 2048
METADATA_CACHE_BYTES_MAX = 128 * 1024 * 1024

# Namespaces whose names a server keeps in order.
LISTINGS_REMEMBERED_MAX = 256

# Tables, or views, of a workspace whose pointer and metadata a server remembers: so many, and so many bytes as JSON. Read into
# memory it is three to five times that.
POINTER_CACHE_TABLES_MAX = 4096
POINTER_CACHE_BYTES_MAX = 32 * 1024 * 1024

# What is the same for request after request, and kept: tags of answers, routes of paths that are not too long, names of hosts
# and of namespaces that were found fit to be one.
HOSTS_KEPT_MAX = 64
SCOPES_KEPT_MAX = 256
NAMESPACES_KEPT_MAX = 256
ETAGS_KEPT_MAX = 4096
ROUTES_KEPT_MAX = 4096
ROUTES_KEPT_PATH_BYTES_MAX = 500

# Requests without a body that a server has heard before: so many, none of them larger than that, and the memory of all.
KNOWN_HEADS_MAX = 4096
KNOWN_HEAD_BYTES_MAX = 2000
KNOWN_HEADS_BYTES_MAX = 16 * 1024 * 1024

# A body that is copied behind its head so that both are one write; a larger one costs more to copy than to send by itself.
ANSWER_JOINED_BYTES_MAX = 64 * 1024

# What a server draws at a time for the ids of requests.
ENTROPY_DRAWN_BYTES_MAX = 4096

# Answers about tables and views that a server keeps as bytes, plain and packed, and how many: each takes more than its bytes.
ANSWERS_KEPT_MAX = 65_536
ANSWERS_KEPT_BYTES_MAX = 64 * 1024 * 1024

# A staged create that nobody commits: how long its place is kept.
STAGED_INTENT_LIFETIME_S = 24 * 3600

# How long a server that is told to stop waits for requests under way, and then for what they left to do.
GRACEFUL_STOP_S = 30

# The head of a request, before anything of it is understood, and how many may wait on a connection behind the one under way:
# protects memory. Every legal name fits into the URL: 16 levels and a table of 255 characters each, percent-encoded.
URL_BYTES_MAX = 64 * 1024
HEADERS_MAX = 100
HEADERS_BYTES_MAX = 64 * 1024
PIPELINED_MAX = 100

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

# Workspaces that a server has open before it forgets those that nothing is in.
WORKSPACES_OPEN_MAX = 1000

# Workspaces that one listing shows, and that whoever folds or tends a whole root comes to: it is a request or two for each.
WORKSPACES_LISTED_MAX = 1000

# What one process of a server does at once: more wait outside. Connections stay below the files it may open, of which it asks
# the system for more than the usual 1,024; those that wait to be accepted are the system's to hold.
REQUESTS_AT_ONCE_MAX = 256
OPEN_FILES_MAX = 4096
OTHER_FILES_MAX = 224
CONNECTIONS_MAX = 2000
CONNECTIONS_WAITING_MAX = 2048
BODIES_BYTES_MAX = 256 * 1024 * 1024

# One event of the ledger, and one segment of events: bounds the memory of whoever reads one.
LEDGER_EVENT_BYTES_MAX = 1024 * 1024
LEDGER_SEGMENT_EVENTS_MAX = 1000
LEDGER_SEGMENT_BYTES_MAX = 8 * 1024 * 1024

# Events that wait in one process for their segment: past it callers are told to come back instead of filling memory.
LEDGER_WAITING_BYTES_MAX = 64 * 1024 * 1024

# Commits of tier 1 that are told to the ledger before the mark moves: bounds what is held, and what is told again after a crash.
TOLD_COMMITS_MAX = 1000

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

# Consumed segments older than upkeep's grace that may lie in the ledger before the fold moves them aside itself, and how many of
# them one pass moves. Each round lists all of them.
FOLD_CROWD_SEGMENTS_MAX = 5_000
FOLD_MOVES_MAX = 5_000

# Commits of tables that a fresh read looks at itself, the newest; the fold takes them all.
FRESH_RECEIPTS_MAX = 500

# Looks at the ledger before whoever reads what is not folded says that it is folded and moved aside too fast to be read.
FRESH_LOOKS_MAX = 5

# What an event says of files one by one: of how many files a publish may have, of how many columns, and how long a bound may be.
FILE_STATS_FILES_MAX = 9
FILE_STATS_COLUMNS_MAX = 32
FILE_STATS_BOUND_CHARS_MAX = 64

# New names tried for one object of the fold before the source of names is reported as broken.
FOLD_NAME_ATTEMPTS_MAX = 4

# Of those who follow a ledger one folds. Whoever does says so every third of this time; after all of it another takes over.
FOLD_LEASE_S = 15.0

# The fold of a server is started again after 1 s, 2 s, … at most this; one that ran so long is steady again.
FOLD_RESTART_S_MAX = 60.0
FOLD_STEADY_S = 60.0
FOLD_LINE_BYTES_MAX = 1024 * 1024

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

# What a client says of itself: it stands in commits, receipts, pointers and the feed, once for each thing that it does.
CLIENT_CHARS_MAX = 200

# One commit: bounds the work that a single request can ask for.
COMMIT_UPDATES_MAX = 10_000
COMMIT_REQUIREMENTS_MAX = 1_000

# One metadata file, uncompressed: it is held in memory whole.
METADATA_BYTES_MAX = 256 * 1024 * 1024

# How far ahead of our own clock the time of a snapshot, of a view's version or of a registered file may lie.
SNAPSHOT_LEAD_MS_MAX = 24 * 3600 * 1000

# Tasks of one plan: a request that expands to more is almost always a mistake.
PLAN_TASKS_MAX = 100_000

# Objects that are read side by side while the facts for a plan are gathered.
PLANNING_READS_MAX = 32

# How often a plan is made anew because something was published between planning and starting; then it is refused.
PLANS_ANEW_MAX = 3

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

# Of one table that is verified: manifests that are in memory at once, and files whose sizes are remembered from a listing. What
# is beyond it is asked for by itself.
VERIFY_MANIFESTS_AHEAD_MAX = 8
VERIFY_FILES_LISTED_MAX = 200_000

# Bytes that a verification reads at once where objects may be large; one that is larger is read alone.
VERIFY_READ_BYTES_MAX = 64 * 1024 * 1024

# One object of a run's log: it is read whole by everybody who follows the run.
RUN_LOG_BYTES_MAX = 8 * 1024 * 1024

# Objects of a run's log that are read at once when a run is opened.
RUN_LOG_READS_MAX = 32

# Segments of the ledger that are read at once.
LEDGER_READS_MAX = 32

# Files of state that one reader fetches and checks side by side: protects memory and the store.
STATE_FETCHES_MAX = 16

# Files of state that a process keeps of a bucket: protects its disk. Those go first that nobody asked for longest, and what an
# open reader holds stays. And files that it remembers to have checked: protects memory.
STATE_KEPT_BYTES_MAX = 4 * 1024**3
STATE_CHECKED_FILES_MAX = 100_000

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

# Runs: how long one may take and how many of its tasks may be under way, whoever asks for it; how long a worker may be silent,
# and at most whatever it says itself; how often others look at the log, and how long a cancelled task may take to stop.
RUN_TIMEOUT_S_MAX = 366 * 24 * 3600
RUN_PARALLELISM_MAX = 1000
TASK_LEASE_S = 30.0
TASK_LEASE_S_MAX = 24 * 3600
RUN_POLL_S = 2.0
TASK_STOP_S = 30.0

# Workers: how often one looks at a root where nobody wakes it, how long what a scheduler signed may wait for a worker, runs that
# are open at a time and that one process has in hand, how long one that rests keeps its place there while others wait, and when a
# note of a run that never began may go.
WORKER_POLL_S = 2.0
TASK_ENVELOPE_S = 600.0
OPEN_RUNS_MAX = 10_000
RUNS_IN_HAND_MAX = 200
RUN_RESTS_S = 60.0
OPEN_RUN_BEGINS_S = 24 * 3600

# Who holds a pool at a time: bounds an object that is read whole whenever a task is claimed.
POOL_HOLDINGS_MAX = 10_000

# Rows in quarantine that are put back at once: they are held in memory.
RELEASED_ROWS_MAX = 1_000_000

# How long a worker that is told to stop waits for its tasks before it hands them back.
WORKER_STOP_S = 20.0

# What an attempt may say: lines that are kept of it, characters of one, and how often they are written while it runs.
TASK_LOG_LINES_MAX = 10_000
TASK_LOG_LINE_CHARS_MAX = 4_000
TASK_LOG_EVERY_S = 5.0

# A task in a process of its own: bytes of one message to or from it, lines that are kept of what it said last, how long what it
# said before its end may take to arrive, and characters of one word of its own that is believed.
TASK_MESSAGE_BYTES_MAX = 256 * 1024 * 1024
TASK_LAST_WORDS_MAX = 20
TASK_LAST_WORDS_S = 2.0
TASK_WORD_CHARS_MAX = 2_000

# Spark: how long somebody at the address of a cluster may take to answer, and then to say hello; when people hear that no
# executor has taken a task; and the modules of a project that are sent along.
SPARK_REACH_S = 5.0
SPARK_HELLO_S = 30.0
SPARK_EXECUTORS_LATE_S = 30.0
SPARK_MODULES_MAX = 5_000

# How often an attempt's outcome is asked for before the driver gives up and leaves the run to be resumed.
TASK_SETTLE_TRIES_MAX = 12

# The same of an atomic run's transaction: long enough for another driver's attempt to be stale, and for clocks that differ.
TOGETHER_TRIES_MAX = 150

# Commits of one attempt to publish, each on a newer base, before it gives way to whoever else commits to the table.
PUBLISH_REBASES_MAX = 20

# Schedules: how late a tick may be found where nothing is caught up, the ticks that wait for their runs at a time, the ended ones
# that are kept for people, and the recorded runs that an estimate of the next one's time is made of.
SCHEDULE_LATE_S = 300
SCHEDULE_OPEN_TICKS_MAX = 1000
SCHEDULE_ENDED_TICKS_MAX = 20
SCHEDULE_ESTIMATED_RUNS_MAX = 5

# Runs that are asked for over HTTP: how many requests may wait in a workspace, what one may name, and how many one pass takes.
ASKED_RUNS_OPEN_MAX = 1000
ASKED_RUN_WORDS_MAX = 1000
ASKED_RUN_WORD_CHARS_MAX = 1000
ASKED_RUNS_TAKEN_MAX = 100

# Assets of a project that is deployed over HTTP: bounds what is verified in one request.
DECLARED_ASSETS_MAX = 10_000

# Credentials for the files of one table: how short and how long they may live, what is left of them when a client is told that
# nothing has changed, and how many a server holds.
VENDED_SHORTEST_S = 900
VENDED_DURATION_S_MAX = 43_200
VENDED_DURATION_S = 3600
VENDED_LEFT_S = 300
VENDED_CREDENTIALS_MAX = 10_000

# A session policy as Amazon's token service takes it.
SESSION_POLICY_CHARS_MAX = 2048

# A request to a token service: a client waits for it. So many are sent at a time; more wait for one of them.
TOKEN_SERVICE_TIMEOUT_S = 10
TOKEN_SERVICE_AT_ONCE_MAX = 16

# How long what a service account signs to get a token is good; Google takes an hour at most.
SERVICE_ACCOUNT_CLAIM_S = 600
TOKEN_SERVICE_BYTES_MAX = 256 * 1024

# The feed of events: events of one stored page and of one answer, and their bytes; pages that one answer looks through, that one
# process remembers, and that it reads side by side; commits of names that are told at a time, rounds of one look, and pages
# between two checkpoints. A page ends with the change that fills it, so it may be larger by one transaction.
FEED_PAGE_EVENTS_MAX = 250
FEED_PAGE_BYTES_MAX = 2 * 1024 * 1024
FEED_ANSWER_EVENTS_MAX = 1000
FEED_ANSWER_BYTES_MAX = 8 * 1024 * 1024
FEED_ANSWER_PAGES_MAX = 40
FEED_PAGES_REMEMBERED_MAX = 128
FEED_PAGES_REMEMBERED_BYTES_MAX = 32 * 1024 * 1024
FEED_READS_MAX = 8
FEED_LOOK_COMMITS_MAX = 2000
FEED_ROUNDS_MAX = 16
FEED_CHECKPOINT_PAGES_MAX = 256

# Receipts of a date that nobody expects one on are looked for this often; those of today so often, however many ask: a listing
# shows all receipts of a day, old and new. Those that the process wrote itself are known without one, the newest of them.
FEED_FULL_LOOK_S = 900
FEED_LIST_S = 2
FEED_WRITTEN_NAMES_MAX = 10_000

# What an event says of the changes of one commit, and the events of one transaction together; beyond it, that there were some.
FEED_UPDATES_BYTES_MAX = 256 * 1024
FEED_REQUEST_UPDATES_BYTES_MAX = 4 * 1024 * 1024

# Workers of one server: how many there may be, how large a request may be to be handed to another, how long one that was asked
# may be silent before others do its work, how long one that ends waits for the others to know, and how long a server waits
# before it starts one again that died right after its start.
WORKERS_MAX = 64
HANDED_OVER_BYTES_MAX = 4 * 1024 * 1024
HANDOVER_SILENCE_S = 2.0
HANDOVER_END_S = 5.0
WORKER_PAUSE_S_FIRST = 0.1
WORKER_PAUSE_S_MAX = 5.0
WORKER_SOUND_S = 10.0
# What the name of a socket may have: Linux takes 107 bytes, macOS and the BSDs 103.
SOCKET_PATH_BYTES_MAX = 103
