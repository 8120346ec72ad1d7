package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// CacheDir returns the folder that holds everything built: $HOLDFAST_CACHE, else "holdfast" in the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv("HOLDFAST_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for built tools (set HOLDFAST_CACHE to choose one): %w", err)
	}
	return filepath.Join(base, "holdfast"), nil
}

// target is one program as it shall lie in the cache.
type target struct {
	tool
	version string
	linker  string // value of -ldflags
	path    string
}

// newTarget works out where in cache the program lies. The folder's name carries a hash of all that decides its content.
func newTarget(ctx context.Context, t tool, toolsDir, cache string, env goEnv) (target, error) {
	dir := filepath.Join(toolsDir, t.module)
	version, err := moduleVersion(ctx, dir, t.from)
	if err != nil {
		return target{}, fmt.Errorf("version of %s: %w", t.name, err)
	}
	linker := "-s -w"
	if t.ldflags != nil {
		linker += " " + strings.Join(t.ldflags(version), " ")
	}
	var identity bytes.Buffer
	files := []string{"go.mod", "go.sum"}
	if strings.HasPrefix(t.pkg, "./") { // a program of ours around the module's
		files = append(files, filepath.Join(t.pkg, "main.go"))
	}
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return target{}, fmt.Errorf("version of %s: %w", t.name, err)
		}
		fmt.Fprintf(&identity, "%s %d\n%s", name, len(content), content)
	}
	fmt.Fprintf(&identity, "%s\n%s\n%s %s %s\n", t.pkg, linker, env.GOVERSION, env.GOOS, env.GOARCH)
	if t.tags != "" { // no line without: what was built before there were tags stays
		fmt.Fprintf(&identity, "%s\n", t.tags)
	}
	folder := fmt.Sprintf("%s-%s-%.6x", t.name, strings.TrimPrefix(version, "v"), sha256.Sum256(identity.Bytes()))
	return target{tool: t, version: version, linker: linker, path: filepath.Join(cache, "tools", folder, t.name)}, nil
}

func (t target) exists() bool {
	info, err := os.Stat(t.path)
	return err == nil && info.Mode().IsRegular()
}

// install moves a finished binary to its place in the cache; others see nothing or the whole file.
func (t target) install(built string) error {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o755); err != nil {
		return fmt.Errorf("install %s: %w", t.name, err)
	}
	if err := os.Rename(built, t.path); err != nil {
		return fmt.Errorf("install %s: %w", t.name, err)
	}
	return nil
}

// LockFile takes an exclusive lock on a file, also against other processes, and returns the function that gives it back.
// waiting is called once if somebody else holds it.
func LockFile(ctx context.Context, path string, waiting func()) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	file, err := os.Open(path) // somebody else's file may not be opened for more, and a lock needs no more
	if errors.Is(err, os.ErrNotExist) {
		file, err = os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for first := true; ; first = false {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { closeQuietly(file) }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			closeQuietly(file)
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			closeQuietly(file)
			return nil, fmt.Errorf("wait for the lock %s: %w", path, ctx.Err())
		case <-poll.C:
		}
	}
}

// closeQuietly closes what was only read or locked: nothing that could get lost.
func closeQuietly(c io.Closer) { _ = c.Close() }
