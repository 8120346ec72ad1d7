package digests

import (
	"context"
	"crypto/rand"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"holdfast.dev/holdfast/activities"
	"holdfast.dev/holdfast/k8s"
	"holdfast.dev/holdfast/k8s/digest"
)

const (
	// SecretName is the name of the Secret with the key, in the OADP namespace. Without it the digests say nothing.
	SecretName = "holdfast-digests"
	secretKey  = "key"
	// suffix follows the name of the Velero Backup in the name of the ConfigMap with its digests.
	suffix = "-digests"
	setKey = "digests"
)

// Sets are kept in the OADP namespace, where no tenant can write.
type Sets struct {
	activities.Cluster
	OADPNamespace string
}

// Key returns the key; nil if there is none.
func (s *Sets) Key(ctx context.Context) (digest.Key, error) {
	secret := &corev1.Secret{}
	exists, err := k8s.Get(ctx, s.Client, "Secret", s.OADPNamespace, SecretName, secret)
	if err != nil || !exists {
		return nil, err
	}
	key := secret.Data[secretKey]
	if len(key) != digest.KeyBytes {
		return nil, fmt.Errorf("secret %s/%s has no %q of %d bytes: delete the Secret to get a new one",
			s.OADPNamespace, SecretName, secretKey, digest.KeyBytes)
	}
	return key, nil
}

// needKey returns the key, and makes one if there is none.
func (s *Sets) needKey(ctx context.Context) (digest.Key, error) {
	key, err := s.Key(ctx)
	if err != nil || key != nil {
		return key, err
	}
	key = make(digest.Key, digest.KeyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make a key for digests: %w", err)
	}
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.OADPNamespace, Name: SecretName}, Data: map[string][]byte{secretKey: key},
	}
	switch err := s.Client.Create(ctx, made); {
	case apierrors.IsAlreadyExists(err): // another worker's counts
		key, err := s.Key(ctx)
		if err == nil && key == nil {
			err = fmt.Errorf("secret %s/%s was deleted again", s.OADPNamespace, SecretName)
		}
		return key, err
	case err != nil:
		return nil, fmt.Errorf("create Secret %s/%s: %w", s.OADPNamespace, SecretName, err)
	}
	return key, nil
}

// Of returns the digests of a Velero Backup; nil if there is none that was made for it.
func (s *Sets) Of(ctx context.Context, made *velerov1.Backup) (*digest.Set, error) {
	found := &corev1.ConfigMap{}
	exists, err := k8s.Get(ctx, s.Client, "ConfigMap", s.OADPNamespace, made.Name+suffix, found)
	if err != nil || !exists || !metav1.IsControlledBy(found, made) {
		return nil, err
	}
	return digest.Unpack(found.BinaryData[setKey])
}

// put writes the digests of a Velero Backup, and replaces one of an earlier attempt. It goes with the Velero Backup.
func (s *Sets) put(ctx context.Context, made *velerov1.Backup, set *digest.Set) error {
	packed, err := set.Pack(digest.MaxSetBytes)
	if err != nil {
		return err
	}
	controls := true
	wanted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: made.Namespace, Name: made.Name + suffix,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: velerov1.SchemeGroupVersion.String(), Kind: "Backup", Name: made.Name, UID: made.UID, Controller: &controls,
			}},
		},
		BinaryData: map[string][]byte{setKey: packed},
	}
	err = s.Client.Create(ctx, wanted.DeepCopy())
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create ConfigMap %s: %w", wanted.Name, err)
	}
	found := &corev1.ConfigMap{}
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(wanted), found); err != nil {
		return fmt.Errorf("get ConfigMap %s: %w", wanted.Name, err)
	}
	_, err = s.PatchObject(ctx, found, func() {
		found.OwnerReferences, found.BinaryData, found.Data = wanted.OwnerReferences, wanted.BinaryData, nil
	})
	return err
}
