package fdbtool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A process keeps its sessions in one folder, which it locks while it lives. A folder without a lock is from a process that was
// killed.
const (
	folderPrefix = "holdfast-fdb-"
	// newPrefix begins the folder's name before the folder is locked, so that no other process finds it unlocked.
	newPrefix = ".holdfast-fdb-new-"
	lockName  = "lock"
	// newAge is the age at which a folder with such a name counts as left by a process that was killed.
	newAge = time.Hour
)

// folder is the private folder of this process.
type folder struct {
	path string
	lock *os.File
}

// newFolder removes the folders of killed processes in parent, and makes a folder there.
func newFolder(parent string) (*folder, error) {
	if strings.Contains(parent, ":") {
		return nil, fmt.Errorf("temporary folder %s: FoundationDB's tools cannot read files below a folder with a colon; set "+
			"TMPDIR", parent)
	}
	sweep(parent)
	made, err := os.MkdirTemp(parent, newPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a private folder for FoundationDB's tools: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(made, lockName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(made))
	}
	final := filepath.Join(parent, folderPrefix+strings.TrimPrefix(filepath.Base(made), newPrefix))
	err = tryLock(lock)
	if err == nil {
		err = os.Rename(made, final)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the private folder %s: %w", made, err), lock.Close(), os.RemoveAll(made))
	}
	return &folder{path: final, lock: lock}, nil
}

// remove deletes the folder and its content, and releases its lock.
func (f *folder) remove() error {
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}

// sweep removes the folders of processes that are gone, best effort: those that it cannot remove are another user's.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return // making a folder there returns the error
	}
	for _, entry := range entries {
		path := filepath.Join(parent, entry.Name())
		switch {
		case !ours(entry):
		case strings.HasPrefix(entry.Name(), newPrefix):
			if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > newAge {
				_ = os.RemoveAll(path)
			}
		case strings.HasPrefix(entry.Name(), folderPrefix):
			removeUnlocked(path)
		}
	}
}

func removeUnlocked(path string) {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		_ = os.RemoveAll(path) // half removed
		return
	}
	if err != nil {
		return
	}
	defer lock.Close()
	if tryLock(lock) == nil {
		_ = os.RemoveAll(path)
	}
}

// ours reports whether an entry is a folder of this user.
func ours(entry os.DirEntry) bool {
	info, err := entry.Info()
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// tryLock acquires a lock that the kernel releases when this process ends.
func tryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
