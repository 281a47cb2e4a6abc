/*
 * Simulates a failing disk, for LD_PRELOAD. While the file FAULT_CONTROL exists, its text determines how the files
 * below FAULT_DIRECTORY behave:
 *   sync      fsync and fdatasync fail with EIO
 *   write     every write fails with EIO
 *   cap N     the files may take N bytes in total: writes that would exceed it fail with ENOSPC
 * Everything else reaches the real disk.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum fault { NONE, SYNC, WRITE, CAP };

static enum fault read_fault(long long *cap) {
  const char *path = getenv("FAULT_CONTROL");
  FILE *file = path == NULL ? NULL : fopen(path, "r");
  char text[64] = "";
  if (file == NULL) return NONE;
  if (fgets(text, sizeof text, file) == NULL) text[0] = 0;
  fclose(file);
  if (strncmp(text, "sync", 4) == 0) return SYNC;
  if (strncmp(text, "write", 5) == 0) return WRITE;
  if (sscanf(text, "cap %lld", cap) == 1) return CAP;
  return NONE;
}

static int is_ours(int fd) {
  const char *directory = getenv("FAULT_DIRECTORY");
  char link[64], path[PATH_MAX];
  ssize_t length;
  if (directory == NULL) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strncmp(path, directory, strlen(directory)) == 0;
}

static long long used(void) {
  const char *directory = getenv("FAULT_DIRECTORY");
  DIR *open_directory = opendir(directory);
  struct dirent *entry;
  long long sum = 0;
  if (open_directory == NULL) return 0;
  while ((entry = readdir(open_directory)) != NULL) {
    struct stat info;
    if (fstatat(dirfd(open_directory), entry->d_name, &info, 0) == 0 && S_ISREG(info.st_mode)) sum += info.st_size;
  }
  closedir(open_directory);
  return sum;
}

/* The errno for a write that ends at the offset `end`, or 0 if it succeeds. */
static int write_fault(int fd, long long end) {
  long long cap = 0;
  struct stat info;
  enum fault fault = read_fault(&cap);
  if ((fault != WRITE && fault != CAP) || !is_ours(fd)) return 0;
  if (fault == WRITE) return EIO;
  if (fstat(fd, &info) != 0 || end <= info.st_size) return 0;
  return used() + end - info.st_size > cap ? ENOSPC : 0;
}

#define REAL(type, name, ...) \
  static type (*real)(__VA_ARGS__); \
  if (real == NULL) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define FAIL_IF(code) \
  do { \
    int failed = (code); \
    if (failed != 0) { \
      errno = failed; \
      return -1; \
    } \
  } while (0)

ssize_t write(int fd, const void *data, size_t size) {
  REAL(ssize_t, "write", int, const void *, size_t);
  FAIL_IF(write_fault(fd, (long long)lseek(fd, 0, SEEK_CUR) + (long long)size));
  return real(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
  FAIL_IF(write_fault(fd, (long long)offset + (long long)size));
  return real(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
  REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
  FAIL_IF(write_fault(fd, (long long)offset + (long long)size));
  return real(fd, data, size, offset);
}

static int sync_fault(int fd) {
  long long cap;
  return read_fault(&cap) == SYNC && is_ours(fd) ? EIO : 0;
}

int fsync(int fd) {
  REAL(int, "fsync", int);
  FAIL_IF(sync_fault(fd));
  return real(fd);
}

int fdatasync(int fd) {
  REAL(int, "fdatasync", int);
  FAIL_IF(sync_fault(fd));
  return real(fd);
}
