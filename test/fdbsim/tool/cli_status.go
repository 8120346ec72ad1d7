package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"holdfast.dev/holdfast/test/fdbsim/state"
)

// statusRecord is a document that a real cluster printed. What the stand-in does not know it says as that cluster did.
const statusRecord = "05-layers-before-any-backup.json"

// statusDocument makes what `status json` prints.
func (s *console) statusDocument(name string, available bool) (string, error) {
	path, _ := s.clusterFile()
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	connection := strings.TrimSpace(string(content))
	_, addresses, _ := strings.Cut(connection, "@")
	address, _, _ := strings.Cut(addresses, ",")
	if !available {
		return printJSON(s.unavailable(path, address)), nil
	}
	recorded, err := fs.ReadFile(s.Recorded, statusRecord)
	if err != nil {
		return "", err
	}
	var document map[string]any
	if err := json.Unmarshal(recorded, &document); err != nil {
		return "", fmt.Errorf("read %s: %w", statusRecord, err)
	}
	client, cluster := object(document, "client"), object(document, "cluster")
	object(client, "cluster_file")["path"] = path
	client["timestamp"] = s.now().Unix()
	cluster["cluster_controller_timestamp"] = s.now().Unix()
	client["coordinators"] = map[string]any{
		"coordinators":     []any{map[string]any{"address": address, "protocol": "0fdb00b073000000", "reachable": true}},
		"quorum_reachable": true,
	}
	cluster["connection_string"] = connection
	c, err := s.Store.Read(name)
	if err != nil {
		return "", err
	}
	lock := map[string]any{"locked": c.LockUID != ""}
	if c.LockUID != "" {
		lock["lock_uid"] = c.LockUID
	}
	cluster["database_lock_state"] = lock
	if cluster["layers"], err = s.layers(name); err != nil {
		return "", err
	}
	return printJSON(document), nil
}

func object(parent map[string]any, name string) map[string]any {
	child, isMap := parent[name].(map[string]any)
	if !isMap {
		child = map[string]any{}
		parent[name] = child
	}
	return child
}

func (s *console) unavailable(path, address string) map[string]any {
	return map[string]any{
		"client": map[string]any{
			"cluster_file": map[string]any{"path": path, "up_to_date": true},
			"coordinators": map[string]any{
				"coordinators":     []any{map[string]any{"address": address, "reachable": false}},
				"quorum_reachable": false,
			},
			"database_status": map[string]any{"available": false, "healthy": false},
			"messages": []any{map[string]any{
				"description": "Unable to reach a quorum of coordinators.", "name": "quorum_not_reachable",
			}},
			"timestamp": s.now().Unix(),
		},
		"cluster": map[string]any{"layers": map[string]any{"_valid": false}},
	}
}

// layers is what the agents wrote, as long as it is not too old. Without any there is no word of backups.
func (s *console) layers(name string) (map[string]any, error) {
	layers := map[string]any{"_valid": true}
	control, err := s.Store.Control(name)
	if err != nil {
		return nil, err
	}
	agents, err := s.Store.Agents(name)
	if err != nil {
		return nil, err
	}
	agents = slices.DeleteFunc(agents, func(a state.Agent) bool {
		return a.Updated.IsZero() || s.now().Sub(a.Updated) > control.LayerExpiry
	})
	if len(agents) == 0 {
		return layers, nil
	}
	slices.SortFunc(agents, func(a, b state.Agent) int { return b.Updated.Compare(a.Updated) })
	instances, total := map[string]any{}, 0
	for _, a := range agents {
		instances[a.ID] = instance(a)
		if !a.Paused {
			total += workers
		}
	}
	var tags map[string]any
	if err := json.Unmarshal(agents[0].Tags, &tags); err != nil {
		return nil, err
	}
	layers["backup"] = map[string]any{
		"blob_recent_io":    recentIO(),
		"instances":         instances,
		"instances_running": len(agents),
		"last_updated":      seconds(agents[0]),
		"paused":            agents[0].Paused,
		"tags":              tags,
		"total_workers":     total,
	}
	return layers, nil
}

func seconds(a state.Agent) float64 { return float64(a.Updated.UnixMicro()) / 1e6 }

func recentIO() map[string]any {
	return map[string]any{"bytes_per_second": 0, "bytes_sent": 0, "requests_failed": 0, "requests_successful": 0}
}

func instance(a state.Agent) map[string]any {
	locality := map[string]any{}
	for name, value := range a.Locality {
		locality[name] = value
	}
	return map[string]any{
		"blob_stats": map[string]any{
			"recent": recentIO(),
			"total":  map[string]any{"bytes_sent": 0, "requests_failed": 0, "requests_successful": 0},
		},
		"configured_workers":      workers,
		"id":                      a.ID,
		"last_updated":            seconds(a),
		"locality":                locality,
		"main_thread_cpu_seconds": 0.451734,
		"memory_usage":            204615680,
		"networkAddress":          "127.0.0.1",
		"processID":               a.PID,
		"process_cpu_seconds":     0.486566,
		"resident_size":           36704256,
		"version":                 a.Version,
	}
}

// printJSON writes a document in fdbcli's hand.
func printJSON(value any) string {
	var b bytes.Buffer
	printValue(&b, value, "")
	return b.String()
}

func printValue(b *bytes.Buffer, value any, indent string) {
	deeper := indent + "    "
	switch v := value.(type) {
	case map[string]any:
		b.WriteString("{\n")
		names := slices.Sorted(maps.Keys(v))
		for i, name := range names {
			fmt.Fprintf(b, "%s%q : ", deeper, name)
			printValue(b, v[name], deeper)
			separate(b, i, len(names))
		}
		b.WriteString(indent + "}")
	case []any:
		b.WriteString("[\n")
		for i, element := range v {
			b.WriteString(deeper)
			printValue(b, element, deeper)
			separate(b, i, len(v))
		}
		b.WriteString(indent + "]")
	default:
		content, err := json.Marshal(v)
		if err != nil {
			content = []byte("null")
		}
		b.Write(content)
	}
}

func separate(b *bytes.Buffer, i, count int) {
	if i < count-1 {
		b.WriteByte(',')
	}
	b.WriteByte('\n')
}
