"""All limits of the engine, each with the reason for its value.

A limit is a module constant with a comment above it that gives the reason for its value;
tests/test_tidy.py checks that. Each is in the section of the lowest package that uses it.

Source: P3.
"""

from __future__ import annotations

# -- naming ------------------------------------------------------------------------------------

# Kafka's limit of a topic's name: with "-", a partition and ".<32 hex>-delete", truncated if
# necessary, a directory name stays within the 255 bytes of common file systems.
TOPIC_NAME_CHARS_MAX = 249

# Common file systems allow 255 bytes in a name; Kafka truncates the topic in the name of a deleted
# partition's directory to stay within it.
DIRECTORY_NAME_CHARS_MAX = 255

# The longest group id or transactional id in bytes: lengths in keys of coordinators' topics are
# int16. Requests of flexible versions may have longer ones.
COORDINATOR_KEY_BYTES_MAX = 32_767
# Group and transactional ids whose hashes are cached, since a request needs its id's up to six
# times: as many as a large cluster has.
HASHED_KEYS_MAX = 16_384
# Longer ids, which are rare, are not cached: so the cache above stays within a few megabytes.
HASHED_KEY_CHARS_MAX = 256

# -- host --------------------------------------------------------------------------------------

# The kernel accepts this many buffers in one vectored write (IOV_MAX on Linux); more are written in
# several calls.
IOV_BUFFERS_MAX = 1024

# Up to this many bytes a read allocates the requested length without checking the file's size: the
# check costs more than the memory. A larger length may come from damaged data.
UNCHECKED_READ_BYTES_MAX = 1 << 20

# Size of one read of a socket, at which the cost of system calls is negligible.
RECEIVE_BYTES = 1 << 18

# socket.request.max.bytes of Kafka: a producer's largest request by default fits a hundred times.
FRAME_BYTES_MAX = 104_857_600

# A broker's largest response: one batch may exceed every limit of a fetch, and its size is limited
# only by that broker's settings (message.max.bytes). So this is Kafka's own limit, that of an
# int32; a length alone allocates no memory.
ANSWER_FRAME_BYTES_MAX = 2_147_483_647

# Descriptors of a process that are reserved for files, or a quarter of all if that is less: a
# broker that cannot roll a segment loses its directory, one that rejects a client loses nothing.
FILE_DESCRIPTORS_KEPT = 1024

# A listener without a free descriptor retries after this time: an immediate retry would spin.
ACCEPT_RETRY_MS = 100

# A request that is incomplete for this long without a further byte comes from a dead peer, or from
# one that only uses up memory.
HALF_FRAME_DEADLINE_MS = 30_000

# A reader with this much unsent data in memory, besides one response of any size, is slower than
# its fetches. File regions are not in memory: each counts as the size of its objects.
UNSENT_BYTES_MAX = 64 << 20
# Measured: 700 bytes for a pending region and the object that releases it.
REGION_COST_BYTES = 1 << 10

# A peer that reads no byte for this long is dead; Kafka's clients give up after 30 s.
UNSENT_DEADLINE_MS = 60_000

# Measured: 100 KB requests cost 97, 69 and 50 µs with 64 KB, 256 KB and 1 MB receive buffers.
RECEIVE_BUFFER_BYTES = 1 << 20

# All incomplete frames together: somewhat more than two of the largest. Kafka has no limit unless
# queued.max.request.bytes is set.
IN_FLIGHT_BYTES_MAX = 1 << 28

# How long a computing worker thread delays the loop at each switch, in seconds. Python's default of
# 5 ms is more than a request takes (measured during a cleaning: the median of produce requests is
# 1.0 ms, with 5 ms 1.6, without a cleaning 0.3).
THREAD_SWITCH_S = 0.0002

# A process next to a broker gets a tenth of a processor if both compete for it (nice 10), not the
# hundredth of the lowest priority, with which it would never finish.
SIDE_PRIORITY = 10

# Connections that wait to be accepted, if no setting has the number: the default of Kafka and
# ZooKeeper.
LISTEN_BACKLOG = 50

# Connections that are accepted before the existing ones get their turn again.
ACCEPTS_PER_TURN_MAX = 512

# Requests of one connection in one turn of the loop, before all others get theirs: as many as may
# be open (producers have 5 in flight), so that one read seldom needs two turns. Another turn costs
# 20 µs, 64 of the cheapest requests 1 ms.
FRAMES_PER_TURN_MAX = 64
# The same as a time, for requests that cost more: ten connections that send without pause delay
# another one by 50 ms, far below any session time-out.
TURN_MS_MAX = 5

# Time of a large request in one turn of the loop: a delay that no client notices, and a hundred
# times the cost of continuing in the next turn.
SHARE_MS_MAX = 5

# Number of smaller garbage collections before one of all objects since the last full one: at most a
# hundred thousand objects, 15 ms. Python's 10 take twice as long.
FULL_COLLECTION_AFTER = 4

# Interval of garbage collections of all objects: one takes half a second with 10,000 partitions.
# Connections and logs of deleted topics wait for it: twenty objects each.
WHOLE_COLLECTION_MS = 60 * 60 * 1000

# Objects beyond twice the number at the last collection that may be frozen: some 20 MB.
FROZEN_OBJECTS_MAX = 100_000

# Size of one read when IN_FLIGHT_BYTES_MAX is used up: requests of this size are still served, and
# the incomplete ones of all possible connections stay below a quarter of that limit.
SMALL_READ_BYTES = 1 << 14

# Buffers kept for the next frames received in pieces: as many as producers send large frames at the
# same moment; more only cause page faults.
RECEIVE_BUFFERS_KEPT = 4

# The rest of a frame below this size is received together with the following data. A separate read
# of a larger rest costs little, and avoids copying the start of the next frame.
SCATTERED_BYTES_MAX = 1 << 18

# Up to this size, parts are joined and sent as one: a vectored send of many small ones costs more.
JOINED_SEND_BYTES_MAX = 1 << 14

# Data passed to a layer such as TLS at once: four of its records, so that a file region for a slow
# reader is not read far ahead.
LAYER_SEND_BYTES = 1 << 16

# Size of one read of a socket below TLS: four records.
TLS_READ_BYTES = 1 << 16
# The same for a peer that has filled it once: sixteen records.
TLS_BULK_READ_BYTES = 1 << 18
# The same for an unauthenticated client: OpenSSL keeps 4/3 of it for each connection.
TLS_SMALL_READ_BYTES = 1 << 12

# TLS records in one read: 2 ms for records of one byte, of which TLS_BULK_READ_BYTES have ten
# thousand.
TLS_RECORDS_MAX = 1 << 10

# Bytes that a peer may send below TLS without any data: the largest record has 17 KB.
TLS_SILENT_BYTES_MAX = 1 << 16

# Bytes that a TLS layer may buffer for a peer that does not read: the records of LAYER_SEND_BYTES,
# and as much of the protocol itself.
TLS_UNREAD_BYTES_MAX = 1 << 17

# Schemas have kilobytes; a larger body is not a schema.
HTTP_BODY_BYTES_MAX = 16 << 20

# On a slower link connections are closed: connections.max.idle.ms is ten minutes.
LINK_DELAY_MS_MAX = 600_000

# The payload of one packet: an Ethernet frame without the IP and TCP headers.
LINK_PACKET_BYTES = 1448

# TCP's first retransmission time-out on Linux, beyond the round trip (TCP_RTO_MIN).
LINK_RETRANSMISSION_MS_MIN = 200
# TCP's longest retransmission time-out on Linux (TCP_RTO_MAX).
LINK_RETRANSMISSION_MS_MAX = 120_000
# Number of retransmissions before TCP closes a connection (net.ipv4.tcp_retries2).
LINK_RETRANSMISSIONS_MAX = 15

# One request to an object store takes some 20 to 50 ms: ranges of this size use a fast line fully,
# and reading one position of a file costs no more than one range.
OBJECT_RANGE_BYTES = 8 << 20

# -- native ------------------------------------------------------------------------------------

# Loading compiled code takes some ms, as long as this many records without it.
BULK_RECORDS_MIN = 5_000

# Up to this many bytes a copy is faster than a ctypes pointer into a buffer (0.4 µs).
COPIED_FOR_A_CALL_BYTES_MAX = 4096

# Cached tables (8 to 16 KB) of the offset deltas of 4096 records: most batches have fewer.
UNIFORM_BLOCKS_KEPT = 8

# Consecutive records of equal length before they are checked as a run: the check costs as much as
# walking over ten.
UNIFORM_RUN_MIN = 12

# Cached code that no process has loaded for this long belongs to an uninstalled version. If that is
# installed again, it compiles again.
KEPT_CODE_UNUSED_MS = 30 * 86_400_000

# Interval of recording that cached code is used: each time is a write.
KEPT_CODE_NOTED_MS = 86_400_000

# Finding and loading compiled code takes some ms, which a start should not spend.
WALK_TAKE_UP_DELAY_MS = 200

# A broker that is started for one command has ended by then, and needs no compiler process.
WALK_COMPILE_DELAY_MS = 1500

# Compiling takes some seconds at the lowest priority, and nothing waits for it.
WALK_COMPILE_POLL_MS = 500

# How often a broker still checks for compiled code after its own compiler ended without any: the
# compiler of another broker needs ten seconds on a busy machine.
WALK_CACHE_CHECKS_MAX = 40

# -- records -----------------------------------------------------------------------------------

# Bytes between records are cached by the size of the contents, for this many sizes: those of text
# lines. Longer contents take longer to copy than these bytes to create.
RECORD_HEADS_KEPT = 4096

# A compressed batch of 100 MiB (the default limit of requests) that expands tenfold still fits; a
# bomb of zeros (1000-fold) does not use up the machine's memory.
DECOMPRESSED_BATCH_BYTES_MAX = 1 << 30

# Size of a decompressor's output chunks: a bomb is detected at the limit above, exceeded by at most
# one chunk.
DECOMPRESS_CHUNK_BYTES = 1 << 20

# -- wire --------------------------------------------------------------------------------------

# Bytes of one version of a message that are read (or written) field by field before its codec is
# compiled. Compiling costs about 1 ms, as much as these bytes: a codec that is used once is not
# compiled, and a busy one costs twice its compilation at most.
WALKED_BYTES = 4096
# Rows of a message above which its codec is compiled before the first write. 10,000 rows take 60 ms
# field by field.
WALKED_ROWS = 256

# Every version of every API fits several times; a peer that sends invalid versions must not fill
# the memory with header forms.
HEADER_FORMS_KEPT = 4096

# The most written topics, each in the versions of a few libraries: the constant bytes of their
# responses are cached, 300 bytes each.
PRODUCED_TOPICS_KEPT = 4096

# Producers and the partitions that they write to most: the heads of their requests, and the
# constant bytes of their responses, are cached. 2 KB each at most.
PRODUCE_HEADS_KEPT = 4096

# Members of groups and the partitions that they commit: as much of their commits is cached. It
# includes the generation, so a group's entries are useless after its next rebalance.
COMMIT_HEADS_KEPT = 4096

# The longest client id in these caches: clients use a few words, and a client that sends another
# one of 32 KB in each request must not fill the memory. Requests with longer ones are served
# without a cache.
KEPT_CLIENT_ID_BYTES_MAX = 255

# The same as PRODUCED_TOPICS_KEPT, for responses to fetches.
FETCHED_TOPICS_KEPT = 4096

# Parsers of followers' requests by the length of the client id: a broker has one or two lengths for
# its followers, and a few hundred bytes are cached for each.
REPLICA_FETCH_FORMS_KEPT = 256

# -- coordinator_loads -------------------------------------------------------------------------

# Pause after a read error of a coordinator's partition; clients get COORDINATOR_LOAD_IN_PROGRESS
# meanwhile.
COORDINATOR_LOAD_RETRY_MS = 1000

# -- znode -------------------------------------------------------------------------------------

# ZooKeeper's limit of a node's data (jute.maxbuffer), which Kafka's largest topics reach.
ZNODE_DATA_BYTES_MAX = 1 << 20

# ZooKeeper's limit of a request (jute.maxbuffer) unless its operator raised it. A larger one is
# sent, and given up when the connection was lost with it as often as below: other causes seldom
# occur three times in a row.
ZNODE_REQUEST_BYTES_MAX = 0xFFFFF
# See above.
ZNODE_LARGE_REQUEST_TRIES = 3

# Paths are keys in the store and in every watch; Kafka's longest, a change of a client's quota with
# two escaped names of 249 characters, is below half of it.
ZNODE_PATH_CHARS_MAX = 4096

# A list of children must fit into one response of ZooKeeper's protocol, 1 MiB: 100 000 names of ten
# characters do. Kafka's own recommendation is far fewer topics.
ZNODE_CHILDREN_MAX = 100_000

# The controller watches each topic, each broker and a dozen folders: as many as children.
ZNODE_WATCHES_MAX = 100_000

# A broker has one session, and so has a tool; this many belong to a client that never closes any.
ZNODE_SESSIONS_MAX = 2_000

# ZooKeeper's limit of a frame is 1 MiB (jute.maxbuffer); a node's data alone may reach it, and a
# multi of Kafka's controller with long paths must not be rejected for less.
ZOOKEEPER_FRAME_BYTES_MAX = 4 << 20

# ZooKeeper's tick (tickTime); session time-outs are limited to 2 to 20 ticks.
ZOOKEEPER_TICK_MS = 2000
# Two ticks: see above.
ZOOKEEPER_SESSION_TIMEOUT_MIN_MS = 2 * ZOOKEEPER_TICK_MS
# Twenty ticks: see above.
ZOOKEEPER_SESSION_TIMEOUT_MAX_MS = 20 * ZOOKEEPER_TICK_MS

# Back-off between attempts to reach a ZooKeeper that does not respond doubles up to this: Kafka's
# client retries every second.
ZOOKEEPER_RETRY_DELAY_MAX_MS = 1000

# Session time-out of a tool that reads nodes: so its session expires soon after it was killed.
ZOOKEEPER_TOOL_SESSION_MS = 10_000

# Kafka's controller puts a few hundred writes into one multi; the limit keeps a transaction, and
# the time for which it blocks the loop, small.
ZNODE_MULTI_OPERATIONS_MAX = 10_000

# -- client ------------------------------------------------------------------------------------

# Groups whose commits are requested at once: of 50 partitions each, 5,000 offsets in memory.
GROUPS_PER_REQUEST = 100

# A fetch answers at most 50 MiB (fetch.max.bytes) and one batch beyond it; larger lengths are the
# first bytes of another protocol (TLS: 352 MB, HTTP: 1.2 GB) and are worth a clear word.
CLIENT_FRAME_BYTES_MAX = 1 << 28

# RFC 7677 asks for 4096 iterations and Kafka takes 16384 at most; more from a server would only
# burn the client's time.
SCRAM_ITERATIONS_MAX = 1 << 20

# The broker port in Kafka's default configuration files.
CLIENT_PORT_DEFAULT = 9092

# Back-offs of 100 ms that double up to 1 s: five attempts wait 1.5 s in total, in which a normal
# election completes; a partition without a leader is reported then.
PARTITION_ATTEMPTS_MAX = 5

# A newly created topic is known to all brokers within this many back-offs (0.3 s); for a missing
# topic a user should not wait longer.
UNKNOWN_TOPIC_ATTEMPTS_MAX = 3

# A command's batches are as large as a topic accepts by default (max.message.bytes is 1 MiB and 12
# bytes). A topic with a lower limit rejects one, and the size is adapted.
PRODUCE_BATCH_BYTES = 1 << 20

# Limit of a request with several batches; the default of Java's producer.
PRODUCE_REQUEST_BYTES = 1 << 20

# Bytes of unacknowledged batches at which a producer waits: enough for five batches in flight and
# the next ones; a quarter of the default of Java's producer (buffer.memory).
PRODUCE_PENDING_BYTES_MAX = 8 << 20

# Bytes of records without a result in the asyncio producer; the default of Java's producer
# (buffer.memory).
SEND_BUFFER_BYTES = 32 << 20
# How long a record waits for buffer space; the default of Java's producer (max.block.ms).
SEND_BLOCK_MS = 60_000

# Limit of one fetch; the default of Kafka's consumer.
FETCH_BYTES_MAX = 50 << 20
# Limit of one partition: large enough to be fast, small enough that every partition gets its turn.
FETCH_PARTITION_BYTES_MAX = 1 << 20
# How long a broker that any other can replace has before the next one is tried as well: longer than
# a response from the other side of the world, shorter than a person's patience.
NEXT_BROKER_MS = 500
# Interval of two samples of copied bytes: throttles limit the rate of a second, and a person waits
# for the result.
MOVE_RATE_MS = 1_000

# -- log ---------------------------------------------------------------------------------------

# Measured best between system calls and cache misses when scanning a log front to back
# (2, 8 and 32 MiB: 2850, 3180, 2455 MB/s).
SCAN_CHUNK_BYTES = 8 << 20

# Records of batches up to producers' defaults open into this; see the next one.
OPENED_MEMORY_BYTES = 1 << 18

# Compressed batches are opened in memory that stays: so much of it at most, so that a broker's
# memory stays small. Larger ones take fresh memory each time.
OPENED_MEMORY_BYTES_MAX = 1 << 22

# A search for the next intact batch after damage reads each byte once for headers, and checks the
# CRC of candidates. False candidates are rare in real data (less than one byte in a thousand is
# read twice); the factor eight keeps the time linear for malicious data.
RESYNC_CHECKED_BYTES_FACTOR = 8

# A search after damage mostly ends after a few KiB, and there may be one for each of a million
# batches: a chunk must fit into the processor's cache.
SEARCH_CHUNK_BYTES = 1 << 18

# How far the end of a batch with a wrong length, at which its CRC matches, is searched for: 16
# times Kafka's default for the largest batch.
EXTENT_BYTES_MAX = 1 << 24

# A chain of batches of this length after damage is the log, not the content of a value: four times
# Kafka's default for the largest batch. Each damage costs at most this much walking.
LONG_CHAIN_BYTES = 1 << 22

# After this many short chains of batches after damage, the first valid one is used: if damage is
# everywhere, each place costs the check of this many chains.
CHAINS_CHECKED_MAX = 16

# A million partitions with the longest topic name fit; Kafka recommends a few thousand partitions
# per broker. A larger file is not a checkpoint or properties file.
CHECKPOINT_BYTES_MAX = 1 << 28

# segment.index.bytes is an int32, and so is the largest position a broker maps; no broker writes a
# larger index, transaction index or snapshot.
SIDE_FILE_BYTES_MAX = 2_147_483_647

# A consumer of old records needs the offset index of one segment at a time: 2 MiB for a full one of
# 1 GiB at index.interval.bytes=4096, 3 MiB more if it searched by time. So the indexes of a dozen
# consumers are in memory, and those of others are searched in the files.
LOADED_INDEXES_BYTES_MAX = 1 << 26

# Reading a full index costs 6 ms, searching its file 0.05 ms: after this many searches, reading the
# index has cost no more than they did.
INDEX_SEARCHES_MAX = 128

# A look-up reads from an index entry on, and entries are 4 KiB apart: one read has some batches of
# normal size, and a large batch costs no more than its size.
LOOKUP_CHUNK_BYTES = 1 << 16

# Kafka keeps the last five batches of a producer (the most that a client has in flight), so that
# each of them is recognised when it is retried.
PRODUCER_BATCHES_KEPT = 5

# A batch whose records are read may grow this much beyond max.message.bytes, or to
# OPENED_MEMORY_BYTES_MAX: ordinary data compresses tenfold, and a bomb takes megabytes, not the
# machine's memory.
UNCOMPRESSED_BATCH_FACTOR = 32

# Stored bytes that are converted for an old consumer at once: Kafka's own chunk size, which
# determines how much is sent before a batch that cannot be converted.
DOWN_CONVERSION_CHUNK_BYTES = 128 << 10

# Below this size a read and a send cost less than a sendfile, above more (measured: equal at 64
# KiB, five times as much at 1 MiB).
SENDFILE_BYTES_MIN = 128 << 10

# An index entry covers 4 KiB of batches, so one read of this size mostly contains the batch.
HEADER_WALK_BYTES = 4096

# A cleaner's offset map is limited like a Java array, even if log.cleaner.dedupe.buffer.size is
# larger: 2 GiB are 80 million keys in one pass.
CLEANER_MAP_BYTES_MAX = 2_147_483_647

# Kafka's own interval: a shorter one would slow down a cleaner at every batch, a longer one lets
# bursts reach the disk.
CLEANER_THROTTLE_CHECK_MS = 300

# How often a cleaner's process checks whether it may continue: a stop or pause is delayed by that,
# and the loop is interrupted ten times a second.
CLEANER_CHECK_MS = 100

# Starting a process takes 0.1 s of processor time, in which a thread cleans more than this. Brokers
# with only small compacted logs (most test clusters, __consumer_offsets) never start one.
CLEANER_PROCESS_BYTES_MIN = 1 << 20

# A cleaner's process of 30 MB is kept until after the next round of log.cleaner.backoff.ms, 15 s.
CLEANER_PROCESS_IDLE_MS = 20_000

# Chunk size of copying a log: large enough that system calls are negligible, small enough for the
# processor's cache.
COPY_CHUNK_BYTES = 1 << 20

# -- inspection --------------------------------------------------------------------------------

# A corrupt index can have a hundred thousand wrong entries; this many are enough for a report, and
# limit the memory.
FINDINGS_OF_A_KIND_MAX = 20

# After this many damaged places a segment counts as lost: each costs a search through the rest of
# the file, which must not become quadratic for malicious data.
DAMAGES_OF_A_SEGMENT_MAX = 100

# -- dump --------------------------------------------------------------------------------------

# Loading compiled code takes 60 ms, in which plain Python prints this many records, or this many
# bytes of large ones.
FAST_TIER_RECORDS_MIN = 20_000
# See above: the limit for large records.
FAST_TIER_BYTES_MIN = 32 << 20

# Compiling takes about 5 s once per machine, in which plain Python prints this much: a smaller log
# does not wait for it.
COMPILE_BYTES_MIN = 64 << 20

# -- schemas -----------------------------------------------------------------------------------

# A schema in a registry has tens of references at most; a cycle of them must end.
SCHEMA_REFERENCES_MAX = 1_000

# Requests for unknown schemas. A registry with deleted schemas has some unknown ids; keys without
# an envelope, such as longs, may look like 65,536 of them.
UNKNOWN_SCHEMAS_MAX = 500

# Python converts bytes to a decimal in quadratic time: 0.01 s for this many, minutes for 1 MB.
# Amounts have tens of digits; this is some 10,000.
DECIMAL_BYTES_MAX = 4096

# Nesting of decoded columns: Arrow transfers 64 levels of types between engines.
SHAPE_DEPTH_MAX = 40

# Mutually recursive types, as in syntax trees, have millions of fields once they are expanded; real
# tables have some thousands.
SHAPE_FIELDS_MAX = 10_000

# -- json_text ---------------------------------------------------------------------------------

# Real documents have tens of levels. Writers of YAML and tables use a few of Python's 1,000 stack
# frames per level, and must reach the bottom. JSONPath's own limit, 100, is reached by recursive
# descent (RFC 9535 leaves it open).
JSON_DEPTH_MAX = 200

# -- analysis ----------------------------------------------------------------------------------

# Equal rows passed on at once, four bytes each. Eight times as many exceed DuckDB's caches.
COUNTED_ROWS_MAX = 1 << 17

# A split size from which counting headers is worth the 2 ms of loading compiled code.
COUNTED_SPLIT_BYTES_MIN = 1 << 20

# A JVM writes an archive of its classes in seconds; one that takes longer than this has failed.
CLASS_ARCHIVE_MADE_MS = 3_600_000

# Spark's own size for file splits; the decode buffers of one task stay far below a worker's
# memory, and a task of this size takes a second or more, against 0.1 s that any task costs.
SPLIT_BYTES = 128 << 20

# Bytes that a retried task reads again: seconds of work, compared with 0.1 s for its start.
TASK_BYTES_MAX = 2 << 30

# Memory of the embedded SQL engine before it writes temporary files: together with two Arrow
# batches per thread, far below the memory of a small machine.
LOCAL_ENGINE_MEMORY_BYTES = 2 << 30

# For a smaller segment, opening its two indexes and checking batches costs as much as reading it.
NARROWED_SEGMENT_BYTES_MIN = 256 << 10

# Index entries that a query for few offsets tries: after as many wrong ones the rest is likely
# wrong too, and reading the segment costs less than checking each of its batches.
WRONG_INDEX_ENTRIES_MAX = 20

# Opening a small segment costs as much time as decoding this many bytes.
FILE_OPEN_WEIGHT_BYTES = 30 << 10

# The description of one task's splits is sent as text; this keeps it below a megabyte.
SPLIT_SEGMENTS_MAX = 2000

# Files that an export task writes at the same time, one per folder: each buffers up to a row group,
# and most tasks have the days of a few partitions.
EXPORT_FILES_OPEN_MAX = 32

# Bytes at a log's end that are read repeatedly, while it is followed, to find the last complete
# batch: a fetch of Kafka's default size, some ms.
FOLLOWED_TAIL_BYTES = 1 << 20

# Splits up to this size are compressed completely to compare codecs: gzip takes half a second.
COMPRESSED_SPLIT_BYTES_MAX = 16 << 20
# Of larger splits one batch in this many: a gigabyte costs as much as four such splits.
COMPRESSED_ONE_OF = 16

# Chunk size when records become columns: each byte is processed three times (read, CRC, copy into a
# column), and twice of them from the processor's cache.
RUN_CHUNK_BYTES = 1 << 18

# Arrow's binary arrays count bytes in an int32, which a record batch of this size does not reach;
# it also limits a task's memory. Two of them, one being read and one being filled, fit best into
# the processor's cache: 8 MiB took twice as long to fill on a busy machine.
ARROW_BATCH_BYTES = 4 << 20

# The most records in one Arrow batch, for logs of tiny records.
ARROW_BATCH_RECORDS_MAX = 100_000

# The most headers in one Arrow batch, unless one log batch has more: ten per record.
ARROW_BATCH_HEADERS_MAX = 1_000_000

# Large enough for long runs of one column, small enough for a worker to buffer one.
PARQUET_ROW_GROUP_BYTES = 64 << 20
# The footer of a Parquet file with all columns has some tens of kilobytes.
EXPORT_FILE_BYTES_MIN = 1 << 20

# -- controller --------------------------------------------------------------------------------

# A transaction of a real ZooKeeper must stay below 1 MiB (jute.maxbuffer): this many partition
# states, each with its path, take a third of it.
CONTROLLER_MULTI_OPERATIONS_MAX = 1_000

# The same limit in bytes: ZooKeeper closes the connection at a frame of jute.maxbuffer (1,048,575
# by default). A thousand operations with long paths, or topics with many partitions, exceed that;
# the rest is for the paths' chroot.
CONTROLLER_MULTI_BYTES_MAX = 900 << 10

# Reads that a controller sends before it waits for the first response: a thousand responses with
# one partition state each are 200 KB, and the round-trip time is negligible then.
CONTROLLER_READS_MAX = 1_000
# A transaction of more operations gets a separate turn of the loop: 1,000 take 20 ms in the
# embedded store, and a new topic of one partition writes three nodes.
CONTROLLER_OPERATIONS_PER_SHARE = 100

# A controller that could not load the cluster joins the election again after this pause: long
# enough for another broker to win and for the disk to recover, short for clients without a leader.
CONTROLLER_RETRY_MS = 500

# Kafka's own delay of a new controller's first preferred leader check.
LEADER_BALANCE_FIRST_CHECK_MS = 5_000

# -- replication -------------------------------------------------------------------------------

# Up to this size the last appended batch is cached for followers: reading it again for each of them
# costs more than a copy.
NEWEST_BATCH_BYTES_MAX = 4096

# -- groups ------------------------------------------------------------------------------------

# How long a new member of a group waits for the response to its first JoinGroup. It has no id and
# sends no heartbeats until then; after this a client that gave up is removed. Kafka's value.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000

# Log records that a loading coordinator applies between checks of its turn's time: less than a
# millisecond of work.
LOADED_AT_ONCE = 128

# Bytes of keys in a batch of tombstones. With small keys its records are up to twice as large: half
# of the default message.max.bytes, which a topic's setting may lower.
TOMBSTONE_BATCH_BYTES_MAX = 256 * 1024

# -- transactions ------------------------------------------------------------------------------

# Kafka's own back-off before a broker requests producer ids again after an error.
PRODUCER_ID_RETRY_MS = 50
# Kafka's own back-off (retry.backoff.ms) before a coordinator sends markers again.
MARKER_RETRY_MS = 100
# The longest back-off for an unreachable broker, or a log with too few replicas: with ten thousand
# transactions each attempt is work.
MARKER_RETRY_MS_MAX = 1600
# The most partitions in one WriteTxnMarkers request: each is a separate append, and a leader that
# writes ten thousand of them in one turn blocks for a second.
MARKERS_PER_REQUEST_MAX = 100
# Interval of the checks whether loaded transactional ids are committed: followers fetch a new
# leader's records within a few milliseconds.
LOADED_IDS_POLL_MS = 10

# -- admin -------------------------------------------------------------------------------------

# The partitions of a topic are children of one node, so its limit applies (ZNODE_CHILDREN_MAX);
# without it one request could ask for two thousand million partitions.
TOPIC_PARTITIONS_MAX = 100_000

# -- api ---------------------------------------------------------------------------------------

# Topics and groups for which a connection caches grants of ACLs: more than most clients use, and
# some hundred KB, as names longer than those of topics are not cached. Beyond it the cache is
# cleared.
GRANTS_KEPT_MAX = 1024

# Kafka's own time after which the measurement of an idle client is removed.
QUOTA_RATE_IDLE_MS = 60 * 60 * 1000

# Up to this size records are joined with the surrounding bytes and sent as one part: copying them
# costs less than three parts.
JOINED_FETCH_BYTES_MAX = 4096

# Kafka's own limit: a session unused for two minutes may be evicted for a new one, and a session
# older than that for a larger one.
FETCH_SESSION_EVICTION_MS = 120_000

# The clients of a broker request a few sets of topics, each in the versions of a few libraries;
# more different requests are not repeated.
METADATA_ANSWERS_KEPT = 256
# All topics of a large cluster (10 000 partitions with three replicas, 40 bytes each) in a dozen
# versions, which is little of a broker's memory.
METADATA_ANSWERS_KEPT_BYTES = 8 << 20

# Rows of a large request between checks of the share's time: the settings of 16 topics take 7 ms,
# and for the cheapest rows a check costs a tenth of them.
ROWS_PER_SHARE = 16

# A produce or fetch of more partitions is served in several turns of the loop: this many take less
# than one share, at 20 µs for each.
PARTITIONS_AT_ONCE_MAX = 128

# Up to this many topics a metadata response is built at once (10 ms), as nearly all are; a larger
# one is built in several turns.
METADATA_TOPICS_AT_ONCE = 256

# How often a response is started again because metadata changed meanwhile; then it is built at
# once, because a client must not wait for the cluster to become stable.
METADATA_RESTARTS_MAX = 3

# max.request.partition.size.limit of Kafka: a page of partitions stays below 200 KB.
DESCRIBED_PARTITIONS_MAX = 2000

# -- server ------------------------------------------------------------------------------------

# Kafka's clients keep 5 requests in flight, librdkafka with acks=0 or many partitions some more; a
# client with this many open requests waits, as every client of Kafka does after one.
OPEN_REQUESTS_PER_CONNECTION_MAX = 64

# -- broker ------------------------------------------------------------------------------------

# Kafka's own back-off before a request to a broker, or finding the controller, is retried.
CONTROLLER_CHANNEL_RETRY_MS = 100

# A stopping broker waits this long for the controller's requests that move its leaderships.
LEADER_MOVES_WAIT_MS = 1000

# Interval at which a broker without a session tries to open one: Kafka's own back-off.
BROKER_SESSION_RETRY_MS = 1000

# Interval of comparing key and certificate files with those in use: a few system calls each.
TLS_FILES_CHECK_MS = 5_000

# Log lines per period about peers that break the protocol: enough to show it, too few for a port
# scan to fill a disk.
REFUSAL_LINES_PER_PERIOD = 5
# The period of the limit above: a minute of a scan causes thirty lines.
REFUSAL_PERIOD_MS = 10_000

# Different reasons that are counted separately: the broker's own are a few dozen, others differ in
# numbers that the peer chose.
REFUSAL_KINDS_MAX = 200

# Kafka's own age limit of a change notification: every broker has read it by then, or reads all
# settings again.
CONFIG_CHANGE_KEPT_MS = 15 * 60 * 1000
# Addresses whose connection rate is measured at a time; beyond, all measurements restart. As many
# as the connections that a present machine can have.
ADDRESS_RATES_MAX = 100_000
# Back-off for a metadata store that does not respond: as long as an election there takes.
CONFIG_CHANGES_RETRY_MS = 1000

# Kafka's own back-off before a broker sends a rejected ISR proposal to the controller again.
ISR_PROPOSAL_RETRY_MS = 50
# Kafka's own times for notifying the controller of ISRs that leaders wrote themselves: the interval
# of the checks.
ISR_CHANGE_CHECK_MS = 2_500
# How long a change is delayed after the last one.
ISR_CHANGE_LINGER_MS = 5_000
# The longest delay of a change.
ISR_CHANGE_DELAY_MS_MAX = 60_000

# Partitions whose state is logged when a broker breaks an invariant: a few lines, which mostly
# include those of the failed request.
LOGGED_STATES_MAX = 100

# -- exporter ----------------------------------------------------------------------------------

# A response with the offsets of this many groups has some MB at hundreds of partitions each.
EXPORTER_GROUPS_PER_REQUEST = 500
# End offsets per partition for the lag in seconds: dense for 15 minutes, sparse for days.
EXPORTER_ENDS_KEPT = 32

# -- watching ----------------------------------------------------------------------------------

# Requests to a broker in any second: a screen that stays open must not load it noticeably.
WATCH_REQUESTS_PER_S = 2
# Time-out of one response: a broker that hangs delays the figures by no more than that.
WATCH_RESPONSE_WAIT_MS = 3_000
# Samples from which groups get their verdict: a minute at 5 s each.
WATCH_SAMPLES_KEPT = 12
# Duration of samples for verdicts on groups with members: slightly less than two commits (5 s).
WATCH_JUDGED_MS = 9_500
# Duration of rates: between two samples of 5 s they vary with each batch of a slow producer.
WATCH_RATE_WINDOW_MS = 15_000
# Settings of topics are requested once in this many samples: every five minutes at 5 s each.
WATCH_SETTINGS_EVERY = 60

# -- cluster -----------------------------------------------------------------------------------

# Heartbeats of ZooKeeper's clients per session time-out, so that one late heartbeat does not end
# the session.
ZNODE_HEARTBEATS_PER_TIMEOUT = 3

# The log's end of a process that did not start: its error and the lines before it fit.
LOG_TAIL_BYTES = 1 << 16
# The lines since a broker halted, one per partition, fit; reading them takes some ms.
HALT_TAIL_BYTES = 4 << 20
# With less than a page for each index and the log free, nothing can be written any more.
DISK_FULL_BYTES = 64 << 10
# Log lines of a crashed broker: they fit on a screen with the other brokers.
BROKER_LOG_LINES_SHOWN = 5
# Partitions named when a broker cannot be removed: a readable line, which also has the count.
PARTITIONS_NAMED_MAX = 20

# -- kctl --------------------------------------------------------------------------------------

# Up to this total size of segments one process completes a query before Spark has started and read
# them on a machine with a few cores.
LOCAL_ENGINE_BYTES = 20 << 30

# A broker accepts no request above 100 MiB (socket.request.max.bytes), so no longer line can become
# a record; an endless line must not fill the memory.
PRODUCE_LINE_BYTES_MAX = 100 << 20

# How long a command's batch waits for more records: too short for a person to notice, long enough
# for programs that write line by line. Kafka's console producer waits for a second.
PRODUCE_LINGER_MS = 50
