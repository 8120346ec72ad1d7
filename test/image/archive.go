package image

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// archive packs a folder into a tar, in the order of the names and without times. Others see nothing of it, or the whole.
func archive(folder, file string) error {
	return replaceBy(file, func(into io.Writer) error {
		writer := tar.NewWriter(into)
		source := os.DirFS(folder)
		err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() { // folders need no entry
				return err
			}
			content, err := fs.ReadFile(source, name)
			if err != nil {
				return err
			}
			header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}
			if err := writer.WriteHeader(header); err != nil {
				return err
			}
			_, err = writer.Write(content)
			return err
		})
		if err != nil {
			return err
		}
		return writer.Close()
	})
}

func writeWhole(file string, content []byte) error {
	return replaceBy(file, func(into io.Writer) error {
		_, err := into.Write(content)
		return err
	})
}

// replaceBy writes a file beside its place, and puts it there when it is whole.
func replaceBy(file string, write func(io.Writer) error) (err error) {
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part.Name()) }() // it is gone when all went well
	err = write(part)
	if closing := part.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(part.Name(), 0o644) // for everybody
	}
	if err != nil {
		return err
	}
	return os.Rename(part.Name(), file)
}
