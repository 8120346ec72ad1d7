package fdblock

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
)

// ownerPrefix begins the owner's name of each process of ours. The operator's names are prefixes of process groups.
const ownerPrefix = "holdfast"

// newOwner names this process: holdfast/<host>/<random>. The name lasts until the process ends, and no other process has it. Two
// workers on one host must not use each other's lock, nor may a worker that was restarted while a tool of its predecessor may
// still run.
func newOwner() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return fmt.Sprintf("%s/%s/%s", ownerPrefix, strings.ReplaceAll(host, "/", "_"), hex.EncodeToString(random[:]))
}

// readClusterFile returns a database's name (description:id, which does not change with the coordinators) and its connection
// string.
func readClusterFile(path string) (name, connection string, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("read the cluster file: %w", err)
	}
	for line := range bytes.Lines(content) {
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		name, _, found := strings.Cut(text, "@")
		if !found || name == "" {
			break
		}
		return name, text, nil
	}
	return "", "", errors.New("the cluster file has no connection string (description:id@coordinator:port,...)")
}
