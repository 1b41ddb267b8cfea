/* What a log on this disk costs: append so many bytes, wait until they are on it, again.
 *
 *     raw_append [bytes=100] [room=no|yes] [seconds=3]
 *
 * room=yes: the file has its size from the beginning, with zeros in it, so that nothing
 * but the bytes changes. It lies beside this executable. */
#include "bench/raw/raw.h"

#include "bench/etcd.h"

#include <fcntl.h>

enum { BYTES_MAX = 1 << 16, ROOM_BYTES = 64 << 20, STEP_BYTES = 1 << 20 };

static void make_room(int file)
{
    static const char zeros[STEP_BYTES];

    for (off_t at = 0; at < ROOM_BYTES; at += STEP_BYTES)
        raw_check(pwrite(file, zeros, sizeof zeros, at) == STEP_BYTES, "room");
    raw_check(fsync(file) == 0, "fsync");
}

static uint64_t append_for(int file, unsigned bytes, uint64_t end_ns)
{
    static const char data[BYTES_MAX] = "record";
    uint64_t count = 0;
    off_t at = 0;

    while (bench_now_ns() < end_ns) {
        raw_check(pwrite(file, data, bytes, at) == (ssize_t)bytes, "pwrite");
        raw_check(fdatasync(file) == 0, "fdatasync");
        at += (off_t)bytes;
        count++;
    }
    return count;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"bytes", "room", "seconds", NULL};
    static const char *const rooms[] = {"no", "yes", NULL};
    unsigned bytes = raw_arg_number(argc, argv, "bytes", 100, 1, BYTES_MAX);
    unsigned room = raw_arg_word(argc, argv, "room", rooms);
    unsigned seconds =
        raw_arg_number(argc, argv, "seconds", (unsigned)bench_size(1, 3), 1, 30);
    char folder[BENCH_PATH_MAX];
    char path[BENCH_PATH_MAX + 8];
    uint64_t begin_ns;
    uint64_t count;
    int file;

    raw_args_check(argc, argv, names);
    raw_check(bench_folder(folder, sizeof folder) == 0, "a folder");
    (void)snprintf(path, sizeof path, "%s/log", folder);
    file = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    raw_check(file >= 0, "the file");
    if (room)
        make_room(file);
    begin_ns = bench_now_ns();
    count = append_for(file, bytes, begin_ns + (uint64_t)seconds * 1000000000);
    printf("{\"bench\":\"raw_append\",\"metric\":\"append\",\"bytes\":%u,\"room\":%u,"
           "\"value\":%.0f,\"unit\":\"1/s\"}\n",
           bytes, room, bench_rate(count, begin_ns, bench_now_ns()));
    close(file);
    bench_folder_remove(folder);
    return 0;
}
