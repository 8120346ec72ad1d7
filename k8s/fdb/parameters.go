package fdb

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// knobs are the parameters of a blobstore URL in FoundationDB 7.1 to 7.4, long name and short, all of them numbers. (The manual
// has crps and cwps for what the code calls crpf and cwpf.)
var knobs = parameterNames(`
	secure_connection/sc connect_tries/ct connect_timeout/cto max_connection_life/mcl
	request_tries/rt request_timeout_min/rtom/request_timeout/rto
	requests_per_second/rps list_requests_per_second/lrps write_requests_per_second/wrps read_requests_per_second/rrps
	delete_requests_per_second/drps
	concurrent_requests/cr concurrent_uploads/cu concurrent_lists/cl concurrent_reads_per_file/crpf concurrent_writes_per_file/cwpf
	multipart_max_part_size/maxps multipart_min_part_size/minps multipart_retry_delay_ms/mrd
	enable_read_cache/erc read_block_size/rbs read_ahead_blocks/rab read_cache_blocks_per_file/rcb
	max_send_bytes_per_second/sbps max_recv_bytes_per_second/rbps
	max_delay_retryable_error/dre max_delay_connection_failed/dcf
	enable_object_integrity_check/eoic global_connection_pool/gcp`)

// refused are parameters of FoundationDB that a user may not set, with the reason.
var refused = map[string]string{
	"header":   "a header can carry a secret, and a URL is shown to everybody; secrets belong in the credentials file",
	"sdk_auth": "it would have the commands use the identity of the machine that they run on instead of the credentials file",
	"sa":       "it would have the commands use the identity of the machine that they run on instead of the credentials file",
	"bucket":   "the bucket is set by spec.destination.bucket",
}

var regionName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// parameterNames maps every name of a parameter to its first one.
func parameterNames(list string) map[string]string {
	names := map[string]string{"region": "region"}
	for word := range strings.FieldsSeq(list) {
		all := strings.Split(word, "/")
		for _, name := range all {
			names[name] = all[0]
		}
	}
	return names
}

// checkParameters returns the parameters sorted, or an error if FoundationDB or Holdfast does not accept one.
func checkParameters(parameters []string) ([]string, error) {
	seen := map[string]string{}
	for _, parameter := range parameters {
		name, value, _ := strings.Cut(parameter, "=")
		if reason, is := refused[name]; is {
			return nil, invalid("spec.urlParameters must not set %q: %s", name, reason)
		}
		known, exists := knobs[name]
		if !exists {
			return nil, invalid("spec.urlParameters has %s, which is not a URL parameter of FoundationDB 7.1 to 7.4: correct or remove it",
				quoted(name))
		}
		if other, twice := seen[known]; twice {
			return nil, invalid("spec.urlParameters sets %s twice (%s and %s): remove one of them", known, other, name)
		}
		seen[known] = name
		if err := checkParameter(name, known, value); err != nil {
			return nil, err
		}
	}
	sorted := slices.Clone(parameters)
	slices.Sort(sorted)
	return sorted, nil
}

func checkParameter(name, known, value string) error {
	number, err := strconv.ParseInt(value, 10, 32)
	switch {
	case known == "region":
		if !regionName.MatchString(value) {
			return invalid("spec.urlParameters: %s must be the name of a region, for example region=eu-west-1", name)
		}
	case err != nil || number < 0 || strconv.FormatInt(number, 10) != value:
		return invalid("spec.urlParameters: %s must be a whole number from 0 to 2147483647", name)
	case known == "secure_connection" && number > 1:
		return invalid("spec.urlParameters: %s must be 1 (TLS) or 0", name)
	}
	return nil
}

// quoted quotes a user's text, shortened.
func quoted(text string) string { return strconv.Quote(Bound(text, 64)) }
