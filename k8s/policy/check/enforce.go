package check

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SpecPointer is a pointer to a Velero spec.
type SpecPointer[T any] interface {
	*T
	DeepCopy() *T
}

// Enforced refuses a spec that sets a field to another value than the administrator's. path is where the spec is in
// its object. Fields are compared one by one at the top level, each as a whole; an empty list or map is as good as none,
// in both specs.
func Enforced[T any, P SpecPointer[T]](path string, spec, enforced P) error {
	if enforced == nil {
		return nil
	}
	given, wanted := reflect.ValueOf(spec).Elem(), reflect.ValueOf(enforced).Elem()
	for i := range wanted.NumField() {
		value := wanted.Field(i)
		if isUnset(value) || isUnset(given.Field(i)) ||
			apiequality.Semantic.DeepEqual(value.Interface(), given.Field(i).Interface()) {
			continue
		}
		return External("the administrator has restricted %s.%s field value to %s",
			path, JSONName(wanted.Type().Field(i)), printed(value))
	}
	return nil
}

// ApplyEnforced gives a spec the administrator's values, copied. In a spec that Enforced accepted this only fills fields that
// are unset.
func ApplyEnforced[T any, P SpecPointer[T]](spec, enforced P) {
	if enforced == nil {
		return
	}
	given, wanted := reflect.ValueOf(spec).Elem(), reflect.ValueOf(P(enforced.DeepCopy())).Elem()
	for i := range wanted.NumField() {
		if !isUnset(wanted.Field(i)) {
			given.Field(i).Set(wanted.Field(i))
		}
	}
}

// isUnset reports whether a field says nothing. A pointer says something even to a zero value: snapshotVolumes: false can be
// enforced.
func isUnset(field reflect.Value) bool {
	return apiequality.Semantic.DeepEqual(field.Interface(), reflect.Zero(field.Type()).Interface())
}

// JSONName returns the name of a field in JSON.
func JSONName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// printed shows a value as the Non-Admin Controller does, if that is readable and always the same: scalars, durations and lists
// of words. All else, which that controller prints with addresses and in random order, is JSON.
func printed(value reflect.Value) string {
	value = reflect.Indirect(value)
	if duration, ok := value.Interface().(metav1.Duration); ok {
		return duration.Duration.String()
	}
	words := value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.String
	composite := value.Kind() == reflect.Struct || value.Kind() == reflect.Map || value.Kind() == reflect.Slice
	if composite && !words {
		if content, err := json.Marshal(value.Interface()); err == nil {
			return string(content)
		}
	}
	return fmt.Sprint(value.Interface())
}

// IsTrue reports whether a value is given and true.
func IsTrue(b *bool) bool { return b != nil && *b }

// PeriodOr returns a period, or the default if none is given.
func PeriodOr(period *metav1.Duration, fallback time.Duration) time.Duration {
	if period == nil {
		return fallback
	}
	return period.Duration
}
