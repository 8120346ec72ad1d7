package fdb

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	scheme = "blobstore://"
	// maxURL bounds a URL that a tool printed or a payload has.
	maxURL = 4096
)

// urlParameter is the form of a parameter. Which names there are differs between versions; Resolve checks those that a user sets.
var urlParameter = regexp.MustCompile(`^[a-z0-9_]+=[A-Za-z0-9_.,:%/-]*$`)

// URL returns the URL of the destination, always the same for the same destination.
func (d Destination) URL() string {
	place := d.Host
	if d.Port != "" {
		place += ":" + d.Port
	}
	parameters := append([]string{"bucket=" + d.Bucket}, d.Parameters...)
	return scheme + d.Account + "@" + place + "/" + d.Path + "?" + strings.Join(parameters, "&")
}

// ParseURL reads the URL of a backup in an object store. It accepts no other kind of URL, none that holds a secret, and none by
// which a tool would use another identity than the credentials file's. The error does not quote the URL.
func ParseURL(url string) (Destination, error) {
	rest, isBlobstore := strings.CutPrefix(url, scheme)
	if !isBlobstore || len(url) > maxURL {
		return Destination{}, errors.New("the URL is not blobstore://account@host[:port]/path?bucket=name")
	}
	account, rest, hasAccount := strings.Cut(rest, "@")
	if !hasAccount || !accountName.MatchString(account) {
		return Destination{}, errors.New("the URL must have an account, or nothing, before its @, and no secret")
	}
	place, rest, _ := strings.Cut(rest, "/")
	host, port, err := splitPlace(place)
	if err != nil || host == "" {
		return Destination{}, errors.New("the URL has no valid host and port")
	}
	path, query, _ := strings.Cut(rest, "?")
	if !validPath(path) {
		return Destination{}, errors.New("the URL has no valid path: FoundationDB accepts letters, digits, _, -, . and /")
	}
	d := Destination{Account: account, Host: host, Port: port, Path: path}
	if err := d.parseQuery(query); err != nil {
		return Destination{}, err
	}
	return d, nil
}

func (d *Destination) parseQuery(query string) error {
	seen := map[string]bool{}
	for parameter := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(parameter, "=")
		switch {
		case !urlParameter.MatchString(parameter):
			return errors.New("the URL has a parameter that is not name=value")
		case secretParameter.MatchString("&" + parameter):
			return fmt.Errorf("the URL has the parameter %s, which may hold a secret", Bound(name, 64))
		case name == "sdk_auth", name == "sa":
			return fmt.Errorf("the URL has the parameter %s: %s", name, refused[name])
		case seen[name]:
			return fmt.Errorf("the URL has the parameter %s twice", Bound(name, 64))
		case name == "bucket":
			d.Bucket = value
		default:
			d.Parameters = append(d.Parameters, parameter)
		}
		seen[name] = true
	}
	if !bucketName.MatchString(d.Bucket) {
		return errors.New("the URL has no valid bucket")
	}
	slices.Sort(d.Parameters)
	return nil
}

// ContainerOf names the container of a URL for the workflow that guards it: host:port/bucket/path, without account and other
// parameters. It is empty for a URL that is in no store.
func ContainerOf(url string) string {
	d, err := ParseURL(url)
	if err != nil {
		return ""
	}
	return strings.ToLower(d.Host) + ":" + d.EffectivePort() + "/" + d.Bucket + "/" + d.Path
}

// EffectivePort returns the port of the store, the tools' default if the URL has none.
func (d Destination) EffectivePort() string {
	switch {
	case d.Port != "":
		return d.Port
	case slices.Contains(d.Parameters, "secure_connection=0"), slices.Contains(d.Parameters, "sc=0"):
		return "80"
	}
	return "443"
}
