"""Every bound of the engine, each with the reason for its value.

A limit is a module constant with a comment above it that says why it has this value;
tests/test_tidy.py fails on one without. Each stands in the section of the lowest room that uses it.

Source: P3.
"""

from __future__ import annotations

# -- naming ------------------------------------------------------------------------------------

# Kafka's bound on a topic's name: with "-", a partition and ".<32 hex>-delete" cut to fit, a
# directory name stays within the 255 bytes of common file systems.
TOPIC_NAME_CHARS_MAX = 249

# Common file systems allow 255 bytes in a name; Kafka cuts the topic in the name of a deleted
# partition's directory to stay within it.
DIRECTORY_NAME_CHARS_MAX = 255

# The longest group id or transactional id, in bytes: lengths in keys of coordinators' topics are
# int16. Requests of flexible versions carry longer ones.
COORDINATOR_KEY_BYTES_MAX = 32_767
# Group and transactional ids whose hashes are kept, for a request needs its own up to six times: as
# many as a large cluster has.
HASHED_KEYS_MAX = 16_384
# Longer ids, which are rare, are hashed each time: the bound above stays one of a few megabytes.
HASHED_KEY_CHARS_MAX = 256

# -- host --------------------------------------------------------------------------------------

# The kernel takes this many buffers in one vectored write (IOV_MAX on Linux); more are written
# in several calls.
IOV_BUFFERS_MAX = 1024

# Up to this many bytes a read takes memory for the length that was asked without looking at the
# file's size first: the look costs more than the memory, and a larger length may be damage.
UNCHECKED_READ_BYTES_MAX = 1 << 20

# What one read of a socket takes: the size at which system calls no longer count.
RECEIVE_BYTES = 1 << 18

# socket.request.max.bytes of Kafka: a producer's largest request by default fits a hundred times.
FRAME_BYTES_MAX = 104_857_600

# What a broker that was asked may answer with: one batch passes every limit of a fetch, and its
# size is bounded by settings of that broker alone (message.max.bytes). So there is only Kafka's own
# bound, that of an int32; a length alone reserves nothing.
ANSWER_FRAME_BYTES_MAX = 2_147_483_647

# Of the descriptors of a process so many, or a quarter where that is less, are for files: a broker
# that cannot roll a segment loses its directory, one that turns a client away loses nothing.
FILE_DESCRIPTORS_KEPT = 1024

# A listener that finds no descriptor looks again after this time: at once it would spin.
ACCEPT_RETRY_MS = 100

# A request that is half there without another byte for this long is of a dead peer, or of one that
# only holds memory.
HALF_FRAME_DEADLINE_MS = 30_000

# A reader that lets this much pile up in memory, besides one response of any size, is slower than
# its fetches. File regions are not in memory: each counts what its objects take.
UNSENT_BYTES_MAX = 64 << 20
# Measured: 700 bytes for a region that waits, with what releases it.
REGION_COST_BYTES = 1 << 10

# A peer that takes no byte for this long is gone; Kafka's clients give up after 30 s.
UNSENT_DEADLINE_MS = 60_000

# Measured: 100 KB requests cost 97, 69 and 50 µs with 64 KB, 256 KB and 1 MB receive buffers.
RECEIVE_BUFFER_BYTES = 1 << 20

# All unfinished frames together: two of the largest, and some. Kafka has no bound unless
# queued.max.request.bytes is set.
IN_FLIGHT_BYTES_MAX = 1 << 28

# A thread that computes on a worker thread holds it up for so long at each turn, in seconds.
# Python's own 5 ms are more than a request takes (measured beside a cleaning: half of the produces
# wait for 1.0 ms, with 5 ms for 1.6, without a cleaning for 0.3).
THREAD_SWITCH_S = 0.0002

# A process beside a broker computes with what a busy machine has left: a tenth of a processor that
# both want (nice 10), and not the hundredth of the lowest priority, which would never get done.
SIDE_PRIORITY = 10

# Connections that wait to be accepted, where no setting says how many: what both Kafka and
# ZooKeeper have.
LISTEN_BACKLOG = 50

# So many are accepted before those that are there already have their turn again.
ACCEPTS_PER_TURN_MAX = 512

# What one connection has served in one turn of the loop before all others have theirs: as many
# requests as may be open (producers have 5 in flight), so that a read of them seldom needs two
# turns. A turn more costs 20 µs, 64 of the cheapest requests 1 ms.
FRAMES_PER_TURN_MAX = 64
# The same in time, for requests that cost more: ten connections that send without end keep another
# waiting for 50 ms, far below any timeout of a session.
TURN_MS_MAX = 5

# What a request that asks for thousands of things takes of one turn: a wait that no client notices,
# and a hundred times what going on with the next turn costs.
SHARE_MS_MAX = 5

# After how many smaller collections one looks at all that came since the last such: at a hundred
# thousand objects at most, for 15 ms. Python's 10 take twice as long.
FULL_COLLECTION_AFTER = 4

# How often a collection of garbage looks at what has survived one before: it takes half a second
# with 10,000 partitions. Connections and logs of deleted topics wait for it: twenty objects each.
WHOLE_COLLECTION_MS = 60 * 60 * 1000

# Objects beyond twice those of the last look that may be frozen before the next: some 20 MB.
FROZEN_OBJECTS_MAX = 100_000

# What one read takes when IN_FLIGHT_BYTES_MAX is used up: requests of this size are still served,
# and the rests of as many connections as there may be stay below a quarter of the bound.
SMALL_READ_BYTES = 1 << 14

# Kept for the next frames that come in pieces: as many as producers send large frames at the same
# moment; more only costs page faults.
RECEIVE_BUFFERS_KEPT = 4

# The rest of a frame below this size is received together with what follows it. Behind a larger
# rest a read of its own costs little, and spares the copy of the next frame's first part.
SCATTERED_BYTES_MAX = 1 << 18

# Up to this size parts are joined and sent as one: a vectored send of many small ones costs more.
JOINED_SEND_BYTES_MAX = 1 << 14

# What a layer such as TLS is given at once: four of its records, so that a file region for a slow
# reader is not read far ahead.
LAYER_SEND_BYTES = 1 << 16

# What is read of a socket below TLS at once: four of its records.
TLS_READ_BYTES = 1 << 16
# The same of a peer that has filled that once: sixteen of its records.
TLS_BULK_READ_BYTES = 1 << 18
# The same of a client that is not known yet: OpenSSL keeps 4/3 of it for each connection.
TLS_SMALL_READ_BYTES = 1 << 12

# How many records of TLS one read takes: 2 ms of records of one byte, of which TLS_BULK_READ_BYTES
# have ten thousand.
TLS_RECORDS_MAX = 1 << 10

# What a peer may send below TLS without a byte of data: the largest record has 17 KB.
TLS_SILENT_BYTES_MAX = 1 << 16

# What a layer of TLS may hold for a peer that does not read: the records of LAYER_SEND_BYTES, and
# as much of the protocol's own.
TLS_UNREAD_BYTES_MAX = 1 << 17

# Schemas have kilobytes; a larger body is not a schema.
HTTP_BODY_BYTES_MAX = 16 << 20

# A link that is slower is cut: connections.max.idle.ms is ten minutes.
LINK_DELAY_MS_MAX = 600_000

# What one packet carries: an Ethernet frame without the headers of IP and TCP.
LINK_PACKET_BYTES = 1448

# TCP's first retransmission time-out on Linux, beyond the round trip (TCP_RTO_MIN).
LINK_RETRANSMISSION_MS_MIN = 200
# TCP's longest retransmission time-out on Linux (TCP_RTO_MAX).
LINK_RETRANSMISSION_MS_MAX = 120_000
# How often TCP sends again before it gives a connection up (net.ipv4.tcp_retries2).
LINK_RETRANSMISSIONS_MAX = 15

# One request to an object store takes some 20 to 50 ms: ranges of this size keep a fast line busy,
# and a file that is looked at in one place costs no more than that.
OBJECT_RANGE_BYTES = 8 << 20

# -- native ------------------------------------------------------------------------------------

# Mapping compiled code takes some ms: so many records take as long without it.
BULK_RECORDS_MIN = 5_000

# Up to this many bytes a copy is made sooner than ctypes has a pointer into a buffer (0.4 µs).
COPIED_FOR_A_CALL_BYTES_MAX = 4096

# Tables of 8 to 16 KB, of the offset deltas of 4096 records: most batches have fewer.
UNIFORM_BLOCKS_KEPT = 8

# Records that must be of one length before they are looked at as a run: that look costs as much as
# walking over ten.
UNIFORM_RUN_MIN = 12

# Kept code that no process has loaded for so long is of a version that is gone. If it comes back,
# it compiles again.
KEPT_CODE_UNUSED_MS = 30 * 86_400_000

# That kept code is used is noted no more often: each time is a write.
KEPT_CODE_NOTED_MS = 86_400_000

# Looking for compiled code, and mapping it, takes some ms that a start does not have.
WALK_TAKE_UP_DELAY_MS = 200

# A broker that is started for one command has ended by then, and needs no compiler beside it.
WALK_COMPILE_DELAY_MS = 1500

# Compiling takes some seconds at the lowest priority; nobody waits for it.
WALK_COMPILE_POLL_MS = 500

# How often a broker still checks for compiled code after its own compiler ended without any: the
# compiler of another broker needs ten seconds on a busy machine.
WALK_CACHE_CHECKS_MAX = 40

# -- records -----------------------------------------------------------------------------------

# What stands between records is kept by the size of their contents, for so many sizes: those of
# lines of text; longer contents take longer to copy than this takes to make.
RECORD_HEADS_KEPT = 4096

# A compressed batch of 100 MiB (the largest request a broker takes by default) that inflates
# tenfold still fits; a bomb of zeroes (1000-fold) does not take the machine's memory.
DECOMPRESSED_BATCH_BYTES_MAX = 1 << 30

# Output is taken from a decompressor in pieces of this size, so that a bomb is noticed at the
# limit above and not after it: one piece is the most by which it can be overshot.
DECOMPRESS_CHUNK_BYTES = 1 << 20

# -- wire --------------------------------------------------------------------------------------

# Bytes of one version of a message that are read (or written) field by field before its codec is
# compiled: compiling costs about 1 ms, walking these about the same, so a codec that is used
# once never pays and a busy one pays once.
WALKED_BYTES = 4096
# Rows of a message that fill so many bytes at least: with more of them its codec is compiled before
# it is written for the first time. 10,000 rows take 60 ms field by field.
WALKED_ROWS = 256

# Every version of every API fits several times; a peer that sends impossible versions must not make
# the memory of the forms of headers grow.
HEADER_FORMS_KEPT = 4096

# The topics that are written to most, each in the versions of a few libraries: their answers' text
# is kept. 300 bytes each; for others it is made again.
PRODUCED_TOPICS_KEPT = 4096

# Producers and the partitions that they write to most: what their requests begin with is kept, and
# what stands around their answers. 2 KB each at most; for others it is read again.
PRODUCE_HEADS_KEPT = 4096

# Members of groups and the partitions that they commit: as much is kept of their commits. The
# generation is a part of it, so a group's entries are of no use after its next rebalance.
COMMIT_HEADS_KEPT = 4096

# The longest client id that is kept with either: clients make theirs of a few words, and a client
# that sends another of 32 KB with each request must not fill the memory. Longer ones are
# served, too.
KEPT_CLIENT_ID_BYTES_MAX = 255

# The same as PRODUCED_TOPICS_KEPT, for the answers of fetches.
FETCHED_TOPICS_KEPT = 4096

# How a follower's request is read, by the length of its client id: a broker has one or two lengths
# for its followers, and a few hundred bytes are kept for each.
REPLICA_FETCH_FORMS_KEPT = 256

# -- coordinator_loads -------------------------------------------------------------------------

# A disk that did not let a coordinator's partition be read is given a moment, and clients are
# told that the load is in progress meanwhile.
COORDINATOR_LOAD_RETRY_MS = 1000

# -- znode -------------------------------------------------------------------------------------

# ZooKeeper's own bound on a node's data (jute.maxbuffer), which Kafka's largest topics meet.
ZNODE_DATA_BYTES_MAX = 1 << 20

# ZooKeeper's bound on a request (jute.maxbuffer) unless its operator raised it. A larger one is
# sent, and given up when it was lost with its connection so often: other losses seldom come thrice
# in a row.
ZNODE_REQUEST_BYTES_MAX = 0xFFFFF
# See above.
ZNODE_LARGE_REQUEST_TRIES = 3

# A path goes through keys of the store and of every watch; Kafka's longest, a change of a client's
# quota with two names of 249 characters, each escaped threefold, stays below half of it.
ZNODE_PATH_CHARS_MAX = 4096

# A list of children must fit into one answer of ZooKeeper's protocol, 1 MiB: 100 000 names of
# ten characters do. Kafka's own advice ends at far fewer topics.
ZNODE_CHILDREN_MAX = 100_000

# The controller watches each topic, each broker and a dozen folders: as many as children.
ZNODE_WATCHES_MAX = 100_000

# A broker has one session and a tool another; this many is a client that never closes any.
ZNODE_SESSIONS_MAX = 2_000

# ZooKeeper's own bound on a frame is 1 MiB (jute.maxbuffer); a node's data alone may have that,
# and a multi of Kafka's controller with long paths must not be cut off for less.
ZOOKEEPER_FRAME_BYTES_MAX = 4 << 20

# ZooKeeper's tick (tickTime) and its bounds on a session: 2 and 20 of them.
ZOOKEEPER_TICK_MS = 2000
# Two ticks: see above.
ZOOKEEPER_SESSION_TIMEOUT_MIN_MS = 2 * ZOOKEEPER_TICK_MS
# Twenty ticks: see above.
ZOOKEEPER_SESSION_TIMEOUT_MAX_MS = 20 * ZOOKEEPER_TICK_MS

# Pauses between attempts to reach a ZooKeeper that does not answer double up to this: Kafka's own
# client asks again every second.
ZOOKEEPER_RETRY_DELAY_MAX_MS = 1000

# A tool that looks at nodes is gone from the server so soon after it was killed.
ZOOKEEPER_TOOL_SESSION_MS = 10_000

# Kafka's controller puts a few hundred writes into one multi; the bound keeps a transaction, and
# the time it holds the loop, small.
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

# The port that Kafka's own configuration files have a broker listen on.
CLIENT_PORT_DEFAULT = 9092

# Pauses of 100 ms that double up to 1 s: five attempts wait 1.5 s together, in which an ordinary
# election is over; a partition that has no leader then is better told than waited for.
PARTITION_ATTEMPTS_MAX = 5

# A topic that was created a moment ago is known everywhere within this many pauses (0.3 s); one
# that is not there must not keep a person waiting.
UNKNOWN_TOPIC_ATTEMPTS_MAX = 3

# A command has its records at hand and no others to be fair to: as much as a topic takes by default
# (max.message.bytes is 1 MiB and 12 bytes). A topic that takes less says so, and is learnt.
PRODUCE_BATCH_BYTES = 1 << 20

# What a request may bring in all if it brings several batches; the default of Java's producer.
PRODUCE_REQUEST_BYTES = 1 << 20

# What a producer holds of batches that are not stored yet before it waits: enough for five batches
# on their way and the next ones; a quarter of what Java's takes (buffer.memory).
PRODUCE_PENDING_BYTES_MAX = 8 << 20

# What the producer for asyncio holds of records without a result; the default of Java's producer
# (buffer.memory).
SEND_BUFFER_BYTES = 32 << 20
# How long a record waits for room; the default of Java's producer (max.block.ms).
SEND_BLOCK_MS = 60_000

# What one fetch may bring in all; the default of Kafka's consumer.
FETCH_BYTES_MAX = 50 << 20
# Of one partition: large enough to be quick, small enough that every partition gets its turn.
FETCH_PARTITION_BYTES_MAX = 1 << 20
# A broker that any other can stand in for has so long before the next one is asked, too: longer
# than an answer from the far side of the world, shorter than a person's patience.
NEXT_BROKER_MS = 500
# Two looks at what a broker has copied are so far apart: a second's rate is what a throttle bounds,
# and a person waits for it.
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

# A search for the next good batch behind damage reads each byte once to find headers, and puts
# candidates through their CRC. False candidates are rare in real data (less than one byte in a
# thousand is read twice); eight times keeps bytes that were made to mislead in linear time.
RESYNC_CHECKED_BYTES_FACTOR = 8

# A search behind damage mostly ends after a few KiB, and there may be one for each of a million
# batches: read no more than the processor's cache has room for.
SEARCH_CHUNK_BYTES = 1 << 18

# How far behind damage a batch with a wrong length is looked for the end at which its CRC fits:
# 16 times Kafka's default for the largest batch.
EXTENT_BYTES_MAX = 1 << 24

# Batches that follow each other so far behind damage are the log, and not what a value holds:
# four times Kafka's default for the largest batch. Each damage costs so much walking at most.
LONG_CHAIN_BYTES = 1 << 22

# After so many chains of batches past damage, none of them long, the first that fits is taken:
# where damage is everywhere, each place costs the check of so many chains.
CHAINS_CHECKED_MAX = 16

# A million partitions with the longest topic name fit; Kafka's own advice ends at a few thousand
# partitions a broker. A larger checkpoint, or file of properties, is not one.
CHECKPOINT_BYTES_MAX = 1 << 28

# segment.index.bytes is an int32, and so is the largest position a broker maps; a larger index,
# transaction index or snapshot was written by no broker.
SIDE_FILE_BYTES_MAX = 2_147_483_647

# A consumer of old records needs the offset index of one segment at a time: 2 MiB for a full one of
# 1 GiB at index.interval.bytes=4096, 3 MiB more where it looked for a time. So a dozen consumers
# of full segments find theirs in memory, and others search the files of theirs.
LOADED_INDEXES_BYTES_MAX = 1 << 26

# To read a full index costs 6 ms, to search its file 0.05 ms: after so many searches the reading
# has cost no more than they did, and all that follow cost nothing.
INDEX_SEARCHES_MAX = 128

# A look-up reads on from an index entry, and entries lie 4 KiB apart: some batches of ordinary size
# come with one read, and a large batch costs no more than itself.
LOOKUP_CHUNK_BYTES = 1 << 16

# Kafka keeps the last five batches of a producer (the most a client has in flight), so that each
# of them can be recognised when it is sent again.
PRODUCER_BATCHES_KEPT = 5

# A batch whose records are read may grow this much beyond max.message.bytes, or to
# OPENED_MEMORY_BYTES_MAX: ordinary data compresses tenfold, and a bomb takes megabytes, not the
# machine's memory.
UNCOMPRESSED_BATCH_FACTOR = 32

# Stored bytes that are converted for an old consumer at once: Kafka's own chunk, which decides
# what is still sent of it before a batch that cannot be converted.
DOWN_CONVERSION_CHUNK_BYTES = 128 << 10

# Below this a read and a send cost less than a sendfile, above more (measured: equal at 64 KiB,
# five times as much at 1 MiB).
SENDFILE_BYTES_MIN = 128 << 10

# An index entry is followed by 4 KiB of batches, so one read of this size mostly finds the batch
# that is looked for.
HEADER_WALK_BYTES = 4096

# A cleaner's offset map may take what an array in Java may, even if log.cleaner.dedupe.buffer.size
# is larger: 2 GiB are 80 million keys in one pass.
CLEANER_MAP_BYTES_MAX = 2_147_483_647

# Kafka's own interval: a shorter one would slow a cleaner down for every batch, a longer one lets
# the disk feel each burst.
CLEANER_THROTTLE_CHECK_MS = 300

# A cleaner's process asks so often whether it may go on: a stop or a pause is late by that, and the
# loop is disturbed ten times a second.
CLEANER_TOLD_MS = 100

# Starting a process takes 0.1 s of processor time, in which a thread cleans more than this. Brokers
# with nothing but small compacted logs (most of those of tests, and of __consumer_offsets) never
# have one.
CLEANER_PROCESS_BYTES_MIN = 1 << 20

# A cleaner's process of 30 MB is kept for the next round of log.cleaner.backoff.ms, 15 s, and some.
CLEANER_PROCESS_IDLE_MS = 20_000

# A copy of a log goes through memory in pieces of this size: large enough that system calls do not
# count, small enough that it stays in the processor's cache.
COPY_CHUNK_BYTES = 1 << 20

# -- inspection --------------------------------------------------------------------------------

# A garbage index can hold a hundred thousand wrong entries; so many say it as well, and memory
# stays flat.
FINDINGS_OF_A_KIND_MAX = 20

# Behind so many damaged places a segment is taken as lost: each costs a search through the rest of
# the file, and bytes made to look damaged everywhere must not make that quadratic.
DAMAGES_OF_A_SEGMENT_MAX = 100

# -- dump --------------------------------------------------------------------------------------

# Loading compiled code takes 60 ms, in which plain Python prints this many records, or this much
# of large ones.
FAST_TIER_RECORDS_MIN = 20_000
# See above: this is the bound for large records.
FAST_TIER_BYTES_MIN = 32 << 20

# Compiling takes about 5 s once per machine, in which plain Python gets through this much: a
# smaller log does not wait for it.
COMPILE_BYTES_MIN = 64 << 20

# -- schemas -----------------------------------------------------------------------------------

# A schema in a registry has tens of references where it has any; a ring of them must end.
SCHEMA_REFERENCES_MAX = 1_000

# Requests that find nothing. A registry of which schemas were deleted has some unknown ids; keys
# that are no envelopes, such as longs, may look like 65,536 of them.
UNKNOWN_SCHEMAS_MAX = 500

# Python makes a decimal of bytes in the square of their number: 0.01 s for so many, minutes for
# 1 MB. Money has some tens of digits; this is some 10,000.
DECIMAL_BYTES_MAX = 4096

# Columns of decoded values: Arrow hands over 64 levels of types between engines.
SHAPE_DEPTH_MAX = 40

# Types that contain each other, as those of syntax trees, have millions of fields once each has the
# others written out; tables that people made have some thousands.
SHAPE_FIELDS_MAX = 10_000

# -- json_text ---------------------------------------------------------------------------------

# Documents that people made have tens of levels. Writers of YAML and tables take a few of
# Python's 1,000 stack frames for a level, and must come to the bottom. JSONPath's own bound, 100,
# is reached by recursive descent (RFC 9535 leaves it open).
JSON_DEPTH_MAX = 200

# -- analysis ----------------------------------------------------------------------------------

# Equal rows handed on at once, four bytes each. Eight times as many leave the caches of DuckDB.
COUNTED_ROWS_MAX = 1 << 17

# A split whose headers are worth the 2 ms that compiled code for them takes to come.
COUNTED_SPLIT_BYTES_MIN = 1 << 20

# A JVM writes an archive of its classes in seconds; one that is not kept by then never is.
CLASS_ARCHIVE_MADE_MS = 3_600_000

# Spark's own size for file splits; the decode buffers of one task stay far below a worker's
# memory, and a task of this size takes a second or more, against 0.1 s that any task costs.
SPLIT_BYTES = 128 << 20

# What a task that is tried again reads once more: seconds of work, beside 0.1 s for its start.
TASK_BYTES_MAX = 2 << 30

# What the embedded SQL engine holds in memory before it writes to temporary files: beside two
# Arrow batches a thread, far below the memory of a small machine.
LOCAL_ENGINE_MEMORY_BYTES = 2 << 30

# Of a smaller segment, opening its two indexes and looking at batches costs as much as reading it.
NARROWED_SEGMENT_BYTES_MIN = 256 << 10

# A query that wants few offsets tries so many entries of an index; behind as many wrong ones the
# rest is as wrong, and reading the segment costs less than each of its batches looked at.
WRONG_INDEX_ENTRIES_MAX = 20

# Opening a small segment costs as much time as decoding this many bytes.
FILE_OPEN_WEIGHT_BYTES = 30 << 10

# The description of one task's splits travels to it as text; this keeps it below a megabyte.
SPLIT_SEGMENTS_MAX = 2000

# Files that a task of an export writes at once, one a folder: each holds up to a row group, and
# most tasks have the days of a few partitions.
EXPORT_FILES_OPEN_MAX = 32

# How much of a log's end is read to see how far it is whole, again and again while it is followed:
# a fetch of Kafka's default size, some ms.
FOLLOWED_TAIL_BYTES = 1 << 20

# Splits up to this are compressed whole to compare codecs: gzip takes half a second for them.
COMPRESSED_SPLIT_BYTES_MAX = 16 << 20
# Of larger splits one batch in so many: a gigabyte costs what four such splits do.
COMPRESSED_ONE_OF = 16

# Read at once where records become columns: each byte is gone over three times (read, its CRC, its
# copy into a column), and twice of that it is in the processor's cache.
RUN_CHUNK_BYTES = 1 << 18

# Arrow's binary arrays count bytes in an int32; a record batch of this size leaves that far
# away and keeps a task's memory flat. The memory of two, one of which is read while the other is
# filled, is best in the processor's cache: 8 MiB took twice as long to fill on a busy machine.
ARROW_BATCH_BYTES = 4 << 20

# The most records in one Arrow batch, for logs of tiny records.
ARROW_BATCH_RECORDS_MAX = 100_000

# The most headers in one Arrow batch, unless one batch of a log can have more: ten a record.
ARROW_BATCH_HEADERS_MAX = 1_000_000

# Large enough for long runs of one column, small enough that a worker holds one beside its work.
PARQUET_ROW_GROUP_BYTES = 64 << 20
# The end of a Parquet file of all columns takes some tens of kilobytes.
EXPORT_FILE_BYTES_MIN = 1 << 20

# -- controller --------------------------------------------------------------------------------

# A transaction of a real ZooKeeper must stay below 1 MiB (jute.maxbuffer): this many states of
# partitions, each with its path, take a third of it.
CONTROLLER_MULTI_OPERATIONS_MAX = 1_000

# The same bound in bytes: a ZooKeeper cuts the connection at a frame of jute.maxbuffer (1,048,575
# by default). A thousand operations of long paths, or topics of many partitions, are above that;
# the rest is for the paths' chroot.
CONTROLLER_MULTI_BYTES_MAX = 900 << 10

# Reads that a controller sends before it waits for the first answer: a thousand answers with the
# state of a partition each are 200 KB, and the time of a round trip no longer counts.
CONTROLLER_READS_MAX = 1_000
# A transaction of more operations has a turn of the loop to itself: 1,000 take 20 ms of the
# embedded store, and a new topic of one partition writes three nodes.
CONTROLLER_OPERATIONS_PER_SHARE = 100

# A broker that could not load the cluster stands for election again after this pause: long enough
# for another broker to be first and for the disk to rest, short for clients that wait for a leader.
CONTROLLER_RETRY_MS = 500

# Kafka's own time before a new controller looks whether the preferred leaders lead.
LEADER_BALANCE_FIRST_CHECK_MS = 5_000

# -- replication -------------------------------------------------------------------------------

# Up to this size the batch that was appended last is kept for its followers: to read it again, for
# each of them, costs more than a copy.
NEWEST_BATCH_BYTES_MAX = 4096

# -- groups ------------------------------------------------------------------------------------

# How long a new member of a group waits for the response to its first JoinGroup. It has no id until
# then and sends no heartbeats; a client that gave up is gone after this. Kafka's figure.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000

# A coordinator takes up so many records of its log before the time of its turn is looked at: less
# than a millisecond of work.
LOADED_AT_ONCE = 128

# The keys of a batch of tombstones. With small keys its records are up to twice as large: half of
# what message.max.bytes lets a log take by default, which another topic's setting may lower.
TOMBSTONE_BATCH_BYTES_MAX = 256 * 1024

# -- transactions ------------------------------------------------------------------------------

# Kafka's own pause before a broker asks again for producer ids that the controller refused.
PRODUCER_ID_RETRY_MS = 50
# Kafka's own pause (retry.backoff.ms) before a coordinator sends markers once more.
MARKER_RETRY_MS = 100
# The longest pause before a broker that is not reached, and a log with too few replicas, are tried
# once more: with ten thousand transactions each attempt is work.
MARKER_RETRY_MS_MAX = 1600
# The most partitions that one request has markers for: each is an append of its own, and a leader
# that writes ten thousand of them in one turn of its loop is away for a second.
MARKERS_PER_REQUEST_MAX = 100
# Whether transactional ids that were loaded are committed is checked so often: followers fetch what
# a new leader has within a few milliseconds.
LOADED_IDS_POLL_MS = 10

# -- admin -------------------------------------------------------------------------------------

# The partitions of a topic are children of one node, so it is their bound (ZNODE_CHILDREN_MAX);
# without it one request could ask for two thousand million of them.
TOPIC_PARTITIONS_MAX = 100_000

# -- api ---------------------------------------------------------------------------------------

# How many topics and groups a connection keeps what access rules have granted on: more than most
# clients use, and some hundred KB, for longer names than those of topics are not kept. One more has
# all forgotten.
GRANTS_KEPT_MAX = 1024

# Kafka's own time after which the measure of a client that sends nothing is forgotten.
QUOTA_RATE_IDLE_MS = 60 * 60 * 1000

# Up to this size records are joined with what stands around them and leave as one: copying them
# costs less than going on with three parts.
JOINED_FETCH_BYTES_MAX = 4096

# Kafka's own bound: a session that was not used for two minutes makes room for a new one, and one
# that has had them may be pushed out by a larger one.
FETCH_SESSION_EVICTION_MS = 120_000

# The clients of a broker ask for a few sets of topics, each in the versions of a few libraries;
# more questions than this are not asked over and over.
METADATA_ANSWERS_KEPT = 256
# All topics of a large cluster (10 000 partitions of three replicas, 40 bytes each) in a dozen
# versions, and little of a broker's memory.
METADATA_ANSWERS_KEPT_BYTES = 8 << 20

# So many rows of a large request are served before the time of the share is looked at: 16 topics'
# settings take 7 ms, and for the cheapest rows a part of the response costs a tenth of them.
ROWS_PER_SHARE = 16

# A produce or a fetch of more partitions is served in several turns of the loop: of so many the
# work is less than one share, at 20 µs for each.
PARTITIONS_AT_ONCE_MAX = 128

# Up to so many topics a metadata answer is made at once (10 ms), as nearly all are; for more it is
# made in several turns.
METADATA_TOPICS_AT_ONCE = 256

# An answer that is overtaken by new metadata is begun again so often; then it is made at once, for
# a client must not wait for a cluster to come to rest.
METADATA_RESTARTS_MAX = 3

# max.request.partition.size.limit of Kafka: a page of partitions stays below 200 KB.
DESCRIBED_PARTITIONS_MAX = 2000

# -- server ------------------------------------------------------------------------------------

# Kafka's clients keep 5 requests in flight, librdkafka with acks=0 or many partitions some more; a
# client with this many unanswered requests waits, as all Kafka's clients do after one.
OPEN_REQUESTS_PER_CONNECTION_MAX = 64

# -- broker ------------------------------------------------------------------------------------

# Kafka's own pause before a request to a broker, or the search for the controller, is repeated.
CONTROLLER_CHANNEL_RETRY_MS = 100

# A broker that stops waits this long for the orders that take its leaders: they are on their way.
MOVED_LEADERS_HEARD_MS = 1000

# A broker without a session tries to get one this often: Kafka's own pause between its attempts.
BROKER_SESSION_RETRY_MS = 1000

# How often files of keys and certificates are compared with those in use: a few system calls each.
TLS_FILES_CHECK_MS = 5_000

# Lines about peers that break the protocol, in a period: enough to see what is going on, too few
# for a scan of ports to fill a disk.
REFUSAL_LINES_PER_PERIOD = 5
# The period of the bound above: a minute of a scan leaves half a dozen of its lines.
REFUSAL_PERIOD_MS = 10_000

# Different reasons that are counted one by one: the broker's own are a few dozen, the rest differ
# in numbers that the peer chose.
REFUSAL_KINDS_MAX = 200

# Kafka's own age for a node that tells of changed settings: every broker has seen it by then, or
# reads everything again.
CONFIG_CHANGE_KEPT_MS = 15 * 60 * 1000
# Addresses whose rate of connections is measured at a time; beyond, all begin again. As many as
# connections that a machine of today bears.
ADDRESS_RATES_MAX = 100_000
# A metadata store that does not answer is asked again after as long as an election there takes.
CONFIG_CHANGES_RETRY_MS = 1000

# Kafka's own pause before a broker asks the controller again for in-sync sets that it has not
# granted.
ISR_PROPOSAL_RETRY_MS = 50
# Kafka's own times for telling the controller of sets that leaders wrote themselves: how often is
# looked.
ISR_CHANGE_CHECK_MS = 2_500
# How long a change waits for others.
ISR_CHANGE_LINGER_MS = 5_000
# How long it waits at most.
ISR_CHANGE_DELAY_MS_MAX = 60_000

# The partitions whose state is told when a broker breaks a rule of its own: a few lines of the log,
# in which those of the failed request mostly are.
STATES_TOLD_MAX = 100

# -- exporter ----------------------------------------------------------------------------------

# A response with the commits of so many groups is some MB at hundreds of partitions each.
EXPORTER_GROUPS_PER_REQUEST = 500
# Ends of a partition kept for lag in seconds: the last quarter of an hour closely, days sparsely.
EXPORTER_ENDS_KEPT = 32

# -- watching ----------------------------------------------------------------------------------

# Requests to a broker in any second: a screen that stays open must not be seen in its load.
WATCH_REQUESTS_PER_S = 2
# For so long one response is waited for: a broker that hangs makes the figures no older than that.
WATCH_RESPONSE_WAIT_MS = 3_000
# Samples by which groups are judged: a minute at 5 s each.
WATCH_SAMPLES_KEPT = 12
# Groups with members are judged by samples of so long: some ms less than two commits at 5 s each.
WATCH_JUDGED_MS = 9_500
# Rates are of so long: between two samples of 5 s they jump with each batch of a slow producer.
WATCH_RATE_WINDOW_MS = 15_000
# Settings of topics are asked for once in so many samples: five minutes at 5 s each.
WATCH_SETTINGS_EVERY = 60

# -- cluster -----------------------------------------------------------------------------------

# ZooKeeper's clients say that they live this often in a session's timeout, so that one late sign
# ends nothing.
ZNODE_HEARTBEATS_PER_TIMEOUT = 3

# The last words of a process that did not start: its error and the lines before it fit.
LOG_TAIL_BYTES = 1 << 16
# The lines since a broker halted, one for each of its partitions, fit; reading them takes some ms.
HALT_TAIL_BYTES = 4 << 20
# Less than a page of each index and of the log free: nothing can be written any more.
DISK_FULL_BYTES = 64 << 10
# Of a broker that crashed: what it said last fits a screen beside the other brokers.
BROKER_LOG_LINES_SHOWN = 5
# Of what keeps a broker from being removed: a line that can be read, the count says the rest.
PARTITIONS_NAMED_MAX = 20

# -- kctl --------------------------------------------------------------------------------------

# Up to this size of its segments one process answers a query sooner than Spark has started and read
# them on a machine of a few cores.
LOCAL_ENGINE_BYTES = 20 << 30

# A broker takes no request above 100 MiB (socket.request.max.bytes), so no longer line can become
# a record; an endless one must not fill the memory.
PRODUCE_LINE_BYTES_MAX = 100 << 20

# How long a command's batch waits for more records: too short for a person to notice, long enough
# for programs that write line by line. Kafka's own console producer waits for a second.
PRODUCE_LINGER_MS = 50
