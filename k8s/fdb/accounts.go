package fdb

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Account is an account of a credentials file. FoundationDB finds its secret by name@host, without a port.
type Account struct {
	// Name is empty for an account whose name only the file has, as its api_key (apple/foundationdb#11825).
	Name, Host string
	// Flaw says why FoundationDB does not find the account or its secret, and how to repair that; empty if it finds them.
	Flaw string
}

// String returns the key of the account in the credentials file.
func (a Account) String() string { return a.Name + "@" + a.Host }

// accountName is what may stand before the @ of a URL: printable, without characters that end that part or begin a secret. It may
// be empty.
var accountName = regexp.MustCompile(`^[A-Za-z0-9_.~+=,!*$-]{0,128}$`)

// hostName is a host as FoundationDB's URLs have it; they know no IPv6 addresses.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// errNoFile describes the form of a credentials file.
var errNoFile = errors.New(`it must be JSON of the form {"accounts":{"NAME@HOST":{"secret":"..."}}}`)

// ParseAccounts returns the accounts of a credentials file, in its order, including those with flaws; at least one has none.
// Other keys are ignored, as FoundationDB ignores them. The error says what is wrong and where, and quotes nothing of the file.
func ParseAccounts(file []byte) ([]Account, error) {
	decoder := json.NewDecoder(bytes.NewReader(file))
	var accounts []Account
	var flaw error // that of the first account with a flaw
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
		accounts, flaw, err = readAccounts(decoder)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoFile
	}
	if slices.ContainsFunc(accounts, Account.usable) {
		return accounts, nil
	}
	if flaw == nil {
		flaw = errors.New("it has no accounts")
	}
	return nil, flaw
}

// readAccounts also returns the flaw of the first account that has one.
func readAccounts(decoder *json.Decoder) (accounts []Account, first, err error) {
	position := 0
	err = eachMember(decoder, func(key string) error {
		position++
		account, known := parseAccount(key)
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return errNoFile
		}
		var details map[string]any // not a struct, which ignores case: FoundationDB does not
		_ = json.Unmarshal(value, &details)
		same := slices.IndexFunc(accounts, func(a Account) bool { return a.String() == account.String() && a.usable() })
		switch {
		case account.Flaw != "":
		case same >= 0:
			account.Flaw = "is listed twice"
			accounts[same].Flaw = account.Flaw
		case !hasText(details, "secret"):
			account.Flaw = `has no "secret"`
		case account.Name == "" && !hasText(details, "api_key"):
			account.Flaw = `has no "api_key", which an account without a name needs`
		}
		if known {
			accounts = append(accounts, account)
		}
		if first == nil && account.Flaw != "" {
			first = fmt.Errorf("its account no. %d %s", position, account.Flaw)
		}
		return nil
	})
	return accounts, first, err
}

func hasText(details map[string]any, key string) bool {
	text, isText := details[key].(string)
	return isText && text != ""
}

// parseAccount reads a key. known is false unless it is NAME@HOST or @HOST, or that with a port.
func parseAccount(key string) (account Account, known bool) {
	name, host, _ := strings.Cut(key, "@")
	host, port, hasPort := strings.Cut(host, ":")
	account = Account{Name: name, Host: host}
	switch {
	case !accountName.MatchString(name), !hostName.MatchString(host), hasPort && !validPort(port):
		return Account{Flaw: "is not NAME@HOST"}, false
	case hasPort:
		account.Flaw = "has a port in its key, where FoundationDB expects NAME@HOST alone (remove the port)"
	}
	return account, true
}

func (a Account) usable() bool { return a.Flaw == "" }

// Lacking says that a credentials file has no account for a URL, or what is wrong with that account; empty if it has one.
func Lacking(accounts []Account, place Destination) string {
	wanted := Account{Name: place.Account, Host: place.Host}
	if slices.Contains(accounts, wanted) {
		return ""
	}
	return "has no account " + wanted.String() + flawOf(accounts, wanted)
}

// flawOf describes the flaw of an account that is probably meant as the wanted one; empty if there is none.
func flawOf(accounts []Account, wanted Account) string {
	for _, account := range accounts {
		if account.Flaw != "" && account.Name == wanted.Name && (wanted.Host == "" || account.Host == wanted.Host) {
			return "; its " + account.String() + " " + account.Flaw
		}
	}
	return ""
}

// eachMember reads an object in its order; member must consume the value of its key. It replaces errors of the decoder, because
// they quote the file.
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
