package temporalserver

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"
)

const (
	historyShards   = 512 // docs/temporal.md, Sizing
	temporalStore   = "temporal"
	visibilityStore = "temporal_visibility"
)

// Service is one process of Temporal's server, with its ports.
type Service struct {
	// Service is frontend, history, matching or worker.
	Service                         string
	GRPC, Membership, Metrics, HTTP int
}

// Server says how Temporal's server is configured.
type Server struct {
	Database *Database
	// Certificates are of mutual TLS; nil without.
	Certificates *Certificates
	// Services are all processes, the frontend first.
	Services []Service
	// DynamicConfig is the file with Dynamics.
	DynamicConfig string
	// SuggestContinueAsNew, when positive, is the number of events at which the server suggests to continue as new.
	SuggestContinueAsNew int
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// Address is that of the frontend.
func (s *Server) Address() string { return address(s.Services[0].GRPC) }

// Remove removes the database, if there is one.
func (s *Server) Remove() {
	if s.Database != nil {
		s.Database.Remove()
	}
}

// MakeSchema makes both databases with Temporal's own tool.
func (s *Server) MakeSchema(ctx context.Context, tool string, environment []string) error {
	for store, schema := range map[string]string{temporalStore: "temporal", visibilityStore: "visibility"} {
		for _, args := range [][]string{
			{"create-database"}, {"setup-schema", "--version", "0.0"}, {"update-schema", "--schema-name", "postgresql/v12/" + schema},
		} {
			// The password is no argument: those can be read by everybody on the machine.
			cmd := exec.CommandContext(ctx, tool, args...)
			cmd.Env = append(slices.Clone(environment), "SQL_PLUGIN=postgres12", "SQL_HOST="+loopback,
				"SQL_PORT="+strconv.Itoa(s.Database.Port), "SQL_USER="+databaseUser, "SQL_PASSWORD="+s.Database.Password,
				"SQL_DATABASE="+store)
			if said, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("make Temporal's schema: %s: %w: %s", args[0], err, said)
			}
		}
	}
	return nil
}

// Config is the server's configuration for one of its processes.
func (s *Server) Config(of Service) ([]byte, error) { return yaml.Marshal(s.config(of)) }

// UIConfig is that of the Web UI.
func (s *Server) UIConfig(port int, namespace string) ([]byte, error) {
	settings := map[string]any{
		"temporalGrpcAddress": s.Address(), "host": loopback, "port": port, "enableUi": true,
		"defaultNamespace": namespace, "notifyOnNewVersion": false,
	}
	if of := s.Certificates; of != nil {
		settings["tls"] = map[string]any{
			"caFile": of.file("ca.crt"), "certFile": of.file("client.crt"), "keyFile": of.file("client.key"),
			"enableHostVerification": true, "serverName": serverName,
		}
	}
	return yaml.Marshal(settings)
}

// Dynamics is the dynamic configuration: what docs/temporal.md recommends.
func (s *Server) Dynamics() []byte {
	type values []map[string]any
	dynamic := map[string]values{
		"matching.numTaskqueueReadPartitions":  {{"value": 1}},
		"matching.numTaskqueueWritePartitions": {{"value": 1}},
		"matching.enableFairness":              {{"value": true}},
	}
	if s.Certificates != nil {
		dynamic["frontend.keepAliveMaxConnectionAge"] = values{{"value": "2s"}} // else connections outlive certificates for minutes
	}
	if n := s.SuggestContinueAsNew; n > 0 {
		dynamic["limit.historyCount.suggestContinueAsNew"] = values{{"value": n}}
	}
	text, err := yaml.Marshal(dynamic)
	if err != nil {
		panic(err) // strings, numbers and booleans
	}
	return text
}

// config is the server's configuration for one of its processes, which knows of all services.
func (s *Server) config(of Service) map[string]any {
	store := func(name string, connections int) map[string]any {
		return map[string]any{"sql": map[string]any{
			"pluginName": "postgres12", "databaseName": name, "connectAddr": address(s.Database.Port), "connectProtocol": "tcp",
			"user": databaseUser, "password": s.Database.Password,
			"maxConns": connections, "maxIdleConns": connections, "maxConnLifetime": "1h",
		}}
	}
	services := map[string]any{}
	for _, each := range append(slices.Clone(s.Services), of) { // of two of a kind its own ports
		rpc := map[string]any{"grpcPort": each.GRPC, "membershipPort": each.Membership, "bindOnIP": loopback}
		if each.Service == "frontend" {
			rpc["httpPort"] = each.HTTP
		}
		services[each.Service] = map[string]any{"rpc": rpc}
	}
	global := map[string]any{
		"membership": map[string]any{"maxJoinDuration": "30s", "broadcastAddress": loopback},
		"metrics": map[string]any{"prometheus": map[string]any{
			"timerType": "histogram", "listenAddress": address(of.Metrics),
		}},
	}
	if s.Certificates != nil {
		global["tls"] = s.Certificates.config()
	}
	return map[string]any{
		"log": map[string]any{"stdout": true, "level": "warn"},
		"persistence": map[string]any{
			"defaultStore": "default", "visibilityStore": "visibility", "numHistoryShards": historyShards,
			"datastores": map[string]any{"default": store(temporalStore, 20), "visibility": store(visibilityStore, 10)},
		},
		"global":   global,
		"services": services,
		"clusterMetadata": map[string]any{
			"enableGlobalNamespace": false, "failoverVersionIncrement": 10,
			"masterClusterName": "active", "currentClusterName": "active",
			"clusterInformation": map[string]any{"active": map[string]any{
				"enabled": true, "initialFailoverVersion": 1, "rpcName": "frontend", "rpcAddress": s.Address(),
			}},
		},
		"dcRedirectionPolicy": map[string]any{"policy": "noop"},
		"publicClient":        map[string]any{"hostPort": s.Address()},
		"dynamicConfigClient": map[string]any{"filepath": s.DynamicConfig, "pollInterval": "10s"},
	}
}
