package container

import (
	"encoding/json"
	"os"
	"strings"
)

// failure is an error of the real tools, by the text that they print for it.
type failure string

func (f failure) Error() string { return string(f) }

// Errors of containers, with the texts of FoundationDB's flow/error_definitions.h.
const (
	ErrAuthMissing = failure("Cannot find authentication details (such as a password or secret key) " +
		"for the specified Backup Container URL")
	ErrAuthUnreadable = failure("Cannot read or parse one or more sources of authentication information " +
		"for Backup Container URLs")
	ErrAuth          = failure("HTTP request failed due to bad credentials")
	ErrRequest       = failure("HTTP response code not received or indicated failure")
	ErrNotFound      = failure("File not found")
	ErrNoBackup      = failure("Backup does not exist")
	ErrUnsafe        = failure("Cannot expire requested data from backup without violating minimum restorability")
	ErrMissingData   = failure("Missing backup data")
	ErrCorrupt       = failure("Corrupted backup data")
	ErrIO            = failure("Disk i/o operation failed")
	ErrPlatform      = failure("Platform error")
	ErrInvalidOption = failure("Option set with an invalid value")
	ErrNoOverlap     = failure("Backup key ranges doesn't overlap with key ranges filter")
	ErrTimeout       = failure("Operation timed out")
)

// credential is what is known of an account.
type credential struct {
	APIKey string `json:"api_key"`
	Secret string `json:"secret"`
	Token  string `json:"token"`
}

// lookUp finds the secret of the URL's account: in the URL, else in the first of the credentials files
// that knows the account.
func (b *Blob) lookUp(files []string) (credential, error) {
	found := credential{APIKey: b.Key, Secret: b.Secret, Token: b.Token}
	if b.Secret != "" {
		return found, nil
	}
	unreadable := false
	for _, name := range files {
		var parsed struct {
			Accounts map[string]credential `json:"accounts"`
		}
		content, err := os.ReadFile(name)
		if err != nil || json.Unmarshal(content, &parsed) != nil {
			unreadable = true
			continue
		}
		account := parsed.Accounts[b.Account()]
		if account.Secret == "" || (b.Key == "" && account.APIKey == "") {
			continue
		}
		found.Secret, found.Token = account.Secret, account.Token
		if b.Key == "" {
			found.APIKey = account.APIKey
		}
		return found, nil
	}
	if unreadable {
		return found, ErrAuthUnreadable
	}
	return found, ErrAuthMissing
}

// SplitFiles splits what FDB_BLOB_CREDENTIALS holds.
func SplitFiles(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ':' })
}
