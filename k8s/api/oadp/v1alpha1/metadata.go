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

// Every kind of this package is in one of these lists, by its resource.
var (
	// Requests are tenants' requests to Holdfast: no backup holds them, and no restore makes them again.
	Requests = []string{
		ResourceNonAdminBackups, ResourceNonAdminRestores, ResourceNonAdminBackupStorageLocations, ResourceNonAdminDownloadRequests,
	}
	// AdministratorsOnly are in the OADP namespace, where no tenant has a right.
	AdministratorsOnly = []string{ResourceApprovalRequests}
)

// Labels of every object created in the OADP namespace for a tenant. The value of managed-by is the Non-Admin Controller's, so
// that an installation can move to Holdfast and back.
const (
	OadpLabel           = "openshift.io/oadp"
	OadpLabelValue      = "True"
	ManagedByLabel      = "app.kubernetes.io/managed-by"
	ManagedByLabelValue = "oadp-nac-controller"
)

// Labels with the NACUUID of the tenant's object for which an object in the OADP namespace was created. The NACUUID is also that
// object's name.
const (
	NabOriginNACUUIDLabel   = "openshift.io/oadp-nab-origin-nacuuid"
	NarOriginNACUUIDLabel   = "openshift.io/oadp-nar-origin-nacuuid"
	NabslOriginNACUUIDLabel = "openshift.io/oadp-nabsl-origin-nacuuid"
	NadrOriginNACUUIDLabel  = "openshift.io/oadp-nadr-origin-nacuuid"
)

// Annotations that name the tenant's object for which an object in the OADP namespace was created. They decide who owns it:
// tenants cannot write in the OADP namespace, but they may forge a status or label in their own.
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

// NabSyncLabel marks a NonAdminBackup created for a Velero Backup that Velero found in the object store. Its value is the
// Backup's NACUUID. A tenant can write it too, so it proves nothing.
const NabSyncLabel = "openshift.io/oadp-nab-synced-from-nacuuid"

// RegistryLabel says whether OADP can use a Velero BackupStorageLocation for its image registry.
const (
	RegistryLabel         = "openshift.io/oadp-registry"
	RegistryLabelValue    = "True"
	RegistryLabelValueOff = "False"
)

// Annotations in which an administrator gives the reason for an approval, a rejection or a revocation.
const (
	ApprovalReasonAnnotation   = "openshift.io/oadp-approval-reason"
	RejectionReasonAnnotation  = "openshift.io/oadp-rejection-reason"
	RevocationReasonAnnotation = "holdfast.dev/revocation-reason"
)

// Annotations on an approval request that say who changed its spec last. A ValidatingAdmissionPolicy keeps them true: every
// change of the spec sets one of them or removes both.
const (
	// DecidedByAnnotation is the Kubernetes username of the person who changed the spec.
	DecidedByAnnotation = "holdfast.dev/decided-by"
	// DecidedByTemporalAnnotation is the identity of the Temporal client that requested the change from the worker. Nobody has
	// verified it.
	DecidedByTemporalAnnotation = "holdfast.dev/decided-by-temporal-identity"
	// DecisionIDAnnotation shows a repeated attempt to write a decision through Temporal that it was written before.
	DecisionIDAnnotation = "holdfast.dev/decision-id"
)

// NabslOriginUIDAnnotation is the UID of the NonAdminBackupStorageLocation for which an object of the OADP namespace was created.
const NabslOriginUIDAnnotation = "holdfast.dev/nabsl-origin-uid"

// Annotations on the copy of a tenant's Secret in the OADP namespace.
const (
	// CopiedFromAnnotation is `<name>/<key>` of the tenant's Secret.
	CopiedFromAnnotation = "holdfast.dev/copied-from"
	// CopiedVersionAnnotation is `<uid>/<resourceVersion>` of the tenant's Secret when it was copied. A Velero location that Velero
	// validates only once has it, too: of the copy for which that was.
	CopiedVersionAnnotation = "holdfast.dev/copied-version"
)

// Finalizers that keep a tenant's object until its Velero objects are gone or released.
const (
	NabFinalizer   = "nonadminbackup.oadp.openshift.io/finalizer"
	NarFinalizer   = "nonadminrestore.oadp.openshift.io/finalizer"
	NabslFinalizer = "nonadminbackupstoragelocation.oadp.openshift.io/finalizer"
)

// MaxNACUUIDLength limits a NACUUID, which is both an object's name and a label's value.
const MaxNACUUIDLength = 63
