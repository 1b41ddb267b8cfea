#include "node/devices.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

enum { PATH_MAX_BYTES = 512, FILE_BYTES = 4096, NAME_BYTES = 128, GPUS_MAX = 64 };

/* The begin of a file, as text; "" when there is none. Returns how many bytes. */
static size_t read_file(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t used;

    out[0] = '\0';
    if (file == NULL)
        return 0;
    used = fread(out, 1, size - 1, file);
    out[used] = '\0';
    (void)fclose(file);
    return used;
}

/* The first line of a file, without spaces at its ends. */
static void read_line(const char *folder, const char *name, char *out, size_t size)
{
    char path[PATH_MAX_BYTES];
    size_t length;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)read_file(path, out, size);
    length = strcspn(out, "\n");
    while (length > 0 && out[length - 1] == ' ')
        length--;
    out[length] = '\0';
}

/* What stands behind "key:" at the begin of a line; false: there is no such line. */
static bool find_field(const char *text, const char *key, char *out, size_t size)
{
    size_t length = strlen(key);

    while (*text != '\0') {
        size_t line = strcspn(text, "\n");

        if (line > length && memcmp(text, key, length) == 0 && text[length] == ':') {
            const char *at = text + length + 1;

            at += strspn(at, " \t");
            (void)snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
            return true;
        }
        text += line + (text[line] == '\n');
    }
    return false;
}

uint64_t mu__devices_memory(const char *text)
{
    char field[64];
    unsigned long long kib;

    if (!find_field(text, "MemTotal", field, sizeof field) ||
        sscanf(field, "%llu kB", &kib) != 1 || kib > UINT64_MAX / 1024)
        return 0;
    return kib * 1024;
}

/* ---- GPUs ---- */

/* Also of a TPU. */
static int add_gpu(mu_value *gpus, const char *name, uint64_t memory_bytes)
{
    mu_value *gpu = mu_value_map();
    int64_t bytes = memory_bytes > INT64_MAX ? 0 : (int64_t)memory_bytes;
    int rv;

    rv = mu_value_set(gpu, "name", mu_value_string(name));
    if (rv == 0)
        rv = mu_value_set(gpu, "memory_bytes", mu_value_int(bytes));
    if (rv != 0) {
        mu_value_free(gpu);
        return rv;
    }
    return mu_value_append(gpus, gpu);
}

/* Names come from files: what is no text is shown as question marks. */
static void clean(char *name)
{
    for (; *name != '\0'; name++)
        if (*name < ' ' || *name > '~')
            *name = '?';
}

static int add_nvidia(const char *folder, mu_value *gpus)
{
    char path[PATH_MAX_BYTES];
    char text[FILE_BYTES];
    char name[NAME_BYTES];

    (void)snprintf(path, sizeof path, "%s/information", folder);
    (void)read_file(path, text, sizeof text);
    if (!find_field(text, "Model", name, sizeof name))
        (void)snprintf(name, sizeof name, "NVIDIA");
    clean(name);
    return add_gpu(gpus, name, 0);
}

/* Cards that only show pictures have no node for rendering. */
static bool renders(const char *folder)
{
    char path[PATH_MAX_BYTES];
    const struct dirent *entry;
    bool found = false;
    DIR *dir;

    (void)snprintf(path, sizeof path, "%s/device/drm", folder);
    dir = opendir(path);
    if (dir == NULL)
        return false;
    while (!found && (entry = readdir(dir)) != NULL)
        found = strncmp(entry->d_name, "renderD", 7) == 0;
    (void)closedir(dir);
    return found;
}

static const char *vendor_name(const char *vendor)
{
    static const struct {
        const char *number;
        const char *name;
    } vendors[] = {{"0x1002", "AMD"}, {"0x10de", "NVIDIA"}, {"0x8086", "Intel"}};

    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++)
        if (strcmp(vendors[i].number, vendor) == 0)
            return vendors[i].name;
    return vendor;
}

static int add_card(const char *folder, mu_value *gpus)
{
    char product[NAME_BYTES / 2];
    char vendor[32];
    char device[32];
    char bytes[32];
    char name[NAME_BYTES];

    if (!renders(folder))
        return 0;
    read_line(folder, "device/vendor", vendor, sizeof vendor);
    read_line(folder, "device/device", device, sizeof device);
    read_line(folder, "device/product_name", product, sizeof product);
    read_line(folder, "device/mem_info_vram_total", bytes, sizeof bytes);
    (void)snprintf(name, sizeof name, "%s %s", vendor_name(vendor),
                   product[0] == '\0' ? device : product);
    clean(name);
    return add_gpu(gpus, name, strtoull(bytes, NULL, 10));
}

/* Where NVIDIA's own driver lists its cards. */
static int add_other_card(const char *folder, mu_value *gpus)
{
    char vendor[32];

    read_line(folder, "device/vendor", vendor, sizeof vendor);
    return strcmp(vendor, "0x10de") == 0 ? 0 : add_card(folder, gpus);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* "card0", and not "card0-DP-1", which is a plug. */
static int is_card(const struct dirent *entry)
{
    const char *name = entry->d_name;

    return strncmp(name, "card", 4) == 0 && name[4] != '\0' &&
           name[4 + strspn(name + 4, "0123456789")] == '\0';
}

/* One GPU for each entry of a folder that `wanted` wants. No folder: none. */
static int add_all(const char *root, const char *below,
                   int (*wanted)(const struct dirent *entry),
                   int (*add)(const char *folder, mu_value *gpus), mu_value *gpus)
{
    char folder[PATH_MAX_BYTES / 2];
    struct dirent **entries;
    int count;
    int rv = 0;

    (void)snprintf(folder, sizeof folder, "%s%s", root, below);
    count = scandir(folder, &entries, wanted, alphasort);
    if (count < 0)
        return 0;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX_BYTES];

        (void)snprintf(path, sizeof path, "%s/%.250s", folder, entries[i]->d_name);
        if (rv == 0 && mu_value_count(gpus) < GPUS_MAX)
            rv = add(path, gpus);
        free(entries[i]);
    }
    free(entries);
    return rv;
}

static int add_gpus(const char *root, mu_value *gpus)
{
    int rv = add_all(root, "/proc/driver/nvidia/gpus", is_shown, add_nvidia, gpus);

    if (rv != 0)
        return rv;
    return add_all(root, "/sys/class/drm", is_card,
                   mu_value_count(gpus) == 0 ? add_card : add_other_card, gpus);
}

/* ---- TPUs ---- */

/* By Google's numbers of their PCI devices; the older ones are two devices for programs,
 * a core each. */
static const struct tpu {
    const char *device;
    const char *name;
    int devices;
} tpus_known[] = {
    {"0x0027", "TPU v2 or v3", 2}, {"0x005e", "TPU v4", 1},  {"0x0062", "TPU v5p", 1},
    {"0x0063", "TPU v5e", 1},      {"0x006f", "TPU v6e", 1},
};

static int add_tpu(const char *folder, mu_value *tpus)
{
    char vendor[32];
    char device[32];

    read_line(folder, "vendor", vendor, sizeof vendor);
    read_line(folder, "device", device, sizeof device);
    if (strcmp(vendor, "0x1ae0") != 0)
        return 0;
    for (size_t i = 0; i < sizeof tpus_known / sizeof tpus_known[0]; i++) {
        const struct tpu *tpu = &tpus_known[i];
        int rv = 0;

        if (strcmp(device, tpu->device) != 0)
            continue;
        for (int k = 0; rv == 0 && k < tpu->devices; k++)
            rv = add_gpu(tpus, tpu->name, 0);
        return rv;
    }
    return 0;
}

/* ---- all of it ---- */

/* Takes `list`. */
static int set_list(mu_value *map, const char *key, mu_value *list, int rv)
{
    if (list != NULL && rv == 0)
        return mu_value_set(map, key, list);
    mu_value_free(list);
    return list == NULL ? -MU_ENOMEM : rv;
}

/* Cards and TPUs. */
static int fill_accelerators(const char *root, mu_value *map)
{
    mu_value *list = mu_value_list();
    int rv = list == NULL ? -MU_ENOMEM : add_gpus(root, list);

    rv = set_list(map, "gpus", list, rv);
    if (rv != 0)
        return rv;
    list = mu_value_list();
    if (list != NULL)
        rv = add_all(root, "/sys/bus/pci/devices", is_shown, add_tpu, list);
    return set_list(map, "tpus", list, rv);
}

static int fill(const char *root, mu_value *map)
{
    char host[256] = "";
    size_t host_size = sizeof host;
    char path[PATH_MAX_BYTES];
    char text[FILE_BYTES];
    int rv;

    (void)uv_os_gethostname(host, &host_size);
    clean(host);
    (void)snprintf(path, sizeof path, "%s/proc/meminfo", root);
    (void)read_file(path, text, sizeof text);
    rv = mu_value_set(map, "host", mu_value_string(host));
    if (rv == 0)
        rv = mu_value_set(map, "cores",
                          mu_value_int((int64_t)uv_available_parallelism()));
    if (rv == 0)
        rv = mu_value_set(map, "memory_bytes",
                          mu_value_int((int64_t)mu__devices_memory(text)));
    return rv != 0 ? rv : fill_accelerators(root, map);
}

mu_value *mu__devices_read(const char *root)
{
    mu_value *map = mu_value_map();

    if (map == NULL || fill(root, map) == 0)
        return map;
    mu_value_free(map);
    return NULL;
}
