package location

import (
	"context"
	"errors"
	"fmt"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/policy/check"
	"holdfast.dev/holdfast/k8s/policy/locationspec"
	"holdfast.dev/holdfast/k8s/shorten"
)

// Verdict is the result of judging a spec, for the Accepted condition.
type Verdict struct {
	Accepted bool
	Message  string
}

const (
	maxMessageBytes = 1000
	// secretProblem begins every verdict that depends on the content of a Secret, which the watcher cannot see.
	secretProblem = "BSL credentials secret "
)

// judge judges the present spec by the administrator's policy and the tenant's Secret.
func (g *Gatherer) judge(ctx context.Context, o *Objects) (Verdict, error) {
	if o.Foreign != "" {
		return rejected(fmt.Errorf("a %s named %q exists in the OADP namespace and was not made for this "+
			"NonAdminBackupStorageLocation; ask an administrator to remove it", o.Foreign, o.Name)), nil
	}
	if err := locationspec.Validate(o.Location, o.Rules); err != nil {
		return verdictOf(err)
	}
	if _, err := g.Credentials(ctx, o, o.Location.Spec.BackupStorageLocationSpec); err != nil {
		return verdictOf(err)
	}
	if recorded, found := o.recordedVerdict(); found && !g.ReadSecrets {
		return recorded, nil
	}
	return Verdict{Accepted: true, Message: oadpv1alpha1.MessageBSLSpecValid}, nil
}

// recordedVerdict is the worker's verdict on this very spec because of the Secret's content, which the watcher cannot see. It
// does not count for a Secret that was missing and exists now.
func (o *Objects) recordedVerdict() (Verdict, bool) {
	condition, spec := o.accepted(), o.Location.Spec.BackupStorageLocationSpec
	if spec == nil || spec.Credential == nil || condition == nil || condition.ObservedGeneration != o.Location.Generation {
		return Verdict{}, false
	}
	return Verdict{Message: condition.Message}, condition.Status == metav1.ConditionFalse &&
		strings.HasPrefix(condition.Message, secretProblem) && condition.Message != notFound(spec.Credential.Name).Error()
}

// Usable reports whether the spec is valid, or works and only its Secret has become unusable since. The present content is not
// copied then.
func (o *Objects) Usable() bool {
	condition := o.accepted()
	return o.Verdict.Accepted || (o.made() && strings.HasPrefix(o.Verdict.Message, secretProblem) && condition != nil &&
		condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == o.Location.Generation)
}

// made: some object that Velero needs exists; missing ones can be made again.
func (o *Objects) made() bool { return o.Velero != nil || o.Copy != nil }

func (o *Objects) accepted() *metav1.Condition {
	return meta.FindStatusCondition(o.Location.Status.Conditions, string(oadpv1alpha1.NonAdminConditionAccepted))
}

func verdictOf(err error) (Verdict, error) {
	var invalid *check.InvalidSpecError
	if errors.As(err, &invalid) {
		return rejected(invalid), nil
	}
	return Verdict{}, err
}

func rejected(err error) Verdict { return Verdict{Message: shorten.Text(err.Error(), maxMessageBytes)} }

// Credentials reads the key of a tenant's Secret that a spec names. An *check.InvalidSpecError says that it does not exist, or
// must not be used; no error holds the content. Without ReadSecrets only the Secret's existence is checked, and the content is
// nil.
func (g *Gatherer) Credentials(
	ctx context.Context, o *Objects, spec *velerov1.BackupStorageLocationSpec,
) (*Credentials, error) {
	selector := spec.Credential
	if !g.ReadSecrets {
		secret, err := g.secretMeta(ctx, o, selector.Name)
		if err == nil && secret == nil {
			err = notFound(selector.Name)
		}
		return nil, err
	}
	secret, err := g.secret(ctx, o, selector.Name)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, notFound(selector.Name)
	}
	content, found := secret.Data[selector.Key]
	if !found {
		return nil, secretError("%q has no key %q", selector.Name, selector.Key)
	}
	built := locationspec.Build(spec, o.Rules, o.Ref.Namespace, o.Name)
	if err := locationspec.CheckStoredCredentials(&built, content); err != nil {
		return nil, secretError("%q key %q cannot be used: %v", selector.Name, selector.Key, err)
	}
	return &Credentials{content: content, Version: VersionOf(secret)}, nil
}

// Credentials are the content of a tenant's Secret.
type Credentials struct {
	content []byte
	// Version is `<uid>/<resourceVersion>` of the Secret.
	Version string
}

// Data is the content of the copy of the Secret: the key that the spec names, and nothing else.
func (c *Credentials) Data(spec *velerov1.BackupStorageLocationSpec) map[string][]byte {
	return map[string][]byte{spec.Credential.Key: c.content}
}

// String keeps the content out of logs and errors.
func (*Credentials) String() string { return "credentials" }

func notFound(name string) error { return secretError("not found: secrets %q not found", name) }

func secretError(format string, args ...any) error {
	return &check.InvalidSpecError{Message: secretProblem + fmt.Sprintf(format, args...), External: true}
}

// RefusedForSecret reports whether a spec was refused for its Secret's content: only a reader of the content can judge it again.
func RefusedForSecret(location *oadpv1alpha1.NonAdminBackupStorageLocation) bool {
	_, found := (&Objects{Location: location}).recordedVerdict()
	return found
}
