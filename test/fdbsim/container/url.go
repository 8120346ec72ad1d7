// Package container is the stand-in's backup containers: what the tools and agents write into a folder (file://) or an S3
// bucket (blobstore://), with the names and the rules of the real ones (see describe, expire and the restorable set), but with
// contents of its own: JSON.
package container

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"
)

// URLError is a URL that the real tools refuse: "Backup Container URL invalid".
type URLError struct {
	URL    string
	Detail string // may be empty
}

func (e *URLError) Error() string {
	text := fmt.Sprintf("'Backup Container URL invalid' on URL '%s'", e.URL)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// URL is a parsed container URL.
type URL struct {
	Text string // as given
	Path string // file://: the folder; blobstore://: the name
	Blob *Blob  // nil for file://
}

// Blob is what a blobstore URL says of the store.
type Blob struct {
	Key, Secret, Token string // Secret and Token when the URL holds them
	Host, Port         string
	Bucket             string
	Region             string
	Secure             bool
}

// Account is the key under which credentials files know the account. It has no port.
func (b *Blob) Account() string { return b.Key + "@" + b.Host }

// Endpoint is the URL of the S3 server.
func (b *Blob) Endpoint() string {
	scheme := "https"
	if !b.Secure {
		scheme = "http"
	}
	if b.Port == "" {
		return scheme + "://" + b.Host
	}
	return scheme + "://" + net.JoinHostPort(b.Host, b.Port)
}

// knobs are the parameters of the store that a URL may set, with their short names.
var knobs = map[string]bool{}

func init() {
	for name := range strings.FieldsSeq(`secure_connection sc connect_tries ct connect_timeout cto max_connection_life mcl
		request_tries rt request_timeout_min rtom request_timeout_secs requests_per_second rps list_requests_per_second lrps
		write_requests_per_second wrps read_requests_per_second rrps delete_requests_per_second drps multipart_max_part_size
		maxps multipart_min_part_size minps multipart_retry_delay_ms concurrent_requests cr concurrent_uploads cu
		concurrent_lists cl concurrent_reads_per_file crpf concurrent_writes_per_file cwpf enable_read_cache erc
		read_block_size rbs read_ahead_blocks rab read_cache_blocks_per_file rcb max_send_bytes_per_second sbps
		max_recv_bytes_per_second rbps max_delay_retryable_error dre max_delay_connection_failed dcf sdk_auth sa
		global_connection_pool gcp header`) {
		knobs[name] = true
	}
}

// Parse reads a container URL as the tools do; workDir is what a relative path would be relative to. The name may be empty
// only in a base URL, of which containers are listed.
func Parse(text, workDir string, base bool) (*URL, error) {
	refuse := func(detail string) (*URL, error) { return nil, &URLError{URL: text, Detail: detail} }
	switch {
	case strings.HasPrefix(text, "file://"):
		name := strings.TrimPrefix(text, "file://")
		if !strings.HasPrefix(name, "/") {
			return refuse(fmt.Sprintf("Backup path '%s' must be the absolute path '%s'", name, path.Join(workDir, name)))
		}
		return &URL{Text: text, Path: path.Clean(name)}, nil
	case strings.HasPrefix(text, "blobstore://"):
		return parseBlob(text, base, refuse)
	default:
		return refuse("invalid URL prefix")
	}
}

func parseBlob(text string, base bool, refuse func(string) (*URL, error)) (*URL, error) {
	rest, query, _ := strings.Cut(strings.TrimPrefix(text, "blobstore://"), "?")
	authority, name, _ := strings.Cut(rest, "/")
	b := &Blob{Secure: true}
	address := authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		credential := strings.SplitN(authority[:at], ":", 3)
		address = authority[at+1:]
		b.Key = credential[0]
		if len(credential) > 1 {
			b.Secret = credential[1]
		}
		if len(credential) > 2 {
			b.Token = credential[2]
		}
	}
	b.Host, b.Port, _ = strings.Cut(address, ":")
	if b.Host == "" {
		return refuse("host cannot be empty")
	}
	unknown := ""
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		switch key {
		case "bucket":
			b.Bucket = value
		case "region":
			b.Region = value
		case "secure_connection", "sc":
			b.Secure = value != "0"
		default:
			if !knobs[key] && unknown == "" {
				unknown = key
			}
		}
	}
	if b.Region == "" {
		b.Region = regionOf(b.Host)
	}
	if b.Region == "" {
		return refuse("Failed to get region from host or parameter in url, region is required for aws v4 signature")
	}
	if unknown != "" {
		return refuse(fmt.Sprintf("Unknown URL parameter: '%s'", unknown))
	}
	if b.Bucket == "" {
		return refuse("")
	}
	if (name == "" && !base) || strings.ContainsFunc(name, unusual) {
		return refuse("")
	}
	return &URL{Text: text, Path: name, Blob: b}, nil
}

func unusual(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./", r)
}

// regionOf reads the region from hosts such as s3.eu-west-1.amazonaws.com.
func regionOf(host string) string {
	parts := strings.Split(host, ".")
	for i, part := range parts {
		if part == "s3" && i+1 < len(parts) && strings.Contains(parts[i+1], "-") {
			return parts[i+1]
		}
	}
	return ""
}

// WithPath returns the URL of another container in the same store.
func (u *URL) WithPath(name string) string {
	if u.Blob == nil {
		return "file://" + name
	}
	rest, query, _ := strings.Cut(strings.TrimPrefix(u.Text, "blobstore://"), "?")
	authority, _, _ := strings.Cut(rest, "/")
	return (&url.URL{Scheme: "blobstore", Opaque: "//" + authority + "/" + name, RawQuery: query}).String()
}
