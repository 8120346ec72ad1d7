package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	oadpv1alpha1 "holdfast.dev/holdfast/k8s/api/oadp/v1alpha1"
	"holdfast.dev/holdfast/k8s/probe"
)

// fieldsCheck warns of fields that the installed Velero knows and that tenants cannot use: the API server removes what the CRD of
// NonAdminBackup or NonAdminRestore does not know, and Holdfast hands on what its types know. It keeps nobody from being ready.
func (k *kube) fieldsCheck() probe.Check {
	return probe.Check{Name: "velero-fields", Every: time.Hour, Advisory: true, Probe: func(ctx context.Context) error {
		velero, err := k.served(ctx, velerov1.SchemeGroupVersion)
		if err != nil {
			return err
		}
		tenants, err := k.served(ctx, oadpv1alpha1.GroupVersion)
		if err != nil {
			return err
		}
		backup := velero["Backup"].at("spec")
		restore := velero["Restore"].at("spec")
		unusable := slices.Concat(
			missing("backupSpec", backup, tenants["NonAdminBackup"].at("spec", "backupSpec")),
			missing("backupSpec", backup, fieldsOf(reflect.TypeFor[velerov1.BackupSpec]())),
			missing("restoreSpec", restore, tenants["NonAdminRestore"].at("spec", "restoreSpec")),
			missing("restoreSpec", restore, fieldsOf(reflect.TypeFor[velerov1.RestoreSpec]())))
		slices.Sort(unusable)
		if unusable = slices.Compact(unusable); len(unusable) > 0 {
			return fmt.Errorf("the installed Velero has fields that tenants cannot use, and that are removed from their objects: %s: "+
				"see docs/operators.md, Velero's next version", strings.Join(unusable, ", "))
		}
		return nil
	}}
}

// fields are those of a schema that an API server serves, or of a Go type. One without properties takes what it is given.
type fields struct {
	Properties map[string]*fields `json:"properties"`
	Items      *fields            `json:"items"`
	// Kinds are those whose objects have these fields.
	Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

func (f *fields) at(path ...string) *fields {
	for _, name := range path {
		if f == nil {
			return nil
		}
		f = f.Properties[name]
	}
	return f
}

// missing returns the paths of the fields that known does not have. Of what is not known at all nothing is missing.
func missing(path string, of, known *fields) []string {
	switch {
	case of == nil || known == nil:
		return nil
	case of.Items != nil:
		return missing(path+"[]", of.Items, known.Items)
	case len(known.Properties) == 0:
		return nil
	}
	var paths []string
	for name, field := range of.Properties {
		there, is := known.Properties[name]
		if !is {
			paths = append(paths, path+"."+name)
			continue
		}
		paths = append(paths, missing(path+"."+name, field, there)...)
	}
	slices.Sort(paths)
	return paths
}

// fieldsOf are the fields of a Go type in JSON. A type that decodes itself has none.
func fieldsOf(t reflect.Type) *fields {
	switch {
	case t.Kind() == reflect.Pointer:
		return fieldsOf(t.Elem())
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return &fields{}
	case t.Kind() == reflect.Slice:
		return &fields{Items: fieldsOf(t.Elem())}
	case t.Kind() != reflect.Struct:
		return &fields{}
	}
	of := &fields{Properties: map[string]*fields{}}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			maps.Copy(of.Properties, fieldsOf(field.Type).Properties)
		} else {
			of.Properties[name] = fieldsOf(field.Type)
		}
	}
	return of
}

// served reads the fields of the kinds of a group, as the API server publishes them to all its clients; none if it does not
// serve the group.
func (k *kube) served(ctx context.Context, of schema.GroupVersion) (map[string]*fields, error) {
	raw, err := k.discovery.RESTClient().Get().AbsPath("/openapi/v3/apis", of.Group, of.Version).
		SetHeader("Accept", "application/json").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // not served is no error
	}
	if err != nil {
		return nil, fmt.Errorf("read the schemas of %s: %w", of, err)
	}
	var document struct {
		Components struct {
			Schemas map[string]*fields `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("read the schemas of %s: %w", of, err)
	}
	kinds := map[string]*fields{}
	for _, each := range document.Components.Schemas {
		if len(each.Kinds) == 1 { // else it is of deletions, for example
			kinds[each.Kinds[0].Kind] = each
		}
	}
	return kinds, nil
}
