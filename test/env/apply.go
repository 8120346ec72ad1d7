package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	fieldOwner   = client.FieldOwner("holdfast-env")
	applyTimeout = 2 * time.Minute
)

// install lays in the cluster what an operator would: the OADP namespace, Velero's kinds and, unless Bare, Holdfast's kinds and
// roles.
func (e *Env) install(ctx context.Context) error {
	begin := time.Now()
	if err := e.Apply(ctx, namespaceObject(OADPNamespace)); err != nil {
		return err
	}
	velero, err := e.veleroKinds(ctx)
	if err != nil {
		return err
	}
	if e.options.Bare {
		return e.applyKinds(ctx, velero)
	}
	kinds, err := e.readDeployed("crds")
	if err != nil {
		return err
	}
	if err := e.applyKinds(ctx, append(kinds, velero...)); err != nil {
		return err
	}
	roles, err := e.readDeployed("rbac")
	if err != nil {
		return err
	}
	if err := e.Apply(ctx, roles...); err != nil {
		return err
	}
	e.rolesInstalled = len(roles) > 0
	e.progress.say("kinds and roles installed (%.1fs)", time.Since(begin).Seconds())
	return nil
}

// readDeployed reads a folder of deploy/, and the same one of each component that is wanted.
func (e *Env) readDeployed(folder string) ([]*unstructured.Unstructured, error) {
	objects, err := readFolder(filepath.Join(e.root, "deploy", folder))
	for component, wanted := range map[string]bool{"fdb": e.options.FoundationDB, "drills": e.options.Drills} {
		if err != nil || !wanted {
			continue
		}
		var more []*unstructured.Unstructured
		more, err = readFolder(filepath.Join(e.root, "deploy", "components", component, folder))
		objects = append(objects, more...)
	}
	return objects, err
}

// applyKinds applies CustomResourceDefinitions and waits until the API server serves them.
func (e *Env) applyKinds(ctx context.Context, kinds []*unstructured.Unstructured) error {
	if err := e.Apply(ctx, kinds...); err != nil {
		return err
	}
	for _, kind := range kinds {
		err := poll(ctx, applyTimeout, func() error {
			current := kind.DeepCopy()
			if err := e.client.Get(ctx, client.ObjectKeyFromObject(kind), current); err != nil {
				return err
			}
			if !conditionTrue(current, "Established") {
				return errors.New("not established")
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("install kind %s: %w", kind.GetName(), err)
		}
	}
	return nil
}

// Apply creates or changes objects by server-side apply with all rights, several at a time and in no order. It waits
// for kinds and
// namespaces that were made just before.
func (e *Env) Apply(ctx context.Context, objects ...*unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, object := range objects {
		group.Go(func() error {
			err := poll(ctx, applyTimeout, func() error { return e.applyOnce(ctx, object) })
			if err != nil {
				return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// applyOnce marks as permanent those errors that trying again does not cure.
func (e *Env) applyOnce(ctx context.Context, object *unstructured.Unstructured) error {
	configuration := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
	err := e.client.Apply(ctx, configuration, fieldOwner, client.ForceOwnership)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return permanentError{err}
	}
	return err
}

// permanentError ends a poll at once.
type permanentError struct{ error }

func (p permanentError) Unwrap() error { return p.error }

// poll repeats do until it succeeds; at the end of the time or of ctx it returns the last error.
func poll(ctx context.Context, timeout time.Duration, do func() error) error {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		err := do()
		if err == nil {
			return nil
		}
		var permanent permanentError
		if errors.As(err, &permanent) {
			return permanent.error
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-deadline.C:
			return err
		case <-ticker.C:
		}
	}
}

// readFolder reads the objects of all YAML files of a folder; a folder that does not exist holds none.
func readFolder(dir string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		read, err := ReadObjects(content)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		objects = append(objects, read...)
	}
	return objects, nil
}

// ReadObjects reads the objects of a YAML stream. Lists are resolved; a kustomization is not an object and left out.
func ReadObjects(content []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case len(object.Object) == 0 || object.GetKind() == "Kustomization":
		case object.IsList():
			err := object.EachListItem(func(item runtime.Object) error {
				entry, ok := item.(*unstructured.Unstructured)
				if !ok {
					return fmt.Errorf("a list entry is a %T", item)
				}
				objects = append(objects, entry)
				return nil
			})
			if err != nil {
				return nil, err
			}
		default:
			objects = append(objects, object)
		}
	}
}

func conditionTrue(object *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == kind {
			return condition["status"] == "True"
		}
	}
	return false
}
