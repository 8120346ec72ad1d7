package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/k8s/policy/check"
)

// Where the policy is: OADP's part in a cluster without DataProtectionApplications, and Holdfast's own part in every cluster.
const (
	ConfigMapName   = "holdfast-policy"
	ConfigMapKey    = "nonAdmin"
	ConfigMapOwnKey = "holdfast"
)

// Getter returns the administrator's policy in force.
type Getter interface {
	Get(ctx context.Context) (Policy, error)
}

// Versioned returns the administrator's policy in force, too.
type Versioned interface {
	Getter
	// Version changes with every write to the object that holds the policy.
	Version() string
}

// DataProtectionApplications is the resource that holds the policy where OADP's operator is installed.
var DataProtectionApplications = schema.GroupVersionResource{
	Group: "oadp.openshift.io", Version: "v1alpha1", Resource: "dataprotectionapplications",
}

// Source reads the administrator's policy, which has two parts. OADP's part is spec.nonAdmin of the first
// DataProtectionApplication in the OADP namespace that has one, else key "nonAdmin" of ConfigMap "holdfast-policy" there.
// Holdfast's own part is key "holdfast" of that ConfigMap. A part that does not exist sets nothing.
//
// The last version of a part that could be read stays in force when its object disappears, or cannot be read or parsed any
// more. All methods are safe for concurrent use.
type Source struct {
	applications dynamic.ResourceInterface
	reader       client.Reader
	namespace    string

	reads sync.Mutex // held by the read in progress

	mu   sync.Mutex
	next *shared // the read that has not started; nil if nobody waits for one
	oadp part
	own  part
}

// shared is a read for all callers that came before it started.
type shared struct {
	done   chan struct{}
	policy Policy
	err    error
}

// readLimit is how long a read may take: others wait for it.
const readLimit = 5 * time.Second

// part is the state of one part of the policy.
type part struct {
	good    *held
	problem string
}

// held is a part of a policy and the object it was read from; no object if there was none.
type held struct {
	policy  Policy
	origin  string
	version string // the object's resourceVersion
}

// at names the object and its version.
func (h *held) at() string {
	if h.origin == "" {
		return "none"
	}
	return h.origin + "@" + h.version
}

// document is a part of a policy as written.
type document struct {
	text    []byte
	origin  string // "" if there is none
	version string
}

// found is the result of reading one part.
type found struct {
	held *held
	err  error
}

// NewSource returns a Source that reads from the OADP namespace. The reader serves the ConfigMap.
func NewSource(applications dynamic.Interface, reader client.Reader, oadpNamespace string) *Source {
	return &Source{
		applications: applications.Resource(DataProtectionApplications).Namespace(oadpNamespace),
		reader:       reader,
		namespace:    oadpNamespace,
	}
}

// Get reads the policy and returns the one in force. An *UnusableError means that there is a policy which cannot be parsed; any
// other error means that it could not be read. Errors are returned only until a good policy has been read; after that, Problem
// returns them.
//
// The result was read after the call: callers that come while a read is in progress share the next one.
func (s *Source) Get(ctx context.Context) (Policy, error) {
	if ctx.Err() == nil {
		read := s.join(ctx)
		select {
		case <-read.done:
			return read.policy, read.err
		case <-ctx.Done():
		}
	}
	return Policy{}, fmt.Errorf("read policy: %w", ctx.Err())
}

// join returns the read that starts next.
func (s *Source) join(ctx context.Context) *shared {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = &shared{done: make(chan struct{})}
		go s.perform(context.WithoutCancel(ctx), s.next) // a caller that gives up must not cancel it for the others
	}
	return s.next
}

func (s *Source) perform(ctx context.Context, read *shared) {
	defer close(read.done)
	s.reads.Lock()
	defer s.reads.Unlock()
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	oadp, own := s.read(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.oadp, s.own = outcome(s.oadp.good, oadp), outcome(s.own.good, own)
	switch {
	case s.oadp.good == nil:
		read.err = oadp.err
	case s.own.good == nil:
		read.err = own.err
	default:
		read.policy = s.oadp.good.policy
		read.policy.Own = s.own.good.policy.Own
	}
}

// Version changes with every change of an object that the policy in force was read from, and stays the same without one.
func (s *Source) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.oadp.good == nil || s.own.good == nil {
		return ""
	}
	return s.oadp.good.at() + ", " + s.own.good.at()
}

// Problem says why the policy in force is not the one in the cluster now, or why there is none; "" when all is well.
func (s *Source) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.oadp.problem == "" || s.own.problem == "" || s.oadp.problem == s.own.problem {
		return cmp.Or(s.oadp.problem, s.own.problem)
	}
	return s.oadp.problem + "; " + s.own.problem
}

// outcome decides which version of a part is in force after a read: the one found, or the previous one.
func outcome(before *held, now found) part {
	switch {
	case now.err != nil && before == nil:
		return part{problem: now.err.Error()}
	case now.err != nil:
		return part{good: before, problem: fmt.Sprintf("%v; the policy read before stays in force", now.err)}
	case now.held.origin == "" && before != nil && before.origin != "":
		return part{good: before, problem: fmt.Sprintf("%s no longer holds a policy; the one read from it last stays in "+
			"force until there is another, or until a restart", before.origin)}
	default:
		return part{good: now.held}
	}
}

// read returns both parts of the policy that the cluster holds now.
func (s *Source) read(ctx context.Context) (oadp, own found) {
	application, err := s.application(ctx)
	if err != nil {
		oadp = found{err: err}
	}
	configMap, err := s.configMap(ctx)
	switch {
	case oadp.err == nil && application.origin != "":
		oadp = understand(application, Parse)
	case oadp.err == nil && err != nil:
		oadp = found{err: err}
	case oadp.err == nil:
		oadp = s.keyOf(configMap, ConfigMapKey, Parse)
	}
	if err != nil {
		return oadp, found{err: err}
	}
	return oadp, s.keyOf(configMap, ConfigMapOwnKey, ParseOwn)
}

// understand parses one part.
func understand(written document, parse func([]byte) (Policy, error)) found {
	if written.origin == "" {
		return found{held: &held{}}
	}
	policy, err := parse(written.text)
	if err != nil {
		return found{err: &check.UnusableError{Origin: written.origin, Err: err}}
	}
	return found{held: &held{policy: policy, origin: written.origin, version: written.version}}
}

// application reads spec.nonAdmin of the first DataProtectionApplication that has one.
func (s *Source) application(ctx context.Context) (document, error) {
	list, err := s.applications.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return document{}, nil
	}
	if err != nil {
		return document{}, fmt.Errorf("list DataProtectionApplications in namespace %s: %w", s.namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, application := range list.Items {
		nonAdmin, found, err := unstructured.NestedFieldNoCopy(application.Object, "spec", "nonAdmin")
		if err != nil || !found || nonAdmin == nil {
			continue // an err means that spec is not an object, so it holds no policy
		}
		origin := fmt.Sprintf("DataProtectionApplication %s/%s spec.nonAdmin", s.namespace, application.GetName())
		text, err := json.Marshal(nonAdmin)
		if err != nil {
			return document{}, &check.UnusableError{Origin: origin, Err: err}
		}
		return document{text: text, origin: origin, version: application.GetResourceVersion()}, nil
	}
	return document{}, nil
}

// configMap reads the ConfigMap; nil if there is none.
func (s *Source) configMap(ctx context.Context) (*corev1.ConfigMap, error) {
	configMap := &corev1.ConfigMap{}
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: ConfigMapName}, configMap)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // not existing is no error
	}
	if err != nil {
		return nil, fmt.Errorf("get ConfigMap %s/%s: %w", s.namespace, ConfigMapName, err)
	}
	return configMap, nil
}

var errNoKey = errors.New("there is no such key in the ConfigMap")

// keyOf reads one key of the ConfigMap, which may hold one part alone. A ConfigMap with neither key is an error.
func (s *Source) keyOf(configMap *corev1.ConfigMap, key string, parse func([]byte) (Policy, error)) found {
	if configMap == nil {
		return understand(document{}, parse)
	}
	origin := fmt.Sprintf("ConfigMap %s/%s key %s", s.namespace, ConfigMapName, key)
	text, there := configMap.Data[key]
	_, ownThere := configMap.Data[ConfigMapOwnKey]
	switch {
	case there:
		return understand(document{text: []byte(text), origin: origin, version: configMap.ResourceVersion}, parse)
	case key == ConfigMapKey && !ownThere:
		return found{err: &check.UnusableError{Origin: origin, Err: errNoKey}}
	}
	return understand(document{}, parse)
}
