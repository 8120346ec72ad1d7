package fdb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Account is an account of a credentials file. FoundationDB finds its secret by name@host, without a port.
type Account struct{ Name, Host string }

// String returns the key of the account in the credentials file.
func (a Account) String() string { return a.Name + "@" + a.Host }

// accountName is what may stand before the @ of a URL: printable, and nothing that ends that part of a URL or begins a secret.
var accountName = regexp.MustCompile(`^[A-Za-z0-9_.~+=,!*$-]{1,128}$`)

// hostName is a host as FoundationDB's URLs take it; they know no IPv6 addresses.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// errNoFile describes the form of a credentials file.
var errNoFile = errors.New(`it must be JSON of the form {"accounts":{"NAME@HOST":{"secret":"..."}}}`)

// ParseAccounts returns the accounts of a credentials file, in its order. The error says what is wrong and where, and quotes
// nothing of the file.
func ParseAccounts(file []byte) ([]Account, error) {
	decoder := json.NewDecoder(bytes.NewReader(file))
	var accounts []Account
	found := false
	err := eachMember(decoder, func(key string) error {
		if key != "accounts" {
			return skip(decoder)
		}
		if found {
			return errors.New(`it has the key "accounts" twice`)
		}
		found = true
		var err error
		accounts, err = readAccounts(decoder)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoFile
	}
	if len(accounts) == 0 {
		return nil, errors.New("it has no accounts")
	}
	return accounts, nil
}

func readAccounts(decoder *json.Decoder) ([]Account, error) {
	var accounts []Account
	seen := map[Account]bool{}
	err := eachMember(decoder, func(key string) error {
		position := len(accounts) + 1
		account, err := parseAccount(key)
		if err != nil {
			return fmt.Errorf("its account no. %d %w", position, err)
		}
		if seen[account] {
			return fmt.Errorf("its account no. %d is there twice", position)
		}
		seen[account] = true
		accounts = append(accounts, account)
		var details map[string]any // not a struct: FoundationDB knows only the very key
		err = decoder.Decode(&details)
		if secret, isText := details["secret"].(string); err != nil || !isText || secret == "" {
			return fmt.Errorf(`its account no. %d has no "secret"`, position)
		}
		return nil
	})
	return accounts, err
}

func parseAccount(key string) (Account, error) {
	name, host, separated := strings.Cut(key, "@")
	switch {
	case !separated, !accountName.MatchString(name):
		return Account{}, errors.New("is not NAME@HOST")
	case strings.Contains(host, ":"):
		return Account{}, errors.New("has a port or a secret in its key: FoundationDB looks accounts up by NAME@HOST alone")
	case !hostName.MatchString(host):
		return Account{}, errors.New("is not NAME@HOST")
	}
	return Account{Name: name, Host: host}, nil
}

// eachMember walks an object in its order; member must consume the value of its key. Errors of the decoder are replaced: they
// quote what they stumble over.
func eachMember(decoder *json.Decoder, member func(key string) error) error {
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return errNoFile
	}
	for decoder.More() {
		token, err := decoder.Token()
		key, isKey := token.(string)
		if err != nil || !isKey {
			return errNoFile
		}
		if err := member(key); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return errNoFile
	}
	return nil
}

func skip(decoder *json.Decoder) error {
	var value json.RawMessage
	if decoder.Decode(&value) != nil {
		return errNoFile
	}
	return nil
}
