/* The least that any broker can do for a request: its system calls, checksum, opening and walking.
 *
 *     least PORT FILE
 *
 * Produce 9 of one batch: receive, CRC-32C, open what is compressed, walk over the records, set the
 * base offset, write, answer. Fetch 11 of one partition: receive, answer with the start of the file,
 * by sendfile. No topics, no settings, no metadata, no index, no second thought: what is wrong ends
 * it. A measure for brokers, not one of them. Needs liblz4, libzstd and libisal.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <lz4.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zstd.h>

enum {
    ROOM_BYTES = 8 << 20,
    FILE_BYTES_MAX = 1 << 30,
    BATCH_HEADER_BYTES = 61,
    CHECKED_FROM = 21,
    LZ4_HEADER_BYTES = 7,
    LZ4_BLOCK_BYTES = 64 << 10,
    FETCH_HEAD_BYTES = 124,
    LZ4 = 3,
    ZSTD = 4,
};

struct connection {
    int socket;
    uint8_t *room;
    size_t have;
};

static uint8_t *arena;
static ZSTD_DCtx *zstd;
static int file;
static off_t file_end;
static int64_t next_offset;

static void need(int is_right, const char *what) {
    if (!is_right) {
        perror(what);
        exit(1);
    }
}

static uint16_t read16(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return be16toh(value);
}

static uint32_t read32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return be32toh(value);
}

static uint8_t *write32(uint8_t *at, uint32_t value) {
    value = htobe32(value);
    return (uint8_t *)memcpy(at, &value, sizeof value) + sizeof value;
}

static uint8_t *write64(uint8_t *at, uint64_t value) {
    value = htobe64(value);
    return (uint8_t *)memcpy(at, &value, sizeof value) + sizeof value;
}

static uint64_t read_varint(const uint8_t **at) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
    }
}

static size_t open_lz4(const uint8_t *at) {
    size_t size = 0;
    for (at += LZ4_HEADER_BYTES;;) {
        uint32_t word;
        memcpy(&word, at, sizeof word);
        word = le32toh(word);
        at += sizeof word;
        if (!word) return size;
        uint32_t length = word & 0x7FFFFFFF;
        if (word >> 31) {
            memcpy(arena + size, at, length);
            size += length;
        } else {
            int opened = LZ4_decompress_safe((const char *)at, (char *)arena + size, (int)length,
                                             LZ4_BLOCK_BYTES);
            need(opened >= 0, "lz4");
            size += (size_t)opened;
        }
        at += length;
    }
}

static size_t open_records(int codec, const uint8_t *data, size_t size) {
    if (codec == LZ4) return open_lz4(data);
    need(codec == ZSTD, "codec");
    size_t opened = ZSTD_decompressDCtx(zstd, arena, ROOM_BYTES, data, size);
    need(!ZSTD_isError(opened), "zstd");
    return opened;
}

static void walk(const uint8_t *at, size_t size, uint32_t count) {
    const uint8_t *end = at + size;
    for (uint32_t index = 0; index < count; index++) {
        uint64_t length = read_varint(&at) >> 1;
        const uint8_t *inside = at + 1;
        read_varint(&inside);
        need(read_varint(&inside) == 2 * (uint64_t)index, "offset delta");
        at += length;
    }
    need(at == end, "records");
}

static void answer_produce(int socket, const uint8_t *frame, const uint8_t *name, size_t name_bytes) {
    uint8_t answer[512], *at = answer + 4;
    memcpy(at, frame + 4, 4);
    at += 4;
    *at++ = 0;
    *at++ = 2;
    *at++ = (uint8_t)(name_bytes + 1);
    at = (uint8_t *)memcpy(at, name, name_bytes) + name_bytes;
    *at++ = 2;
    memset(at, 0, 6); /* index, error */
    at = write64(at + 6, (uint64_t)next_offset);
    at = write64(write64(at, UINT64_MAX), 0);
    *at++ = 1; /* no errors of records */
    memset(at, 0, 8); /* message, tags, throttle time, tags */
    at += 8;
    write32(answer, (uint32_t)(at - answer - 4));
    need(send(socket, answer, (size_t)(at - answer), 0) == at - answer, "send");
}

static void produce(int socket, uint8_t *frame) {
    need(read16(frame + 2) == 9, "version of produce");
    /* client id, tags, transactional id, acks, timeout, count of topics */
    const uint8_t *at = frame + 10 + read16(frame + 8) + 1 + 1 + 2 + 4 + 1;
    size_t name_bytes = read_varint(&at) - 1;
    const uint8_t *name = at;
    need(name_bytes < 250, "topic");
    at += name_bytes + 1 + 4;
    size_t size = read_varint(&at) - 1;
    uint8_t *batch = frame + (at - frame);
    uint32_t computed = crc32_iscsi(batch + CHECKED_FROM, (int)size - CHECKED_FROM, UINT32_MAX);
    need(read32(batch + 17) == (computed ^ UINT32_MAX), "checksum");
    int codec = read16(batch + CHECKED_FROM) & 7;
    uint32_t count = read32(batch + 57);
    const uint8_t *records = batch + BATCH_HEADER_BYTES;
    size_t records_bytes = size - BATCH_HEADER_BYTES;
    if (codec) {
        records_bytes = open_records(codec, records, records_bytes);
        records = arena;
    }
    walk(records, records_bytes, count);
    write32(write64(batch, (uint64_t)next_offset) + 4, 0);
    need(pwrite(file, batch, size, file_end) == (ssize_t)size, "write");
    file_end += (off_t)size;
    answer_produce(socket, frame, name, name_bytes);
    next_offset += count;
    if (file_end > FILE_BYTES_MAX) {
        need(ftruncate(file, 0) == 0, "truncate");
        file_end = 0;
    }
}

static void fetch(int socket, const uint8_t *frame, size_t size) {
    /* Behind the largest size stand the count of forgotten topics and the length of the rack. */
    uint32_t wanted = read32(frame + size - 10);
    uint8_t head[FETCH_HEAD_BYTES] = {0};
    write32(head, FETCH_HEAD_BYTES - 4 + wanted);
    memcpy(head + 4, frame + 4, 4);
    need(send(socket, head, sizeof head, MSG_MORE) == sizeof head, "send");
    for (off_t from = 0; from < wanted;) {
        need(sendfile(socket, file, &from, wanted - (size_t)from) > 0, "sendfile");
    }
}

static void take(struct connection *one) {
    size_t at = 0;
    while (one->have - at >= 4) {
        size_t size = read32(one->room + at);
        if (one->have - at < 4 + size) break;
        uint8_t *frame = one->room + at + 4;
        if (read16(frame)) {
            fetch(one->socket, frame, size);
        } else {
            produce(one->socket, frame);
        }
        at += 4 + size;
    }
    memmove(one->room, one->room + at, one->have - at);
    one->have -= at;
}

static int listening_on(uint16_t port) {
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    need(!bind(listener, (struct sockaddr *)&address, sizeof address), "bind");
    need(!listen(listener, 50), "listen");
    return listener;
}

static void watch(int epoll, int socket, struct connection *one) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
    need(!epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event), "epoll_ctl");
}

static struct connection *accepted(int listener) {
    struct connection *one = calloc(1, sizeof *one);
    int on = 1;
    one->socket = accept(listener, NULL, NULL);
    one->room = malloc(ROOM_BYTES);
    setsockopt(one->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return one;
}

int main(int count, char **words) {
    need(count == 3, "least PORT FILE");
    int listener = listening_on((uint16_t)atoi(words[1]));
    file = open(words[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
    need(file >= 0, words[2]);
    arena = calloc(1, ROOM_BYTES);
    zstd = ZSTD_createDCtx();
    int epoll = epoll_create1(0);
    watch(epoll, listener, NULL);
    for (;;) {
        struct epoll_event events[16];
        int ready = epoll_wait(epoll, events, 16, -1);
        for (int n = 0; n < ready; n++) {
            struct connection *one = events[n].data.ptr;
            if (!one) {
                one = accepted(listener);
                watch(epoll, one->socket, one);
                continue;
            }
            ssize_t size = recv(one->socket, one->room + one->have, ROOM_BYTES - one->have, 0);
            if (size <= 0) {
                close(one->socket);
                free(one->room);
                free(one);
                continue;
            }
            one->have += (size_t)size;
            take(one);
        }
    }
}
