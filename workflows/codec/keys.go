package codec

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// currentFile names the key that encrypts. Every other file of the folder is a key, and its name the key's ID.
	currentFile = "current"
	// encryptNothing is what currentFile says when new payloads are to be in clear while old ones stay readable.
	encryptNothing = "none"

	// RefreshInterval is how often a process should call Refresh.
	RefreshInterval = 10 * time.Second
	// rereadPause is the shortest time between two looks for a key that is not there.
	rereadPause = time.Second

	keyBytes = 32
	// maxFileBytes is more than any form of a key takes.
	maxFileBytes = 1024
)

// Keys are the payload keys of a folder, usually a mounted Secret. They are read again while the process runs, so keys
// can be added, changed and removed without a restart. A folder that becomes unusable changes nothing: the keys that
// were read last stay in force. Keys may be used by several goroutines.
type Keys struct {
	dir string

	reading  sync.Mutex // guards lastRead, and lets one read at a time
	lastRead time.Time
	set      atomic.Pointer[keySet]
}

// keySet is what a folder held at one time.
type keySet struct {
	encryptWith string // ID of the key that encrypts, "" for none
	ciphers     map[string]cipher.AEAD
}

// None returns keys that encrypt nothing and read nothing encrypted.
func None() *Keys {
	k := &Keys{}
	k.set.Store(&keySet{})
	return k
}

// Open reads the keys of a folder; "" means None. The error is one line that names flag and file, never a file's content.
func Open(dir string) (*Keys, error) {
	if dir == "" {
		return None(), nil
	}
	k := &Keys{dir: dir}
	if err := k.read(); err != nil {
		return nil, err
	}
	return k, nil
}

// Refresh reads the folder again. It returns why the keys in force are not what the folder holds.
func (k *Keys) Refresh(context.Context) error {
	if k.dir == "" {
		return nil
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	return k.read()
}

func (k *Keys) read() error {
	k.lastRead = time.Now()
	set, err := readFolder(k.dir)
	if err != nil {
		return fmt.Errorf("--payload-keys-dir: %w", err)
	}
	k.set.Store(set)
	return nil
}

// find returns the key of that ID. One that is not known may have been added just now by the process that wrote the payload.
func (k *Keys) find(id string) (cipher.AEAD, bool) {
	if key, found := k.set.Load().ciphers[id]; found || k.dir == "" {
		return key, found
	}
	k.reading.Lock()
	defer k.reading.Unlock()
	if time.Since(k.lastRead) >= rereadPause {
		_ = k.read() // Refresh says why
	}
	key, found := k.set.Load().ciphers[id]
	return key, found
}

func readFolder(dir string) (*keySet, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	set := &keySet{ciphers: map[string]cipher.AEAD{}}
	var current string
	for _, entry := range entries {
		// A mounted Secret has its data in folders whose names begin with two dots.
		if strings.HasPrefix(entry.Name(), ".") || entry.IsDir() {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		content, err := readFile(path)
		if err != nil {
			return nil, err
		}
		if entry.Name() == currentFile {
			current = strings.TrimSpace(string(content))
			continue
		}
		if set.ciphers[entry.Name()], err = parseKey(content); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return set, set.choose(filepath.Join(dir, currentFile), current)
}

// choose sets the key that encrypts.
func (s *keySet) choose(path, id string) error {
	_, exists := s.ciphers[id]
	switch {
	case id == "":
		return fmt.Errorf("%s: must contain the name of the key file that encrypts", path)
	case s.ciphers[encryptNothing] != nil:
		return fmt.Errorf("%s: no key can have this name", filepath.Join(filepath.Dir(path), encryptNothing))
	case id == encryptNothing:
		return nil
	case !exists:
		return fmt.Errorf("%s: the key that it names is not in the folder", path)
	}
	s.encryptWith = id
	return nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	if len(content) > maxFileBytes {
		return nil, fmt.Errorf("%s: too long for a key", path)
	}
	return content, nil
}

var (
	errNoKey = errors.New("must be 32 random bytes, as they are or in base64")
	// errText: 32 characters of text are a password, or half a key in hexadecimal digits.
	errText = errors.New("32 characters of text: a key " + errNoKey.Error())
)

func parseKey(content []byte) (cipher.AEAD, error) {
	key := content
	if len(key) != keyBytes {
		decoded, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(content)))
		if err != nil || len(decoded) != keyBytes {
			return nil, errNoKey
		}
		key = decoded
	}
	if isText(key) {
		return nil, errText
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func isText(key []byte) bool {
	for _, b := range key {
		if (b < ' ' || b > '~') && b != '\n' && b != '\r' && b != '\t' {
			return false
		}
	}
	return true
}
