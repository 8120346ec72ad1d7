package v1alpha1

// Kinds of this package, as they appear in manifests, Events and object references.
const (
	KindNonAdminBackup                = "NonAdminBackup"
	KindNonAdminRestore               = "NonAdminRestore"
	KindNonAdminBackupStorageLocation = "NonAdminBackupStorageLocation"
	KindApprovalRequest               = "NonAdminBackupStorageLocationApprovalRequest"
	KindNonAdminDownloadRequest       = "NonAdminDownloadRequest"
)

// Plural resource names of this package's kinds.
const (
	ResourceNonAdminBackups                = "nonadminbackups"
	ResourceNonAdminRestores               = "nonadminrestores"
	ResourceNonAdminBackupStorageLocations = "nonadminbackupstoragelocations"
	ResourceApprovalRequests               = "nonadminbackupstoragelocationapprovalrequests"
	ResourceNonAdminDownloadRequests       = "nonadmindownloadrequests"
)

// Labels that every object made in the OADP namespace for a tenant carries. The managed-by value is the Non-Admin
// Controller's own, so that an installation can move to Holdfast and back.
const (
	OadpLabel           = "openshift.io/oadp"
	OadpLabelValue      = "True"
	ManagedByLabel      = "app.kubernetes.io/managed-by"
	ManagedByLabelValue = "oadp-nac-controller"
)

// Labels whose value is the NACUUID of the tenant object that an object in the OADP namespace was made for. The
// NACUUID is also that object's name.
const (
	NabOriginNACUUIDLabel   = "openshift.io/oadp-nab-origin-nacuuid"
	NarOriginNACUUIDLabel   = "openshift.io/oadp-nar-origin-nacuuid"
	NabslOriginNACUUIDLabel = "openshift.io/oadp-nabsl-origin-nacuuid"
	NadrOriginNACUUIDLabel  = "openshift.io/oadp-nadr-origin-nacuuid"
)

// Annotations that name the tenant object that an object in the OADP namespace was made for. They decide who owns it:
// tenants cannot write in the OADP namespace, while a status or label in a tenant's namespace may be forged.
const (
	NabOriginNameAnnotation        = "openshift.io/oadp-nab-origin-name"
	NabOriginNamespaceAnnotation   = "openshift.io/oadp-nab-origin-namespace"
	NarOriginNameAnnotation        = "openshift.io/oadp-nar-origin-name"
	NarOriginNamespaceAnnotation   = "openshift.io/oadp-nar-origin-namespace"
	NabslOriginNameAnnotation      = "openshift.io/oadp-nabsl-origin-name"
	NabslOriginNamespaceAnnotation = "openshift.io/oadp-nabsl-origin-namespace"
	NadrOriginNameAnnotation       = "openshift.io/oadp-nadr-origin-name"
	NadrOriginNamespaceAnnotation  = "openshift.io/oadp-nadr-origin-namespace"
)

// NabSyncLabel marks a NonAdminBackup made for a Velero Backup that Velero found in the object store. Its
// value is the Backup's NACUUID. A tenant can write it too, so it proves nothing.
const NabSyncLabel = "openshift.io/oadp-nab-synced-from-nacuuid"

// RegistryLabel tells OADP whether a Velero BackupStorageLocation can serve its image registry.
const (
	RegistryLabel         = "openshift.io/oadp-registry"
	RegistryLabelValue    = "True"
	RegistryLabelValueOff = "False"
)

// Annotations in which an administrator says why a storage location was approved, rejected or revoked.
const (
	ApprovalReasonAnnotation   = "openshift.io/oadp-approval-reason"
	RejectionReasonAnnotation  = "openshift.io/oadp-rejection-reason"
	RevocationReasonAnnotation = "holdfast.dev/revocation-reason"
)

// Annotations on an approval request that say who changed its spec last. A ValidatingAdmissionPolicy sees to it that they
// are true; whatever changes the spec sets one of them or removes both.
const (
	// DecidedByAnnotation is the Kubernetes username of who changed the spec.
	DecidedByAnnotation = "holdfast.dev/decided-by"
	// DecidedByTemporalAnnotation is the identity of the Temporal client that asked the worker to change it. Nobody has
	// verified it.
	DecidedByTemporalAnnotation = "holdfast.dev/decided-by-temporal-identity"
	// DecisionIDAnnotation tells a repeated attempt to write a decision through Temporal that it was written.
	DecisionIDAnnotation = "holdfast.dev/decision-id"
)

// NabslOriginUIDAnnotation is the UID of the NonAdminBackupStorageLocation that an object of the OADP namespace was made for.
const NabslOriginUIDAnnotation = "holdfast.dev/nabsl-origin-uid"

// Annotations on the copy of a tenant's Secret in the OADP namespace.
const (
	// CopiedFromAnnotation is `<name>/<key>` of the tenant's Secret.
	CopiedFromAnnotation = "holdfast.dev/copied-from"
	// CopiedVersionAnnotation is `<uid>/<resourceVersion>` of the tenant's Secret when it was copied.
	CopiedVersionAnnotation = "holdfast.dev/copied-version"
)

// Finalizers that keep a tenant object until its Velero objects are dealt with.
const (
	NabFinalizer   = "nonadminbackup.oadp.openshift.io/finalizer"
	NarFinalizer   = "nonadminrestore.oadp.openshift.io/finalizer"
	NabslFinalizer = "nonadminbackupstoragelocation.oadp.openshift.io/finalizer"
)

// MaxNACUUIDLength limits a NACUUID, which is both an object's name and a label's value.
const MaxNACUUIDLength = 63
