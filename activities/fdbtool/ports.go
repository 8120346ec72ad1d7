package fdbtool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/k8s/fdb"
	"holdfast.dev/holdfast/workflows/contract"
)

// DefaultPorts are those that the FoundationDB operator gives the processes of a Pod, and FoundationDB's packages those of a
// machine. A cluster file has only the coordinators' ports, but a client connects to all processes.
const DefaultPorts = "4500-4599"

// maxPorts bounds the ports that a tool may connect to: each is a rule in the kernel.
const maxPorts = 1024

// ParsePorts reads ports and ranges of ports: 4500-4599,4689.
func ParsePorts(text string) ([]uint16, error) {
	var ports []uint16
	for part := range strings.SplitSeq(text, ",") {
		if part == "" && text == "" {
			break
		}
		from, to, isRange := strings.Cut(part, "-")
		first, ok := parsePort(from)
		last := first
		if isRange && ok {
			last, ok = parsePort(to)
		}
		if !ok || last < first || len(ports)+int(last-first) >= maxPorts {
			return nil, fmt.Errorf("must be ports and ranges of ports, like %s,4689, and at most %d ports", DefaultPorts, maxPorts)
		}
		for port := int(first); port <= int(last); port++ {
			ports = append(ports, uint16(port))
		}
	}
	return ports, nil
}

func parsePort(text string) (uint16, bool) {
	port, err := strconv.ParseUint(text, 10, 16)
	return uint16(port), err == nil && port > 0
}

// coordinatorPorts returns those of a cluster file: description:id@host:port[:tls],... It does not check the file: the tool does.
func coordinatorPorts(connectionString string) []uint16 {
	_, coordinators, _ := strings.Cut(connectionString, "@")
	var ports []uint16
	for coordinator := range strings.SplitSeq(coordinators, ",") {
		coordinator = strings.TrimSuffix(strings.TrimSuffix(coordinator, "(fromHostname)"), ":tls")
		if port, ok := parsePort(coordinator[strings.LastIndex(coordinator, ":")+1:]); ok {
			ports = append(ports, port)
		}
	}
	return ports
}

// webPorts are ports of object stores that may be the API server's, too.
var webPorts = []uint16{80, 443}

// ports returns those that a tool with these arguments may connect to. A port that the object names must not be one of
// ClosedPorts: a tenant names it, and could make the tool send there what it wants.
func (s *Session) ports(args []string) ([]uint16, *contract.FDBFailure) {
	ports := slices.DeleteFunc(slices.Clone(s.runner.Ports), s.closed)
	for _, port := range coordinatorPorts(s.connectionString) {
		if s.closed(port) {
			return nil, s.closedFailure(contract.FDBClassClusterFile, "the FoundationDBCluster's connection string", port)
		}
		ports = append(ports, port)
	}
	for _, argument := range args {
		place, err := fdb.ParseURL(argument)
		if err != nil {
			continue // no store, or a URL for checkArguments to refuse
		}
		port, _ := parsePort(place.EffectivePort())
		if s.closed(port) && !slices.Contains(webPorts, port) {
			return nil, s.closedFailure(contract.FDBClassBadURL, "the URL of the backup", port)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

func (s *Session) closed(port uint16) bool { return slices.Contains(s.runner.ClosedPorts, port) }

func (s *Session) closedFailure(class contract.FDBClass, what string, port uint16) *contract.FDBFailure {
	return s.trouble(class, "%s has port %d, which is that of Temporal or of the cluster's own: FoundationDB's tools may not "+
		"connect to it; use another port", what, port)
}
