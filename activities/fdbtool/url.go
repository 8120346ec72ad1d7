package fdbtool

import (
	"path/filepath"
	"regexp"
	"strings"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

var anyScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// CheckURL refuses every URL that a tool must not get, wherever it comes from: with a file:// URL the worker would read and write
// its own disk for a tenant.
func (r *Runner) CheckURL(url string) *contract.FDBFailure {
	if path, file := strings.CutPrefix(url, "file://"); file {
		switch {
		case !r.AllowFileURLs:
			return badURL("file:// URLs are refused: backups go to blobstore:// (--fdb-allow-file-urls is for tests)")
		case !filepath.IsAbs(path) || filepath.Clean(path) != strings.TrimSuffix(path, "/"):
			return badURL("a file:// URL needs an absolute path without . and ..")
		}
		return nil
	}
	if _, err := fdb.ParseURL(url); err != nil {
		return badURL(err.Error())
	}
	return nil
}

// checkArguments checks every argument that is a URL. A range of keys may have the form of one.
func (r *Runner) checkArguments(args []string) *contract.FDBFailure {
	for i, argument := range args {
		keys := i > 0 && args[i-1] == "-k"
		destination := i > 0 && (args[i-1] == "-d" || args[i-1] == "-r")
		if destination || (!keys && anyScheme.MatchString(argument)) {
			if trouble := r.CheckURL(argument); trouble != nil {
				return trouble
			}
		}
	}
	return nil
}

func badURL(message string) *contract.FDBFailure {
	return &contract.FDBFailure{Class: contract.FDBClassBadURL, Message: message}
}
