package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Limits of Drills.
const (
	// defaultDrills is Drills.MaxActive if the policy does not set it.
	defaultDrills = 1
	maxDrills     = 100
	// defaultDrillKeep is Drills.MaxKeep if the policy does not set it.
	defaultDrillKeep = time.Hour
	// defaultDrillTimeout is Drills.MaxTimeout if the policy does not set it: a drill holds a place that others wait for.
	defaultDrillTimeout = 2 * time.Hour
)

// Drills says whether tenants may have backups restored for a drill, and what a drill may use. Its zero value allows none.
type Drills struct {
	Enabled bool `json:"enabled,omitempty"`
	// MaxActive is how many namespaces of drills there may be at a time; defaultDrills if it is not set.
	MaxActive int `json:"maxActive,omitempty"`
	// MaxKeep is for how long a drill that failed may be kept at most; defaultDrillKeep if it is not set.
	MaxKeep metav1.Duration `json:"maxKeep,omitempty"`
	// MaxTimeout is how long a drill may take at most; defaultDrillTimeout if it is not set.
	MaxTimeout metav1.Duration `json:"maxTimeout,omitempty"`
	// NamespaceTemplate is added to the namespaces.
	NamespaceTemplate DrillNamespaceTemplate `json:"namespaceTemplate,omitempty"`
	// ResourceQuota limits each of the namespaces; see Quota.
	ResourceQuota corev1.ResourceList `json:"resourceQuota,omitempty"`
	// StorageClassMapping replaces the storage classes of restored claims.
	StorageClassMapping map[string]string `json:"storageClassMapping,omitempty"`
	// Kinds are restored besides the core kinds, as resource.group: what acts on objects of such a kind must be safe to act on a
	// copy.
	Kinds []string `json:"kinds,omitempty"`
	// DNS are further addresses that resolve names, as CIDRs of at most 256 addresses.
	DNS []string `json:"dns,omitempty"`
	// StripAnnotations are removed from what is restored, besides those of well-known controllers: keys of annotations by which
	// something acts outside of the namespace.
	StripAnnotations []string `json:"stripAnnotations,omitempty"`
	// TenantsMayLook: those whom a RoleBinding in the tenant's namespace gives ClusterRole admin, edit or view get view in the
	// drill's.
	TenantsMayLook bool `json:"tenantsMayLook,omitempty"`
	// WithoutNetworkPolicies: the cluster enforces no NetworkPolicy, so that nothing is restored that runs, or whose operator may
	// run something.
	WithoutNetworkPolicies bool `json:"withoutNetworkPolicies,omitempty"`
}

// DrillNamespaceTemplate is metadata of a namespace.
type DrillNamespaceTemplate struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ActiveLimit returns how many namespaces of drills there may be at a time.
func (d Drills) ActiveLimit() int {
	if d.MaxActive > 0 {
		return d.MaxActive
	}
	return defaultDrills
}

// KeepLimit returns for how long a drill that failed may be kept at most.
func (d Drills) KeepLimit() time.Duration {
	if d.MaxKeep.Duration > 0 {
		return d.MaxKeep.Duration
	}
	return defaultDrillKeep
}

// TimeoutLimit returns how long a drill may take at most.
func (d Drills) TimeoutLimit() time.Duration {
	if d.MaxTimeout.Duration > 0 {
		return d.MaxTimeout.Duration
	}
	return defaultDrillTimeout
}

// defaultDrillQuota is what a drill may use unless the policy says otherwise. A drill gets no Service that is reached from
// outside, whatever the policy says. A container without a limit gets what limits.* leaves each of the Pods: more than almost any
// asks for, since a container that asks for more than its limit is not admitted.
var defaultDrillQuota = map[string]string{
	"pods": "50", "persistentvolumeclaims": "20", "requests.storage": "100Gi",
	"requests.cpu": "8", "requests.memory": "16Gi", "requests.ephemeral-storage": "50Gi",
	"limits.cpu": "200", "limits.memory": "400Gi", "limits.ephemeral-storage": "200Gi",
	"count/configmaps": "5000", "count/secrets": "5000", "count/services": "500", "count/serviceaccounts": "500",
	"count/replicationcontrollers": "500", "count/daemonsets.apps": "100", "count/deployments.apps": "500",
	"count/replicasets.apps": "5000", "count/statefulsets.apps": "500", "count/cronjobs.batch": "500", "count/jobs.batch": "1000",
}

// Quota returns the limits of a namespace, by resource.
func (d Drills) Quota() map[string]string {
	quota := maps.Clone(defaultDrillQuota)
	for name, limit := range d.ResourceQuota {
		quota[string(name)] = limit.String()
	}
	quota["services.loadbalancers"], quota["services.nodeports"] = "0", "0"
	return quota
}

func decodeDrills(name string, value json.RawMessage, into *Drills) []string {
	problems := decodeStruct(name, value, into)
	if into.MaxActive < 0 || into.MaxActive > maxDrills {
		problems = append(problems, fmt.Sprintf("%s.maxActive must be between 0 and %d", name, maxDrills))
	}
	if into.MaxKeep.Duration < 0 {
		problems = append(problems, name+".maxKeep must not be negative")
	}
	if into.MaxTimeout.Duration < 0 {
		problems = append(problems, name+".maxTimeout must not be negative")
	}
	template := into.NamespaceTemplate
	for field, entries := range map[string]map[string]string{"labels": template.Labels, "annotations": template.Annotations} {
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			path := fmt.Sprintf("%s.namespaceTemplate.%s[%s]", name, field, key)
			switch wrong := validation.IsQualifiedName(key); {
			case len(wrong) > 0:
				problems = append(problems, path+" "+strings.Join(wrong, ", "))
			case strings.HasPrefix(key, "holdfast.dev/"), strings.HasPrefix(key, "kubernetes.io/"):
				problems = append(problems, path+" must not be a key of holdfast.dev or kubernetes.io")
			case field == "labels" && len(validation.IsValidLabelValue(entries[key])) > 0:
				problems = append(problems, path+" must have the value of a label")
			}
		}
	}
	for i, kind := range into.Kinds {
		if len(validation.IsDNS1123Subdomain(kind)) > 0 || !strings.Contains(kind, ".") {
			problems = append(problems,
				fmt.Sprintf("%s.kinds[%d] must be a resource and its group, for example things.example.com", name, i))
		}
	}
	for i, block := range into.DNS {
		if wrong := notDNS(block); wrong != "" {
			problems = append(problems, fmt.Sprintf("%s.dns[%d] %s", name, i, wrong))
		}
	}
	for i, key := range into.StripAnnotations {
		path := fmt.Sprintf("%s.stripAnnotations[%d]", name, i)
		switch wrong := validation.IsQualifiedName(key); {
		case len(wrong) > 0:
			problems = append(problems, path+" "+strings.Join(wrong, ", "))
		case strings.HasPrefix(key, "holdfast.dev/"):
			problems = append(problems, path+" must not be a key of holdfast.dev")
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(into.ResourceQuota)) {
		text := string(resource)
		qualified := strings.Contains(text, "/") && len(validation.IsQualifiedName(text)) == 0
		if !qualified && !quotaNames.MatchString(text) {
			problems = append(problems, fmt.Sprintf("%s.resourceQuota[%s] is not a resource that a ResourceQuota limits", name, resource))
		}
		if limit := into.ResourceQuota[resource]; limit.Sign() < 0 {
			problems = append(problems, fmt.Sprintf("%s.resourceQuota[%s] must not be negative", name, resource))
		}
	}
	return problems
}

// quotaNames are what a ResourceQuota limits by a name without a domain.
var quotaNames = regexp.MustCompile(`^(pods|services|services\.(loadbalancers|nodeports)|replicationcontrollers|secrets|` +
	`configmaps|persistentvolumeclaims|((requests|limits)\.)?(cpu|memory|ephemeral-storage)|requests\.storage)$`)

// dnsHostBits is how many bits of an address DNS may leave open.
const dnsHostBits = 8

// metadataServices is where clouds give a machine its credentials.
var metadataServices = []netip.Addr{netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("fd00:ec2::254")}

// notDNS says what is wrong with a block of addresses that resolve names.
func notDNS(text string) string {
	block, err := netip.ParsePrefix(text)
	switch {
	case err != nil || block != block.Masked() || block.Addr().Is4In6():
		return "must be a CIDR, for example 10.96.0.10/32"
	case block.Addr().BitLen()-block.Bits() > dnsHostBits:
		return fmt.Sprintf("must have at most %d addresses", 1<<dnsHostBits)
	case slices.ContainsFunc(metadataServices, block.Contains):
		return "must not contain an address of a cloud's metadata service"
	}
	return ""
}
