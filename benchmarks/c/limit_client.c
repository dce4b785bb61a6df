/*
 * The least that a client can do: what one core could time if the client cost nothing.
 *
 * One epoll, recvmsg with the kernel's receive stamp, a search for each chunk's "t"; no JSON, no HTTP parsing, no
 * records. Each of --streams connections asks --warmup times unmeasured, then --requests times. Prints one JSON line:
 * tokens, CPU and wall seconds of the measured part, the error of the stamps against the sender's clock, TTFT, gaps.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include "clock.h"

enum { READ_BYTES = 65536, EVENTS = 1024 };

typedef struct {
    int fd, asked;
    bool measured;
    int64_t start_ns, last_ns;
} stream;

typedef struct {
    int64_t *values;
    size_t count, room;
} series;

static series errors, ttfts, gaps;

static void add(series *s, int64_t value)
{
    if (s->count == s->room) {
        s->room = s->room ? 2 * s->room : 1 << 16;
        s->values = realloc(s->values, s->room * sizeof *s->values);
    }
    s->values[s->count++] = value;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print_series(const char *name, series *s)
{
    qsort(s->values, s->count, sizeof *s->values, ascending);
    double sum = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += (double)s->values[i];
    size_t n = s->count;
#define AT(q) (n ? s->values[(size_t)((q) * (double)(n - 1))] / 1e6 : 0.0)
    printf(", \"%s\": {\"mean\": %.4f, \"p50\": %.4f, \"p99\": %.4f, \"max\": %.4f}", name, n ? sum / n / 1e6 : 0.0,
           AT(0.5), AT(0.99), AT(1.0));
}

static double cpu_s(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int main(int count, char **words)
{
    static const struct option names[] = {{"port", 1, 0, 'p'}, {"streams", 1, 0, 's'}, {"requests", 1, 0, 'r'},
                                          {"warmup", 1, 0, 'w'}, {"tokens", 1, 0, 'n'}, {0, 0, 0, 0}};
    int port = 0, streams = 1, requests = 1, warmup = 1, tokens = 200, letter;
    while ((letter = getopt_long(count, words, "", names, NULL)) != -1) {
        switch (letter) {
        case 'p': port = atoi(optarg); break;
        case 's': streams = atoi(optarg); break;
        case 'r': requests = atoi(optarg); break;
        case 'w': warmup = atoi(optarg); break;
        case 'n': tokens = atoi(optarg); break;
        default: return 2;
        }
    }
    char body[256], request[512];
    int body_bytes = snprintf(body, sizeof body,
        "{\"model\":\"deepseek-r1\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true,"
        "\"max_tokens\":%d}", tokens);
    int request_bytes = snprintf(request, sizeof request,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Stamp: 1\r\nContent-Type: application/json\r\n"
        "Content-Length: %d\r\n\r\n%s", body_bytes, body);
    sharpen_timers();
    int64_t offset = wall_offset_ns(), began_ns = 0;
    double began_cpu_s = 0;
    int poll = epoll_create1(0), open = streams, on = 1;
    stream *all = calloc(streams, sizeof *all);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < streams; i++) {
        int fd = all[i].fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
        if (connect(fd, (void *)&address, sizeof address)) {
            perror("connect");
            return 1;
        }
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
    }
    for (int i = 0; i < streams; i++) {
        all[i].measured = warmup == 0;
        all[i].start_ns = now_ns();
        send(all[i].fd, request, request_bytes, 0);
    }
    static char text[READ_BYTES + 1];
    struct epoll_event events[EVENTS];
    while (open) {
        int ready = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            stream *s = events[i].data.ptr;
            int64_t at_ns;
            ssize_t got = recv_stamped(s->fd, text, READ_BYTES, offset, &at_ns);
            if (got <= 0) {
                if (got < 0 && errno == EAGAIN)
                    continue;
                fprintf(stderr, "a connection ended\n");
                return 1;
            }
            text[got] = 0;
            at_ns = at_ns ? at_ns : now_ns();
            for (char *found = text; (found = strstr(found, "\"t\":"));) {
                int64_t sent_ns = strtoll(found + 4, &found, 10);
                if (s->measured) {
                    add(&errors, at_ns - sent_ns);
                    if (s->last_ns)
                        add(&gaps, at_ns - s->last_ns);
                    else
                        add(&ttfts, at_ns - s->start_ns);
                }
                s->last_ns = at_ns;
            }
            if (!strstr(text, "[DONE]"))
                continue;
            if (++s->asked == warmup + requests) {
                close(s->fd);
                open--;
                continue;
            }
            s->last_ns = 0;
            s->measured = s->asked >= warmup;
            if (s->measured && !began_ns) {
                began_ns = now_ns();
                began_cpu_s = cpu_s();
            }
            s->start_ns = now_ns();
            send(s->fd, request, request_bytes, 0);
        }
    }
    printf("{\"tokens\": %zu, \"cpu_s\": %.4f, \"wall_s\": %.3f", errors.count, cpu_s() - began_cpu_s,
           (now_ns() - began_ns) / 1e9);
    print_series("error_ms", &errors);
    print_series("ttft_ms", &ttfts);
    print_series("itl_ms", &gaps);
    printf("}\n");
    return 0;
}
