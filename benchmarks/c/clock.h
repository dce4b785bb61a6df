/* Instants of CLOCK_MONOTONIC in ns, and the kernel's receive stamps turned into them. */
#ifndef LLM_LOCUST_CLOCK_H
#define LLM_LOCUST_CLOCK_H

#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#define NS_PER_S 1000000000LL

static inline int64_t clock_ns(clockid_t which)
{
    struct timespec at;
    clock_gettime(which, &at);
    return at.tv_sec * NS_PER_S + at.tv_nsec;
}

static inline int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/* CLOCK_REALTIME - CLOCK_MONOTONIC by the tightest of nine brackets. */
static inline int64_t wall_offset_ns(void)
{
    int64_t best_width = INT64_MAX, best = 0;
    for (int i = 0; i < 9; i++) {
        int64_t before = now_ns(), wall = clock_ns(CLOCK_REALTIME), after = now_ns();
        if (after - before < best_width) {
            best_width = after - before;
            best = wall - (before + after) / 2;
        }
    }
    return best;
}

/* recv() that also tells when the kernel got the last segment read (0: no stamp). */
static inline ssize_t recv_stamped(int fd, void *buffer, size_t size, int64_t wall_offset, int64_t *at_ns)
{
    char control[64];
    struct iovec piece = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT);
    *at_ns = 0;
    if (got > 0 && message.msg_controllen >= CMSG_LEN(sizeof(struct timespec))) {
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof stamp);
        *at_ns = stamp.tv_sec * NS_PER_S + stamp.tv_nsec - wall_offset;
    }
    return got;
}

/* Timers of this process to the ns, not to the default 50 us. */
static inline void sharpen_timers(void) { prctl(PR_SET_TIMERSLACK, 1UL); }

#endif
