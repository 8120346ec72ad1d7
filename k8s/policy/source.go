package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Where the policy is, in a cluster without DataProtectionApplications.
const (
	ConfigMapName = "holdfast-policy"
	ConfigMapKey  = "nonAdmin"
)

// DataProtectionApplications is the resource that holds the policy where OADP's operator is installed.
var DataProtectionApplications = schema.GroupVersionResource{
	Group: "oadp.openshift.io", Version: "v1alpha1", Resource: "dataprotectionapplications",
}

// Source reads the administrator's policy: spec.nonAdmin of the first DataProtectionApplication in the OADP namespace
// that has one, else key "nonAdmin" of ConfigMap "holdfast-policy" there, else the zero Policy.
//
// What was read last stays in force when the object disappears, or cannot be read or understood any more. All methods may
// be called at the same time.
type Source struct {
	applications dynamic.ResourceInterface
	reader       client.Reader
	namespace    string

	mu      sync.Mutex
	started uint64 // reads begun
	settled uint64 // the read that the fields below come from
	good    *held
	problem string
}

// held is a policy and the object it was read from; no object if there was none.
type held struct {
	policy  Policy
	origin  string
	version string // the object's resourceVersion
}

// document is a policy as written.
type document struct {
	text    []byte
	origin  string // "" if there is none
	version string
}

// NewSource returns a Source that reads from the OADP namespace. The reader serves the ConfigMap.
func NewSource(applications dynamic.Interface, reader client.Reader, oadpNamespace string) *Source {
	return &Source{
		applications: applications.Resource(DataProtectionApplications).Namespace(oadpNamespace),
		reader:       reader,
		namespace:    oadpNamespace,
	}
}

// Get reads the policy and returns the one in force. With an *UnusableError there is one that cannot be understood; any
// other error means that it could not be read. Either is returned only as long as no good policy is known; later, Problem
// tells of it.
func (s *Source) Get(ctx context.Context) (Policy, error) {
	s.mu.Lock()
	s.started++
	turn := s.started
	s.mu.Unlock()

	found, err := s.read(ctx)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return Policy{}, fmt.Errorf("read policy: %w", err) // the caller gave up: that says nothing about the policy
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	in := outcome(s.good, found, err)
	if turn > s.settled { // an answer that was overtaken changes nothing for later callers
		s.settled, s.good, s.problem = turn, in.good, in.problem
	}
	if in.good == nil {
		return Policy{}, err
	}
	return in.good.policy, nil
}

// Version changes with every change of the object that the policy in force was read from, and stays the same without one.
func (s *Source) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.good == nil {
		return ""
	}
	return s.good.origin + "@" + s.good.version
}

// Problem says why the policy in force is not what the cluster holds now, or why there is none; "" when all is well.
func (s *Source) Problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.problem
}

type verdict struct {
	good    *held
	problem string
}

// outcome decides what is in force after a read: what was found, or what was known before.
func outcome(before, found *held, err error) verdict {
	switch {
	case err != nil && before == nil:
		return verdict{problem: err.Error()}
	case err != nil:
		return verdict{good: before, problem: fmt.Sprintf("%v; the policy read before stays in force", err)}
	case found.origin == "" && before != nil && before.origin != "":
		return verdict{good: before, problem: fmt.Sprintf("%s no longer holds a policy; the one read from it last stays in "+
			"force until there is another, or until a restart", before.origin)}
	default:
		return verdict{good: found}
	}
}

// read returns the policy that the cluster holds now.
func (s *Source) read(ctx context.Context) (*held, error) {
	found, err := s.application(ctx)
	if err == nil && found.origin == "" {
		found, err = s.configMap(ctx)
	}
	if err != nil {
		return nil, err
	}
	if found.origin == "" {
		return &held{}, nil
	}
	policy, err := Parse(found.text)
	if err != nil {
		return nil, &UnusableError{Origin: found.origin, Err: err}
	}
	return &held{policy: policy, origin: found.origin, version: found.version}, nil
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
			continue // an err means that spec is no object, so it holds no policy
		}
		origin := fmt.Sprintf("DataProtectionApplication %s/%s spec.nonAdmin", s.namespace, application.GetName())
		text, err := json.Marshal(nonAdmin)
		if err != nil {
			return document{}, &UnusableError{Origin: origin, Err: err}
		}
		return document{text: text, origin: origin, version: application.GetResourceVersion()}, nil
	}
	return document{}, nil
}

var errNoKey = errors.New("there is no such key in the ConfigMap")

// configMap reads the policy in the ConfigMap.
func (s *Source) configMap(ctx context.Context) (document, error) {
	configMap := &corev1.ConfigMap{}
	err := s.reader.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: ConfigMapName}, configMap)
	if apierrors.IsNotFound(err) {
		return document{}, nil
	}
	if err != nil {
		return document{}, fmt.Errorf("get ConfigMap %s/%s: %w", s.namespace, ConfigMapName, err)
	}
	origin := fmt.Sprintf("ConfigMap %s/%s key %s", s.namespace, ConfigMapName, ConfigMapKey)
	text, found := configMap.Data[ConfigMapKey]
	if !found {
		return document{}, &UnusableError{Origin: origin, Err: errNoKey}
	}
	return document{text: []byte(text), origin: origin, version: configMap.ResourceVersion}, nil
}
