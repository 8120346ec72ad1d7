package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// wantedFiles are the tenant's objects as Velero names them in its archive.
var wantedFiles = []string{
	"resources/configmaps/namespaces/" + demoNamespace + "/settings.json",
	"resources/secrets/namespaces/" + demoNamespace + "/login.json",
	"resources/services/namespaces/" + demoNamespace + "/web.json",
	"resources/deployments.apps/namespaces/" + demoNamespace + "/web.json",
}

// checkArchive opens a backup's archive in a bucket's folder on disk and looks for the tenant's objects.
func checkArchive(dir, prefix, name string) error {
	path := filepath.Join(dir, filepath.FromSlash(prefix), name+".tar.gz")
	entries, err := archiveEntries(path)
	if err != nil {
		return fmt.Errorf("read the backup's archive: %w", err)
	}
	for _, file := range wantedFiles {
		if !entries[file] {
			return fmt.Errorf("%s is not in the archive %s", file, path)
		}
		fmt.Println("   in the archive:", strings.TrimPrefix(file, "resources/"))
	}
	for entry := range entries {
		if namespace := entryNamespace(entry); namespace != "" && namespace != demoNamespace {
			return fmt.Errorf("the archive %s holds an object of another namespace: %s", path, entry)
		}
	}
	return nil
}

// entryNamespace returns the namespace in resources/KIND/[VERSION/]namespaces/NAMESPACE/NAME.json, "" where there is none.
func entryNamespace(entry string) string {
	elements := strings.Split(entry, "/")
	for i := 2; i+2 < len(elements); i++ {
		if elements[i] == "namespaces" {
			return elements[i+1]
		}
	}
	return ""
}

func archiveEntries(path string) (map[string]bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	entries := map[string]bool{}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		entries[header.Name] = true
	}
}
