#include "node/devices.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

enum { PATH_MAX_BYTES = 512, FILE_BYTES = 4096, NAME_BYTES = 128, DEVICES_MAX = 64 };

/* The first bytes of a file, as text; "" when there is none. Returns how many. */
static size_t read_device_file(const char *path, char *out, size_t size)
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
static void read_first_line(const char *folder, const char *name, char *out, size_t size)
{
    char path[PATH_MAX_BYTES];
    size_t length;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    (void)read_device_file(path, out, size);
    length = strcspn(out, "\n");
    while (length > 0 && out[length - 1] == ' ')
        length--;
    out[length] = '\0';
}

/* The rest of the line that begins with "key:"; false: there is no such line. */
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

/* ---- Lists ---- */

static int add_device(mu_value *list, const char *name, uint64_t memory_bytes)
{
    mu_value *device = mu_value_map();
    int64_t bytes = memory_bytes > INT64_MAX ? 0 : (int64_t)memory_bytes;
    int rv;

    rv = mu_value_set(device, "name", mu_value_string(name));
    if (rv == 0)
        rv = mu_value_set(device, "memory_bytes", mu_value_int(bytes));
    if (rv != 0) {
        mu_value_free(device);
        return rv;
    }
    return mu_value_append(list, device);
}

/* Names come from files: what is no text is shown as question marks. */
static void clean_device_name(char *name)
{
    for (; *name != '\0'; name++)
        if (*name < ' ' || *name > '~')
            *name = '?';
}

static int is_entry_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Whether a name is `prefix` and a number. */
static bool is_numbered_name(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);

    return strncmp(name, prefix, length) == 0 && name[length] != '\0' &&
           name[length + strspn(name + length, "0123456789")] == '\0';
}

/* Call `add` with each entry of a folder that passes `filter`, DEVICES_MAX at most.
 * Without the folder it does nothing. */
static int add_folder_devices(const char *root, const char *below,
                              int (*filter)(const struct dirent *entry),
                              int (*add)(const char *folder, mu_value *list),
                              mu_value *list)
{
    char folder[PATH_MAX_BYTES / 2];
    struct dirent **entries;
    int count;
    int rv = 0;

    (void)snprintf(folder, sizeof folder, "%s%s", root, below);
    count = scandir(folder, &entries, filter, alphasort);
    if (count < 0)
        return 0;
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX_BYTES];

        (void)snprintf(path, sizeof path, "%s/%.250s", folder, entries[i]->d_name);
        if (rv == 0 && mu_value_count(list) < DEVICES_MAX)
            rv = add(path, list);
        free(entries[i]);
    }
    free(entries);
    return rv;
}

/* ---- GPUs ---- */

static int add_nvidia(const char *folder, mu_value *gpus)
{
    char path[PATH_MAX_BYTES];
    char text[FILE_BYTES];
    char name[NAME_BYTES];

    (void)snprintf(path, sizeof path, "%s/information", folder);
    (void)read_device_file(path, text, sizeof text);
    if (!find_field(text, "Model", name, sizeof name))
        (void)snprintf(name, sizeof name, "NVIDIA");
    clean_device_name(name);
    return add_device(gpus, name, 0);
}

/* Cards that only show pictures have no node for rendering. */
static bool has_render_node(const char *folder)
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

    if (!has_render_node(folder))
        return 0;
    read_first_line(folder, "device/vendor", vendor, sizeof vendor);
    read_first_line(folder, "device/device", device, sizeof device);
    read_first_line(folder, "device/product_name", product, sizeof product);
    read_first_line(folder, "device/mem_info_vram_total", bytes, sizeof bytes);
    (void)snprintf(name, sizeof name, "%s %s", vendor_name(vendor),
                   product[0] == '\0' ? device : product);
    clean_device_name(name);
    return add_device(gpus, name, strtoull(bytes, NULL, 10));
}

/* Used where NVIDIA's driver has listed its cards already. */
static int add_other_card(const char *folder, mu_value *gpus)
{
    char vendor[32];

    read_first_line(folder, "device/vendor", vendor, sizeof vendor);
    return strcmp(vendor, "0x10de") == 0 ? 0 : add_card(folder, gpus);
}

/* "card0", and not "card0-DP-1", which is a connector. */
static int is_card_entry(const struct dirent *entry)
{
    return is_numbered_name(entry->d_name, "card");
}

static int add_gpus(const char *root, mu_value *gpus)
{
    int rv = add_folder_devices(root, "/proc/driver/nvidia/gpus", is_entry_shown,
                                add_nvidia, gpus);

    if (rv != 0)
        return rv;
    return add_folder_devices(root, "/sys/class/drm", is_card_entry,
                              mu_value_count(gpus) == 0 ? add_card : add_other_card,
                              gpus);
}

/* ---- TPUs ---- */

/* Google's chips by their numbers on the bus, with the devices that a program sees of
 * each, and the memory of one device. The first two differ in the subsystem alone. */
static const struct chip {
    const char *number;
    const char *subsystem; /* NULL: any */
    const char *name;
    unsigned devices;
    unsigned memory_gib;
} chips[] = {
    {"0x0027", "0x004e", "TPU v2", 2, 8}, {"0x0027", NULL, "TPU v3", 2, 16},
    {"0x0056", NULL, "TPU", 1, 0},        {"0x005e", NULL, "TPU v4", 1, 32},
    {"0x0062", NULL, "TPU v5p", 1, 95},   {"0x0063", NULL, "TPU v5e", 1, 16},
    {"0x006f", NULL, "TPU v6e", 1, 32},   {"0x0076", NULL, "TPU 7x", 2, 96},
};

static const struct chip *find_chip(const char *number, const char *subsystem)
{
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (strcmp(chips[i].number, number) == 0 &&
            (chips[i].subsystem == NULL || strcmp(chips[i].subsystem, subsystem) == 0))
            return &chips[i];
    return NULL;
}

static int add_chip(const char *folder, mu_value *tpus)
{
    char vendor[32];
    char number[32];
    char subsystem[32];
    const struct chip *chip;
    int rv = 0;

    read_first_line(folder, "vendor", vendor, sizeof vendor);
    if (strcmp(vendor, "0x1ae0") != 0)
        return 0;
    read_first_line(folder, "device", number, sizeof number);
    read_first_line(folder, "subsystem_device", subsystem, sizeof subsystem);
    chip = find_chip(number, subsystem);
    for (unsigned i = 0; chip != NULL && rv == 0 && i < chip->devices; i++)
        rv = add_device(tpus, chip->name, (uint64_t)chip->memory_gib << 30);
    return rv;
}

static int is_accel_entry(const struct dirent *entry)
{
    return is_numbered_name(entry->d_name, "accel");
}

static int is_vfio_group(const struct dirent *entry)
{
    return is_numbered_name(entry->d_name, "");
}

/* A device file does not say which chip it is, but the environment may: "v5litepod-16",
 * "tpu7x-8". */
static const struct chip *chip_of_environment(char *name, size_t size)
{
    const char *type = getenv("TPU_ACCELERATOR_TYPE");

    if (type == NULL)
        type = "";
    else if (strncmp(type, "tpu", 3) == 0)
        type += 3;
    (void)snprintf(name, size, "TPU%s%.*s", type[0] == '\0' ? "" : " ",
                   (int)strcspn(type, "-"), type);
    clean_device_name(name);
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (strcmp(chips[i].name, name) == 0)
            return &chips[i];
    return NULL;
}

static int add_file(const char *path, mu_value *tpus)
{
    char name[NAME_BYTES];
    const struct chip *chip = chip_of_environment(name, sizeof name);
    uint64_t memory = chip == NULL ? 0 : (uint64_t)chip->memory_gib << 30;
    unsigned devices = chip == NULL ? 1 : chip->devices;
    int rv = 0;

    (void)path;
    for (unsigned i = 0; rv == 0 && i < devices; i++)
        rv = add_device(tpus, name, memory);
    return rv;
}

/* Where the bus cannot be seen (in a container), the device files count; others than TPUs
 * have such, so the environment has to say that they are meant. */
static int add_tpus(const char *root, mu_value *tpus)
{
    int rv =
        add_folder_devices(root, "/sys/bus/pci/devices", is_entry_shown, add_chip, tpus);

    if (rv != 0 || mu_value_count(tpus) > 0 ||
        (getenv("TPU_ACCELERATOR_TYPE") == NULL &&
         getenv("TPU_CHIPS_PER_HOST_BOUNDS") == NULL))
        return rv;
    rv = add_folder_devices(root, "/dev", is_accel_entry, add_file, tpus);
    if (rv != 0 || mu_value_count(tpus) > 0)
        return rv;
    return add_folder_devices(root, "/dev/vfio", is_vfio_group, add_file, tpus);
}

/* ---- all of it ---- */

/* Under `key`, the list that `add` makes. */
static int put_list(const char *root, const char *key,
                    int (*add)(const char *root, mu_value *list), mu_value *map)
{
    mu_value *list = mu_value_list();
    int rv = list == NULL ? -MU_ENOMEM : add(root, list);

    if (rv != 0) {
        mu_value_free(list);
        return rv;
    }
    return mu_value_set(map, key, list);
}

static int fill_devices(const char *root, mu_value *map)
{
    char host[256] = "";
    size_t host_size = sizeof host;
    char path[PATH_MAX_BYTES];
    char text[FILE_BYTES];
    int rv;

    (void)uv_os_gethostname(host, &host_size);
    clean_device_name(host);
    (void)snprintf(path, sizeof path, "%s/proc/meminfo", root);
    (void)read_device_file(path, text, sizeof text);
    rv = mu_value_set(map, "host", mu_value_string(host));
    if (rv == 0)
        rv =
            mu_value_set(map, "cores", mu_value_int((int64_t)uv_available_parallelism()));
    if (rv == 0)
        rv = mu_value_set(map, "memory_bytes",
                          mu_value_int((int64_t)mu__devices_memory(text)));
    if (rv == 0)
        rv = put_list(root, "gpus", add_gpus, map);
    return rv != 0 ? rv : put_list(root, "tpus", add_tpus, map);
}

mu_value *mu__devices_read(const char *root)
{
    mu_value *map = mu_value_map();

    if (map == NULL || fill_devices(root, map) == 0)
        return map;
    mu_value_free(map);
    return NULL;
}
