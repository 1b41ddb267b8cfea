/* What a machine has, read from folders that look like /proc and /sys. */
#include "node/devices.h"

#include "tests/real/cli.h"

#include <sys/stat.h>

static char root[64];

static void make_folders(const char *path)
{
    char at[256];

    (void)snprintf(at, sizeof at, "%s", path);
    for (char *slash = strchr(at + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(at, 0700);
        *slash = '/';
    }
}

static void put(const char *path, const char *text)
{
    char whole[256];
    FILE *file;

    (void)snprintf(whole, sizeof whole, "%s%s", root, path);
    make_folders(whole);
    file = fopen(whole, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_root(void **state)
{
    (void)state;
    cli_folder(root, sizeof root);
    return 0;
}

static int remove_root(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

static void expect_list(const mu_value *devices, const char *key,
                        const char *const *names, const int64_t *bytes)
{
    const mu_value *list = mu_value_find(devices, key);
    size_t count = 0;

    while (names[count] != NULL)
        count++;
    assert_non_null(list);
    assert_int_equal(mu_value_count(list), count);
    for (size_t i = 0; i < count; i++) {
        const mu_value *device = mu_value_at(list, i);
        const char *name = NULL;
        int64_t number = -1;
        size_t size;

        (void)mu_value_get_string(mu_value_find(device, "name"), &name, &size);
        (void)mu_value_get_int(mu_value_find(device, "memory_bytes"), &number);
        assert_string_equal(name, names[i]);
        assert_int_equal(number, bytes[i]);
    }
}

static void expect_gpus(const mu_value *devices, const char *const *names,
                        const int64_t *bytes)
{
    expect_list(devices, "gpus", names, bytes);
}

static void put_card(const char *name, const char *vendor, const char *device,
                     const char *node)
{
    char path[160];

    (void)snprintf(path, sizeof path, "/sys/class/drm/%s/device/vendor", name);
    put(path, vendor);
    (void)snprintf(path, sizeof path, "/sys/class/drm/%s/device/device", name);
    put(path, device);
    (void)snprintf(path, sizeof path, "/sys/class/drm/%s/device/drm/%s/dev", name, node);
    put(path, "226:0\n");
}

TEST_WITH(test_no_gpus, make_root, remove_root)
{
    mu_value *devices;
    int64_t number = 0;

    put("/proc/meminfo", "MemFree: 1 kB\nMemTotal:       16303428 kB\nMemTotals: 2 kB\n");
    devices = mu__devices_read(root);
    assert_non_null(devices);
    expect_gpus(devices, (const char *const[]){NULL}, NULL);
    expect_list(devices, "tpus", (const char *const[]){NULL}, NULL);
    (void)mu_value_get_int(mu_value_find(devices, "memory_bytes"), &number);
    assert_int_equal(number, INT64_C(16303428) * 1024);
    (void)mu_value_get_int(mu_value_find(devices, "cores"), &number);
    assert_true(number >= 1);
    assert_non_null(mu_value_find(devices, "host"));
    mu_value_free(devices);
}

TEST_WITH(test_cards, make_root, remove_root)
{
    mu_value *devices;

    put_card("card0", "0x1a03\n", "0x2000\n", "card0"); /* shows pictures alone */
    put_card("card1", "0x1002\n", "0x738c\n", "renderD128");
    put("/sys/class/drm/card1/device/mem_info_vram_total", "34342961152\n");
    put("/sys/class/drm/card1/device/product_name", "AMD Instinct\x01 MI100 \n");
    put_card("card2", "0x8086\n", "0x56c0\n", "renderD129");
    put_card("card3", "0x10de\n", "0x20b0\n", "renderD130");
    put_card("card4", "0xbeef\n", "0x0001\n", "renderD131");
    put("/sys/class/drm/card1-DP-1/status", "connected\n");
    put("/sys/class/drm/renderD128/dev", "226:128\n");
    devices = mu__devices_read(root);
    expect_gpus(devices,
                (const char *const[]){"AMD AMD Instinct? MI100", "Intel 0x56c0",
                                      "NVIDIA 0x20b0", "0xbeef 0x0001", NULL},
                (const int64_t[]){INT64_C(34342961152), 0, 0, 0});
    mu_value_free(devices);
}

/* Those of NVIDIA's driver are not counted twice. */
TEST_WITH(test_nvidia, make_root, remove_root)
{
    mu_value *devices;

    put("/proc/driver/nvidia/gpus/0000:07:00.0/information",
        "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 301\n");
    put("/proc/driver/nvidia/gpus/0000:0a:00.0/information", "IRQ: 7\n");
    put_card("card0", "0x10de\n", "0x20b0\n", "renderD128");
    put_card("card1", "0x8086\n", "0x56c0\n", "renderD129");
    devices = mu__devices_read(root);
    expect_gpus(devices,
                (const char *const[]){"NVIDIA A100-SXM4-40GB", "NVIDIA", "Intel 0x56c0",
                                      NULL},
                (const int64_t[]){0, 0, 0});
    mu_value_free(devices);
}

/* ---- TPUs ---- */

#define GIB(count) (INT64_C(count) << 30)

static void put_chip(const char *slot, const char *vendor, const char *device,
                     const char *subsystem)
{
    char path[160];

    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", slot);
    put(path, vendor);
    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/device", slot);
    put(path, device);
    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/subsystem_device", slot);
    put(path, subsystem);
}

/* The network card of such a machine is Google's, too. */
TEST_WITH(test_chips, make_root, remove_root)
{
    mu_value *devices;

    put_chip("0000:00:04.0", "0x1ae0\n", "0x0042\n", "0x0058\n");
    put_chip("0000:00:05.0", "0x1ae0\n", "0x005e\n", "0x0050\n");
    put_chip("0000:00:06.0", "0x1ae0\n", "0x0063\n", "0x0063\n");
    put_chip("0000:00:07.0", "0x8086\n", "0x005e\n", "0x0000\n");
    put_chip("0000:00:08.0", "0x1ae0\n", "0x0027\n", "0x004e\n");
    put_chip("0000:00:09.0", "0x1ae0\n", "0x0027\n", "0x004f\n");
    put_chip("0000:00:0a.0", "0x1ae0\n", "0x0062\n", "0x0000\n");
    put_chip("0000:00:0b.0", "0x1ae0\n", "0x006f\n", "0x0000\n");
    put("/sys/bus/pci/devices/0000:00:0c.0/class", "0x060000\n");
    put("/dev/accel0", "");
    devices = mu__devices_read(root);
    expect_list(devices, "tpus",
                (const char *const[]){"TPU v4", "TPU v5e", "TPU v2", "TPU v2", "TPU v3",
                                      "TPU v3", "TPU v5p", "TPU v6e", NULL},
                (const int64_t[]){GIB(32), GIB(16), GIB(8), GIB(8), GIB(16), GIB(16),
                                  GIB(95), GIB(32)});
    expect_gpus(devices, (const char *const[]){NULL}, NULL);
    mu_value_free(devices);
}

/* Device files alone: only where the environment says that they are TPUs. */
TEST(test_chips_in_containers)
{
    static const struct {
        const char *type;
        const char *bounds;
        const char *files[3];
        const char *names[5];
        int64_t bytes[4];
    } rows[] = {
        {NULL, NULL, {"/dev/accel0", "/dev/accel1"}, {NULL}, {0}},
        {NULL, "2,1,1", {"/dev/accel0", "/dev/accel1"}, {"TPU", "TPU"}, {0}},
        {"v4-8", NULL, {"/dev/accel0", "/dev/vfio/0"}, {"TPU v4"}, {GIB(32)}},
        {"v3-8",
         NULL,
         {"/dev/accel0", "/dev/accel1"},
         {"TPU v3", "TPU v3", "TPU v3", "TPU v3"},
         {GIB(16), GIB(16), GIB(16), GIB(16)}},
        {"v5litepod-4",
         "2,2,1",
         {"/dev/vfio/0", "/dev/vfio/11", "/dev/vfio/vfio"},
         {"TPU v5litepod", "TPU v5litepod"},
         {0}},
        {"tpu7x-8", NULL, {"/dev/vfio/3"}, {"TPU 7x", "TPU 7x"}, {GIB(96), GIB(96)}},
        {"v4-8", NULL, {"/dev/accel/accel0", "/dev/accelerate"}, {NULL}, {0}},
        {"v4\x01-8", NULL, {"/dev/accel0"}, {"TPU v4?"}, {0}},
        {"", NULL, {"/dev/accel0"}, {"TPU"}, {0}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mu_value *devices;

        (void)make_root(NULL);
        for (size_t j = 0; j < 3 && rows[i].files[j] != NULL; j++)
            put(rows[i].files[j], "");
        if (rows[i].type != NULL)
            assert_int_equal(setenv("TPU_ACCELERATOR_TYPE", rows[i].type, 1), 0);
        if (rows[i].bounds != NULL)
            assert_int_equal(setenv("TPU_CHIPS_PER_HOST_BOUNDS", rows[i].bounds, 1), 0);
        devices = mu__devices_read(root);
        expect_list(devices, "tpus", rows[i].names, rows[i].bytes);
        mu_value_free(devices);
        (void)unsetenv("TPU_ACCELERATOR_TYPE");
        (void)unsetenv("TPU_CHIPS_PER_HOST_BOUNDS");
        (void)remove_root(NULL);
    }
}

TEST(test_memory_texts)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } rows[] = {
        {"MemTotal: 2 kB\n", 2048},
        {"MemTotal:\t2 kB", 2048},
        {"", 0},
        {"MemTotal", 0},
        {"MemTotal:", 0},
        {"MemTotal: many kB\n", 0},
        {"MemFree: 2 kB\nMemTotal:3 kB\n", 3072},
        {" MemTotal: 2 kB\n", 0},
        {"MemTotal: 18446744073709551615 kB\n", 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (mu__devices_memory(rows[i].text) != rows[i].bytes)
            fail_msg("row %zu", i);
}

/* Whatever this machine is, it has a name, a core and some memory. */
TEST(test_this_machine)
{
    mu_value *devices = mu__devices_read("");
    const char *host = "";
    int64_t bytes = 0;
    size_t size;

    (void)mu_value_get_string(mu_value_find(devices, "host"), &host, &size);
    (void)mu_value_get_int(mu_value_find(devices, "memory_bytes"), &bytes);
    assert_true(host[0] != '\0');
    assert_true(bytes > 0);
    mu_value_free(devices);
}

int main(void)
{
    (void)unsetenv("TPU_ACCELERATOR_TYPE");
    (void)unsetenv("TPU_CHIPS_PER_HOST_BOUNDS");
    return tests_run(NULL, NULL);
}
