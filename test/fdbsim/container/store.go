package container

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Object is a file of a container.
type Object struct {
	Path string
	Size int64
}

// Store holds the files of one container.
type Store interface {
	// Create makes what a new container needs: the bucket, the entry in the index.
	Create(ctx context.Context) error
	Exists(ctx context.Context) (bool, error)
	// List returns the objects below a prefix, sorted.
	List(ctx context.Context, prefix string) ([]Object, error)
	// Read returns ErrNotFound for what is not there.
	Read(ctx context.Context, name string) ([]byte, error)
	Write(ctx context.Context, name string, content []byte) error
	Delete(ctx context.Context, name string) error
	// Remove deletes the container's place itself, when all objects are gone.
	Remove(ctx context.Context) error
	// Siblings lists the URLs of the containers below this one, when it is a base URL.
	Siblings(ctx context.Context) ([]string, error)
}

// Open returns the store of a container. Nothing is asked of it yet.
func Open(u *URL, credentialFiles []string) Store {
	if u.Blob == nil {
		return folder{url: u, dir: u.Path}
	}
	return openS3(u, credentialFiles)
}

type folder struct {
	url *URL
	dir string
}

// diskError is the error that the real tools report for one of the operating system.
func diskError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return ErrNotFound
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return ErrIO
	default:
		return ErrPlatform
	}
}

func (f folder) Create(context.Context) error { return nil }

func (f folder) Exists(context.Context) (bool, error) {
	info, err := os.Stat(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.IsDir(), diskError(err)
}

func (f folder) List(_ context.Context, prefix string) ([]Object, error) {
	var objects []Object
	start := filepath.Join(f.dir, filepath.FromSlash(prefix))
	err := filepath.WalkDir(start, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() || strings.HasSuffix(path, ".temp") {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(f.dir, path)
		objects = append(objects, Object{Path: filepath.ToSlash(name), Size: info.Size()})
		return err
	})
	return objects, diskError(err)
}

func (f folder) Read(_ context.Context, name string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(f.dir, filepath.FromSlash(name)))
	return content, diskError(err)
}

func (f folder) Write(_ context.Context, name string, content []byte) error {
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return writeError(err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "*.temp")
	if err != nil {
		return writeError(err)
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return writeError(err)
	}
	return nil
}

// writeError: what cannot be opened to be written is a "Platform error", whatever the reason but a full disk.
func writeError(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return ErrIO
	}
	return ErrPlatform
}

func (f folder) Delete(_ context.Context, name string) error {
	err := os.Remove(filepath.Join(f.dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return diskError(err)
}

func (f folder) Remove(context.Context) error { return diskError(os.RemoveAll(f.dir)) }

func (f folder) Siblings(context.Context) ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var urls []string
	for _, entry := range entries {
		if entry.IsDir() {
			urls = append(urls, f.url.WithPath(filepath.Join(f.dir, entry.Name())))
		}
	}
	slices.Sort(urls)
	return urls, diskError(err)
}
