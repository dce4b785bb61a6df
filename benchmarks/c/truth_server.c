/*
 * A server whose times are known: what a load generator reports is compared with what this one sent.
 *
 * One thread, one epoll. POST /v1/chat/completions is answered by an OpenAI chat stream: the first token --ttft-ms after the request
 * reached the kernel, then one every --gap-us, each a chunk and a segment of its own. A request with the header X-Stamp gets
 * the instant of each token's sending (CLOCK_MONOTONIC, read just before the system call) in "t"; to others "t" is when the
 * request came: their tokens differ in the text alone, as those of real servers do. As many tokens as max_tokens or
 * max_completion_tokens asks for, else --tokens. GET /v1/models names one model; other paths are not found. With --cert and --key it speaks TLS
 * (when built with WITH_TLS). On SIGTERM it writes --truth: one JSON line a request with request_id (the client's
 * X-Request-Id), arrival_ns, token_send_ns (read before each send) and token_took_ns (until it had returned: longer
 * than some µs where the server's core was taken from it in between).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef WITH_TLS
#include <openssl/ssl.h>
#endif
#include "clock.h"

enum { HEAD_LIMIT = 16384, OUT_LIMIT = 2048, EVENTS = 512, SENDS_PER_TURN = 512, ID_LIMIT = 64, MOST_FDS = 65536 };

typedef struct answer {
    char request_id[ID_LIMIT];
    int64_t arrival_ns;
    int tokens, sent;
    int64_t *send_ns, *took_ns;
    bool stamps;
    struct answer *next;
} answer;

typedef enum { READING, SENDING } phase;

typedef struct {
    int fd, place; /* place in the heap, -1 outside */
    phase phase;
    char head[HEAD_LIMIT + 1];
    size_t head_bytes, body_left;
    char tail[256]; /* the last bytes of a long body may hold max_tokens */
    int64_t arrival_ns, due_ns;
    int wanted_tokens, step;
    answer *answer;
    char out[OUT_LIMIT];
    int out_bytes, out_sent;
    bool want_write;
#ifdef WITH_TLS
    SSL *tls;
    bool shaken;
#endif
} stream;

static int default_tokens = 200, epoll_fd;
static int64_t ttft_ns = 50000000, gap_ns = 20000000, wall_offset;
static stream **heap;
static int heap_size;
static answer *first_answer, **last_answer = &first_answer;
static volatile sig_atomic_t stopped;
#ifdef WITH_TLS
static SSL_CTX *tls_context;
#endif

/* ---- the heap of what is due ---- */

static void heap_set(int place, stream *s) { heap[place] = s; s->place = place; }

static void heap_rise(int place)
{
    stream *s = heap[place];
    while (place > 0 && heap[(place - 1) / 2]->due_ns > s->due_ns) {
        heap_set(place, heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    heap_set(place, s);
}

static void heap_sink(int place)
{
    stream *s = heap[place];
    for (int child = 2 * place + 1; child < heap_size; child = 2 * place + 1) {
        if (child + 1 < heap_size && heap[child + 1]->due_ns < heap[child]->due_ns)
            child++;
        if (heap[child]->due_ns >= s->due_ns)
            break;
        heap_set(place, heap[child]);
        place = child;
    }
    heap_set(place, s);
}

static void heap_add(stream *s) { heap_set(heap_size++, s); heap_rise(s->place); }

static void heap_drop(stream *s)
{
    int place = s->place;
    if (place < 0)
        return;
    s->place = -1;
    stream *last = heap[--heap_size];
    if (last != s) {
        heap_set(place, last);
        heap_rise(place);
        heap_sink(last->place);
    }
}

/* ---- bytes in and out ---- */

static void watch(stream *s, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | (s->want_write ? EPOLLOUT : 0), .data.ptr = s};
    epoll_ctl(epoll_fd, operation, s->fd, &event);
}

static void drop(stream *s)
{
    heap_drop(s);
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
#ifdef WITH_TLS
    if (s->tls)
        SSL_free(s->tls);
#endif
    close(s->fd);
    free(s);
}

/* Bytes read; 0 at the end, -1 with EAGAIN where there are none. */
static ssize_t take(stream *s, void *buffer, size_t size, int64_t *at_ns)
{
#ifdef WITH_TLS
    if (s->tls) {
        int got = SSL_read(s->tls, buffer, (int)size);
        *at_ns = now_ns();
        if (got > 0)
            return got;
        int why = SSL_get_error(s->tls, got);
        errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EPIPE;
        return errno == EAGAIN ? -1 : 0;
    }
#endif
    ssize_t got = recv_stamped(s->fd, buffer, size, wall_offset, at_ns);
    if (*at_ns == 0)
        *at_ns = now_ns();
    return got;
}

static ssize_t give(stream *s, const void *bytes, int size)
{
#ifdef WITH_TLS
    if (s->tls) {
        int sent = SSL_write(s->tls, bytes, size);
        if (sent > 0)
            return sent;
        int why = SSL_get_error(s->tls, sent);
        errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : EPIPE;
        return -1;
    }
#endif
    return send(s->fd, bytes, size, MSG_NOSIGNAL);
}

/* Send what waits. False: the peer is gone. */
static bool flush(stream *s)
{
    while (s->out_sent < s->out_bytes) {
        ssize_t sent = give(s, s->out + s->out_sent, s->out_bytes - s->out_sent);
        if (sent < 0) {
            if (errno != EAGAIN)
                return false;
            if (!s->want_write) {
                s->want_write = true;
                watch(s, EPOLL_CTL_MOD);
            }
            return true;
        }
        s->out_sent += (int)sent;
    }
    s->out_bytes = s->out_sent = 0;
    if (s->want_write) {
        s->want_write = false;
        watch(s, EPOLL_CTL_MOD);
    }
    return true;
}

/* ---- one answer ---- */

static void begin_answer(stream *s)
{
    answer *told = calloc(1, sizeof *told);
    const char *id = strcasestr(s->head, "x-request-id:");
    if (id)
        sscanf(id + 13, " %63[^\r\n]", told->request_id);
    told->stamps = strcasestr(s->head, "\r\nx-stamp:");
    told->arrival_ns = s->arrival_ns;
    told->tokens = s->wanted_tokens;
    told->send_ns = calloc(told->tokens, sizeof *told->send_ns);
    told->took_ns = calloc(told->tokens, sizeof *told->took_ns);
    *last_answer = told;
    last_answer = &told->next;
    s->answer = told;
    s->phase = SENDING;
    s->step = 0;
    s->out_bytes = sprintf(s->out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                                   "Transfer-Encoding: chunked\r\n\r\n");
    s->due_ns = s->arrival_ns + ttft_ns;
    if (flush(s))
        heap_add(s);
    else
        drop(s);
}

static int write_event(stream *s, char *text, size_t size)
{
    answer *told = s->answer;
    if (s->step < told->tokens) {
        bool last = s->step == told->tokens - 1;
        told->sent = s->step + 1;
        int64_t at_ns = told->send_ns[s->step] = now_ns();
        return snprintf(text, size,
            "data: {\"id\":\"chatcmpl-%016x\",\"object\":\"chat.completion.chunk\",\"created\":1764500000,"
            "\"model\":\"deepseek-r1\",\"t\":%" PRId64 ",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" tok%d\"},"
            "\"logprobs\":null,\"finish_reason\":%s}]}\n\n",
            s->fd, told->stamps ? at_ns : told->arrival_ns, s->step, last ? "\"length\"" : "null");
    }
    if (s->step == told->tokens)
        return snprintf(text, size,
            "data: {\"id\":\"chatcmpl-%016x\",\"object\":\"chat.completion.chunk\",\"created\":1764500000,"
            "\"model\":\"deepseek-r1\",\"choices\":[],"
            "\"usage\":{\"prompt_tokens\":16,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n",
            s->fd, told->tokens, told->tokens + 16);
    return snprintf(text, size, "data: [DONE]\n\n");
}

/* Send the next event of a stream whose time has come; after the last one it reads again. */
static void send_next(stream *s)
{
    char text[1024];
    int bytes = write_event(s, text, sizeof text);
    answer *told = s->answer;
    int tokens = told->tokens, step = s->step;
    bool last = step > tokens;
    s->out_bytes += snprintf(s->out + s->out_bytes, sizeof s->out - s->out_bytes, "%x\r\n%s\r\n%s", bytes, text,
                             last ? "0\r\n\r\n" : "");
    s->step++;
    if (last) {
        s->phase = READING;
        s->head_bytes = 0;
    }
    if (!flush(s)) {
        drop(s);
        return;
    }
    if (step < tokens)
        told->took_ns[step] = now_ns() - told->send_ns[step];
    if (!last) {
        s->due_ns += s->step < tokens ? gap_ns : 0;
        heap_add(s);
    }
}

/* ---- requests ---- */

static int wanted_in(const char *body)
{
    const char *names[] = {"\"max_tokens\":", "\"max_completion_tokens\":"};
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(body, names[i]);
        int tokens = at ? atoi(at + strlen(names[i])) : 0;
        if (tokens > 0)
            return tokens;
    }
    return 0;
}

/* Answer what is no chat. */
static void answer_short(stream *s)
{
    const char *body = "{\"object\":\"list\",\"data\":[{\"id\":\"deepseek-r1\",\"object\":\"model\",\"created\":1,"
                       "\"owned_by\":\"truth\",\"max_model_len\":131072}]}";
    bool known = strncmp(s->head, "GET /v1/models", 14) == 0 || strncmp(s->head, "GET /health", 11) == 0;
    s->out_bytes = snprintf(s->out, sizeof s->out, "HTTP/1.1 %s\r\nContent-Type: application/json\r\n"
                            "Content-Length: %zu\r\n\r\n%s",
                            known ? "200 OK" : "404 Not Found", strlen(body), body);
    s->head_bytes = 0;
    if (!flush(s))
        drop(s);
}

/* Read on a request; begin its answer when its body is complete. */
static void read_request(stream *s)
{
    int64_t at_ns;
    if (s->body_left) {
        char body[65536 + sizeof s->tail];
        memcpy(body, s->tail, sizeof s->tail - 1);
        ssize_t got = take(s, body + sizeof s->tail - 1, 65536, &at_ns);
        if (got <= 0) {
            if (got == 0 || errno != EAGAIN)
                drop(s);
            return;
        }
        body[sizeof s->tail - 1 + got] = 0;
        memcpy(s->tail, body + got, sizeof s->tail - 1);
        int wanted = wanted_in(body);
        s->wanted_tokens = wanted ? wanted : s->wanted_tokens;
        s->body_left -= (size_t)got < s->body_left ? (size_t)got : s->body_left;
    } else {
        ssize_t got = take(s, s->head + s->head_bytes, HEAD_LIMIT - s->head_bytes, &at_ns);
        if (got <= 0) {
            if (got == 0 || errno != EAGAIN)
                drop(s);
            return;
        }
        s->head_bytes += got;
        s->head[s->head_bytes] = 0;
        char *end = strstr(s->head, "\r\n\r\n");
        if (!end) {
            if (s->head_bytes == HEAD_LIMIT)
                drop(s);
            return;
        }
        if (strncmp(s->head, "POST", 4) != 0) {
            answer_short(s);
            return;
        }
        const char *length = strcasestr(s->head, "content-length:");
        size_t body_bytes = length ? strtoul(length + 15, NULL, 10) : 0;
        size_t here = s->head_bytes - (end + 4 - s->head);
        int wanted = wanted_in(end + 4);
        s->wanted_tokens = wanted ? wanted : default_tokens;
        memset(s->tail, ' ', sizeof s->tail - 1);
        s->body_left = body_bytes > here ? body_bytes - here : 0;
        if (s->body_left && s->head_bytes < HEAD_LIMIT) { /* the whole body may still fit beside the head */
            size_t room = HEAD_LIMIT - s->head_bytes;
            if (s->body_left <= room) {
                s->body_left = 0;
                return; /* comes in a later read; judged again from the head's beginning */
            }
        }
    }
    if (s->body_left)
        return;
    s->arrival_ns = at_ns;
    if (strncmp(s->head, "POST /v1/chat/completions", 25) == 0)
        begin_answer(s);
    else
        answer_short(s);
}

static void serve(stream *s, uint32_t events)
{
#ifdef WITH_TLS
    if (s->tls && !s->shaken) {
        int done = SSL_accept(s->tls);
        if (done <= 0) {
            int why = SSL_get_error(s->tls, done);
            if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
                drop(s);
            return;
        }
        s->shaken = true;
    }
#endif
    if (events & EPOLLOUT && !flush(s)) {
        drop(s);
        return;
    }
    if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        return;
    if (s->phase == READING) {
        read_request(s);
        return;
    }
    char stray[4096];
    int64_t at_ns;
    ssize_t got = take(s, stray, sizeof stray, &at_ns);
    if (got == 0 || (got < 0 && errno != EAGAIN))
        drop(s);
}

static void accept_all(int listener)
{
    int fd, on = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
        stream *s = calloc(1, sizeof *s);
        s->fd = fd;
        s->place = -1;
#ifdef WITH_TLS
        if (tls_context) {
            s->tls = SSL_new(tls_context);
            SSL_set_fd(s->tls, fd);
        }
#endif
        watch(s, EPOLL_CTL_ADD);
    }
}

/* ---- the process ---- */

static void run(int listener)
{
    struct epoll_event events[EVENTS];
    while (!stopped) {
        int64_t wait_ns = heap_size ? heap[0]->due_ns - now_ns() : NS_PER_S;
        wait_ns = wait_ns < 0 ? 0 : wait_ns;
        struct timespec wait = {.tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S};
        int ready = epoll_pwait2(epoll_fd, events, EVENTS, &wait, NULL);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr)
                serve(events[i].data.ptr, events[i].events);
            else
                accept_all(listener);
        }
        int64_t turn_ns = now_ns();
        for (int left = SENDS_PER_TURN; left && heap_size && heap[0]->due_ns <= turn_ns; left--) {
            stream *s = heap[0];
            heap_drop(s);
            send_next(s);
        }
    }
}

static void write_truth(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(1);
    }
    for (answer *told = first_answer; told; told = told->next) {
        fprintf(file, "{\"request_id\":\"%s\",\"arrival_ns\":%" PRId64 ",\"token_send_ns\":[", told->request_id,
                told->arrival_ns);
        for (int i = 0; i < told->sent; i++)
            fprintf(file, i ? ",%" PRId64 : "%" PRId64, told->send_ns[i]);
        fprintf(file, "],\"token_took_ns\":[");
        for (int i = 0; i < told->sent; i++)
            fprintf(file, i ? ",%" PRId64 : "%" PRId64, told->took_ns[i]);
        fprintf(file, "]}\n");
    }
    fclose(file);
}

static int listen_on(int *port)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (void *)&address, size) || listen(fd, 4096)) {
        perror("listen");
        exit(1);
    }
    getsockname(fd, (void *)&address, &size);
    *port = ntohs(address.sin_port);
    return fd;
}

static void use_tls(const char *certificate, const char *key)
{
#ifdef WITH_TLS
    tls_context = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(tls_context, certificate) == 1 &&
        SSL_CTX_use_PrivateKey_file(tls_context, key, SSL_FILETYPE_PEM) == 1) {
        SSL_CTX_set_mode(tls_context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        return;
    }
    fprintf(stderr, "certificate or key cannot be read\n");
#else
    (void)certificate, (void)key;
    fprintf(stderr, "built without TLS\n");
#endif
    exit(1);
}

static void on_signal(int number) { (void)number; stopped = 1; }

int main(int count, char **words)
{
    static const struct option names[] = {
        {"port", 1, 0, 'p'}, {"tokens", 1, 0, 'n'}, {"ttft-ms", 1, 0, 't'}, {"gap-us", 1, 0, 'g'},
        {"truth", 1, 0, 'f'}, {"cert", 1, 0, 'c'}, {"key", 1, 0, 'k'}, {0, 0, 0, 0}};
    const char *truth = NULL, *certificate = NULL, *key = NULL;
    int port = 0, letter;
    while ((letter = getopt_long(count, words, "", names, NULL)) != -1) {
        switch (letter) {
        case 'p': port = atoi(optarg); break;
        case 'n': default_tokens = atoi(optarg); break;
        case 't': ttft_ns = (int64_t)(atof(optarg) * 1e6); break;
        case 'g': gap_ns = (int64_t)(atof(optarg) * 1e3); break;
        case 'f': truth = optarg; break;
        case 'c': certificate = optarg; break;
        case 'k': key = optarg; break;
        default: return 2;
        }
    }
    if (certificate && key)
        use_tls(certificate, key);
    struct rlimit files = {MOST_FDS, MOST_FDS};
    setrlimit(RLIMIT_NOFILE, &files);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    sharpen_timers();
    wall_offset = wall_offset_ns();
    heap = calloc(MOST_FDS, sizeof *heap);
    epoll_fd = epoll_create1(0);
    int listener = listen_on(&port);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
    printf("truth server ready on %d\n", port);
    fflush(stdout);
    run(listener);
    if (truth)
        write_truth(truth);
    return 0;
}
