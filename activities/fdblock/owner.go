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

// ownerPrefix begins the name by which the lock knows a process of ours. The operator's names are prefixes of process groups.
const ownerPrefix = "holdfast"

// newOwner names this process: holdfast/<host>/<random>. It stays until the process ends, and no other has it: two workers on
// one host, or one that is started again while a tool of its predecessor may still run, must not take each other's lock for
// their own.
func newOwner() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return fmt.Sprintf("%s/%s/%s", ownerPrefix, strings.ReplaceAll(host, "/", "_"), hex.EncodeToString(random[:]))
}

// readClusterFile returns a database's name (description:id, which outlives a change of coordinators) and its connection string.
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
