package owner

import (
	"strings"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	holdfastv1alpha1 "holdfast.dev/holdfast/k8s/api/holdfast/v1alpha1"
)

// drillPrefix begins the name of every namespace of a drill. An admission policy keeps it for them.
const drillPrefix = "drill-"

// drillHash is how many characters of the name are derived.
const drillHash = 20

// DrillName returns the name of everything that is made for the RestoreDrill with that UID: its namespace, its Velero Restore.
func DrillName(cluster string, uid types.UID) string {
	derived := uuid.NewSHA1(uuid.MustParse(uuidNamespace), []byte("drill/"+cluster+"/"+string(uid))).String()
	return drillPrefix + strings.ReplaceAll(derived, "-", "")[:drillHash]
}

// DrillMeta returns the metadata for an object that is made for a drill.
func DrillMeta(cluster string, of metav1.Object, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: DrillName(cluster, of.GetUID()),
		Labels: map[string]string{holdfastv1alpha1.LabelDrill: string(of.GetUID())},
		Annotations: map[string]string{
			holdfastv1alpha1.AnnotationDrillNamespace: of.GetNamespace(), holdfastv1alpha1.AnnotationDrillName: of.GetName(),
		},
	}
}

// DrillOf returns the drill, which may be gone, that made was made for: it says so, and has the name that was derived for it.
func DrillOf(cluster string, made metav1.Object) (key types.NamespacedName, uid types.UID, ours bool) {
	annotations := made.GetAnnotations()
	key = types.NamespacedName{
		Namespace: annotations[holdfastv1alpha1.AnnotationDrillNamespace], Name: annotations[holdfastv1alpha1.AnnotationDrillName],
	}
	uid = types.UID(made.GetLabels()[holdfastv1alpha1.LabelDrill])
	return key, uid, uid != "" && validValue(key.Namespace) && validValue(key.Name) && made.GetName() == DrillName(cluster, uid)
}

// ForDrill reports whether made, which may be nil, was made for the drill with that UID.
func ForDrill(cluster string, made metav1.Object, uid types.UID) bool {
	_, of, ours := DrillOf(cluster, made)
	return ours && of == uid
}
