package fdb

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	fdbv1alpha1 "holdfast.dev/holdfast/k8s/api/fdb/v1alpha1"
)

// defaultBucket is the bucket of an object that was stored without its defaults.
const defaultBucket = "fdb-backups"

// Destination is a place in an object store, without any secret. The zero value is none.
type Destination struct {
	// Account and Host are those of the credentials file, where an account may have no name; Port is empty for the tools' default.
	Account, Host, Port string
	Bucket, Path        string
	// Parameters are the other parameters of the URL, name=value, sorted.
	Parameters []string
}

// DestinationError says why a spec names no usable destination. Its text is for a condition.
type DestinationError struct{ Message string }

// Error implements error.
func (e *DestinationError) Error() string { return e.Message }

func invalid(format string, args ...any) error {
	return &DestinationError{Message: Bound(fmt.Sprintf(format, args...), maxDestinationMessage)}
}

const maxDestinationMessage = 512

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	// pathName is what FoundationDB accepts as the name of a backup, without parts that a store could resolve.
	pathName = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$`)
	dotPart  = regexp.MustCompile(`(^|/)[.]{1,2}(/|$)`)
)

// maxPath bounds a path with the time of a start; S3 keys have up to 1024 bytes, and the tools append to it.
const maxPath = 640

// Resolve returns where an object's backups go, without the time of a start. The account must be in the credentials file; account
// and endpoint default to its first account. An error is a *DestinationError.
func Resolve(object *fdbv1alpha1.FoundationDBBackup, accounts []Account) (Destination, error) {
	spec := object.Spec.Destination
	usable := slices.DeleteFunc(slices.Clone(accounts), func(a Account) bool { return !a.usable() })
	if len(usable) == 0 {
		return Destination{}, invalid("the credentials file has no account")
	}
	d, err := resolveAccount(spec, usable)
	var unknown *unknownAccountError
	if errors.As(err, &unknown) {
		return Destination{}, invalid("%v%s: correct spec.destination or the Secret", err, flawOf(accounts, unknown.wanted))
	}
	if err != nil {
		return Destination{}, err
	}
	d.Bucket = cmp.Or(spec.Bucket, defaultBucket)
	if !bucketName.MatchString(d.Bucket) {
		return Destination{}, invalid("spec.destination.bucket must have 3 to 63 lower-case letters, digits, dots and hyphens")
	}
	d.Path = cmp.Or(spec.Path, object.Name)
	if !validPath(d.Path) {
		return Destination{}, invalid("spec.destination.path may hold only letters, digits, _, -, . and /, must not begin or end " +
			"with / and must not contain . or .. as a part: FoundationDB accepts no other names")
	}
	if d.Parameters, err = checkParameters(object.Spec.URLParameters); err != nil {
		return Destination{}, err
	}
	return d, nil
}

// resolveAccount: the endpoint overrides the account's host and port. What neither gives is that of the first account with the
// name, or of the first account at all.
func resolveAccount(spec fdbv1alpha1.BackupDestination, accounts []Account) (Destination, error) {
	name, place, _ := strings.Cut(spec.Account, "@")
	if !accountName.MatchString(name) {
		return Destination{}, invalid("spec.destination.account must be name, name@host, @host, or one of these with :port; its " +
			"secret belongs in the credentials file")
	}
	if _, _, err := splitPlace(place); err != nil || (name == "" && spec.Account != "" && place == "") {
		return Destination{}, invalid("spec.destination.account must be name, name@host, @host, or one of these with :port")
	}
	host, port, err := splitPlace(cmp.Or(spec.Endpoint, place))
	if err != nil {
		return Destination{}, invalid("spec.destination.endpoint must be host or host:port")
	}
	if spec.Account == "" {
		name = accounts[0].Name
	}
	wanted := Account{Name: name, Host: host}
	at := slices.IndexFunc(accounts, func(a Account) bool { return a.Name == name && (host == "" || a.Host == host) })
	if at < 0 {
		what := "an account named " + quoted(name)
		if host != "" {
			what = "the account " + quoted(wanted.String())
		}
		return Destination{}, &unknownAccountError{
			wanted: wanted, message: fmt.Sprintf("the credentials file does not have %s, only %s", what, listed(accounts)),
		}
	}
	return Destination{Account: name, Host: accounts[at].Host, Port: port}, nil
}

// unknownAccountError says that there is no usable account of a name or host.
type unknownAccountError struct {
	wanted  Account
	message string
}

// Error implements error.
func (e *unknownAccountError) Error() string { return e.message }

// splitPlace splits host[:port]; an empty text is no error.
func splitPlace(place string) (host, port string, err error) {
	if place == "" {
		return "", "", nil
	}
	host, port, hasPort := strings.Cut(place, ":")
	if !hostName.MatchString(host) || (hasPort && !validPort(port)) {
		return "", "", invalid("%s is not host or host:port", quoted(place))
	}
	return host, port, nil
}

func validPort(port string) bool {
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0 && strconv.FormatUint(number, 10) == port
}

func validPath(path string) bool {
	return len(path) <= maxPath && pathName.MatchString(path) && !dotPart.MatchString(path)
}

// listed names some of the accounts.
func listed(accounts []Account) string {
	const most = 4
	var names []string
	for _, account := range accounts[:min(most, len(accounts))] {
		names = append(names, Bound(account.String(), 80))
	}
	if more := len(accounts) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// SamePlace reports whether both are the same place; it ignores parameters.
func (d Destination) SamePlace(other Destination) bool {
	return d.Account == other.Account && d.Host == other.Host && d.Port == other.Port && d.Bucket == other.Bucket &&
		d.Path == other.Path
}
